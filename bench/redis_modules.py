#!/usr/bin/env python3
"""Reads of cached 4 KiB files through the Python modules with Redis: the original's beside ours, in turns.

Usage: redis_modules.py PORT ROUNDS; bench/run redis calls it. Prints a line "NAME MICROSECONDS" each, medians:
original_module_hit_us, module_hit_us (no near tier), module_near_hit_us. What cannot be measured is told on stderr.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TESTS = ROOT / "tests" / "python"
sys.path.insert(0, str(TESTS))
import original  # noqa: E402

PYTHON = "/usr/bin/python3"
FILES = 500
VALUE_BYTES = 4096
NS_PER_US = 1000


def measure(port: str, root: str) -> float:
    """In the process of one module: median microseconds of a read that the cache answers."""
    import oracle
    oracle.stand_in_for_openviking()
    import ragfs_python
    redis = {"endpoints": [f"redis://127.0.0.1:{port}"]}
    cache = {"enabled": True, "runtime_enabled": True, "provider": "redis", "redis": redis}
    client = ragfs_python.RAGFSBindingClient(config={"service_name": "bench", "cache": cache})
    client.mount("localfs", "/local", {"local_dir": root})
    for number in range(FILES):
        Path(root, f"f{number}.md").write_bytes(b"x" * VALUE_BYTES)
    files = [f"/local/f{number}.md" for number in range(FILES)]
    for path in files * 2:
        client.read(path)
    times = []
    for path in files * 4:
        began = time.perf_counter_ns()
        client.read(path)
        times.append(time.perf_counter_ns() - began)
    return statistics.median(times) / NS_PER_US


def run(module: Path, port: str, near_bytes: int | None) -> float:
    """`near_bytes`: of our module's near tier, which OpenViking's configuration has no name for; None: its default."""
    env = {**os.environ, "PYTHONPATH": f"{module}:{TESTS}"}
    env.pop("RAGFS_CONFIG", None)
    with tempfile.TemporaryDirectory() as work:
        root = Path(work, "root")
        root.mkdir()
        if near_bytes is not None:
            own = Path(work, "ragfs.yaml")
            own.write_text("storage:\n  agfs:\n    cache:\n      enabled: true\n      provider: redis\n"
                           f"      near_cache_bytes: {near_bytes}\n"
                           f"      redis: {{endpoints: ['redis://127.0.0.1:{port}']}}\n")
            env["RAGFS_CONFIG"] = str(own)
        done = subprocess.run([PYTHON, __file__, "--measure", port, str(root)], env=env,
                              capture_output=True, text=True, check=False, timeout=120)
    if done.returncode != 0:
        raise RuntimeError(done.stderr[-500:])
    return float(done.stdout)


def main(port: str, rounds: int) -> None:
    ours = ROOT / "build" / "release" / "python"
    kinds = {}
    if any(ours.glob("ragfs_python*.so")):
        kinds["module_hit_us"] = (ours, 0)
        kinds["module_near_hit_us"] = (ours, None)
    try:
        kinds["original_module_hit_us"] = (original.directory(ROOT), None)
    except RuntimeError as error:
        print(error, file=sys.stderr)
    results = {kind: [] for kind in kinds}
    for _ in range(rounds):
        for kind, (module, near_bytes) in kinds.items():
            try:
                results[kind].append(run(module, port, near_bytes))
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                print(f"{kind}: {error}", file=sys.stderr)
    for kind, measured in results.items():
        if measured:
            print(kind, round(statistics.median(measured), 2))


if __name__ == "__main__":
    if sys.argv[1] == "--measure":
        print(measure(*sys.argv[2:4]))
    else:
        main(sys.argv[1], int(sys.argv[2]))
