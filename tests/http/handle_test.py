#!/usr/bin/env python3
"""Handles: a handle names the file it was opened on, or says that it does not any more; and its lease ends."""
# Builds first: ragfs

import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
sys.path.insert(0, str(Path(__file__).resolve().parent))
from testing.checks import check, main  # noqa: E402
from served import Server  # noqa: E402

# Every call on a handle but closing it: method, what follows its number, body.
CALLS = (("GET", "", None), ("GET", "/read", None), ("PUT", "/write", b"x"), ("POST", "/seek?offset=0", None),
         ("POST", "/sync", None), ("GET", "/stat", None), ("GET", "/stream", None), ("POST", "/truncate?size=1", None),
         ("POST", "/renew?lease=60", None))


def put(server, path, data=b"old"):
    return server.ask("PUT", f"/api/v1/files?path={path}", data)[0]


def opened(server, path, query="&flags=2"):
    status, answer = server.json("POST", f"/api/v1/handles/open?path={path}{query}")
    return answer["handle_id"] if status == 200 else (status, answer)


def listed(server):
    return [handle["handle_id"] for handle in server.json("GET", "/api/v1/handles")[1]["handles"]]


def expect_stale(t, server, number, story):
    for method, rest, body in CALLS:
        status, answer = server.json(method, f"/api/v1/handles/{number}{rest}", body)
        t.equal((status, answer.get("kind")), (410, "stale_handle"), f"{story}: {method} {rest}")
        t.true("renamed, removed or unmounted" in answer["error"], f"{story}: it says why: {answer}")
    t.true(number not in listed(server), f"{story}: it is not listed")
    t.equal(server.ask("DELETE", f"/api/v1/handles/{number}")[0], 200, f"{story}: it can be closed")
    t.equal(server.ask("GET", f"/api/v1/handles/{number}")[0], 404, f"{story}: and is gone then")


def expect_good(t, server, number, data, story):
    status, _, body = server.ask("GET", f"/api/v1/handles/{number}/read?offset=0&size=-1")
    t.equal((status, body), (200, data), story)


def rename(server, old, new):
    return server.json("POST", f"/api/v1/rename?path={old}", {"newPath": new})[0]


def remove(server, path, recursive=False, route="files"):
    return server.ask("DELETE", f"/api/v1/{route}?path={path}" + ("&recursive=true" if recursive else ""))[0]


# What happens to /ROOT/d/e/f while it is open; each makes the handle stale.
BREAKS = {
    "renamed": lambda s, r: rename(s, f"{r}/d/e/f", f"{r}/d/e/g"),
    "its directory renamed": lambda s, r: rename(s, f"{r}/d/e", f"{r}/d/x"),
    "an ancestor renamed": lambda s, r: rename(s, f"{r}/d", f"{r}/x"),
    "another file renamed over it": lambda s, r: rename(s, f"{r}/other", f"{r}/d/e/f"),
    "removed": lambda s, r: remove(s, f"{r}/d/e/f"),
    "removed recursively": lambda s, r: remove(s, f"{r}/d/e/f", True),
    "its directory removed": lambda s, r: remove(s, f"{r}/d/e", True),
    "an ancestor removed by the other route": lambda s, r: remove(s, f"{r}/d", True, "directories"),
}


@check("http_handles.case_a28_stale_after_rename_and_removal")
def stale_after_rename_and_removal(t):
    with Server() as server:
        for root in ("/memfs", "/local"):
            for number, (story, happens) in enumerate(BREAKS.items()):
                base = f"{root}/{number}"
                for folder in (base, f"{base}/d", f"{base}/d/e"):
                    server.ask("POST", f"/api/v1/directories?path={folder}")
                put(server, f"{base}/d/e/f")
                put(server, f"{base}/other")
                put(server, f"{base}/d2")
                handle, beside = opened(server, f"{base}/d/e/f"), opened(server, f"{base}/d2")
                t.equal(happens(server, base), 200, story)
                # A file that comes to the old place is another one.
                for folder in (f"{base}/d", f"{base}/d/e"):
                    server.ask("POST", f"/api/v1/directories?path={folder}")
                put(server, f"{base}/d/e/f", b"new")
                expect_stale(t, server, handle, f"{root}: {story}")
                t.equal(server.ask("GET", f"/api/v1/files?path={base}/d/e/f")[2], b"new", f"{story}: untouched by it")
                expect_good(t, server, beside, b"old", f"{story}: a name that begins alike is another's")
        t.true(server.metric("ragfs_http_handles_stale_total") >= 2 * len(BREAKS) * len(CALLS), "they are counted")


