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


@check("python.case_a01_queue_and_server_info_are_never_cached")
def case_a01_queue_and_server_info_are_never_cached(t):
    for prefixes in ("", "      bypass_prefixes: [/queue, /local/tmp]\n"):
        run_script(t, "never_cached.py", "bypassed" if prefixes else "", config=EMBEDDED + prefixes)


@check("python.many_paths_in_one_call")
def many_paths_in_one_call(t):
    run_script(t, "batches.py", config=EMBEDDED)


# What is given here must not be left out: plain bytes would be stored, or locks that nobody else sees be taken.
REFUSED = """
import json, os, sys
import oracle
oracle.stand_in_for_openviking()
import ragfs_python
root = sys.argv[1]
redis = {"enabled": True, "provider": "redis", "redis": {}}
sections = {
    "encryption": {"encryption": {"root_key": b"x" * 32, "provider_type": 0}},
    "pathlock.provider cache": {"cache": redis, "pathlock": {"provider": "cache"}},
    "cache.redis.password": {"cache": {**redis, "redis": {"password": "p"}}},
    "cache.redis.sentinel_password": {"cache": {**redis, "redis": {"sentinel_password": "p"}}},
    "provider libraries": {"cache": {"enabled": True, "provider": "dynamic", "dynamic": {"library": "/x.so"}}},
}
def refused(call, what):
    try:
        call()
    except Exception as error:
        assert what in str(error) and ("not supported" in str(error) or "not loaded" in str(error)), error
        return
    sys.exit(f"{what}: accepted")
for what, section in sections.items():
    refused(lambda: ragfs_python.RAGFSBindingClient(config={"service_name": "s", **section}), what)
with open(f"{root}/ov.conf", "w") as file:
    json.dump({"encryption": {"enabled": True}}, file)
refused(lambda: ragfs_python.RAGFSBindingClient(f"{root}/ov.conf", config={"service_name": "s"}), "encryption")
client = ragfs_python.RAGFSBindingClient(config={"service_name": "s"})
for flag in ("server_encryption_enabled", "primary_encryption_enabled"):
    refused(lambda: client.mount("localfs", "/l", {"local_dir": root, flag: True}), flag)
assert client.mounts() == []
print("done")
"""


@check("python.settings_that_protect_data_are_refused_rather_than_left_out")
def settings_that_protect_data_are_refused_rather_than_left_out(t):
    with tempfile.TemporaryDirectory() as root:
        done = run_python(["-c", REFUSED, root])
    t.equal((done.returncode, done.stdout.strip()), (0, "done"), done.stderr[-2000:])


SHARED_LOCKS = """
import os, sys
import oracle
oracle.stand_in_for_openviking()
import ragfs_python
client = ragfs_python.RAGFSBindingClient(config={"service_name": "s"})
client.mount("localfs", "/local", {"local_dir": sys.argv[1]})
lease = client.pathlock_acquire_exact({}, "/local/f")
print([name for name in os.listdir(sys.argv[1]) if "ovlock" in name] != [])
client.pathlock_release({}, lease)
"""


@check("python.shared_cache_of_our_own_file_shares_the_locks_too")
def shared_cache_of_our_own_file_shares_the_locks_too(t):
    for more, wanted in (("", "False"), ("      shared: true\n", "True")):
        with tempfile.TemporaryDirectory() as work:
            Path(work, "root").mkdir()
            Path(work, "ragfs.yaml").write_text(EMBEDDED + more)
            done = run_python(["-c", SHARED_LOCKS, f"{work}/root"], RAGFS_CONFIG=f"{work}/ragfs.yaml")
        t.equal(done.stdout.strip(), wanted, f"lock files: {done.stderr[-2000:]}")


if __name__ == "__main__":
    main()
