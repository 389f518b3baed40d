"""The oracle: a fixed list of calls (oracle_calls.txt) and what each gave: a value, or an exception's class and text.

record() makes the list of a module; differences() compares it with the one of the original (oracle_calls.json). Times,
UUIDs and the work directory are normalised. Run as a program it prints the record of ragfs_python as JSON:

    PYTHONPATH=build/debug/python python3 tests/python/oracle.py WORK_DIRECTORY
"""

import asyncio
import json
import re
import shutil
import sys
import types
from pathlib import Path

HERE = Path(__file__).resolve().parent
AGFS_ERRORS = """Connection Timeout HTTP NotSupported NotFound AlreadyExists PermissionDenied InvalidPath NotADirectory
IsADirectory DirectoryNotEmpty InvalidOperation ResourceExhausted Io Config MountPointNotFound MountPointExists
Serialization Network Internal Plugin""".split()
GIT_ERRORS = ["GitConcurrentCommitError", "GitRestoreWritebackPartialError"]
LONGEST_BYTES_SHOWN = 600
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
WAITED = re.compile(r"after \d+ms")
EPOCH = re.compile(r'("timestamp":)\d+(\.\d+)?')
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
TREE = {
    "a.md": b"one needle\ntwo\nthree needle line end\n", "b.txt": b"needle in txt\r\nNEEDLE up\r\n",
    ".hid.md": b"needle hidden\n", "sub/c.md": b"ctx before\nneedle c\nctx after\n", "sub/deep/d.md": b"needle d",
    ".hdir/e.md": b"needle e\n", "bin.md": b"\x00\x01needle bin\n", "uni.md": "\u4e2d\u6587 needle\n".encode(),
    "bad.md": b"\xff\xfe needle bad\n", "ignored.log": b"needle ignored\n", ".gitignore": b"*.log\n",
    "Z.md": b"zed needle\n",
}


def stand_in_for_openviking() -> None:
    """The exception classes that the module raises, where the package that owns them is not installed."""
    modules = {name: types.ModuleType(name) for name in
               ("openviking", "openviking.storage", "openviking.storage.errors", "openviking.pyagfs")}
    pyagfs, errors = modules["openviking.pyagfs"], modules["openviking.storage.errors"]
    errors.LockAcquisitionError = type("LockAcquisitionError", (Exception,), {})
    base = type("AGFSClientError", (Exception,), {})
    pyagfs.AGFSClientError = base
    for name in [f"AGFS{kind}Error" for kind in AGFS_ERRORS] + GIT_ERRORS:
        setattr(pyagfs, name, type(name, (base,), {}))
    pyagfs.AGFSPathNotFoundError = type("AGFSPathNotFoundError", (pyagfs.AGFSNotFoundError,), {})
    modules["openviking"].storage = modules["openviking.storage"]
    modules["openviking"].pyagfs = pyagfs
    modules["openviking.storage"].errors = errors
    sys.modules.update(modules)


def pyagfs():
    return sys.modules["openviking.pyagfs"]


def normalised_text(text: str, work: str) -> str:
    text = UUID.sub("UUID", text.replace(work, "TMP"))
    return WAITED.sub("after Nms", EPOCH.sub(r"\1EPOCH", TIME.sub("TIME", text)))


def normalised(value, work: str):
    if isinstance(value, dict):
        out = {}
        for key in sorted(value, key=str):
            item = value[key]
            if key == "matches":  # the order of files is not defined
                item = sorted(item, key=lambda match: (match["file"], match["line"]))
            if key == "size" and value.get("isDir"):
                item = "DIRSIZE"
            out[key] = normalised(item, work)
        return out
    if isinstance(value, (list, tuple)):
        return [normalised(item, work) for item in value]
    if isinstance(value, bytes):
        short = len(value) < LONGEST_BYTES_SHOWN
        return {"bytes": normalised_text(value.decode("latin1"), work) if short else f"len {len(value)}"}
    return normalised_text(value, work) if isinstance(value, str) else value


