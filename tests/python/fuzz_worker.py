"""Random calls, the same for every module: what each gave, a JSON line a call. Arguments: directory, seed, calls.

Calls depend on the seed alone, never on an answer. Every LENGTH calls begin anew with two clients on empty mounts, so
that one difference does not make all that follows differ.
"""

import json
import random
import shutil
import sys
from pathlib import Path

import oracle

LENGTH = 100
NAMES = ["a", "b", "c.md", "x y", "中文", ".hid", "d", "É", "e.txt", "a.md"]
BAD_PATHS = ["", "/", "//", ".", "/nomount/x", "/local/../x", "/local2/../b", "/local//a", " /local/a ", "local/a",
             "/local/a/", "/local/" + "n" * 256, "/local/\0", "/\ud800", None, 5, b"/local/a", "/mem", "/local",
             "/queue", "/serverinfo/nope"]
DATA = [b"", b"x", b"one needle\ntwo\n", b"needle\r\nNeedle", b"\0bin needle", b"z" * 5000, bytearray(b"ba"),
        memoryview(b"mv"), [1, 2, 3], "text", None, [256], [-1], 5, "中文 needle\n".encode(), b"\xff\xfe needle"]
PATTERNS = ["needle", "^one", "NEEDLE", ".", "", "(", "n.*e", "[", "中", "\\bneedle\\b", None]
GLOBS = ["*", "**", "*.md", "**/*.md", "a/*", "?", "[ab]", "[", "", "**/a", "{a,b}", "/a", "a**"]
CONTROL_FILES = ["enqueue", "dequeue", "peek", "size", "messages", "clear", "ack", "status"]
SITUATIONS = [None, {}, {"disable_auto_pathlock": "true"}, {"account_id": "x"}, {"bypass_cache": "true"},
              {"lease_ref": "none"}, {"k": 1}, 5]


class Calls:
    def __init__(self, rng: random.Random):
        self.rng = rng

    def path(self, mounts: tuple = ("/local", "/mem", "/local", "/local2")) -> object:
        if self.rng.random() < 0.08:
            return self.rng.choice(BAD_PATHS)
        depth = self.rng.choice([0, 1, 1, 1, 2, 2, 3])
        return "/".join([self.rng.choice(mounts), *(self.rng.choice(NAMES) for _ in range(depth))])

    def ctx(self) -> dict:
        return {"ctx": self.rng.choice(SITUATIONS)} if self.rng.random() < 0.2 else {}

    def some(self, **choices) -> dict:
        return {key: self.rng.choice(values) for key, values in choices.items() if self.rng.random() < 0.3}

    def queue_call(self) -> tuple:
        queue = self.rng.choice(["/queue", "/queue/q", "/queue/q", "/queue/q/r", "/queue/none"])
        path = f"{queue}/{self.rng.choice(CONTROL_FILES)}"
        return self.rng.choice([
            ("write", [path, self.rng.choice([b"m", b"", b"\xff", "é".encode()])], {}), ("read", [path], {}),
            ("stat", [path], {}), ("ls", [queue], {}), ("mkdir", [queue], {}), ("rm", [queue, True], {}),
            ("rm", [path], {}), ("create", [path], {}), ("mv", [path, path], {}), ("read", [queue], {})])

    def lock_call(self) -> tuple:
        path, seconds = self.path(("/local",)), self.rng.choice([0.0, 0.0, 0.0, -1, "x"])
        kind = self.rng.choice(["exact", "tree", "bogus"])
        return self.rng.choice([
            ("pathlock_acquire_exact", [{}, path, seconds], {}), ("pathlock_acquire_tree", [{}, path, seconds], {}),
            ("pathlock_acquire_batch", [{}, [{"path": path, "kind": kind}]], {}),
            ("pathlock_acquire_exact_batch", [{}, [path, self.path(("/local",))]], {}),
            ("pathlock_is_locked", [{}, path], {}), ("RELEASE", [], {}), ("RELEASE", [], {}), ("RELEASE", [], {})])

    def file_call(self) -> tuple:
        path, other, ctx = self.path(), self.path(), self.ctx()
        modes = ["755", "700", "9", "", "0755", "x", 5, "40000000000"]
        return self.rng.choice([
            ("read", [path], {**self.some(offset=[0, 1, 5, -1, 10**6, 2**63, "x"], size=[-1, 0, 1, 3, 10**6]), **ctx}),
            ("read", [path], ctx), ("cat", [path], ctx), ("write", [path, self.rng.choice(DATA)], ctx),
            ("write", [path, self.rng.choice(DATA[:6])], ctx), ("create", [path], ctx), ("touch", [path], ctx),
            ("mkdir", [path], {**self.some(mode=modes), **ctx}), ("mkdir", [path], ctx),
            ("ensure_parent_dirs", [path], ctx), ("rm", [path], {**self.some(recursive=[True, False, 1]), **ctx}),
            ("stat", [path], ctx), ("stat", [path], {}), ("mv", [path, other], ctx),
            ("copy_within_mount", [path, other], ctx),
            ("chmod", [path, self.rng.choice([0o644, 0, -1, 2**40, "x"])], ctx),
            ("ls", [path], {**self.some(offset=[0, 1, 50, -1], limit=[1, 2, 0, -1, None], sort_by=["name", "size"],
                                        sort_order=["asc", "desc", "up"]), **ctx}),
            ("ls", [path], ctx),
            ("tree_directory", [path], {**self.some(show_hidden=[True, False], node_limit=[0, 1, 3, None, -1],
                                                    level_limit=[0, 1, 2, None], offset=[0, 2], sort_by=["name"],
                                                    sort_order=["desc", "asc"], directories_only=[True]), **ctx}),
            ("glob_directory", [path, self.rng.choice(GLOBS)],
             self.some(show_hidden=[True], page_size=[1, 2, 0, -1, None], level_limit=[0, 1, 2],
                       continuation_token=["", "1", "x", None])),
            ("grep", [path, self.rng.choice(PATTERNS)],
             self.some(recursive=[True, True, False], case_insensitive=[True], level_limit=[0, 1, 2],
                       before_context=[0, 1, -1], after_context=[1, 2], exclude_path=["/local/a", "/mem/a", "zz"])),
            ("get_capabilities", [], {}), ("mounts", [], {}), ("digest", [path], {}), ("list_plugins", [], {}),
            ("read", ["/serverinfo/version" if self.rng.random() < 0.1 else "/serverinfo"], {}), ("bogus", [path], {}),
            ("read", [], {}), ("stat", [path, None, 1], {})])

    def next(self) -> tuple:
        draw = self.rng.random()
        if draw < 0.08:
            return self.queue_call()
        return self.lock_call() if draw < 0.16 else self.file_call()


