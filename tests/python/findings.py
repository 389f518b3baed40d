"""What the original got wrong with its cache on, asked of ours: one function a finding, named by its letter.

Arguments: a directory, the letter. Prints "done".
"""

import os
import resource
import signal
import sys
import threading
from pathlib import Path

import oracle

oracle.stand_in_for_openviking()
import ragfs_python  # noqa: E402

MIB = 1 << 20


class Setting:
    def __init__(self, root: Path, *mounts: str):
        self.client = ragfs_python.RAGFSBindingClient(config={"service_name": "findings"})
        self.dirs = {}
        for name in mounts:
            self.dirs[name] = root / name
            self.dirs[name].mkdir()
            self.mount(name, self.dirs[name])

    def mount(self, name: str, directory: Path) -> None:
        self.client.mount("localfs", f"/{name}", {"local_dir": str(directory)})

    def twice(self, path: str) -> bytes:
        """What a first read and a hit give, which are equal."""
        first = self.client.read(path)
        assert self.client.read(path) == first
        return first

    def names(self, path: str) -> list[str]:
        return [entry["name"] for entry in self.client.ls(path) if entry["name"] != "backend_meta.json"]


def g_two_mounts(root: Path) -> None:
    """Two mounts of one client do not see each other's files."""
    s = Setting(root, "one", "two")
    s.client.write("/one/f", b"first")
    s.client.write("/two/f", b"second")
    assert (s.twice("/one/f"), s.twice("/two/f")) == (b"first", b"second")
    s.client.write("/two/only", b"")
    assert s.names("/one") == ["f"] and s.names("/two") == ["f", "only"]
    s.client.write("/two/f", b"third")
    assert s.twice("/one/f") == b"first"


def h_remount(root: Path) -> None:
    """Another directory, or another memfs, at the same place is another one."""
    s = Setting(root, "local")
    s.client.write("/local/f", b"old")
    assert s.twice("/local/f") == b"old" and s.names("/local") == ["f"]
    (root / "other").mkdir()
    (root / "other" / "f").write_bytes(b"new")
    s.client.unmount("/local")
    s.mount("local", root / "other")
    assert s.twice("/local/f") == b"new" and s.client.stat("/local/f")["size"] == 3
    s.client.mount("memfs", "/mem", {})
    s.client.write("/mem/f", b"old")
    assert s.twice("/mem/f") == b"old"
    s.client.unmount("/mem")
    s.client.mount("memfs", "/mem", {})
    try:
        raise AssertionError(s.client.read("/mem/f"))
    except oracle.pyagfs().AGFSNotFoundError:
        pass


def i_aliases(root: Path) -> None:
    """Other spellings of a path are the path."""
    s = Setting(root, "local")
    s.client.write("/local/d/f", b"v1")
    spellings = ["/local/d//f", "/local/./d/f", "/local/d/./f", "/local/d/f/", " /local/d/f "]
    for spelling in spellings:
        assert s.twice(spelling) == b"v1", spelling
    s.client.write("/local/d/f", b"v2")
    for spelling in spellings:
        assert s.twice(spelling) == b"v2", spelling
        s.client.write(spelling, spelling.encode())
        assert s.twice("/local/d/f") == spelling.encode()
        s.client.write("/local/d/f", b"v2")


def c_sizes(root: Path) -> None:
    """Empty, small, at and beyond the limit."""
    s = Setting(root, "local")
    for size in (0, 1, MIB, MIB + 1, 2 * MIB):
        s.client.write("/local/f", b"x" * size)
        assert s.twice("/local/f") == b"x" * size
        assert s.client.stat("/local/f")["size"] == size


