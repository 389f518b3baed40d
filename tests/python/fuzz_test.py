#!/usr/bin/env python3
"""Random calls on our module and on the original: every answer is equal, but for the rules of fuzz_allowed.json.

RAGFS_STRESS_SEED repeats a run. Of each hundred calls, which begin on empty mounts, the first difference alone counts.
"""
# Builds first: ragfs_python

import json
import os
import random
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT / "scripts"), str(HERE)]
import original  # noqa: E402
from fuzz_worker import LENGTH  # noqa: E402
from testing.checks import check, full_length, main  # noqa: E402

PYTHON = "/usr/bin/python3"
OURS = Path(os.environ.get("RAGFS_BUILD_DIR", ROOT / "build" / "debug")) / "python"
CALLS = int(os.environ.get("RAGFS_FUZZ_CALLS", "200000" if full_length() else "20000"))
USUAL_SEED = 13  # every ./test asks the same; --full asks anew
EMBEDDED = "storage:\n  agfs:\n    cache:\n      enabled: true\n      provider: embedded\n"


def run(module: Path, work: str, seed: int, **more: str) -> subprocess.Popen:
    env = {**os.environ, "PYTHONPATH": f"{module}:{HERE}", **more}
    with open(f"{work}.out", "w") as out, open(f"{work}.err", "w") as errors:
        return subprocess.Popen([PYTHON, str(HERE / "fuzz_worker.py"), work, str(seed), str(CALLS)], env=env,
                                stdout=out, stderr=errors)


def answers(work: str) -> list[dict]:
    return [json.loads(line) for line in Path(f"{work}.out").read_text().splitlines()]


def comparable(answer: dict) -> dict:
    return {"error": "TypeError"} if answer.get("error") == "TypeError" else answer


def shown(answer: dict) -> str:
    return f"{answer['error']}: {answer['message']}" if "error" in answer else f"ok {json.dumps(answer['ok'])}"


def is_allowed(rules: list[dict], call: dict, theirs: dict, ours: dict) -> bool:
    """A rule is the method, a pattern of the call, and patterns of both whole answers; `ours` may refer to a group."""
    return any(re.fullmatch(rule["method"], call["name"]) and re.search(rule.get("call", ""), call["call"]) and
               re.fullmatch(f"(?:{rule['theirs']})\n(?:{rule['ours']})", f"{shown(theirs)}\n{shown(ours)}", re.DOTALL)
               for rule in rules)


def compare(t, seed: int, **more: str) -> None:
    rules = json.loads((HERE / "fuzz_allowed.json").read_text())
    with tempfile.TemporaryDirectory() as work:
        runs = [run(OURS, f"{work}/ours", seed, **more), run(original.directory(ROOT), f"{work}/theirs", seed)]
        codes = [process.wait(timeout=900) for process in runs]
        if codes != [0, 0]:
            t.fail(f"seed {seed}: ended with {codes}: " + Path(f"{work}/ours.err").read_text()[-1500:] +
                   Path(f"{work}/theirs.err").read_text()[-1500:])
            return
        ours, theirs = answers(f"{work}/ours"), answers(f"{work}/theirs")
    t.equal((len(ours), len(theirs)), (CALLS, CALLS), "answers")
    differs = -1  # the hundred that has differed
    for mine, other in zip(ours, theirs):
        if mine["n"] // LENGTH == differs or comparable(mine["answer"]) == comparable(other["answer"]):
            continue
        differs = mine["n"] // LENGTH
        if not is_allowed(rules, mine, other["answer"], mine["answer"]):
            t.fail(f"seed {seed}, call {mine['n']}: {mine['call']}\n  theirs {json.dumps(other['answer'])[:300]}\n"
                   f"  ours   {json.dumps(mine['answer'])[:300]}")


def seed_of_this_run() -> int:
    seed = int(os.environ.get("RAGFS_STRESS_SEED", "0")) or (
        random.SystemRandom().randrange(1, 2**31) if full_length() else USUAL_SEED)
    print(f"RAGFS_STRESS_SEED={seed}")
    return seed


@check("python.fuzz_without_cache")
def fuzz_without_cache(t):
    compare(t, seed_of_this_run())


@check("python.fuzz_with_embedded_cache")
def fuzz_with_embedded_cache(t):
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as config:
        config.write(EMBEDDED)
        config.flush()
        compare(t, seed_of_this_run(), RAGFS_CONFIG=config.name)


if __name__ == "__main__":
    main()
