#!/usr/bin/env python3
"""The API as other clients than the SDK see it: the status of each error, aliases, searches, the cache, limits."""
# Builds first: ragfs

import concurrent.futures
import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
sys.path.insert(0, str(Path(__file__).resolve().parent))
from testing.checks import check, main  # noqa: E402
from served import Server, wait_until  # noqa: E402


def fill(server):
    for folder in ("/memfs/d", "/memfs/d/e"):
        server.ask("POST", f"/api/v1/directories?path={folder}")
    server.ask("PUT", "/api/v1/files?path=/memfs/d/a.md", b"one needle\ntwo\nthree needle\n")
    server.ask("PUT", "/api/v1/files?path=/memfs/d/e/b.md", b"needle\n")
    server.ask("PUT", "/api/v1/files?path=/memfs/d/.hidden.md", b"nothing\n")


@check("http_api.errors_have_their_status")
def errors_have_their_status(t):
    with Server("max_request_body_bytes: 64KiB") as server:
        fill(server)
        for method, target, body, status, kind in (
                ("GET", "/api/v1/files?path=/memfs/none", None, 404, "not_found"),
                ("GET", "/api/v1/stat?path=/nowhere", None, 404, "not_found"),
                ("GET", "/api/v1/nothing", None, 404, "not_found"),
                ("POST", "/api/v1/unmount", '{"path": "/m"}', 404, "mount_point_not_found"),
                ("GET", "/api/v1/files", None, 400, "invalid_argument"),
                ("GET", "/api/v1/files?path=/a/../../b", None, 400, "invalid_path"),
                ("GET", "/api/v1/files?path=/memfs/d", None, 400, "is_a_directory"),
                ("GET", "/api/v1/directories?path=/memfs/d/a.md", None, 400, "not_a_directory"),
                ("POST", "/api/v1/directories?path=/memfs/x&mode=9", None, 400, "invalid_argument"),
                ("POST", "/api/v1/grep", "{", 400, "invalid_argument"),
                ("POST", "/api/v1/grep", '{"path": "/memfs", "pattern": "("}', 400, "is_a_directory"),
                ("POST", "/api/v1/grep", '{"path": "/memfs/d/a.md", "pattern": "("}', 400, "invalid_operation"),
                ("POST", "/api/v1/digest", '{"path": "/memfs/d/a.md", "algorithm": "md4"}', 400, "invalid_argument"),
                ("DELETE", "/api/v1/files?path=/&recursive=true", None, 400, "invalid_operation"),
                ("POST", "/api/v1/mount", '{"fstype": "nofs", "path": "/m"}', 400, "config"),
                ("POST", "/api/v1/mount", '{"fstype": "localfs", "path": "/m", "config": {"local_dir": "/etc"}}', 403,
                 "permission_denied"),
                ("POST", "/api/v1/files?path=/memfs/d/a.md", None, 409, "already_exists"),
                ("POST", "/api/v1/mount", '{"fstype": "memfs", "path": "/memfs"}', 409, "mount_point_exists"),
                ("DELETE", "/api/v1/files?path=/memfs/d", None, 409, "directory_not_empty"),
                ("PATCH", "/api/v1/files?path=/memfs/d/a.md", None, 405, "invalid_operation"),
                ("PUT", "/api/v1/files?path=/memfs/big", b"x" * 65537, 413, "invalid_argument"),
                ("POST", "/api/v1/symlink?path=/memfs/l", '{"target": "/a"}', 501, "not_supported"),
                ("GET", "/api/v1/readlink?path=/memfs/l", None, 501, "not_supported"),
                ("POST", "/api/v1/plugins/load", '{"library_path": "/a.so"}', 501, "not_supported")):
            got, answer = server.json(method, target, body)
            t.equal((got, answer.get("kind")), (status, kind), f"{method} {target} {str(body)[:60]}: {answer}")
            t.equal(sorted(answer), ["error", "kind"], f"{method} {target}")
        _, headers, _ = server.ask("PATCH", "/api/v1/files?path=/memfs/d/a.md")
        t.equal(sorted(headers["Allow"].split(", ")), ["DELETE", "GET", "POST", "PUT"])
        t.equal(server.ask("GET", "/api/v1/files?path=/memfs/d/a.md")[2][:10], b"one needle", "untouched")


