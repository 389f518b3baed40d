#!/usr/bin/env python3
"""The public SDK (pyagfs) drives the server: every method, whole and streamed, handles, errors."""
# Builds first: ragfs

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
sys.path.insert(0, str(Path(__file__).resolve().parent))
from testing.checks import check, main  # noqa: E402
from testing import venv  # noqa: E402

# The checks need the SDK's Python; names are listed without it.
if "--list" not in sys.argv and not sys.prefix.startswith(str(ROOT / "build" / "venv")):
    os.execv(venv.python(ROOT), [str(venv.python(ROOT)), *sys.argv])

from served import Server  # noqa: E402


def client(server):
    import pyagfs

    return pyagfs.AGFSClient(server.url, timeout=20)


def error_of(call):
    import pyagfs

    try:
        call()
    except pyagfs.AGFSClientError as error:
        return str(error)
    return "(no error)"


@check("http_sdk.every_method_is_covered")
def every_method_is_covered(t):
    """A method that a test of this file does not name is one nobody tried."""
    import pyagfs

    text = Path(__file__).read_text()
    methods = [name for name in dir(pyagfs.AGFSClient) + dir(pyagfs.FileHandle) if name[0].islower()]
    for name in methods:
        no_call = name in ("session", "api_base", "timeout", "closed", "path", "flags", "handle_id")
        t.true(f".{name}(" in text or no_call,
               f"no test calls {name}")


@check("http_sdk.files")
def files(t):
    with Server() as server:
        sdk = client(server)
        t.equal(sdk.create("/local/new.md")["message"], "file created")
        t.equal(sdk.write("/local/a.md", b"hello world"), "Written 11 bytes")
        t.equal(sdk.read("/local/a.md"), b"hello world")
        t.equal(sdk.cat("/local/a.md", 6, 3), b"wor", "cat with offset and size")
        t.equal(sdk.cat("/local/a.md", 0, 0), b"", "size 0 is sent, and is nothing")
        t.equal(sdk.write("/local/s.md", iter([b"one ", b"two"])), "Written 7 bytes")
        t.equal(b"".join(sdk.cat("/local/s.md", stream=True).iter_content(3)), b"one two", "streamed both ways")
        big = bytes(range(256)) * 4096 * 5
        t.equal(sdk.write("/local/big.bin", big), f"Written {len(big)} bytes")
        t.true(b"".join(sdk.read("/local/big.bin", stream=True).iter_content(65536)) == big, "5 MiB streamed")
        t.true(sdk.read("/local/big.bin") == big, "5 MiB in one answer")
        info = sdk.stat("/local/a.md")
        t.equal((info["name"], info["size"], info["isDir"]), ("a.md", 11, False))
        t.equal(sdk.chmod("/local/a.md", 0o600)["message"], "permissions changed")
        sdk.write("/memfs/m", b"")
        sdk.chmod("/memfs/m", 0o600)
        t.equal(sdk.stat("/memfs/m")["mode"], 0o600, "where a backend has modes")
        t.equal(sdk.touch("/local/t.md")["message"], "touched")
        t.equal(sdk.mv("/local/t.md", "/local/u.md")["message"], "renamed")
        t.equal(sdk.rm("/local/u.md")["message"], "deleted")
        t.equal(sdk.ls("/local")[0]["name"], "a.md")
        t.equal(len(sdk.ls("/local")), 4)


@check("http_sdk.directories_and_root")
def directories_and_root(t):
    with Server() as server:
        sdk = client(server)
        t.equal([entry["name"] for entry in sdk.ls()], ["local", "memfs"], "the virtual root")
        t.true(sdk.stat("/")["isDir"], "stat of the root")
        t.equal(sdk.mkdir("/memfs/d")["message"], "directory created")
        t.equal(sdk.mkdir("/memfs/e", mode="700")["message"], "directory created")
        t.equal(sdk.ls("/memfs/d"), [], "an empty directory")
        sdk.write("/memfs/d/x", b"1")
        t.true("directory not empty" in error_of(lambda: sdk.rm("/memfs/d")), "a full directory stays")
        t.equal(sdk.rm("/memfs/d", recursive=True)["message"], "deleted")
        t.equal([entry["name"] for entry in sdk.ls("/memfs")], ["e"])


@check("http_sdk.state")
def state(t):
    with Server() as server:
        sdk = client(server)
        t.equal(sdk.health()["status"], "healthy")
        t.equal([mount["path"] for mount in sdk.mounts()], ["/local", "/memfs"])
        t.equal(sdk.mount("memfs", "/more", {"max_entries": 100})["message"], "plugin mounted")
        t.true("already exists" in error_of(lambda: sdk.mount("memfs", "/more", {})), "mounted twice")
        t.true("max_entrees" in error_of(lambda: sdk.mount("memfs", "/m2", {"max_entrees": 1})), "an unknown key")
        sdk.write("/more/f", b"x")
        t.equal([entry["name"] for entry in sdk.ls("/")], ["local", "memfs", "more"])
        t.equal(sdk.unmount("/more")["message"], "plugin unmounted")
        t.true("not found" in error_of(lambda: sdk.read("/more/f")), "gone with its mount")
        t.equal(sdk.list_plugins(), [], "no external ones")
        t.true({"localfs", "memfs"} <= {plugin["name"] for plugin in sdk.get_plugins_info()}, "what is built in")
        t.true("libraries" in error_of(lambda: sdk.load_plugin("/x.so")), "501 with its reason")
        t.true("libraries" in error_of(lambda: sdk.unload_plugin("/x.so")), "501 with its reason")