class Side:
    """One client with its mounts, and the leases that it has taken."""

    def __init__(self, module, root: Path):
        self.client = module.RAGFSBindingClient(config={
            "service_name": root.name, "log": {"level": "ERROR", "output": "stderr"},
            "pathlock": {"provider": "memory"}})
        for name in ("one", "two"):
            (root / name).mkdir(parents=True)
        self.client.mount("localfs", "/local", {"local_dir": str(root / "one")})
        self.client.mount("localfs", "/local2", {"local_dir": str(root / "two")})
        self.client.mount("memfs", "/mem", {})
        self.client.mount("queuefs", "/queue", {"backend": "sqlite", "db_path": str(root / "queue.db")})
        self.client.mount("serverinfofs", "/serverinfo", {"version": "1.0.0"})
        self.leases = []

    def call(self, name: str, args: list, keywords: dict):
        if name == "RELEASE":
            return self.client.pathlock_release({}, self.leases.pop(0)) if self.leases else None
        if name in ("rm", "mv", "copy_within_mount"):
            # The original makes the directories of a lock even when the call fails.
            for path in args[:2]:
                if isinstance(path, str) and path.startswith(("/local/", "/local2/", "/mem/")) and ".." not in path:
                    try:
                        self.client.ensure_parent_dirs(path)
                    except Exception:
                        pass
        value = getattr(self.client, name)(*args, **keywords)
        if name.startswith("pathlock_acquire"):
            self.leases.append(value)
        return value


def answer(side: Side, call: tuple, work: str) -> dict:
    try:
        return {"ok": oracle.normalised(side.call(*call), work)}
    except Exception as error:
        try:
            text = oracle.normalised_text(str(error), work)
        except UnicodeError:
            text = ""
        return {"error": type(error).__name__, "message": text}


def main() -> None:
    oracle.stand_in_for_openviking()
    import ragfs_python
    work, seed, count = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    sides = []
    for number in range(count):
        if number % LENGTH == 0:
            calls = Calls(random.Random(seed * 1_000_003 + number))
            sides.clear()
            shutil.rmtree(work / "s", ignore_errors=True)
            sides = [Side(ragfs_python, work / "s" / name) for name in ("left", "right")]
        call, which = calls.next(), calls.rng.randrange(2)
        line = {"n": number, "call": f"{which} {call[0]}(*{call[1]!r}, **{call[2]!r})"[:400], "name": call[0]}
        line["answer"] = answer(sides[which], call, str(work))
        print(json.dumps(line, default=str), flush=True)


if __name__ == "__main__":
    main()
