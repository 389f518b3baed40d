#!/usr/bin/env python3
# The Python module beside the original's: latencies of the same calls on the same tree, in turns.
"""Usage: bench/run python [--quick] [DIRECTORY]; without a directory, on a tree that is made. Medians in us."""

import json
import os
import shutil
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

EMBEDDED = "storage:\n  agfs:\n    cache:\n      enabled: true\n      provider: embedded\n"
PYTHON = "/usr/bin/python3"
MADE_DIRECTORIES, MADE_FILES = 12, 300
NS_PER_US = 1000


def make_tree(root: Path, given: str | None) -> None:
    if given:
        shutil.copytree(given, root)
        return
    for directory in range(MADE_DIRECTORIES):
        (root / f"d{directory}").mkdir(parents=True)
        for file in range(MADE_FILES):
            text = f"# page {file}\n" + "some words of text\n" * (file % 60)
            (root / f"d{directory}" / f"f{file}.md").write_text(text)


def measure(root: str, rounds: int) -> dict:
    """In the process of one module: medians of each call."""
    import oracle
    oracle.stand_in_for_openviking()
    import ragfs_python
    client = ragfs_python.RAGFSBindingClient(config={"service_name": "bench"})
    client.mount("localfs", "/local", {"local_dir": root})
    files = [f"/local/{path.relative_to(root)}" for path in sorted(Path(root).rglob("*.md"))]
    largest = max({path.rsplit("/", 1)[0] for path in files}, key=lambda d: sum(f.startswith(d + "/") for f in files))

    def timed(call, arguments) -> float:
        times = []
        for argument in arguments:
            began = time.perf_counter_ns()
            call(argument)
            times.append(time.perf_counter_ns() - began)
        return round(statistics.median(times) / NS_PER_US, 2)

    client.write("/local/one_mib", b"x" * (1 << 20))
    for path in files + ["/local/one_mib"]:
        client.read(path)
    return {
        "read": timed(client.read, files), "read_1_mib": timed(client.read, ["/local/one_mib"] * 20 * rounds),
        "stat": timed(client.stat, files), "ls": timed(client.ls, [largest] * 20 * rounds),
        "tree": timed(client.tree_directory, ["/local"] * 3 * rounds),
        "glob": timed(lambda p: client.glob_directory(p, "**/*.md", page_size=100), ["/local"] * 3 * rounds),
        "grep": timed(lambda p: client.grep(path=p, pattern="rare words", recursive=True), ["/local"] * 2 * rounds),
        "overwrite": timed(lambda p: client.write(p, b"new words\n" * 50), files[:200 * rounds])}


def run(module: Path, root: str, rounds: int, config: str) -> dict:
    env = {**os.environ, "PYTHONPATH": f"{module}:{TESTS}", "RAGFS_CONFIG": config}
    done = subprocess.run([PYTHON, __file__, "--measure", root, str(rounds)], env=env, capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return json.loads(done.stdout)


def main() -> None:
    quick = "--quick" in sys.argv
    given = next((word for word in sys.argv[1:] if not word.startswith("--")), None)
    ours, theirs = ROOT / "build" / "release" / "python", original.directory(ROOT)
    with tempfile.TemporaryDirectory() as work:
        config = Path(work, "ragfs.yaml")
        config.write_text(EMBEDDED)
        kinds = {"original": (theirs, ""), "ours": (ours, ""), "ours_cached": (ours, str(config))}
        results = {kind: [] for kind in kinds}
        for number in range(1 if quick else 3):
            for kind, (module, file) in kinds.items():
                root = Path(work, f"{kind}{number}")
                make_tree(root, given)
                results[kind].append(run(module, str(root), 1 if quick else 3, file))
                shutil.rmtree(root)
    table = {kind: {call: statistics.median(run[call] for run in runs) for call in runs[0]}
             for kind, runs in results.items()}
    print(f"{'call':12}{'original':>12}{'ours':>12}{'cached':>12}{'ratio':>8}   us, and original / cached")
    for call, theirs_us in table["original"].items():
        cached = table["ours_cached"][call]
        print(f"{call:12}{theirs_us:12.1f}{table['ours'][call]:12.1f}{cached:12.1f}{theirs_us / cached:8.1f}")
    print(json.dumps({"bench": "python", "median_us": table}))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        print(json.dumps(measure(sys.argv[2], int(sys.argv[3]))))
    else:
        main()
