#!/usr/bin/env python3
"""What a server must not do for strangers: traversal, smuggling, huge headers, ranges, guessed tokens, origins."""
# Builds first: ragfs

import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
sys.path.insert(0, str(Path(__file__).resolve().parent))
from testing.checks import check, main  # noqa: E402
from served import Server, read_all, wait_until  # noqa: E402

TOKENS = """# who may what
admin-token-0123456789
writer-token-012345678 account=acme root=/local/acme
reader-token-012345678 read-only
"""


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


def status_of(answer):
    return int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/1.1 ") else 0


def statuses(answer):
    """Of every answer in a row of them."""
    return [int(part[:3]) for part in answer.split(b"HTTP/1.1 ")[1:]]


@check("http_security.paths_do_not_leave_the_tree")
def paths_do_not_leave_the_tree(t):
    with Server() as server:
        (server.home / "secret").write_text("secret")
        (server.data / "link").symlink_to(server.home / "secret")
        for path in ("/local/../secret", "/../../etc/passwd", "/local/%2e%2e/secret", "/local/..%2fsecret",
                     "%2e%2e/%2e%2e/etc/passwd", "/local/a%00b", "/local/link", "/local//..//secret"):
            for target in (f"/api/v1/{what}?path={path}" for what in ("files", "stat", "directories")):
                status, _, body = server.ask("GET", target)
                allowed = path == "/local/link" and "stat" in target  # the link itself may be shown
                t.true(status in (400, 403, 404) or allowed, f"{target}: {status} {body!r}")
                t.true(b"secret" not in body or b"error" in body or allowed, f"{target} gave {body!r}")
        status, _ = server.json("POST", "/api/v1/rename?path=/local/link", {"newPath": "/local/../../x"})
        t.equal(status, 400, "rename out of the tree")
        t.equal(server.ask("GET", "/api/v1/../../etc/passwd")[0], 404)


SMUGGLED = b"GET /api/v1/stat?path=/local HTTP/1.1\r\nHost: localhost\r\n\r\n"
HOST = b"Host: localhost\r\n"


@check("http_security.smuggling_is_refused")
def smuggling_is_refused(t):
    put = b"PUT /api/v1/files?path=/local/x HTTP/1.1\r\n" + HOST
    bad = {
        "both lengths": put + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "lengths the other way": put + b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n",
        "two lengths": put + b"Content-Length: 0\r\nContent-Length: 5\r\n\r\n",
        "a list of lengths": put + b"Content-Length: 0, 5\r\n\r\n",
        "a negative length": put + b"Content-Length: -1\r\n\r\n",
        "a length with a sign": put + b"Content-Length: +4\r\n\r\nabcd",
        "another coding": put + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        "two codings": put + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        "coding twice": put + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
        "a space before the colon": put + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
        "no host": b"PUT /api/v1/files?path=/local/x HTTP/1.1\r\nContent-Length: 0\r\n\r\n",
        "two hosts": put + HOST + b"Content-Length: 0\r\n\r\n",
        "a bad chunk size": put + b"Transfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n0\r\n\r\n",
        "a huge chunk size": put + b"Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\nabc\r\n0\r\n\r\n",
        "a control byte": put + b"X: a\x01b\r\nContent-Length: 0\r\n\r\n",
        "another version": b"GET /api/v1/files HTTP/3.7\r\n" + HOST + b"\r\n",
        "chunks in 1.0": b"PUT /api/v1/files?path=/local/x HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "a bare line feed": b"PUT /api/v1/files?path=/local/x HTTP/1.1\nHost: localhost\n\n",
    }
    with Server() as server:
        for name, head in bad.items():
            answers = statuses(server.raw(head + SMUGGLED))
            t.true(answers in ([], [400], [413], [501]), f"{name}: one refusal and no second answer, got {answers}")
            t.true(not (server.data / "x").exists(), f"{name}: nothing was written")
        t.equal(statuses(server.raw(SMUGGLED + SMUGGLED)), [200, 200], "honest pipelining works")


@check("http_security.large_requests_are_refused")
def large_requests_are_refused(t):
    with Server("max_request_body_bytes: 64KiB\nmax_buffered_bytes: 1MiB") as server:
        get = b"GET /api/v1/stat?path=/local HTTP/1.1\r\n" + HOST
        t.equal(status_of(server.raw(get + b"X: " + b"a" * 40000 + b"\r\n\r\n")), 431, "one huge line")
        t.equal(status_of(server.raw(get + b"A: b\r\n" * 150 + b"\r\n")), 431, "many lines")
        huge = b"GET /" + b"a" * 40000 + b" HTTP/1.1\r\n" + HOST + b"\r\n"
        t.equal(status_of(server.raw(huge)), 431, "a huge target")
        put = b"PUT /api/v1/files?path=/local/x HTTP/1.1\r\n" + HOST
        t.equal(status_of(server.raw(put + b"Content-Length: 65537\r\n\r\n" + b"a" * 1000)), 413, "said at once")
        chunk = b"1000\r\n" + b"a" * 4096 + b"\r\n"
        t.equal(status_of(server.raw(put + b"Transfer-Encoding: chunked\r\n\r\n" + chunk * 20)), 413, "found out")
        t.equal(server.ask("PUT", "/api/v1/files?path=/local/y", b"a" * 65536)[0], 200, "the limit itself")
        t.true(not (server.data / "x").exists(), "nothing was written")


