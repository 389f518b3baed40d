#!/usr/bin/env python3
"""/health tells the truth: what does not work is named, and is gone from it when it works again. /ready, the log."""
# Builds first: ragfs

import json
import signal
import subprocess
import sys
import threading
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
sys.path.insert(0, str(Path(__file__).resolve().parent))
from testing.checks import check, main  # noqa: E402
from served import HOST, Server, free_port, wait_until  # noqa: E402


def health(server):
    return server.json("GET", "/health")[1]


def degraded_by(server, *words):
    """True when a problem holds all the words."""
    found = health(server)
    return (found["status"] == "degraded" and found["degraded"] is True
            and any(all(word in problem for word in words) for problem in found["problems"]))


def is_healthy(server):
    found = health(server)
    return found["status"] == "healthy" and found["degraded"] is False and found["problems"] == []


@check("http_health.a_directory_that_is_gone")
def a_directory_that_is_gone(t):
    with Server() as server:
        t.true(wait_until(lambda: health(server)["checked_ms_ago"] >= 0 and is_healthy(server)), "healthy at first")
        t.equal(health(server)["mounts"], {"total": 2, "pending": 0, "mounted": 2, "failed": 0})
        server.data.rmdir()
        t.true(wait_until(lambda: degraded_by(server, "mount /local", "was removed")), f"it is named: {health(server)}")
        t.equal(health(server)["mounts"], {"total": 2, "pending": 0, "mounted": 1, "failed": 1})
        t.equal(server.ask("GET", "/health")[0], 200, "degraded is not down: the other mount works")
        t.equal(server.ask("PUT", "/api/v1/files?path=/memfs/a", b"x")[0], 200)
        t.equal(server.json("POST", "/api/v1/unmount", {"path": "/local"})[0], 200)
        t.true(wait_until(lambda: is_healthy(server)), f"and healthy again without it: {health(server)}")


@check("http_health.a_provider_that_is_gone")
def a_provider_that_is_gone(t):
    port = free_port()

    def redis():
        return subprocess.Popen(["redis-server", "--port", str(port), "--save", "", "--appendonly", "no"],
                                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)

    process = redis()
    try:
        cache = f'{{provider: redis, redis: {{endpoints: ["redis://127.0.0.1:{port}"]}}}}'
        with Server(cache=cache) as server:
            t.true(server.url, f"it starts: {server.refusal}")
            server.ask("PUT", "/api/v1/files?path=/local/a", b"x")
            read = lambda: server.ask("GET", "/api/v1/files?path=/local/a")  # noqa: E731
            read()
            t.true(wait_until(lambda: is_healthy(server)), f"healthy at first: {health(server)}")
            process.kill()
            process.wait()
            t.true(wait_until(lambda: read() and degraded_by(server, "cache provider redis")),
                   f"it is named: {health(server)}")
            t.equal(read()[2], b"x", "reads go to the backend")
            process = redis()
            t.true(wait_until(lambda: read() and is_healthy(server), 40), f"and healthy again: {health(server)}")
    finally:
        process.kill()
        process.wait()


@check("http_health.workers_that_are_busy")
def workers_that_are_busy(t):
    """One worker, and twelve requests that keep it busy for a while."""
    with Server("worker_threads: 1\nqueue_limit: 200", cache="{enabled: false}") as server:
        server.ask("PUT", "/api/v1/files?path=/local/big", b"y" * (32 << 20))
        body = json.dumps({"algorithm": "md5", "path": "/local/big"})
        askers = [threading.Thread(target=server.ask, args=("POST", "/api/v1/digest", body)) for _ in range(12)]
        for asker in askers:
            asker.start()
        t.true(wait_until(lambda: degraded_by(server, "workers are busy"), 10), f"it is told: {health(server)}")
        for asker in askers:
            asker.join()
        t.true(wait_until(lambda: is_healthy(server)), f"and over with the work: {health(server)}")


@check("http_health.ready_until_it_is_told_to_end")
def ready_until_it_is_told_to_end(t):
    with Server() as server:
        t.equal(server.json("GET", "/ready"), (200, {"ready": True}))
        with server.socket() as kept:
            kept.sendall(b"PUT /api/v1/files?path=/local/x HTTP/1.1\r\n" + HOST + b"Content-Length: 2\r\n\r\na")
            t.true(wait_until(lambda: server.metric("ragfs_http_buffered_bytes") == 1), "one is sending its body")
            server.process.send_signal(signal.SIGTERM)
            seen = []

            def ask():
                try:
                    seen.append(server.ask("GET", "/ready")[0])
                except OSError:
                    seen.append(0)
                return 503 in seen

            t.true(wait_until(ask, 5), f"503 as soon as it is told: {seen}")
            kept.sendall(b"b")
            t.true(kept.recv(1000).startswith(b"HTTP/1.1 200"), "what had begun is finished")
        t.equal(server.process.wait(20), 0)
        t.equal((server.data / "x").read_bytes(), b"ab")


@check("http_health.the_access_log_is_beside_its_configuration")
def the_access_log_is_beside_its_configuration(t):
    with Server("access_log: logs/access.jsonl", before=lambda home: (home / "logs").mkdir()) as server:
        t.equal(server.refusal, "", "it starts")
        server.ask("GET", "/api/v1/stat?path=/local&token=secret", headers={"Authorization": "Bearer secret"})
        log = server.home / "logs" / "access.jsonl"
        t.true(wait_until(lambda: log.exists() and log.stat().st_size > 0), f"the log is at {log}")
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        t.equal([(line["method"], line["route"], line["path"], line["status"]) for line in lines],
                [("GET", "/api/v1/stat", "/local", 200)])
        t.true("secret" not in log.read_text(), "no secrets")
        t.true(not Path("logs").exists(), "nothing in the directory it was started from")


if __name__ == "__main__":
    main()
