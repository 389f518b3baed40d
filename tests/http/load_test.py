#!/usr/bin/env python3
"""The server under strain: malformed requests, many connections, slow readers, memory, and SIGTERM under load."""
# Builds first: ragfs

import concurrent.futures
import hashlib
import http.client
import os
import random
import signal
import socket
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
sys.path.insert(0, str(Path(__file__).resolve().parent))
from testing.checks import check, main  # noqa: E402
from served import HOST, Server, read_all, wait_until  # noqa: E402

FULL = bool(os.environ.get("RAGFS_TEST_FULL"))
SEEDS = [
    b"GET /api/v1/files?path=/local/a HTTP/1.1\r\n" + HOST + b"\r\n",
    b"PUT /api/v1/files?path=/memfs/f HTTP/1.1\r\n" + HOST + b"Content-Length: 5\r\n\r\nhello",
    b"PUT /api/v1/files?path=/memfs/g HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    b"POST /api/v1/grep HTTP/1.1\r\n" + HOST +
    b'Content-Length: 50\r\n\r\n{"path":"/memfs","pattern":"a.*b","recursive":true}',
    b"POST /api/v1/handles/open?path=/memfs/f&flags=2 HTTP/1.1\r\n" + HOST + b"\r\n",
    b"GET /api/v1/handles/1/read?size=-1 HTTP/1.1\r\n" + HOST + b"\r\n",
    b"DELETE /api/v1/files?path=/memfs/f&recursive=true HTTP/1.1\r\n" + HOST + b"\r\n",
    b"GET /api/v1/tree?path=/ HTTP/1.1\r\n" + HOST + b"Range: bytes=0-1\r\nExpect: 100-continue\r\n\r\n",
    b"POST /api/v1/mount HTTP/1.1\r\n" + HOST +
    b'Content-Length: 63\r\n\r\n{"fstype":"memfs","path":"/m","config":{"capacity_bytes":65536}}',
]
TOKENS = [b"\r\n", b"\n", b"\0", b" ", b":", b"%", b"%zz", b"%00", b"../", b"HTTP/1.1", b"HTTP/9.9",
          b"Content-Length: 99\r\n", b"Transfer-Encoding: chunked\r\n", b"\xff\xfe", b"{",
          b"[" * 500, b"A" * 20000, b"&path=/x", b"ffffffff\r\n"]


def mutated(random_source):
    data = bytearray(random_source.choice(SEEDS))
    for _ in range(random_source.randrange(1, 6)):
        at = random_source.randrange(len(data) + 1)
        kind = random_source.randrange(5)
        if kind == 0:
            data[at:at + random_source.randrange(1, 9)] = b""
        elif kind == 1:
            data[at:at] = random_source.choice(TOKENS)
        elif kind == 2 and at < len(data):
            data[at] = random_source.randrange(256)
        elif kind == 3:
            data[at:at] = random_source.randbytes(random_source.randrange(1, 40))
        else:
            other = random_source.choice(SEEDS)
            data[at:] = other[random_source.randrange(len(other)):]
    return bytes(data)


