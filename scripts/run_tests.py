#!/usr/bin/env python3
"""What ./test does after the packages are installed: builds, runs every test, counts."""

import argparse
import os
import re
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from testing import again, build, fuzz, gtest, process, report, script_tests  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
LOGS = ROOT / "build" / "test-logs"
JOBS = 2  # test programs at a time
TIMEOUT_S = {"debug": 400, "asan": 700, "tsan": 900, "script": 1800}
FUZZ_S = 20
FULL_FACTOR = 10  # of time limits and fuzzing under --full
CLANG = "build.clang_thread_safety"
# Too long for every run on two cores: only under --full, or when a PATTERN names them.
LONG_CHECKS = {"tidy.clang_tidy"}

# The longest programs, which mostly wait: they run beside all the others, not after them.
FIRST = ("redis_test",)

# Programs that a sanitizer has nothing to add to, with the reason.
NOT_UNDER_SANITIZERS = {"model_test": "explores a model in one thread and shares no code with the file system"}
SANITIZER_ENV = {
    "asan": {"RAGFS_TEST_SANITIZER": "asan", "UBSAN_OPTIONS": "print_stacktrace=1",
             "ASAN_OPTIONS": "detect_leaks=1:detect_stack_use_after_return=1:strict_string_checks=1"},
    "tsan": {"RAGFS_TEST_SANITIZER": "tsan", "TSAN_OPTIONS": "second_deadlock_stack=1:exitcode=66"},
}
EPILOG = """examples:
  ./test                          everything, as continuous integration does
  ./test --no-sanitizers          the debug build and the house rules: minutes instead of half an hour
  ./test path                     every test with "path" in its name
  ./test 'case.*a02'              the tests of one reported case
  ./test '^Bytes[.]' --sanitizers one suite in the debug, asan and tsan builds
  ./test tidy.folder              one house rule
  ./test --list '^tidy'           names only

A test's name is suite.test as GoogleTest prints it, parameters included; script tests are named folder.check, fuzzers
fuzz.name. PATTERN is an extended regular expression, any case. Output of every program: build/test-logs/.
environment: CI=true counts skipped tests as failed; RAGFS_SKIP_INSTALL=1 installs nothing; RAGFS_BUILD_JOBS=N.
"""


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./test", epilog=EPILOG, description="Builds and runs the tests of RAGFS.",
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pattern", nargs="?", default="", help="run only tests whose names match")
    parser.add_argument("--full", action="store_true", help="full lengths of randomized, model and fuzz tests")
    parser.add_argument("--list", action="store_true", help="print the names of the tests and stop")
    parser.add_argument("--sanitizers", action="store_true", help="with a PATTERN: in the asan and tsan builds too")
    parser.add_argument("--no-sanitizers", action="store_true", help="the debug build and script tests alone")
    options = parser.parse_args()
    classes = {"alpha": "A-Za-z", "digit": "0-9", "alnum": "A-Za-z0-9", "upper": "A-Z", "lower": "a-z", "space": r"\s"}
    text = re.sub(r"\[:(\w+):\]", lambda m: classes.get(m.group(1), m.group(0)), options.pattern)
    try:
        options.matches = re.compile(text, re.IGNORECASE).search
    except re.error as error:
        parser.error(f"PATTERN is not a regular expression: {error}")
    return options


def built_names(program: Path, sources: list[Path]) -> list[str] | None:
    """What the program that is there lists, unless a source of it is newer."""
    if not program.exists() or any(source.stat().st_mtime > program.stat().st_mtime for source in sources):
        return None
    try:
        return gtest.list_tests(program)
    except (RuntimeError, subprocess.TimeoutExpired, OSError):
        return None


def can_fix_addresses() -> bool:
    return subprocess.run(["setarch", "-R", "true"], capture_output=True, check=False).returncode == 0


