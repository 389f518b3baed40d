"""GoogleTest programs: which tests they have, running some of them, reading what became of each."""

import itertools
import re
import subprocess
from pathlib import Path

from . import process
from .report import Outcome, ProgramResult

MARK = re.compile(r"\[( RUN      |       OK |  FAILED  |  SKIPPED )\] (\S+?)(?:, where .*?)?(?: \((\d+) ms\))?$")
PLACE = re.compile(r":\d+: (Failure|Skipped)$")
FILTER_BYTES = 100_000  # one argument holds at most 128 KiB


def list_tests(program: Path, env: dict[str, str] | None = None) -> list[str]:
    """Full names as suite.test, parameters included. Raises RuntimeError when the program does not even list."""
    done = subprocess.run([program, "--gtest_list_tests"], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          errors="replace", timeout=60, check=False, env=env)
    if done.returncode != 0:
        raise RuntimeError(f"{program.name} --gtest_list_tests failed with {done.returncode}: {done.stderr[-400:]}")
    names, suite = [], ""
    for line in done.stdout.splitlines():
        text = line.split("  # ")[0].rstrip()
        if line.startswith("  "):
            names.append(suite + text.strip())
        elif text.endswith("."):
            suite = text
    return names


def filters(names: list[str]) -> list[str]:
    """The names as --gtest_filter values, each short enough for a command line."""
    chunks, size = [[]], 0
    for name in names:
        if size + len(name) + 1 > FILTER_BYTES and chunks[-1]:
            chunks.append([])
            size = 0
        chunks[-1].append(name)
        size += len(name) + 1
    return [":".join(chunk) for chunk in chunks]


def parse(output: str, ended: process.Ended) -> list[Outcome]:
    """One outcome for each test that began; the one that was running when the program died has failed."""
    outcomes: dict[str, Outcome] = {}
    running, since = None, []
    for line in output.splitlines():
        mark = MARK.search(line)
        kind = mark.group(1).strip() if mark else ""
        if kind == "RUN":
            running, since = mark.group(2), []
        elif mark and mark.group(3) is not None and mark.group(2) == running:
            status = {"OK": "passed", "FAILED": "failed", "SKIPPED": "skipped"}[kind]
            reason = "" if status == "passed" else reason_of(since)
            outcomes[running] = Outcome(running, status, int(mark.group(3)) / 1000, reason, since)
            running = None
        elif running is not None:
            since.append(line)
    if running is not None:
        outcomes[running] = Outcome(running, "failed", 0.0, f"the program ended in this test: {ended.text()}", since)
    return list(outcomes.values())


def reason_of(lines: list[str]) -> str:
    """The first assertion's place and text, or a skip's text, on one line."""
    for index, line in enumerate(lines):
        if PLACE.search(line):
            place = Path(line.rsplit(":", 2)[0]).name + ":" + line.rsplit(":", 2)[1]
            texts = itertools.takewhile(lambda text: not PLACE.search(text), lines[index + 1 : index + 4])
            rest = " ".join(text.strip() for text in texts if text.strip())
            return f"{place}: {rest}"[:300]
    return ""


def run(program: Path, config: str, names: list[str], every: bool, log: Path, limits: dict, env: dict[str, str],
        cwd: Path) -> ProgramResult:
    """Runs `names` (all of the program's when `every`). limits: {"timeout_s": ..., "prefix": [...]}."""
    result = ProgramResult(program.name, config, [], 0.0, log)
    output = ""
    for number, chosen in enumerate(["*"] if every else filters(names)):
        part = log if number == 0 else log.with_suffix(f".{number}.log")
        command = [*limits["prefix"], str(program), f"--gtest_filter={chosen}", "--gtest_color=no"]
        ended = process.run_to_log(command, part, limits["timeout_s"], cwd, env)
        output = part.read_text(errors="replace")
        outcomes = parse(output, ended)
        if ended.code != 0 and not any(outcome.status == "failed" for outcome in outcomes):
            outcomes.append(Outcome(f"{program.name}.exit", "failed", 0.0, f"no test failed, but: {ended.text()}"))
            result.log = part
        result.outcomes += outcomes
        result.seconds += ended.seconds
    began = {outcome.name for outcome in result.outcomes}
    result.not_run = sum(1 for name in names if name not in began and "DISABLED_" not in name)
    if not result.outcomes:
        result.outcomes.append(Outcome(f"{program.name}.empty", "failed", 0.0, "the program ran no test"))
    elif result.not_run and not any(outcome.status == "failed" for outcome in result.outcomes):
        result.outcomes.append(Outcome(f"{program.name}.exit", "failed", 0.0, "ended early without a failure"))
    return result