@check("http_handles.case_a28_stale_after_unmount_and_mount")
def stale_after_unmount_and_mount(t):
    with Server() as server:
        mount = {"fstype": "memfs", "path": "/m"}
        t.equal(server.json("POST", "/api/v1/mount", mount)[0], 200)
        put(server, "/m/f")
        put(server, "/memfs/f")
        handle, beside = opened(server, "/m/f"), opened(server, "/memfs/f")
        t.equal(server.json("POST", "/api/v1/unmount", {"path": "/m"})[0], 200)
        t.equal(server.json("POST", "/api/v1/mount", mount)[0], 200)
        put(server, "/m/f", b"new")
        expect_stale(t, server, handle, "unmounted, and mounted again")
        expect_good(t, server, beside, b"old", "another mount's")
        server.ask("POST", "/api/v1/directories?path=/memfs/d")
        put(server, "/memfs/d/f")
        covered = opened(server, "/memfs/d/f")
        t.equal(server.json("POST", "/api/v1/mount", {"fstype": "memfs", "path": "/memfs/d"})[0], 200)
        put(server, "/memfs/d/f", b"new")
        expect_stale(t, server, covered, "covered by a mount")


@check("http_handles.what_fails_breaks_nothing")
def what_fails_breaks_nothing(t):
    with Server() as server:
        server.ask("POST", "/api/v1/directories?path=/memfs/d")
        put(server, "/memfs/d/f")
        put(server, "/memfs/g")
        handle = opened(server, "/memfs/d/f")
        t.equal(rename(server, "/memfs/d/f", "/memfs/no/such"), 404)
        t.equal(rename(server, "/memfs/d", "/memfs/g"), 400, "a directory over a file")
        t.equal(rename(server, "/memfs/d/f", "/memfs/d/f"), 200, "onto itself does nothing")
        t.equal(remove(server, "/memfs/d"), 409, "not empty")
        t.equal(server.json("POST", "/api/v1/unmount", {"path": "/memfs/d"})[0], 404)
        expect_good(t, server, handle, b"old", "still the same file")
        put(server, "/memfs/d/f", b"newer")
        expect_good(t, server, handle, b"newer", "written by its name: the same file")


@check("http_handles.no_call_goes_to_another_file")
def no_call_goes_to_another_file(t):
    """Writes through a handle while its file and another change places: none reaches the other."""
    # Writers of one file wait for each other: by default the second is refused.
    with Server(pathlock="{lock_timeout_secs: 20}") as server:
        put(server, "/memfs/mine", b"m")
        put(server, "/memfs/other", b"o")
        stop, wrong = threading.Event(), []

        def write():
            while not stop.is_set():
                number = opened(server, "/memfs/mine")
                if isinstance(number, tuple):
                    continue  # just moved away
                # Opened while the other file was there, or broken already: nothing to learn.
                mine = server.ask("GET", f"/api/v1/handles/{number}/read?offset=0")[2] == b"m"
                for _ in range(5 if mine else 0):
                    status, answer = server.json("PUT", f"/api/v1/handles/{number}/write?offset=0", b"m")
                    if status not in (200, 410):
                        wrong.append((status, answer))
                server.ask("DELETE", f"/api/v1/handles/{number}")

        writers = [threading.Thread(target=write) for _ in range(2)]
        for writer in writers:
            writer.start()
        for _ in range(60):
            # Between the second and the third step the other file is at the handles' path.
            for old, new in (("mine", "away"), ("other", "mine"), ("mine", "other"), ("away", "mine")):
                t.equal(rename(server, f"/memfs/{old}", f"/memfs/{new}"), 200)
        stop.set()
        for writer in writers:
            writer.join()
        t.equal(wrong, [], "every call is done or told to be stale")
        t.equal(server.ask("GET", "/api/v1/files?path=/memfs/other")[2], b"o")
        t.equal(server.ask("GET", "/api/v1/files?path=/memfs/mine")[2], b"m")


@check("http_handles.leases_end")
def leases_end(t):
    with Server("max_handles: 3") as server:
        put(server, "/memfs/f")
        short, kept = opened(server, "/memfs/f", "&lease=1"), opened(server, "/memfs/f", "&lease=2")
        long = opened(server, "/memfs/f", "&lease=600")
        t.equal(server.json("POST", "/api/v1/handles/open?path=/memfs/f")[0], 507, "as many as there may be")
        renewed = server.json("POST", f"/api/v1/handles/{long}/renew?lease=700")[1]
        t.equal(renewed["lease"], 700)
        end = time.monotonic() + 2.6
        while time.monotonic() < end:
            expect_good(t, server, kept, b"old", "a call renews it")
            time.sleep(0.2)
        status, answer = server.json("GET", f"/api/v1/handles/{short}/read")
        t.equal(status, 404, "nobody called it")
        t.true("lease has ended" in answer["error"], f"it says so: {answer}")
        t.equal(listed(server), [kept, long])
        t.true(isinstance(opened(server, "/memfs/f"), int), "its place is free")
        t.true(server.metric("ragfs_http_handles_expired_total") >= 1, "it is counted")
        for lease in ("0", "-1", "86401", "x"):
            t.equal(server.ask("POST", f"/api/v1/handles/{long}/renew?lease={lease}")[0], 400, f"lease={lease}")
            t.equal(server.ask("POST", f"/api/v1/handles/open?path=/memfs/f&lease={lease}")[0], 400, f"lease={lease}")


if __name__ == "__main__":
    main()