class Names:
    """What the expressions call: c the client, c2() a second one on an empty directory, W the work directory, ..."""

    def __init__(self, module, work: str, pathlock: str):
        self.module, self.work = module, work
        self.first = self.client("oracle", pathlock=pathlock)
        self.second, self.kept = None, {}

    def client(self, service: str, pathlock: str = "filesystem"):
        return self.module.RAGFSBindingClient(config={
            "service_name": service, "log": {"level": "ERROR", "output": "stderr"}, "pathlock": {"provider": pathlock}})

    def new_second(self) -> str:
        shutil.rmtree(f"{self.work}/root2", ignore_errors=True)
        Path(self.work, "root2").mkdir()
        self.second = self.client("oracle2")
        return "new client"

    def keep(self, name: str, value):
        self.kept[name] = value
        return value

    def make_tree(self, path: str) -> str:
        for name, data in TREE.items():
            file = Path(f"{self.work}/root{path[len('/local'):]}", name)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
        return "tree made"

    @staticmethod
    def awaited(function):
        async def call():
            return await function()
        return asyncio.run(call())

    def all(self) -> dict:
        return {
            "c": self.first, "c2": lambda: self.second, "N": self.new_second, "R": self.module.RAGFSBindingClient,
            "M": self.module, "W": self.work, "T": self.make_tree, "A": self.awaited, "V": self.kept,
            "lease": self.keep, "json": json, "L": lambda path: [(x["name"], x["isDir"]) for x in self.first.ls(path)],
            "L2": lambda path: [(x["name"], x["isDir"]) for x in self.second.ls(path)]}


def outcome(expression: str, names: dict, work: str) -> dict:
    try:
        value = eval(expression, names)
    except Exception as error:
        return {"error": type(error).__name__, "message": normalised_text(str(error), work)}
    if isinstance(value, names["R"]):
        value = "<client>"
    result = {"ok": normalised(value, work)}
    try:
        json.dumps(result)
    except TypeError:
        return {"ok": f"<{type(value).__name__}>"}
    return result


def record(module, work: str, pathlock: str = "filesystem") -> list[dict]:
    shutil.rmtree(work, ignore_errors=True)
    Path(work, "root").mkdir(parents=True)
    Path(work, "afile").touch()
    names, rows, group = Names(module, work, pathlock).all(), [], ""
    for line in (HERE / "oracle_calls.txt").read_text().splitlines():
        if line.startswith("#"):
            group = line[2:]
        else:
            rows.append({"group": group, "call": line, **outcome(line, names, work)})
    return rows


def answer_of(row: dict) -> dict:
    """What is compared: of a TypeError its class alone, its words are Python's."""
    if row.get("error") == "TypeError":
        return {"error": "TypeError"}
    return {key: row[key] for key in ("ok", "error", "message") if row.get(key) is not None or key in row}


def differences(got: list[dict], wanted: list[dict], allowed: list[dict]) -> list[str]:
    """Texts of all calls that differ. A row of `allowed` is {group?, call, ours, why}; `ours` is the whole answer."""
    by_call, texts = {}, []
    for row in wanted:
        by_call.setdefault((row["group"], row["call"]), []).append(row)
    for row in got:
        theirs = by_call[row["group"], row["call"]].pop(0)
        ours = answer_of(row)
        if ours == answer_of(theirs):
            continue
        if any(rule["call"] == row["call"] and rule.get("group", row["group"]) == row["group"] and
               rule["ours"] == ours for rule in allowed):
            continue
        texts.append(f"[{row['group']}] {row['call']}\n  theirs {json.dumps(answer_of(theirs))[:400]}\n"
                     f"  ours   {json.dumps(ours)[:400]}")
    return texts


if __name__ == "__main__":
    try:
        import openviking.pyagfs  # noqa: F401
    except ImportError:
        stand_in_for_openviking()
    import ragfs_python
    lock_provider = sys.argv[2] if len(sys.argv) > 2 else "filesystem"
    json.dump(record(ragfs_python, sys.argv[1], lock_provider), sys.stdout)
