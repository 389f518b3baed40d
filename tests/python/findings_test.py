#!/usr/bin/env python3
"""The original's findings by letter (findings.py), on our module with the embedded cache."""
# Builds first: ragfs_python

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1] / "scripts"), str(HERE)]
from module_test import EMBEDDED, run_script  # noqa: E402
from testing import checks  # noqa: E402

LETTERS = {"c": "sizes", "d": "rename_and_recreate", "g": "two_mounts", "h": "remount", "i": "aliases",
           "j": "changed_behind", "l": "overwrite_fails_half_way", "m": "torn_reads", "n": "lock_files",
           "s": "stale_or_torn_hits", "u": "user_file_named_like_a_lock"}

checks.CHECKS.clear()  # those of module_test run there
for letter, name in LETTERS.items():
    checks.check(f"python.finding_{letter}_{name}")(lambda t, letter=letter: run_script(t, "findings.py", letter,
                                                                                        config=EMBEDDED))

if __name__ == "__main__":
    checks.main()
