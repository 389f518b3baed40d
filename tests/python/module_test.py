#!/usr/bin/env python3
"""The module ragfs_python against answers that were recorded of the original (oracle.py), cache off and on.

Where the answers may differ: original_wrong.json (the original is wrong) and allowed.json (choices of this project),
each row with our exact answer and its reason. Anything else fails.
"""
# Builds first: ragfs_python

import ast
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1] / "scripts"), str(HERE)]
import oracle  # noqa: E402
from testing.checks import check, main  # noqa: E402

PYTHON = "/usr/bin/python3"  # the interpreter that the module is built for
MODULE_DIR = Path(os.environ.get("RAGFS_BUILD_DIR", HERE.parents[1] / "build" / "debug")) / "python"
EMBEDDED = "storage:\n  agfs:\n    cache:\n      enabled: true\n      provider: embedded\n"
MOST_ALLOWED = 60


def run_python(arguments: list[str], **env: str) -> subprocess.CompletedProcess:
    env = {**os.environ, "PYTHONPATH": f"{MODULE_DIR}:{HERE}", **env}
    return subprocess.run([PYTHON, *arguments], env=env, capture_output=True, text=True, timeout=60, check=False)


def rows_of(name: str) -> list[dict]:
    return json.loads((HERE / name).read_text())


def compare(t, more_allowed: list[dict], pathlock: str = "filesystem", **env: str) -> None:
    with tempfile.TemporaryDirectory() as work:
        done = run_python([str(HERE / "oracle.py"), f"{work}/w", pathlock], **env)
    if done.returncode != 0:
        t.fail(f"the calls could not be made: {done.stderr[-2000:]}")
        return
    got, wanted = json.loads(done.stdout), rows_of("oracle_calls.json")
    t.equal(len(got), len(wanted), "calls")
    allowed = rows_of("original_wrong.json") + rows_of("allowed.json") + more_allowed
    for text in oracle.differences(got, wanted, allowed):
        t.fail(text)


@check("python.oracle_without_cache")
def oracle_without_cache(t):
    compare(t, [])


@check("python.oracle_with_embedded_cache")
def oracle_with_embedded_cache(t):
    # Our own file decides about the cache, and its series are shown.
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as config:
        config.write(EMBEDDED)
        config.flush()
        compare(t, rows_of("allowed_with_cache.json"), RAGFS_CONFIG=config.name)


@check("python.allowed_is_short_and_says_why")
def allowed_is_short_and_says_why(t):
    rows = rows_of("allowed.json") + rows_of("allowed_with_cache.json")
    t.true(len(rows) <= MOST_ALLOWED, f"{len(rows)} differences are allowed; {MOST_ALLOWED} are the most")
    for row in rows:
        t.true(row["why"] and row["ours"], f"{row['call']}: says neither why nor what")


def run_script(t, name: str, *arguments: str, config: str = "", **env: str) -> None:
    """Runs a program of this folder that prints "done" when all is well."""
    with tempfile.TemporaryDirectory() as work:
        (Path(work) / "root").mkdir()
        if config:
            (Path(work) / "ragfs.yaml").write_text(config)
            env["RAGFS_CONFIG"] = f"{work}/ragfs.yaml"
        done = run_python([str(HERE / name), f"{work}/root", *arguments], **env)
    t.equal((done.returncode, done.stdout.strip()[-2000:]), (0, "done"), f"{name}: {done.stderr[-3000:]}")


NAMES = """
import json, oracle
oracle.stand_in_for_openviking()
import ragfs_python
print(json.dumps([x for x in dir(ragfs_python.RAGFSBindingClient) if not x.startswith("_")]))
"""


@check("python.stubs_name_every_method")
def stubs_name_every_method(t):
    tree = ast.parse((HERE.parents[1] / "python/stubs/ragfs_python-stubs/__init__.pyi").read_text())
    client = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "RAGFSBindingClient")
    typed = {node.name for node in client.body if isinstance(node, ast.FunctionDef)} - {"__init__"}
    t.equal(sorted(typed), sorted(json.loads(run_python(["-c", NAMES]).stdout)), "methods in the stubs")


@check("python.hits_are_counted_once_and_never_stale")
def hits_are_counted_once_and_never_stale(t):
    run_script(t, "hits.py", config=EMBEDDED)


ENCRYPTED = """
import oracle
oracle.stand_in_for_openviking()
import ragfs_python
try:
    ragfs_python.RAGFSBindingClient(config={"service_name": "s",
                                            "encryption": {"root_key": b"x" * 32, "provider_type": 0}})
    print("accepted")
except RuntimeError as error:
    print("refused" if "not supported" in str(error) else error)
"""


@check("python.encryption_is_refused_rather_than_left_out")
def encryption_is_refused_rather_than_left_out(t):
    done = run_python(["-c", ENCRYPTED])
    t.equal(done.stdout.strip(), "refused", done.stderr[-2000:])


if __name__ == "__main__":
    main()
