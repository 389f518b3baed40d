#!/usr/bin/env python3
"""./test itself: how it reads GoogleTest's output, counts, and picks tests by name."""

import io
import os
import sys
import tempfile
from contextlib import redirect_stdout
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
from testing import again, build, gtest, report  # noqa: E402
from testing.checks import check, main  # noqa: E402
from testing.process import Ended, run_to_log  # noqa: E402

OUTPUT = """\
[ RUN      ] A.Passes
noise without an end of line[       OK ] A.Passes (3 ms)
[ RUN      ] A.Fails
/x/a_test.cc:12: Failure
Expected equality of these values:
  1
[  FAILED  ] A.Fails (10 ms)
[ RUN      ] All/B.Param/two
/x/b_test.cc:7: Failure
Value of: false
[  FAILED  ] All/B.Param/two, where GetParam() = 2 (4 ms)
[ RUN      ] A.Skips
/x/a_test.cc:30: Skipped
no io_uring here
[  SKIPPED ] A.Skips (0 ms)
"""


def tests_of(output, code=0):
    return {o.name: (o.status, o.reason) for o in gtest.parse(output, Ended(code, False, 1.0))}


@check("runner.reads_every_result")
def reads_every_result(t):
    found = tests_of(OUTPUT + "[  FAILED  ] A.Fails\n", 1)
    t.equal(found["A.Passes"], ("passed", ""))
    t.equal(found["A.Fails"], ("failed", "a_test.cc:12: Expected equality of these values: 1"))
    t.equal(found["All/B.Param/two"], ("failed", "b_test.cc:7: Value of: false"))
    t.equal(found["A.Skips"], ("skipped", "a_test.cc:30: no io_uring here"))


@check("runner.a_crash_is_one_failure")
def a_crash_is_one_failure(t):
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "crash_test"
        program.write_text("#!/bin/sh\necho '[ RUN      ] A.First'\necho '[       OK ] A.First (1 ms)'\n"
                           "echo '[ RUN      ] A.Crashes'\nkill -SEGV $$\n")
        program.chmod(0o755)
        limits = {"timeout_s": 20, "prefix": []}
        result = gtest.run(program, "debug", ["A.First", "A.Crashes", "A.Later"], True, Path(folder) / "log", limits,
                           {}, Path(folder))
    t.equal([(o.name, o.status) for o in result.outcomes], [("A.First", "passed"), ("A.Crashes", "failed")])
    t.true("SIGSEGV" in result.outcomes[1].reason, f"the reason names the signal: {result.outcomes[1].reason}")
    t.equal(result.not_run, 1, "tests after the crash")


@check("runner.a_bad_exit_code_is_a_failure")
def a_bad_exit_code_is_a_failure(t):
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "leak_test"
        program.write_text("#!/bin/sh\necho '[ RUN      ] A.B'\necho '[       OK ] A.B (1 ms)'\nexit 66\n")
        program.chmod(0o755)
        result = gtest.run(program, "asan", ["A.B"], True, Path(folder) / "log", {"timeout_s": 20, "prefix": []}, {},
                           Path(folder))
    t.equal([o.status for o in result.outcomes], ["passed", "failed"])


@check("runner.a_hang_ends")
def a_hang_ends(t):
    with tempfile.TemporaryDirectory() as folder:
        ended = run_to_log(["sh", "-c", "sleep 60 & wait"], Path(folder) / "log", 0.2, Path(folder), {})
    t.true(ended.timed_out and ended.seconds < 10, "a program over its time limit is killed with its children")


@check("runner.skips_count_as_failures_in_ci")
def skips_count_as_failures_in_ci(t):
    before = os.environ.pop("CI", None)
    try:
        for ci, wanted in (("", "1 passed, 0 failed, 1 skipped"), ("1", "1 passed, 1 failed"),
                           ("true", "1 passed, 1 failed")):
            os.environ["CI"] = ci
            out = io.StringIO()
            with redirect_stdout(out):
                counted = report.Report(Path("absent"))
                outcomes = [report.Outcome("A.B", "passed"), report.Outcome("A.C", "skipped", 0.0, "no disk")]
                counted.add(report.ProgramResult("a_test", "debug", outcomes, 0.1))
                code = counted.close()
            t.equal(out.getvalue().splitlines()[-1], wanted, f"the closing line with CI={ci!r}")
            t.equal(code, 1 if ci else 0, f"the exit code with CI={ci!r}")
            t.true("no disk" in out.getvalue(), "the reason is printed")
    finally:
        os.environ.pop("CI", None)
        if before is not None:
            os.environ["CI"] = before