@check("http_security.ranges")
def ranges(t):
    with Server() as server:
        server.ask("PUT", "/api/v1/files?path=/local/r", b"0123456789")
        ask = lambda text: server.ask("GET", "/api/v1/files?path=/local/r", headers={"Range": text})  # noqa: E731
        for text, status, body in (("bytes=2-4", 206, b"234"), ("bytes=7-", 206, b"789"), ("bytes=-2", 206, b"89"),
                                   ("bytes=0-999", 206, b"0123456789")):
            got = ask(text)
            t.equal((got[0], got[2]), (status, body), text)
        for text in ("bytes=10-", "bytes=5-2", "bytes=-0", "bytes=a-b", "lines=1-2", "bytes=" + "0-," * 1000 + "0-",
                     "bytes=0-1,2-3", "bytes=99999999999999999999-", "bytes=-"):
            t.equal(ask(text)[0], 416, text[:40])
        for query in ("offset=-1", "size=-2", "offset=99999999999999999999", "offset=x", "size=1&size=2",
                      "stream=maybe"):
            t.equal(server.ask("GET", f"/api/v1/files?path=/local/r&{query}")[0], 400, query)
        t.equal(server.ask("GET", "/api/v1/files?path=/local/r&offset=9223372036854775807")[2], b"", "past the end")


@check("http_security.tokens")
def tokens(t):
    with tempfile.TemporaryDirectory() as logs, Server(
            f"tokens_env: RAGFS_TOKENS\naccess_log: {logs}/log", environment={"RAGFS_TOKENS": TOKENS}) as server:
        (server.data / "acme").mkdir()
        put = lambda path, token: server.ask("PUT", f"/api/v1/files?path={path}", b"x", bearer(token))[0]  # noqa: E731
        t.equal(server.ask("GET", "/health")[0], 200, "health needs none")
        status, headers, _ = server.ask("GET", "/api/v1/stat?path=/")
        t.equal((status, headers["WWW-Authenticate"]), (401, 'Bearer realm="ragfs"'))
        for wrong in ("", "admin", "admin-token-012345678", "admin-token-0123456789x", "Admin-token-0123456789",
                      "\xff"):
            t.equal(server.ask("GET", "/api/v1/stat?path=/", headers=bearer(wrong))[0], 401, f"token {wrong!r}")
        t.equal(server.ask("GET", "/api/v1/nope")[0], 401, "nor which paths there are")
        t.equal(put("/local/a", "admin-token-0123456789"), 200)
        t.equal(put("/local/acme/a", "writer-token-012345678"), 200)
        t.equal(put("/local/a", "writer-token-012345678"), 403, "outside its root")
        t.equal(put("/local/acmex", "writer-token-012345678"), 403, "a name that begins alike")
        t.equal(put("/local/a", "reader-token-012345678"), 403, "read-only")
        reader, writer = bearer("reader-token-012345678"), bearer("writer-token-012345678")
        t.equal(server.ask("GET", "/api/v1/files?path=/local/a", headers=reader)[0], 200)
        t.equal(server.ask("POST", "/api/v1/handles/open?path=/local/a&flags=2", headers=reader)[0], 403)
        t.equal(server.ask("POST", "/api/v1/handles/open?path=/local/b&flags=16", headers=reader)[0], 403)
        _, handle = server.json("POST", "/api/v1/handles/open?path=/local/a", headers=reader)
        number = handle["handle_id"]
        t.equal(server.ask("GET", f"/api/v1/handles/{number}/read", headers=reader)[2], b"x")
        t.equal(server.ask("GET", f"/api/v1/handles/{number}/read", headers=writer)[0], 404, "somebody else's handle")
        grep = json.dumps({"path": "/local", "pattern": "x", "recursive": True})
        t.equal(server.ask("POST", "/api/v1/grep", grep, writer)[0], 403, "a search above its root")
        rename = json.dumps({"newPath": "/local/b"})
        t.equal(server.ask("POST", "/api/v1/rename?path=/local/acme/a", rename, writer)[0], 403, "a rename out of it")
        for target in ("/metrics", "/api/v1/mounts", "/api/v1/cache/stats"):
            t.equal(server.ask("GET", target, headers=writer)[0], 403, f"{target} is the operator's")
        t.equal(server.ask("POST", "/api/v1/cache/invalidate", '{"path": "/"}', reader)[0], 403)
        server.stop()
        log = Path(logs, "log").read_text()
        lines = [json.loads(line) for line in log.splitlines()]
        t.true(all(word not in log for word in ("-token-", "Bearer", "uthorization")), "no secret in the access log")
        t.true(any(line.get("account") == "acme" and line["path"] == "/local/acme/a" and line["status"] == 200
                   for line in lines), "account, path and status are")