@check("http_api.aliases")
def aliases(t):
    with Server() as server:
        t.equal(server.json("POST", "/api/v1/mkdir?path=/memfs/d")[0], 201)
        kind = {"Content-Type": "application/json"}
        t.equal(server.json("POST", "/api/v1/write?path=/memfs/d/a", '{"data": "text"}', kind),
                (200, {"message": "Written 4 bytes"}))
        t.equal(server.ask("GET", "/api/v1/files?path=/memfs/d/a")[2], b"text")
        t.equal(server.json("POST", "/api/v1/write?path=/memfs/d/b", b"raw \xff")[0], 200)
        t.equal(server.ask("GET", "/api/v1/files?path=/memfs/d/b")[2], b"raw \xff")
        t.equal(server.json("POST", "/api/v1/write?path=/memfs/d/c", "[]", kind)[0], 400)
        listed = server.json("GET", "/api/v1/list?path=/memfs/d")
        t.equal([entry["name"] for entry in listed[1]["files"]], ["a", "b"])
        t.equal(listed, server.json("GET", "/api/v1/directories?path=/memfs/d"))
        for path in ("/health", "/ready", "/openapi.json"):
            t.equal(server.ask("GET", path)[0], server.ask("GET", "/api/v1" + path)[0], path)
        t.equal(server.json("GET", "/")[1]["service"], "ragfs")
        t.true({"handlefs", "grep", "digest", "stream", "touch"}
               <= set(server.json("GET", "/api/v1/capabilities")[1]["features"]), "capabilities")
        t.equal(sorted(server.json("GET", "/api/v1/version")[1]), ["buildTime", "gitCommit", "version"])
        status, headers, body = server.ask("HEAD", "/api/v1/files?path=/memfs/d/a")
        t.equal((status, headers["Content-Length"], body), (200, "4", b""), "HEAD")


@check("http_api.searches")
def searches(t):
    with Server() as server:
        fill(server)
        grep = {"path": "/memfs/d", "pattern": "needle", "recursive": True}
        status, headers, text = server.ask("POST", "/api/v1/grep", json.dumps({**grep, "stream": True}))
        t.equal((status, headers["Content-Type"]), (200, "application/x-ndjson"))
        lines = [json.loads(line) for line in text.splitlines()]
        t.equal(lines[-1], {"type": "summary", "count": 3}, "a summary ends a stream")
        found = server.json("POST", "/api/v1/grep", grep)[1]
        t.equal((found["count"], found["matches"]), (3, lines[:-1]), "whole and streamed say the same")
        t.equal(server.json("POST", "/api/v1/grep", {**grep, "limit": 2})[1]["count"], 2)
        around = server.json("POST", "/api/v1/grep", {**grep, "path": "/memfs/d/a.md", "limit": 1,
                                                      "after_context": 1})[1]
        t.equal(around["matches"][0]["metadata"], {"before": [], "after": [{"line": 2, "content": "two"}]})
        tree = server.json("GET", "/api/v1/tree?path=/memfs")[1]
        t.equal([entry["rel_path"] for entry in tree["entries"]], ["d", "d/e", "d/e/b.md", "d/a.md"])
        t.equal(server.json("GET", "/api/v1/tree?path=/memfs&show_hidden=true")[1]["count"], 5)
        t.equal(server.json("GET", "/api/v1/tree?path=/memfs&level_limit=1")[1]["count"], 1)
        names, token = [], ""
        for _ in range(9):
            _, page = server.json(
                "GET", f"/api/v1/glob?path=/memfs&pattern=**/*.md&page_size=1&continuation_token={token}")
            names += [entry["rel_path"] for entry in page["entries"]]
            token = page["next_token"]
            if token is None:
                break
        t.equal(sorted(names), ["d/a.md", "d/e/b.md"], "page by page")
        server.ask("PUT", "/api/v1/files?path=/memfs/empty", b"")
        # xxh3: the low half of XXH3-128, whose value of nothing is 99aa06d3014798d86001c324468d497f.
        for algorithm, digest in (("xxh3", "6001c324468d497f"), ("md5", "d41d8cd98f00b204e9800998ecf8427e")):
            digested = server.json("POST", "/api/v1/digest", {"path": "/memfs/empty", "algorithm": algorithm})[1]
            t.equal(digested["digest"], digest, algorithm)


@check("http_api.the_cache")
def the_cache(t):
    """What it did is told, and a change from outside is seen after an invalidation."""
    with Server() as server:
        server.ask("PUT", "/api/v1/files?path=/local/a", b"old")
        read = lambda: server.ask("GET", "/api/v1/files?path=/local/a")[2]  # noqa: E731
        for _ in range(5):
            t.equal(read(), b"old")
        stats = server.json("GET", "/api/v1/cache/stats")[1]
        t.true(stats["on"] and stats["provider"] == "embedded" and stats["hits"] >= 3, f"hits are counted: {stats}")
        t.true(0 < stats["hit_rate"] <= 1, "and their rate")
        t.true(server.metric("ragfs_http_answered_at_once_total") >= 3, "hits needed no worker")
        top = server.json("GET", "/api/v1/cache/top?path=/")[1]["keys"]
        t.true(top and top[0]["path"] == "/local/a" and top[0]["reads"] >= 3, f"it is the hottest: {top}")
        t.equal(server.json("GET", "/api/v1/cache/top?path=/other")[1], {"keys": []})
        t.equal(server.json("POST", "/api/v1/cache/warm", {"path": "/local"})[1]["cached"], 1)
        (server.data / "a").write_bytes(b"new")
        t.equal(server.json("POST", "/api/v1/cache/invalidate", {"path": "/local"})[0], 200)
        t.equal(read(), b"new")
        t.true(server.metric("ragfs_http_requests_total") >= 8, "metrics")