def flaky_program(folder, name, tests, passes_second):
    """A program whose tests fail in the first run, and pass later if their name is in `passes_second`."""
    program, mark = Path(folder) / name, Path(folder) / "ran"
    lines = ["#!/bin/sh", f'code=0; again=no; [ -e "{mark}" ] && again=yes; : > "{mark}"']
    for test in tests:
        good = f"[ $again = yes ] && [ {'yes' if test in passes_second else 'no'} = yes ]"
        lines.append(f"case \"$1\" in *{test}*|*'*'*) echo '[ RUN      ] {test}'; if {good}; "
                     f"then echo '[       OK ] {test} (1 ms)'; else code=1; echo '/x/a_test.cc:1: Failure'; "
                     f"echo first; echo '[  FAILED  ] {test} (1 ms)'; fi;; esac")
    program.write_text("\n".join([*lines, "exit $code", ""]))
    program.chmod(0o755)
    return program


@check("runner.what_waits_for_others_is_tried_again_and_told")
def what_waits_for_others_is_tried_again_and_told(t):
    stories = [  # program, tests, those that pass in the second run, passed, failed, unstable
        ("redis_test", ["A.B"], ["A.B"], 1, 0, 1),
        ("redis_test", ["A.B"], [], 0, 1, 0),
        ("redis_test", ["A.B", "A.C"], ["A.B"], 0, 2, 0),
        ("redis_test", ["RedisCoherence.B"], ["RedisCoherence.B"], 0, 1, 0),
        ("redis_test", ["A.B", "A.C", "A.D", "A.E"], ["A.B", "A.C", "A.D", "A.E"], 0, 4, 0),
        ("coherence_test", ["A.B"], ["A.B"], 0, 1, 0),
    ]
    for name, tests, second, passed, failed, unstable in stories:
        with tempfile.TemporaryDirectory() as folder:
            program = flaky_program(folder, name, tests, second)
            limits = {"timeout_s": 20, "prefix": []}
            result = gtest.run(program, "debug", tests, True, Path(folder) / "x.log", limits, {}, Path(folder))
            if again.wanted(result):
                result = again.run(result, program, limits, {}, Path(folder))
            out = io.StringIO()
            with redirect_stdout(out):
                counted = report.Report(Path("absent"))
                counted.add(result)
                counted.close()
        story = f"{name} {tests} {second}"
        t.equal((counted.passed, counted.failed, len(counted.unstable)), (passed, failed, unstable), story)
        t.equal(out.getvalue().count("a_test.cc:1: first") >= 2, True, f"{story}: the first failure is told twice")
        t.equal(out.getvalue().splitlines()[-1], f"{passed} passed, {failed} failed", story)


@check("runner.no_match_is_a_failure")
def no_match_is_a_failure(t):
    out = io.StringIO()
    with redirect_stdout(out):
        code = report.Report(Path("absent")).close()
    t.equal((code, out.getvalue().splitlines()[-1]), (1, "0 passed, 1 failed"))


@check("runner.long_filters_are_split")
def long_filters_are_split(t):
    names = [f"Suite.Test{'x' * 90}{number}" for number in range(3000)]
    chunks = gtest.filters(names)
    t.true(all(len(chunk) <= gtest.FILTER_BYTES for chunk in chunks), "each fits a command line")
    t.equal(":".join(chunks).split(":"), names, "nothing is lost")


@check("runner.knows_names_without_building")
def knows_names_without_building(t):
    with tempfile.TemporaryDirectory() as folder:
        plain, parameterised = Path(folder) / "a_test.cc", Path(folder) / "b_test.cc"
        plain.write_text("TEST(CaseA02, Copy) {}\nTEST_F(Fixture,\n       Name) {}\n")
        parameterised.write_text("TEST_P(A, B) {}\nINSTANTIATE_TEST_SUITE_P(All, A, Values(1));\n")
        t.equal(build.static_names([plain]), ["CaseA02.Copy", "Fixture.Name"])
        t.equal(build.static_names([plain, parameterised]), None)


if __name__ == "__main__":
    main()