@check("http_security.guessing_takes_as_long_for_a_near_miss")
def guessing_takes_as_long_for_a_near_miss(t):
    """Not a proof of constant time, a guard against a comparison that stops early or takes another way."""
    with Server(environment={"RAGFS_TOKENS": TOKENS}, server="tokens_env: RAGFS_TOKENS") as server:
        guesses = {"near": "admin-token-012345678X", "far": "Xdmin-token-0123456789"}
        took = {name: [] for name in guesses}
        connection = server.connection()
        for _ in range(400):
            for name, guess in guesses.items():
                start = time.perf_counter_ns()
                connection.request("GET", "/api/v1/capabilities", headers=bearer(guess))
                answer = connection.getresponse()
                answer.read()
                took[name].append(time.perf_counter_ns() - start)
                t.equal(answer.status, 401)
        near, far = (sorted(values)[len(values) // 2] for values in took.values())
        t.true(0.5 < near / far < 2, f"medians {near} ns and {far} ns")


@check("http_security.other_origins")
def other_origins(t):
    with Server() as server:
        t.equal(server.ask("GET", "/api/v1/stat?path=/", headers={"Host": "evil.example"})[0], 421, "DNS rebinding")
        t.equal(server.ask("GET", "/api/v1/stat?path=/", headers={"Host": "localhost.evil.example"})[0], 421)
        t.equal(server.ask("GET", "/api/v1/stat?path=/", headers={"Host": "[::1]:80"})[0], 200)
        status, _, _ = server.ask("PUT", "/api/v1/files?path=/local/x", b"1", {"Origin": "https://evil.example"})
        t.equal(status, 403, "a page of another origin")
        t.true(not (server.data / "x").exists(), "nothing was written")


@check("http_security.addresses_and_tls")
def addresses_and_tls(t):
    with Server(arguments=["--address", "0.0.0.0:0"]) as server:
        t.true("--insecure" in server.refusal, f"refused, and how to insist: {server.refusal!r}")
    with Server(arguments=["--address", "0.0.0.0:0"], environment={"TOKENS": TOKENS}, server="tokens_env: TOKENS") as s:
        t.true("certificate" in s.refusal, "tokens alone are not enough: they would be sent in the clear")
    with Server(arguments=["--address", "0.0.0.0:0", "--insecure"]) as server:
        t.equal(server.refusal, "", "unless it is said")
    with Server(server="tokens_env: ABSENT_VARIABLE") as server:
        t.true("ABSENT_VARIABLE is not set" in server.refusal, "no token is no reason to serve openly")
    with Server(environment={"TOKENS": "short"}, server="tokens_env: TOKENS") as server:
        t.true("shorter" in server.refusal and '"short"' not in server.refusal, "short tokens are refused, unnamed")
    with Server() as keys:
        done = subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                               "-nodes",
                               "-keyout", keys.home / "key.pem", "-out", keys.home / "cert.pem", "-days", "2", "-subj",
                               "/CN=localhost"], capture_output=True, check=False)
        t.equal(done.returncode, 0, "a certificate was made")
        tls = f"tokens_env: TOKENS\ntls_certificate_file: {keys.home}/cert.pem\ntls_key_file: {keys.home}/key.pem"
        with Server(tls, ["--address", "0.0.0.0:0"], {"TOKENS": TOKENS}) as server:
            t.true(server.url.startswith("https://"), f"{server.url} {server.refusal}")
            server.host = "127.0.0.1"
            admin = bearer("admin-token-0123456789")
            body = random.Random(1).randbytes(3 << 20)
            t.equal(server.ask("PUT", "/api/v1/files?path=/local/t", body, admin)[0], 200, "3 MiB over TLS")
            t.true(server.ask("GET", "/api/v1/files?path=/local/t", headers=admin)[2] == body, "and back")
            t.equal(server.raw(SMUGGLED)[:9], b"", "no plain HTTP on it")
            with server.socket() as silent:  # says nothing at all
                t.equal(server.ask("GET", "/health")[0], 200, "a handshake that hangs holds nobody up")
                silent.close()


@check("http_security.slow_and_silent_clients")
def slow_and_silent_clients(t):
    limits = "header_timeout_ms: 300\nidle_timeout_ms: 600\nstall_timeout_ms: 400\nmax_connections: 20"
    with Server(limits) as server:
        with server.socket() as idle, server.socket() as half, server.socket() as body:
            half.sendall(b"GET /api/v1/stat?pa")
            body.sendall(b"PUT /api/v1/files?path=/local/x HTTP/1.1\r\nHost: localhost\r\n"
                         b"Content-Length: 10\r\n\r\nabc")
            start = time.monotonic()
            for name, at in (("half a header", half), ("half a body", body), ("idle", idle)):
                t.equal(read_all(at), b"", f"{name}: closed without an answer")
            t.true(time.monotonic() - start < 5, "soon")
        t.true(not (server.data / "x").exists(), "half a body is not written")
        many = [server.socket() for _ in range(20)]
        t.true(wait_until(lambda: status_of(server.raw(SMUGGLED)) == 503, 3), "one more connection is told so")
        for at in many:
            at.close()
        t.true(wait_until(lambda: status_of(server.raw(SMUGGLED)) == 200), "and later served")


if __name__ == "__main__":
    main()
