"""Script tests: executable tests/<folder>/*_test.py.

The protocol. `--list` prints one test name a line ("tidy.line_length"). Called with names it runs those, without any it
runs all, and prints lines as GoogleTest does: "[ RUN      ] name", then "[       OK ] name (12 ms)", "[  FAILED  ] ..."
or "[  SKIPPED ] ...", the reason of the last two before it as "file:line: Failure" / "Skipped" and a text. A line
"# Builds first: ragfs" in the script names targets of the debug build that it needs.
"""

import re
import subprocess
from pathlib import Path

from . import gtest, process
from .report import Outcome, ProgramResult


def find(root: Path) -> list[Path]:
    return sorted(root.glob("tests/*/*_test.py"))


def targets(script: Path) -> list[str]:
    found = re.search(r"^# Builds first: (.*)$", script.read_text(), re.MULTILINE)
    return found.group(1).split() if found else []


def list_tests(script: Path) -> list[str]:
    done = subprocess.run([script, "--list"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
                          check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{script} --list failed with {done.returncode}: {done.stderr[-400:]}")
    return done.stdout.split()


def run(script: Path, names: list[str], log: Path, timeout_s: float, env: dict[str, str], cwd: Path) -> ProgramResult:
    ended = process.run_to_log([str(script), *names], log, timeout_s, cwd, env)
    outcomes = gtest.parse(log.read_text(errors="replace"), ended)
    if ended.code != 0 and not any(outcome.status == "failed" for outcome in outcomes):
        outcomes.append(Outcome(f"{script.stem}.exit", "failed", 0.0, f"no test failed, but: {ended.text()}"))
    began = {outcome.name for outcome in outcomes}
    not_run = sum(1 for name in names if name not in began)
    if not_run and not any(outcome.status == "failed" for outcome in outcomes):
        outcomes.append(Outcome(f"{script.stem}.exit", "failed", 0.0, "ended early without a failure"))
    return ProgramResult(script.stem, "script", outcomes, ended.seconds, log, not_run)
