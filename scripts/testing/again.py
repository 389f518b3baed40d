"""Tests that wait for other processes to notice something: a failure there is tried once more, alone, and told.

Redis Sentinels and clusters fail over by their own clocks, and a device that dies is noticed by a watchdog: on a
machine that stands still for a second such a test can fail without a fault of ours. It is run again with nothing
beside it. What passes then counts as passed, is printed as UNSTABLE with its first failure, and is listed again in
the summary.

Not for tests of coherence: a stale byte that comes once in a while is the fault that they are there to find. Not under
--full or by hand, where whoever looks wants the failure.
"""

from pathlib import Path

from . import gtest
from .report import Outcome, ProgramResult

WAIT_FOR_OTHERS = {"redis_test", "faults_test"}
NEVER = "Coherence"  # in a suite's name
MAX_AGAIN = 3  # more failures than this in one program are no accident


def wanted(result: ProgramResult) -> list[str]:
    """The tests of `result` to run again; none when one of its failures must not be."""
    failed = [outcome.name for outcome in result.outcomes if outcome.status == "failed"]
    if result.program not in WAIT_FOR_OTHERS or result.not_run or len(failed) > MAX_AGAIN:
        return []
    if any(NEVER in name or name.startswith(f"{result.program}.") for name in failed):
        return []
    return failed


def run(result: ProgramResult, program: Path, limits: dict, env: dict[str, str], cwd: Path) -> ProgramResult:
    """`result`, in which what failed and then passed is passed and noted."""
    names = wanted(result)
    log = result.log.with_suffix(".again.log")
    second = gtest.run(program, result.config, names, False, log, limits, env, cwd)
    passed = {outcome.name for outcome in second.outcomes if outcome.status == "passed"}
    if any(outcome.status != "passed" for outcome in second.outcomes):
        passed = set()  # the program ended badly, or one failed again: the first run stands
    for index, outcome in enumerate(result.outcomes):
        if outcome.name in passed:
            result.outcomes[index] = Outcome(outcome.name, "passed", outcome.seconds)
            result.unstable.append(f"{outcome.name}: {outcome.reason or 'failed'}")
    result.seconds += second.seconds
    return result
