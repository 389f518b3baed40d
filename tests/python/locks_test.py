#!/usr/bin/env python3
"""Path locks of ours and of the original on one tree: exclusion, and what a killed holder leaves behind."""
# Builds first: ragfs_python

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT / "scripts"), str(HERE)]
import original  # noqa: E402
from testing.checks import check, full_length, main  # noqa: E402

PYTHON = "/usr/bin/python3"
OURS = Path(os.environ.get("RAGFS_BUILD_DIR", ROOT / "build" / "debug")) / "python"
ROUNDS = 200 if full_length() else 30
EXPIRE_S = 2.0


def start(module: Path, root: str, rounds: int, method: str, **options) -> subprocess.Popen:
    env = {**os.environ, "PYTHONPATH": f"{module}:{HERE}"}
    if module == OURS:
        options["shared"] = True  # the original always keeps lock files
    arguments = [PYTHON, str(HERE / "lock_worker.py"), root, str(rounds), method, json.dumps(options)]
    return subprocess.Popen(arguments, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def files_left(root: str) -> list[str]:
    return [path.name for path in Path(root).rglob("*ovlock*")]


def exclude(t, modules: list[Path], methods: list[str]) -> None:
    with tempfile.TemporaryDirectory() as root:
        Path(root, "counter").write_text("0")
        Path(root, "d").mkdir()
        workers = [start(module, root, ROUNDS, method, provider="filesystem")
                   for module, method in zip(modules, methods)]
        for worker in workers:
            out, errors = worker.communicate(timeout=180)
            t.equal(out.strip(), "done", errors[-2000:])
        t.equal(int(Path(root, "counter").read_text()), ROUNDS * len(workers), "additions that were kept")
        t.equal(files_left(root), [], "lock files left")


@check("python.locks_of_two_processes_of_ours_exclude")
def ours_exclude(t):
    exclude(t, [OURS, OURS, OURS], ["pathlock_acquire_exact", "pathlock_acquire_tree", "pathlock_acquire_exact"])


@check("python.locks_of_ours_and_the_original_exclude")
def both_exclude(t):
    theirs = original.directory(ROOT)
    exclude(t, [OURS, theirs], ["pathlock_acquire_exact", "pathlock_acquire_exact"])
    exclude(t, [OURS, theirs], ["pathlock_acquire_tree", "pathlock_acquire_exact"])
    exclude(t, [OURS, theirs], ["pathlock_acquire_exact", "pathlock_acquire_tree"])


def kill_holder(t, holder: Path, next_one: Path) -> None:
    with tempfile.TemporaryDirectory() as root:
        Path(root, "counter").write_text("0")
        Path(root, "d").mkdir()
        options = {"provider": "filesystem", "lock_expire_secs": EXPIRE_S}
        killed = start(holder, root, 0, "pathlock_acquire_exact", **options)
        t.equal(killed.stdout.readline().strip(), "locked", "holder")
        killed.kill()
        killed.wait()
        began = time.monotonic()
        waiter = start(next_one, root, 1, "pathlock_acquire_exact", **options)
        out, errors = waiter.communicate(timeout=60)
        took = time.monotonic() - began
        killed.stdout.close()
        killed.stderr.close()
        t.equal(out.strip(), "done", errors[-2000:])
        t.true(EXPIRE_S * 0.5 < took < EXPIRE_S + 15, f"the lock of a killed holder was free after {took:.1f} s")
        t.equal(files_left(root), [], "lock files left")


@check("python.lock_of_a_killed_holder_expires")
def killed_holder(t):
    theirs = original.directory(ROOT)
    for holder, next_one in ((OURS, OURS), (OURS, theirs), (theirs, OURS)):
        kill_holder(t, holder, next_one)


if __name__ == "__main__":
    main()
