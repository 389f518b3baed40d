"""Report: counts single tests, times areas, prints the table of areas and the closing line.

Not for running anything. Thread-safety: add() and say() may be called from any thread.
"""

import os
import re
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

TAIL_LINES = 40


@dataclass
class Outcome:
    """What became of one test."""

    name: str
    status: str  # "passed", "failed" or "skipped"
    seconds: float = 0.0
    reason: str = ""  # why it failed or was skipped
    output: list[str] = field(default_factory=list)  # what the test printed, as far as it is known apart


@dataclass
class ProgramResult:
    """What became of one program: its tests, and where its output is."""

    program: str
    config: str
    outcomes: list[Outcome]
    seconds: float
    log: Path | None = None
    not_run: int = 0
    notes: list[str] = field(default_factory=list)
    unstable: list[str] = field(default_factory=list)  # failed at first and passed alone (see again.py)

    def count(self, status: str) -> int:
        return sum(1 for outcome in self.outcomes if outcome.status == status)


def in_ci() -> bool:
    return os.environ.get("CI", "").lower() in ("1", "true", "yes")


class Report:
    def __init__(self, budget_file: Path):
        self.lock = threading.Lock()
        self.passed = self.failed = self.skipped = self.not_run = 0
        self.failures: list[str] = []
        self.unstable: list[str] = []
        self.areas: dict[str, float] = {}
        self.budgets = read_budgets(budget_file)
        self.start = time.monotonic()

    def say(self, text: str) -> None:
        with self.lock:
            print(text, flush=True)

    @contextmanager
    def area(self, name: str):
        start = time.monotonic()
        try:
            yield
        finally:
            self.areas[name] = self.areas.get(name, 0.0) + time.monotonic() - start

    def add(self, result: ProgramResult) -> None:
        """Counts a program's tests and prints its line; the tail of its output when something failed."""
        bad = [o for o in result.outcomes if o.status == "failed"]
        skipped = [o for o in result.outcomes if o.status == "skipped"]
        if in_ci():  # continuous integration has everything installed: what is skipped there was not tested
            bad += [Outcome(o.name, "failed", o.seconds, f"skipped in CI: {o.reason}") for o in skipped]
        with self.lock:
            self.passed += result.count("passed")
            self.failed += len(bad)
            self.skipped += 0 if in_ci() else len(skipped)
            self.not_run += result.not_run
            self._print_line(result, bad, skipped)
            self.unstable += [f"{result.config}: {text}" for text in result.unstable]
            for outcome in bad:
                self.failures.append(f"{result.config}: {outcome.name}: {outcome.reason or 'failed'}")

    def _print_line(self, result: ProgramResult, bad: list[Outcome], skipped: list[Outcome]) -> None:
        parts = [f"{result.count('passed')} passed"]
        if bad:
            parts.append(f"{len(bad)} FAILED")
        if skipped and not in_ci():
            parts.append(f"{len(skipped)} skipped")
        if result.not_run:
            parts.append(f"{result.not_run} not run")
        print(f"  {result.config:<8} {result.program:<32} {', '.join(parts):<28} {result.seconds:7.1f} s", flush=True)
        for note in result.notes:
            print(f"    {note}")
        for text in result.unstable:
            print(f"    UNSTABLE, passed when run again alone: {text}")
        if not in_ci():
            for outcome in skipped:
                print(f"    skipped {outcome.name}: {outcome.reason}")
        if bad:
            for outcome in bad:
                print(f"    FAILED {outcome.name}: {outcome.reason or 'see the output'}")
                for line in outcome.output[-TAIL_LINES:] if outcome.status == "failed" else []:
                    print(f"    | {line[:400]}")
            if any(not outcome.output for outcome in bad):
                print_tail(result.log)
            elif result.log:
                print(f"    all of it: {result.log}")
        sys.stdout.flush()

    def close(self) -> int:
        """Prints the summary; the exit code."""
        width = max((len(name) for name in self.areas), default=0)
        print("\nseconds per area (budget: tests/BUDGET.md)")
        for name, seconds in self.areas.items():
            budget = self.budgets.get(name)
            beside = "" if budget is None else f" of {budget}"
            over = "  OVER BUDGET" if budget is not None and seconds > budget else ""
            print(f"  {name:<{width}} {seconds:7.1f}{beside}{over}")
        print(f"  {'all':<{width}} {time.monotonic() - self.start:7.1f}")
        if self.unstable:
            print("\nunstable (failed, and passed when run again alone):")
            for text in self.unstable:
                print(f"  {text}")
        if self.failures:
            print("\nfailed:")
            for failure in self.failures:
                print(f"  {failure}")
        if self.not_run:
            print(f"{self.not_run} tests were not run because their program ended before them")
        if self.passed + self.failed + self.skipped == 0:
            print("no test matches")
            self.failed = 1
        closing = f"{self.passed} passed, {self.failed} failed"
        print(closing + (f", {self.skipped} skipped" if self.skipped else ""), flush=True)
        return 1 if self.failed else 0


def print_tail(log: Path | None) -> None:
    if log is None or not log.exists():
        return
    lines = log.read_text(errors="replace").splitlines()
    print(f"    --- last lines of {log}")
    for line in lines[-TAIL_LINES:]:
        print(f"    | {line[:400]}")
    print("    ---")


def read_budgets(path: Path) -> dict[str, int]:
    """Rows "| area | seconds | ..." of tests/BUDGET.md."""
    budgets = {}
    if path.exists():
        for line in path.read_text().splitlines():
            row = re.match(r"\|\s*`?([\w.]+)`?\s*\|\s*(\d+)\s*\|", line)
            if row:
                budgets[row.group(1)] = int(row.group(2))
    return budgets
