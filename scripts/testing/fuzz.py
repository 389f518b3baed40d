"""libFuzzer programs of the clang preset: build/clang/fuzz/*_fuzz, one test each, named fuzz.<name>."""

import os
from pathlib import Path

from . import process
from .report import Outcome, ProgramResult


def names(root: Path) -> list[str]:
    return [f"fuzz.{source.stem.removesuffix('_fuzz')}" for source in sorted(root.glob("tests/fuzz/*_fuzz.cc"))]


def program(name: str) -> str:
    return name.removeprefix("fuzz.") + "_fuzz"


def run(name: str, root: Path, seconds: int, logs: Path) -> ProgramResult:
    """Fuzzes for `seconds`, starting from tests/fuzz/corpus/<name> and what earlier runs found."""
    short = name.removeprefix("fuzz.")
    binary = root / "build" / "clang" / "fuzz" / program(name)
    log = logs / "fuzz" / f"{short}.log"
    if not os.access(binary, os.X_OK):
        return ProgramResult(name, "fuzz", [Outcome(name, "failed", 0.0, "was not built")], 0.0)
    found = root / "build" / "fuzz-corpus" / short
    found.mkdir(parents=True, exist_ok=True)
    corpora = [str(found)] + [str(p) for p in [root / "tests" / "fuzz" / "corpus" / short] if p.is_dir()]
    command = [str(binary), f"-max_total_time={seconds}", "-timeout=10", "-rss_limit_mb=1024", "-malloc_limit_mb=256",
               "-print_final_stats=1", f"-artifact_prefix={logs}/fuzz/{short}-", *corpora]
    symbolizer = {"ASAN_SYMBOLIZER_PATH": "/usr/lib/llvm-19/bin/llvm-symbolizer"}
    ended = process.run_to_log(command, log, seconds * 3 + 60, root, symbolizer)
    status = "passed" if ended.code == 0 and not ended.timed_out else "failed"
    reason = "" if status == "passed" else f"{ended.text()}; the input is in {logs}/fuzz/{short}-*"
    return ProgramResult(name, "fuzz", [Outcome(name, status, ended.seconds, reason)], ended.seconds, log)
