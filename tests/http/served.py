"""A ragfs server of its own for each test, and sockets to talk to it byte by byte."""

import http.client
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("RAGFS_BUILD_DIR", ROOT / "build" / "debug"))
TIMEOUT_S = 20
HOST = b"Host: localhost\r\n"


class Server:
    """`ragfs serve` over a fresh directory at /local and a memfs at /memfs. A context manager."""

    def __init__(self, server="", arguments=(), environment=None, cache="{}", mounts="", before=None,
                 home_in=(), pathlock="{}"):
        self.folder = tempfile.TemporaryDirectory(prefix="ragfs-http-")
        self.home = Path(self.folder.name)
        self.data = self.home / "data"
        self.data.mkdir()
        if before is not None:
            before(self.home)
        self.config = self.home / "ragfs.yaml"
        lines = "".join(f"  {line}\n" for line in ["address: 127.0.0.1:0", *server.splitlines()])
        self.config.write_text(
            "storage:\n  agfs:\n    mounts:\n"
            f"      - {{path: /local, type: localfs, local_dir: {self.data}}}\n"
            f"      - {{path: /memfs, type: memfs}}\n{mounts}"
            f"    cache: {cache}\n    pathlock: {pathlock}\nserver:\n{lines}")
        arguments = [*arguments, *(argument.replace("HOME", str(self.home)) for argument in home_in)]
        self.errors = open(self.home / "stderr", "w+b")
        self.process = subprocess.Popen(
            [BUILD / "ragfs", "-c", self.config, "--json", "serve", *arguments], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=self.errors, env={**os.environ, **(environment or {})})
        said = self.process.stdout.readline()
        if not said:
            self.process.wait()
            self.refusal = self.stderr()
            self.url = ""
            return
        self.refusal = ""
        self.url = json.loads(said)["url"]
        self.host, port = re.fullmatch(r"https?://(.*):(\d+)", self.url).groups()
        self.port = int(port)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
        self.errors.close()
        self.folder.cleanup()

    def stderr(self):
        return (self.home / "stderr").read_text(errors="replace")

    def stop(self, number=signal.SIGTERM):
        """The exit code; a server that does not end is killed and answers -9."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            return self.process.wait(TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()
        finally:
            self.process.stdout.close()

    def alive(self):
        return self.process.poll() is None

    def connection(self, context=None):
        if self.url.startswith("https"):
            return http.client.HTTPSConnection(self.host, self.port, timeout=TIMEOUT_S,
                                               context=context or ssl._create_unverified_context())
        return http.client.HTTPConnection(self.host, self.port, timeout=TIMEOUT_S)

    def ask(self, method, target, body=None, headers=None):
        """(status, headers, body) over a connection of its own."""
        connection = self.connection()
        try:
            connection.request(method, target, body=body, headers=headers or {})
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()

    def json(self, method, target, body=None, headers=None):
        status, _, text = self.ask(method, target, json.dumps(body) if isinstance(body, dict) else body, headers)
        return status, json.loads(text)

    def socket(self):
        made = socket.create_connection((self.host, self.port), timeout=TIMEOUT_S)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return made

    def raw(self, data):
        """Everything that comes back until the server closes, or stops for a while."""
        with self.socket() as at:
            at.settimeout(3)
            try:
                at.sendall(data)
                at.shutdown(socket.SHUT_WR)
            except OSError:
                pass
            return read_all(at)

    def metric(self, name):
        _, _, text = self.ask("GET", "/metrics")
        found = re.search(rf"^{re.escape(name)} (\S+)$", text.decode(), re.MULTILINE)
        return float(found.group(1)) if found else None

    def open_files(self):
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))

    def memory_bytes(self):
        return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def free_port():
    with socket.socket() as at:
        at.bind(("127.0.0.1", 0))
        return at.getsockname()[1]


def read_all(at):
    out = b""
    while True:
        try:
            part = at.recv(65536)
        except (TimeoutError, ConnectionResetError):
            return out
        if not part:
            return out
        out += part


def wait_until(condition, seconds=TIMEOUT_S):
    """True as soon as the condition holds."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return condition()
