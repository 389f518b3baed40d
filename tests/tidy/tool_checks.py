"""Rules that a compiler or analyser checks. What was clean once is not looked at again: results are kept by content.

The cache of clean results is $RAGFS_TIDY_CACHE, by default $XDG_CACHE_HOME/ragfs-tidy: empty files named by the hash of
all that a result depends on. Deleting it costs time only.
"""

import hashlib
import json
import os
import re
import shlex
import subprocess
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import source
from testing.checks import check

JOBS = max(1, min(3, os.cpu_count() or 2))
CACHE = Path(os.environ.get("RAGFS_TIDY_CACHE")
             or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ragfs-tidy")
SPARED_IN_TESTS = ("--checks=-clang-analyzer-*,-performance-*,-bugprone-narrowing-conversions,"
                   "-bugprone-unused-return-value,-bugprone-string-constructor")
DEFAULT_FLAGS = ["-std=c++23", "-Wall", "-Wextra", "-Werror", "-DRAGFS_TEST_HOOKS"]


@cache
def version(tool: str) -> str:
    return subprocess.run([tool, "--version"], capture_output=True, text=True, check=False).stdout


@cache
def commands() -> dict[str, list[str]]:
    """File -> its compiler flags in the debug build, without outputs and paths of this checkout."""
    database = source.ROOT / "build" / "debug" / "compile_commands.json"
    found = {}
    for entry in json.loads(database.read_text()) if database.exists() else []:
        name = os.path.relpath(entry["file"], source.ROOT)
        words = shlex.split(entry["command"])
        flags = [word for index, word in enumerate(words) if index > 1 and word not in ("-o", "-c", entry["file"])
                 and words[index - 1] != "-o"]
        found[name] = [flag.replace(str(source.ROOT), ".") for flag in flags]
    return found


def flags_for(name: str) -> list[str]:
    """The flags of the file, or of a source beside it, or the common ones."""
    folder = str(Path(name).parent)
    beside = [file for file in commands() if str(Path(file).parent) == folder]
    return commands().get(name) or (commands()[beside[0]] if beside else ["-I.", *DEFAULT_FLAGS])


def key(kind: str, name: str, *also: str) -> Path:
    digest = hashlib.sha256("\0".join([kind, *also, *flags_for(name)]).encode())
    for part in sorted(source.closure(name)):
        digest.update(part.encode() + b"\0" + source.text(part).encode(errors="replace") + b"\0")
    return CACHE / f"{kind}-{digest.hexdigest()}"


def run_cached(t, kind: str, names: list[str], command, *also: str) -> None:
    """Runs command(name) for each file without a clean result, JOBS at a time; keeps the clean ones."""

    def one(name: str):
        marker = key(kind, name, *command(name), *also)
        if marker.exists():
            return name, None
        done = subprocess.run(command(name), cwd=source.ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              errors="replace", check=False)
        if done.returncode == 0:
            CACHE.mkdir(parents=True, exist_ok=True)
            marker.touch()
            return name, None
        return name, done.stdout + done.stderr

    with ThreadPoolExecutor(JOBS) as pool:
        for name, output in pool.map(one, names):
            if output is not None:
                problems = [line for line in output.splitlines() if re.search(r"(error|warning):", line)]
                t.fail("\n".join(problems[:8] or output.splitlines()[-8:]).replace(f"{source.ROOT}/", ""), name)


@check("tidy.headers_self_contained")
def headers_self_contained(t):
    """Each header compiles as the only one that a source includes."""

    names = [name for name in source.headers() if name.startswith(("ragfs/", "tests/"))]
    # -include: as a main file its #pragma once would be an error.
    run_cached(t, "self-contained", names,
               lambda name: ["g++", *flags_for(name), "-I.", "-fsyntax-only", "-include", name, "-xc++", "/dev/null"],
               version("g++"))


@check("tidy.clang_format")
def clang_format(t):
    names = source.cpp()
    done = subprocess.run(["clang-format-19", "--dry-run", "-Werror", *names], cwd=source.ROOT, capture_output=True,
                          text=True, check=False)
    first = {}
    for match in re.finditer(r"^(\S+?):(\d+):\d+: error", done.stderr, re.MULTILINE):
        first.setdefault(match.group(1), int(match.group(2)))
    for name, line in first.items():
        t.fail("not formatted: clang-format-19 -i " + name, name, line)
    t.true(done.returncode == 0 or t.failures > 0, "clang-format-19 failed: " + done.stderr[-400:])


@check("tidy.clang_tidy")
def clang_tidy(t):
    """All sources of the debug build; headers come along. Tests are spared what is slow or petty there."""
    if not commands():
        t.fail("configure first: cmake --preset debug")
        return

    def command(name: str) -> list[str]:
        spared = [SPARED_IN_TESTS] if name.endswith("_test.cc") else []
        if name.startswith("ragfs/server/"):
            spared = ["--checks=-clang-analyzer-*"]  # it reports Boost.Asio's own coroutines and flags
        return ["clang-tidy-19", "-p", "build/debug", "--quiet", *spared,
                "--extra-arg=-Wno-unknown-warning-option", name]

    names = [name for name in source.cpp() if name.endswith(".cc") and name in commands()]
    # The big ones first: the last to start decides when it ends.
    names.sort(key=lambda name: -len(source.text(name)))
    run_cached(t, "clang-tidy", names, command, version("clang-tidy-19"), source.text(".clang-tidy"))


@check("tidy.scripts_parse")
def scripts_parse(t):
    for name in source.scripts():
        first = source.lines(name)[0]
        if name.endswith(".py") or "python" in first:
            try:
                compile(source.text(name), name, "exec")
            except SyntaxError as error:
                t.fail(str(error), name, error.lineno or 1)
        elif "bash" in first:
            done = subprocess.run(["bash", "-n", name], cwd=source.ROOT, capture_output=True, text=True, check=False)
            t.true(done.returncode == 0, f"{name}: {done.stderr}")
        if first.startswith("#!"):
            t.true(os.access(source.ROOT / name, os.X_OK), f"{name} has a #! line and is not executable")