class Runner:
    def __init__(self, options: argparse.Namespace):
        self.options = options
        self.report = report.Report(ROOT / "tests" / "BUDGET.md")
        self.env = {"RAGFS_SOURCE_DIR": str(ROOT), "RAGFS_BUILD_DIR": str(ROOT / "build" / "debug"),
                    "CCACHE_BASEDIR": str(ROOT), "CCACHE_NOHASHDIR": "true"}
        if options.full:
            self.env["RAGFS_TEST_FULL"] = "1"
        self.scripts = []  # (script, names)
        for script in script_tests.find(ROOT):
            names = [name for name in script_tests.list_tests(script) if options.matches(name)]
            if not options.full and not options.pattern:
                names = [name for name in names if name not in LONG_CHECKS]
            if names:
                self.scripts.append((script, names))
        self.fuzzers = [name for name in fuzz.names(ROOT) if options.matches(name)]

    def fail(self, name: str, reason: str) -> None:
        self.report.add(report.ProgramResult(name, "build", [report.Outcome(name, "failed", 0.0, reason)], 0.0))

    def wanted_targets(self, builder: build.Build) -> list[str] | None:
        """What to build for the pattern; None = everything."""
        script_needs = {target for script, _ in self.scripts for target in script_tests.targets(script)}
        if not self.options.pattern:
            return None
        targets = set(script_needs)
        for program, sources in builder.sources().items():
            names = build.static_names(sources)
            if names is None:
                names = built_names(builder.directory / "tests" / program, sources)
            if names is None or any(self.options.matches(name) for name in names):
                targets.add(program)
        return sorted(targets)

    def compile(self, config: str) -> build.Build | None:
        builder = build.Build(ROOT, config, self.report)
        with self.report.area(f"build.{config}"):
            if not builder.configure():
                report.print_tail(builder.log)
                self.fail(f"build.{config}", "cmake failed")
                return None
            targets = self.wanted_targets(builder)
            if targets == []:
                return builder
            if not self.options.list:
                self.report.say(f"building {config}: {'everything' if targets is None else ' '.join(targets)}")
            if not builder.build(targets):
                self.fail(f"build.{config}", f"see {builder.log.relative_to(ROOT)}")
        return builder

    def selected(self, builder: build.Build) -> list[tuple[Path, list[str], bool]]:
        """(program, names that match, whether those are all) for each program with a match."""
        chosen = []
        known = builder.sources()
        for program in builder.programs():
            if program.name not in known:  # left over from a source that is gone
                continue
            static = build.static_names(known[program.name])
            if static is not None and not any(self.options.matches(name) for name in static):
                continue
            try:
                everything = gtest.list_tests(program)
            except (RuntimeError, subprocess.TimeoutExpired, OSError) as error:
                self.fail(f"{program.name}.list", str(error))
                continue
            names = [name for name in everything if self.options.matches(name)]
            if names or (not everything and not self.options.pattern):
                chosen.append((program, names, len(names) == len(everything)))
        return sorted(chosen, key=lambda one: one[0].name not in FIRST)

    def run_programs(self, builder: build.Build, config: str) -> None:
        env = {**self.env, **SANITIZER_ENV.get(config, {}), "RAGFS_BUILD_DIR": str(builder.directory)}
        limits = {"timeout_s": TIMEOUT_S[config] * (FULL_FACTOR if self.options.full else 1), "prefix": []}
        if config == "tsan" and can_fix_addresses():
            limits["prefix"] = ["setarch", "-R"]  # its shadow memory does not fit every random layout
        with self.report.area(f"tests.{config}"), ThreadPoolExecutor(JOBS) as pool:
            futures = {}
            for program, names, every in self.selected(builder):
                if config != "debug" and program.name in NOT_UNDER_SANITIZERS:
                    continue
                log = LOGS / config / f"{program.name}.log"
                futures[pool.submit(gtest.run, program, config, names, every, log, limits, env, ROOT)] = program
            later = []
            for future in as_completed(futures):
                if report.in_ci() and not self.options.full and again.wanted(future.result()):
                    later.append((future.result(), futures[future]))
                else:
                    self.report.add(future.result())
            for result, program in later:  # alone, now that the others have ended
                self.report.add(again.run(result, program, limits, env, ROOT))

    def run_scripts(self) -> None:
        for script, names in self.scripts:
            area = f"script.{script.parent.name}"
            timeout_s = TIMEOUT_S["script"] * (FULL_FACTOR if self.options.full else 1)
            with self.report.area(area):
                log = LOGS / "script" / f"{script.parent.name}-{script.stem}.log"
                self.report.add(script_tests.run(script, names, log, timeout_s, self.env, ROOT))

    def run_clang(self) -> None:
        """The clang preset: thread-safety analysis as a test of its own, then the fuzzers."""
        if not self.options.matches(CLANG) and not self.fuzzers:
            return
        builder = build.Build(ROOT, "clang", self.report)
        with self.report.area("build.clang"):
            self.report.say("building clang: thread-safety analysis and fuzzers")
            targets = None if self.options.matches(CLANG) else [fuzz.program(name) for name in self.fuzzers]
            built = builder.configure() and builder.build(targets)
        if targets is None or not built:
            outcome = report.Outcome(CLANG, "passed" if built else "failed", 0.0, "" if built else "does not compile")
            seconds = self.report.areas["build.clang"]
            self.report.add(report.ProgramResult(CLANG, "clang", [outcome], seconds, builder.log))
        seconds = FUZZ_S * (FULL_FACTOR if self.options.full else 1)
        with self.report.area("fuzz"), ThreadPoolExecutor(JOBS) as pool:
            for result in pool.map(lambda name: fuzz.run(name, ROOT, seconds, LOGS), self.fuzzers):
                self.report.add(result)

    def print_names(self) -> int:
        builder = self.compile("debug")
        names = [name for _, chosen, _ in self.selected(builder) for name in chosen] if builder else []
        names += [name for _, chosen in self.scripts for name in chosen] + self.fuzzers
        names += [CLANG] if self.options.matches(CLANG) else []
        print("\n".join(names))
        return 1 if self.report.failed else 0

    def run(self) -> int:
        sanitizers = self.options.sanitizers or not (self.options.pattern or self.options.no_sanitizers)
        for config in ["debug"] + (["asan", "tsan"] if sanitizers else []):
            builder = self.compile(config)
            if builder:
                self.run_programs(builder, config)
            if config == "debug":
                self.run_scripts()
        if not self.options.no_sanitizers:
            self.run_clang()
        return self.report.close()


def interrupt(number: int, frame) -> None:
    process.kill_all()
    raise KeyboardInterrupt


def main() -> int:
    options = arguments()
    os.chdir(ROOT)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupt)
    runner = Runner(options)
    try:
        return runner.print_names() if options.list else runner.run()
    except KeyboardInterrupt:
        print("\ninterrupted")
        return 130


if __name__ == "__main__":
    sys.exit(main())