@check("http_sdk.searches")
def searches(t):
    with Server() as server:
        sdk = client(server)
        sdk.mkdir("/local/d")
        sdk.write("/local/d/a.md", b"first\nSecond line\nthird line\n")
        sdk.write("/local/b.md", b"a line\n")
        found = sdk.grep("/local", "LINE", recursive=True, case_insensitive=True)
        t.equal(found["count"], 3)
        t.equal({(m["file"], m["line"]) for m in found["matches"]},
                {("/local/d/a.md", 2), ("/local/d/a.md", 3), ("/local/b.md", 1)})
        streamed = list(sdk.grep("/local", "line", recursive=True, stream=True))
        t.equal(streamed[-1], {"type": "summary", "count": 3})
        t.equal({m["content"] for m in streamed[:-1]}, {"Second line", "third line", "a line"})
        t.true("recursive" in error_of(lambda: sdk.grep("/local", "x")), "a directory wants recursive")
        t.equal(sdk.digest("/local/b.md", "md5")["digest"], "bdd6a92cd10ae454d62ed203abe3fe92")
        t.equal(sdk.digest("/local/b.md"), {"algorithm": "xxh3", "path": "/local/b.md",
                                            "digest": sdk.digest("/local/b.md", "xxh3")["digest"]})


@check("http_sdk.handles")
def handles(t):
    with Server() as server:
        sdk = client(server)
        sdk.write("/local/h", b"0123456789")
        with sdk.open_handle("/local/h", flags=2, lease=30) as file:
            t.equal(file.read(4), b"0123")
            t.equal(file.tell(), 4)
            t.equal(file.read_at(2, 8), b"89")
            t.equal(file.write(b"XY"), 2)
            t.equal(file.write_at(b"Z", 9), 1)
            t.equal(file.seek(-3, 2), 7)
            t.equal(file.read(), b"78Z")
            t.equal(file.stat()["size"], 10)
            file.sync()
            file.renew(120)
            t.equal(file.info()["lease"], 120)
            t.equal([h["handle_id"] for h in sdk.list_handles()], [file.handle_id])
            t.equal(sdk.get_handle_info(file.handle_id)["path"], "/local/h")
        t.equal(sdk.list_handles(), [], "closed with its context")
        t.equal(sdk.read("/local/h"), b"0123XY678Z")
        number = sdk.open_handle("/local/n", flags=1 | 16 | 32).handle_id
        t.equal(sdk.handle_write(number, b"abc"), 3)
        t.equal(sdk.handle_write(number, b"d", offset=1), 1)
        t.true("not opened for reading" in error_of(lambda: sdk.handle_read(number)), "write only")
        t.equal(sdk.handle_seek(number, 0, 0), 0)
        sdk.handle_sync(number)
        t.equal(sdk.handle_stat(number)["size"], 3)
        sdk.renew_handle(number, 5)
        sdk.close_handle(number)
        t.true("not found" in error_of(lambda: sdk.handle_stat(number)), "closed")
        t.true("already exists" in error_of(lambda: sdk.open_handle("/local/n", flags=1 | 16 | 32)), "exclusive")
        appending = sdk.open_handle("/local/n", flags=1 | 8)
        appending.write(b"!")
        t.equal(sdk.read("/local/n"), b"adc!")
        appending.close()
        sdk.open_handle("/local/n", flags=1 | 64).close()
        t.equal(sdk.read("/local/n"), b"", "truncated at open")
        t.true("not found" in error_of(lambda: sdk.open_handle("/local/absent")), "absent")


@check("http_sdk.errors")
def errors(t):
    with Server() as server:
        sdk = client(server)
        t.true(error_of(lambda: sdk.read("/local/absent")).startswith("not found"), "404")
        t.true("already exists" in error_of(lambda: [sdk.create("/local/x"), sdk.create("/local/x")]), "409")
        t.true("invalid path" in error_of(lambda: sdk.stat("/local/../../etc")), "400")
        t.true("is a directory" in error_of(lambda: sdk.read("/local")), "a directory is not read")
        t.true("root" in error_of(lambda: sdk.rm("/", recursive=True)), "the root stays")
        gone = client(server)
    t.true("refused" in error_of(lambda: gone.ls("/")), "no server")


if __name__ == "__main__":
    main()