@check("http_load.malformed_requests")
def malformed_requests(t):
    """Always an answer or a close; no crash, no leak."""
    count = 10_000
    limits = "header_timeout_ms: 2000\nstall_timeout_ms: 2000\nidle_timeout_ms: 2000"
    with Server(limits) as server:
        seed = 20260101

        def some(part):
            source, bad = random.Random(seed + part), []
            for _ in range(count // 20):
                data = mutated(source)
                with server.socket() as at:
                    try:
                        at.sendall(data)
                        at.shutdown(socket.SHUT_WR)
                    except OSError:
                        pass
                    answer = read_all(at)
                if answer and not answer.startswith(b"HTTP/1.1 "):
                    bad.append((data, answer[:80]))
                if answer.startswith(b"HTTP/1.1 500"):
                    bad.append((data, answer[-300:]))
            return bad

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            some(99)  # what is allocated once
            before, files = server.memory_bytes(), server.open_files()
            for bad in pool.map(some, range(20)):
                for data, answer in bad:
                    t.fail(f"{data!r}\nanswered {answer!r}")
        t.true(server.alive(), f"the server lives: {server.stderr()[-2000:]}")
        t.true(wait_until(lambda: server.metric("ragfs_http_connections") == 1), "no connection is left")
        t.equal(server.metric("ragfs_http_buffered_bytes"), 0, "no body is left")
        grown = server.memory_bytes() - before
        print(f"memory grew by {grown >> 10} KiB over {count} requests")
        t.true(grown < 16 << 20, f"memory grew by {grown >> 20} MiB")
        # The connection that asked for the metrics may still be on its way out.
        t.true(
            wait_until(lambda: server.open_files() <= files),
            f"{server.open_files()} descriptors are open, {files} were before",
        )


def percentile(values, share):
    return sorted(values)[int(len(values) * share)]


def latencies(server, seconds):
    """Of one client on a kept connection."""
    took, connection, end = [], server.connection(), time.monotonic() + seconds
    while time.monotonic() < end:
        start = time.perf_counter()
        connection.request("GET", "/api/v1/files?path=/local/small")
        connection.getresponse().read()
        took.append(time.perf_counter() - start)
    connection.close()
    return took


def p99_beside_others(t, seconds):
    """p99 of one client alone, and beside 1,000 idle connections and 50 slow readers."""
    with Server("max_connections: 2000\nworker_threads: 8") as server:
        server.ask("PUT", "/api/v1/files?path=/local/small", b"x" * 4096)
        server.ask("PUT", "/api/v1/files?path=/local/large", b"y" * (48 << 20))
        latencies(server, 1)
        before = latencies(server, seconds)
        memory = server.memory_bytes()
        idle = [server.socket() for _ in range(1000)]
        slow = [server.socket() for _ in range(50)]
        for at in slow:
            at.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            at.sendall(b"GET /api/v1/files?path=/local/large&stream=true HTTP/1.1\r\n" + HOST + b"\r\n")
        stop = threading.Event()

        def sip():
            while not stop.wait(0.5):  # rarely: this process measures too
                for at in slow:
                    at.recv(256)

        sipping = threading.Thread(target=sip)
        sipping.start()
        latencies(server, 1)  # until what they can take at once is in the sockets
        after = latencies(server, seconds)
        grown = server.memory_bytes() - memory
        stop.set()
        sipping.join()
        for at in idle + slow:
            at.close()
        p99 = percentile(before, 0.99), percentile(after, 0.99)
        print(f"p99 {p99[0] * 1e6:.0f} us alone, {p99[1] * 1e6:.0f} us beside them; memory grew {grown >> 20} MiB")
        t.true(grown < 128 << 20, f"1,050 connections took {grown >> 20} MiB")
        t.true(wait_until(lambda: server.metric("ragfs_http_connections") == 1), "all are let go")
    return p99


@check("http_load.idle_and_slow_clients")
def idle_and_slow_clients(t):
    """1,000 idle connections and 50 slow readers: p99 of the others stays below twice what it was."""
    # A neighbour on the machine can spoil a short measurement, so that one of three is enough; a server that is held up
    # spoils all of them. Below a quarter of a millisecond the neighbour decides always.
    for _ in range(1 if FULL else 3):
        alone, beside = p99_beside_others(t, 20 if FULL else 2)
        if beside < max(2 * alone, 0.00025):
            return
    t.fail(f"p99 went from {alone:.6f} to {beside:.6f} s")


@check("http_load.streams_take_bounded_memory")
def streams_take_bounded_memory(t):
    with Server("max_buffered_bytes: 64MiB\nmax_request_body_bytes: 64MiB", cache="{enabled: false}") as server:
        size = 60 << 20
        piece = os.urandom(1 << 20)
        t.equal(server.ask("PUT", "/api/v1/files?path=/local/big", iter([piece] * 60))[0], 200)
        memory = server.memory_bytes()
        digest = hashlib.md5(piece * 60).hexdigest()
        connection = server.connection()
        connection.request("GET", "/api/v1/files?path=/local/big")
        answer, got, peak = connection.getresponse(), hashlib.md5(), 0
        while part := answer.read(1 << 20):
            got.update(part)
            peak = max(peak, server.memory_bytes() - memory)
        t.equal(got.hexdigest(), digest, "the bytes")
        t.true(peak < 16 << 20, f"sending {size >> 20} MiB took {peak >> 20} MiB")
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            put = lambda n: server.ask("PUT", f"/api/v1/files?path=/local/b{n}", iter([piece] * 40))[0]  # noqa: E731
            answers = list(pool.map(put, range(4)))
        t.true(set(answers) <= {200, 503} and 503 in answers,
               f"four bodies of 40 MiB within 64 MiB: {answers}")
        for number, status in enumerate(answers):
            t.equal((server.data / f"b{number}").exists(), status == 200, f"b{number}")


@check("http_load.a_file_that_changes_is_cut_off")
def a_file_that_changes_is_cut_off(t):
    with Server() as server:
        server.ask("PUT", "/api/v1/files?path=/local/big", b"a" * (40 << 20))
        with server.socket() as at:
            at.sendall(b"GET /api/v1/files?path=/local/big HTTP/1.1\r\n" + HOST + b"\r\n")
            at.recv(1000)
            server.ask("PUT", "/api/v1/files?path=/local/big", b"b" * (40 << 20))
            rest = read_all(at)
        t.true(b"b" not in rest and len(rest) < 40 << 20, f"{len(rest)} bytes, never two versions in one")


@check("http_load.sigterm_under_load")
def sigterm_under_load(t):
    """Every write that was accepted is on disk, every refused one was told so, and nothing is half there."""
    for _ in range(5 if FULL else 2):
        with Server() as server:
            accepted, refused, unknown, stop = {}, {}, {}, threading.Event()

            def write(worker):
                connection, number = server.connection(), 0
                while not stop.is_set():
                    name = f"w{worker}-{number}"
                    body = f"{name} ".encode() * random.Random(number).randrange(1, 3000)
                    number += 1
                    try:
                        connection.request("PUT", f"/api/v1/files?path=/local/{name}", body=body)
                        status = connection.getresponse()
                        status.read()
                        (accepted if status.status == 200 else refused)[name] = body
                        if status.status != 200:
                            t.equal(status.status, 503, "how a refusal is told")
                    except ConnectionRefusedError:
                        refused[name] = body
                        return
                    except (http.client.HTTPException, OSError):
                        unknown[name] = body
                        connection.close()

            writers = [threading.Thread(target=write, args=(number,)) for number in range(16)]
            for writer in writers:
                writer.start()
            wait_until(lambda: len(accepted) > 500)
            code = server.stop(signal.SIGTERM)
            stop.set()
            for writer in writers:
                writer.join()
            t.equal(code, 0, f"it drains: {server.stderr()}")
            for name, body in accepted.items():
                file = server.data / name
                t.true(file.exists() and file.read_bytes() == body, f"{name} was accepted")
            for name in refused:
                t.true(not (server.data / name).exists(), f"{name} was refused and is there")
            for name, body in unknown.items():
                there = (server.data / name).read_bytes() if (server.data / name).exists() else body
                t.true(there == body, f"{name} is half there")
            t.true(len(refused) >= 16, f"{len(accepted)} accepted, {len(refused)} told, {len(unknown)} unknown")
            t.true(len(unknown) <= 1, f"{len(unknown)} were neither accepted nor refused")


if __name__ == "__main__":
    main()