@check("http_api.many_paths_in_one_request")
def many_paths_in_one_request(t):
    """read_many, stat_many, abstracts and context: each path its own answer, in the order of the question."""
    with Server() as server:
        parts = {"path": "/local/d/one", "content": "page", "abstract": "about one", "overview": "more of it"}
        status, written = server.json("POST", "/api/v1/context", parts)
        t.equal(status, 200)
        t.equal([(file["path"], file["bytes"]) for file in written["files"]],
                [("/local/d/one/content.md", 4), ("/local/d/one/.abstract.md", 9), ("/local/d/one/.overview.md", 10)])
        server.json("POST", "/api/v1/context", {"path": "/local/d/two", "content": "x", "content_name": "other.md"})
        paths = ["/local/d/one/.overview.md", "/local/none", "/local/d/one", "/local/d/two/other.md"]
        for _ in range(2):
            files = server.json("POST", "/api/v1/read_many", {"paths": paths})[1]["files"]
            t.equal([file["path"] for file in files], paths)
            t.equal([file.get("data", file.get("kind")) for file in files],
                    ["more of it", "not_found", "is_a_directory", "x"])
            files = server.json("POST", "/api/v1/stat_many", {"paths": paths})[1]["files"]
            t.equal([file["info"]["size"] if "info" in file else file["kind"] for file in files][:2], [10, "not_found"])
            t.true(files[2]["info"]["isDir"], "a directory")
            entries = server.json("GET", "/api/v1/abstracts?path=/local/d")[1]["entries"]
            t.equal([(entry["rel_path"], entry.get("abstract")) for entry in entries],
                    [("one", "about one"), ("two", None)])
            deep = server.json("GET", "/api/v1/abstracts?path=/local&levels=3&show_hidden=true")[1]
            t.equal(deep["count"], 7)
            t.true("/local/d/one/.abstract.md" in [one["path"] for one in deep["entries"]], f"{deep}")
        for body in ({}, {"paths": []}, {"paths": "a"}, {"paths": [1]}, {"paths": ["/x"] * 1001}):
            t.equal(server.json("POST", "/api/v1/read_many", body)[0], 400)
        t.equal(server.json("POST", "/api/v1/context", {"path": "/local/e"})[0] // 100, 4, "nothing was given")
        server.ask("PUT", "/api/v1/files?path=/local/f", b"a file")
        status = server.json("POST", "/api/v1/context", {"path": "/local/f", "abstract": "x"})[0]
        t.equal(status // 100, 4, "no directory")


@check("http_api.too_much_work_is_refused")
def too_much_work_is_refused(t):
    """One worker, one place in the queue: who finds it taken is told to try again, and nothing was done for him."""
    with Server("worker_threads: 1\nqueue_limit: 1") as server:
        server.ask("PUT", "/api/v1/files?path=/local/big", b"y" * (16 << 20))
        body = json.dumps({"algorithm": "md5", "path": "/local/big"})
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            digests = [pool.submit(server.ask, "POST", "/api/v1/digest", body) for _ in range(16)]
            writes = [pool.submit(server.ask, "PUT", f"/api/v1/files?path=/local/w{n}", b"x") for n in range(16)]
        answers = [digest.result() for digest in digests]
        t.true({answer[0] for answer in answers} <= {200, 503}, f"{[answer[0] for answer in answers]}")
        refused = [answer for answer in answers if answer[0] == 503]
        t.true(refused, "some were refused")
        for _, headers, text in refused:
            t.equal(headers["Retry-After"], "1")
            t.equal(json.loads(text)["kind"], "would_block")
        for number, write in enumerate(writes):
            t.equal((server.data / f"w{number}").exists(), write.result()[0] == 200, f"w{number}: {write.result()[0]}")
        t.true(wait_until(lambda: server.ask("GET", "/api/v1/stat?path=/local")[0] == 200), "and then it works")


@check("http_api.tokens_from_a_file")
def tokens_from_a_file(t):
    def tokens(home):
        (home / "tokens").write_text("# ours\nadmin-token-0123456789\n")
        (home / "others").write_text("other-token-0123456789\n")

    for key, arguments, token in (("tokens_file: tokens", (), "admin"), ("", ("--tokens-file", "HOME/others"), "other"),
                                  ("tokens_file: tokens", ("--tokens-file", "HOME/others"), "other")):
        with Server(key, before=tokens, home_in=arguments) as server:
            t.equal(server.ask("GET", "/api/v1/stat?path=/")[0], 401, f"{key} {arguments}")
            for name in ("admin", "other"):
                bearer = {"Authorization": f"Bearer {name}-token-0123456789"}
                status = server.ask("GET", "/api/v1/stat?path=/", headers=bearer)[0]
                t.equal(status, 200 if name == token else 401, f"{key} {arguments} {name}")
    with Server("tokens_file: none") as server:
        t.true("none" in server.refusal, f"a file that is not there ends the start: {server.refusal}")


if __name__ == "__main__":
    main()