def d_rename_and_recreate(root: Path) -> None:
    """A renamed, recreated or removed directory shows what is in it now."""
    s = Setting(root, "local")
    s.client.write("/local/d/f", b"old")
    assert s.twice("/local/d/f") == b"old" and s.names("/local") == ["d"]
    s.client.mv("/local/d", "/local/e")
    s.client.write("/local/d/f", b"new")
    assert (s.twice("/local/d/f"), s.twice("/local/e/f")) == (b"new", b"old")
    s.client.rm("/local/d", True)
    assert s.names("/local") == ["e"]
    s.client.mkdir("/local/d")
    assert s.names("/local/d") == []


def j_changed_behind(root: Path) -> None:
    """bypass_cache asks the files, and so does everybody after cache_invalidate()."""
    s = Setting(root, "local")
    s.client.write("/local/f", b"old")
    assert s.twice("/local/f") == b"old"
    (root / "local" / "f").write_bytes(b"changed")
    assert s.client.read("/local/f", ctx={"bypass_cache": "true"}) == b"changed"
    s.client.cache_invalidate("/local/f")
    assert s.twice("/local/f") == b"changed" and s.client.stat("/local/f")["size"] == 7


def l_overwrite_fails_half_way(root: Path) -> None:
    """What could not be written whole is not written."""
    s = Setting(root, "local")
    s.client.write("/local/f", b"old")
    assert s.twice("/local/f") == b"old"
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
    try:
        s.client.write("/local/f", b"n" * 10_000)
        raise AssertionError("a file past the limit was written")
    except oracle.pyagfs().AGFSClientError:
        pass
    assert s.twice("/local/f") == b"old" and s.client.stat("/local/f")["size"] == 3
    assert (root / "local" / "f").read_bytes() == b"old"


def m_torn_reads(root: Path, cached: bool = False) -> None:
    """A reader beside an overwriting writer sees whole versions, in their order."""
    s = Setting(root, "local")
    s.client.write("/local/f", b"%08d" % 0 * 500)
    wrong, stop = [], threading.Event()

    def read() -> None:
        last = 0
        while not stop.is_set():
            data = s.client.read("/local/f", ctx={} if cached else {"bypass_cache": "true"})
            if len(data) != 4000 or data != data[:8] * 500 or int(data[:8]) < last:
                wrong.append(data[:80])
                return
            last = int(data[:8])

    readers = [threading.Thread(target=read) for _ in range(4)]
    for reader in readers:
        reader.start()
    for version in range(1, 300):
        s.client.write("/local/f", b"%08d" % version * 500)
        if s.client.read("/local/f") != b"%08d" % version * 500:
            wrong.append(b"older than the write that had returned")
    stop.set()
    for reader in readers:
        reader.join()
    assert not wrong, wrong


def s_stale_or_torn_hits(root: Path) -> None:
    """The same through the cache."""
    m_torn_reads(root, cached=True)


def n_lock_files(root: Path) -> None:
    """rm of an empty directory, and use of a directory that was moved."""
    s = Setting(root, "local")
    s.client.mkdir("/local/empty")
    s.client.rm("/local/empty")
    s.client.write("/local/d/f", b"1")
    s.client.mv("/local/d", "/local/e")
    s.client.write("/local/e/g", b"2")
    s.client.rm("/local/e", True)
    assert s.names("/local") == []


def u_user_file_named_like_a_lock(root: Path) -> None:
    """Such a name is refused, and the mount goes on working."""
    s = Setting(root, "local")
    for name in (".path.ovlock", ".exact.ovlock.x.0123456789abcdef"):
        try:
            s.client.write(f"/local/{name}", b"x")
            raise AssertionError(f"{name} was written")
        except oracle.pyagfs().AGFSInvalidOperationError:
            pass
    s.client.write("/local/f", b"x")
    assert s.names("/local") == ["f"]


FINDINGS = {name.split("_")[0]: function for name, function in list(globals().items())
            if callable(function) and name[1:2] == "_" and name[0].islower()}

if __name__ == "__main__":
    os.umask(0o022)
    FINDINGS[sys.argv[2]](Path(sys.argv[1]))
    print("done")
