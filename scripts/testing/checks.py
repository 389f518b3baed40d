"""What a script test is written with: named checks, run and reported as script_tests.py expects.

    @check("tidy.line_length")
    def line_length(t): t.fail("too long", "ragfs/base/path.h", 12)

    if __name__ == "__main__": main()
"""

import os
import re
import sys
import time
import traceback
from pathlib import Path

CHECKS = {}
MAX_SHOWN = 50


class Skip(Exception):
    """Ends a check that cannot run here; the text says why."""


class Test:
    """Collects what one check found."""

    def __init__(self, name: str):
        self.name = name
        self.failures = 0

    def fail(self, text: str, file: str | Path | None = None, line: int = 1) -> None:
        self.failures += 1
        if self.failures <= MAX_SHOWN:
            print(f"{file or self.name}:{line}: Failure\n{text}", flush=True)

    def equal(self, got, wanted, what: str = "") -> None:
        if got != wanted:
            self.fail(f"{what}: got {got!r}, wanted {wanted!r}")

    def true(self, condition, what: str) -> None:
        if not condition:
            self.fail(what)


def check(name: str):
    """Registers a function of one argument, the Test, under `name` (folder.check)."""

    def register(function):
        CHECKS[name] = function
        return function

    return register


def run_one(name: str) -> bool:
    print(f"[ RUN      ] {name}", flush=True)
    test, start = Test(name), time.monotonic()
    mark = "       OK "
    try:
        CHECKS[name](test)
    except Skip as skip:
        print(f"{name}:1: Skipped\n{skip}")
        mark = "  SKIPPED "
    except Exception:  # a check that breaks has failed; the others still run
        traceback.print_exc(file=sys.stdout)
        test.fail("the check itself broke: " + traceback.format_exc().strip().splitlines()[-1])
    if test.failures > MAX_SHOWN:
        print(f"... and {test.failures - MAX_SHOWN} more")
    if test.failures:
        mark = "  FAILED  "
    print(f"[{mark}] {name} ({(time.monotonic() - start) * 1000:.0f} ms)", flush=True)
    return test.failures == 0


def main() -> None:
    names = sys.argv[1:]
    if names == ["--list"]:
        print("\n".join(CHECKS))
        sys.exit(0)
    unknown = [name for name in names if name not in CHECKS]
    if unknown:
        # By hand a part of a name is enough.
        names = [name for name in CHECKS if any(re.search(part, name) for part in names)]
        if not names:
            sys.exit(f"no check named {' '.join(unknown)}; there are: {' '.join(CHECKS)}")
    results = [run_one(name) for name in names or CHECKS]
    sys.exit(0 if all(results) else 1)


def full_length() -> bool:
    """True under ./test --full."""
    return os.environ.get("RAGFS_TEST_FULL") == "1"
