#!/usr/bin/env python3
"""The house rules as tests. Exceptions, with their reasons, are in allowed.py.

By hand: tests/tidy/tidy_test.py [--list | part of a name ...]; clang-tidy and the header check need `cmake --preset
debug` first.
"""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "scripts")]
import docs_checks  # noqa: E402, F401
import layout_checks  # noqa: E402, F401
import text_checks  # noqa: E402, F401
import tool_checks  # noqa: E402, F401
import detector_checks  # noqa: E402, F401
from testing.checks import main  # noqa: E402

if __name__ == "__main__":
    main()
