#!/usr/bin/env python3
"""./run: the tour, then the server, up to Ctrl-C; with the debug build's program, so nothing is installed or built."""
# Builds first: ragfs

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
from testing.checks import check, main  # noqa: E402

PROGRAM = Path(os.environ.get("RAGFS_BUILD_DIR", ROOT / "build" / "debug")) / "ragfs"
TIMEOUT_S = 60


class Run:
    """./run in a session of its own, as a terminal gives it one, with a home of its own. A context manager."""

    def __init__(self, *arguments, root=ROOT):
        self.home = tempfile.TemporaryDirectory(prefix="ragfs-run-")
        environment = {**os.environ, "RAGFS_SKIP_INSTALL": "1", "RAGFS_PROGRAM": str(PROGRAM), "HOME": self.home.name,
                       "XDG_STATE_HOME": self.home.name, "XDG_CACHE_HOME": self.home.name}
        self.process = subprocess.Popen([root / "run", *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True, env=environment, start_new_session=True)
        self.kill_later = threading.Timer(TIMEOUT_S, self.kill)
        self.kill_later.start()
        self.printed = ""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill_later.cancel()
        self.kill()
        self.process.wait()
        self.process.stdout.close()
        self.home.cleanup()

    def kill(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def url(self):
        """Reads on until the address is printed; "" when it ends without one."""
        for line in self.process.stdout:
            self.printed += line
            if found := re.match(r"serving .* at (http://\S+)$", line):
                return found.group(1)
        return ""

    def end(self):
        """The exit code, when everything is printed."""
        self.printed += self.process.stdout.read()
        return self.process.wait(TIMEOUT_S)

    def interrupt(self):
        """What a terminal does on Ctrl-C: the signal goes to all of its foreground."""
        os.killpg(self.process.pid, signal.SIGINT)
        return self.end()

    def processes_left(self):
        """Of the session; one that has ended and that nobody asked for yet (a container's init may not) is none."""
        left = []
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                state, _, group = stat.read_text().rsplit(")", 1)[1].split()[:3]
            except OSError:
                continue  # ended meanwhile
            if int(group) == self.process.pid and state not in "ZX":
                left.append(stat.parent.name)
        return left


def get(url):
    with urllib.request.urlopen(url, timeout=TIMEOUT_S) as answer:
        return answer.read()


def tree_of(folder):
    return {path: path.read_bytes() for path in sorted(Path(folder).rglob("*")) if path.is_file()}


@check("run.serves_a_directory_until_ctrl_c")
def serves_a_directory_until_ctrl_c(t):
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "d").mkdir()
        Path(folder, "d", "a.md").write_text("hello\n")
        before = tree_of(folder)
        with Run("--address", "127.0.0.1:0", folder) as run:
            url = run.url()
            t.true(url, f"an address is printed: {run.printed}")
            t.true("% hits" in run.printed and "What to try next" in run.printed, "after the tour and the hints")
            t.equal(json.loads(get(url + "/health"))["status"], "healthy")
            t.equal(get(url + "/api/v1/files?path=/d/a.md"), b"hello\n", "its files are served")
            t.true(run.process.poll() is None, "it stays up")
            t.equal(run.interrupt(), 0, f"Ctrl-C ends it well: {run.printed}")
            t.equal(run.processes_left(), [], "no process is left")
            port = int(url.rsplit(":", 1)[1])
            with socket.socket() as at:
                t.true(at.connect_ex(("127.0.0.1", port)) != 0, "nobody listens any more")
        t.equal(tree_of(folder), before, "nothing in the directory was changed")


@check("run.sigterm_ends_it_too")
def sigterm_ends_it_too(t):
    with tempfile.TemporaryDirectory() as folder, Run("--address=127.0.0.1:0", folder) as run:
        t.true(run.url(), "an address is printed")
        run.process.terminate()
        t.equal((run.end(), run.processes_left()), (0, []))


@check("run.makes_a_workspace")
def makes_a_workspace(t):
    """In a copy of the checkout's scripts, as a clone's first run."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(ROOT / "run", folder)
        shutil.copy(ROOT / "packages.txt", folder)
        shutil.copytree(ROOT / "scripts", Path(folder, "scripts"))
        with Run("--address", "127.0.0.1:0", root=Path(folder)) as run:
            url = run.url()
            t.true(Path(folder, "workspace").is_dir(), f"workspace/ is there: {run.printed}")
            t.true("serving" in run.printed and "workspace" in run.printed, "and is what is served")
            hints = [line.strip() for line in run.printed.splitlines() if line.startswith(f"  {PROGRAM} ")]
            t.true(len(hints) >= 7, f"commands to try next: {hints}")
            for hint in hints:
                command = re.split(r" {3,}", hint)[0]  # what follows says what it is for
                done = subprocess.run(command, shell=True, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True,
                                      text=True, timeout=TIMEOUT_S, check=False)
                t.equal((done.returncode, done.stderr), (0, ""), f"{command!r} works as it is printed")
            found = json.loads(get(url + "/api/v1/glob?path=/&pattern=**/.abstract.md&show_hidden=true"))
            t.true(len(found["entries"]) > 10, f"the sample is served: {len(found['entries'])} abstracts")
            t.equal(run.interrupt(), 0)


@check("run.a_taken_port_is_no_obstacle")
def a_taken_port_is_no_obstacle(t):
    with tempfile.TemporaryDirectory() as folder, socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            other.bind(("127.0.0.1", 8080))
            other.listen()
        except OSError:
            pass  # somebody else has it, which does as well
        with Run(folder) as run:
            url = run.url()
            t.true(url and not url.endswith(":8080"), f"another port: {run.printed}")
            t.equal(json.loads(get(url + "/health"))["status"], "healthy")
            t.equal(run.interrupt(), 0)


@check("run.exit_stops_before_the_server")
def exit_stops_before_the_server(t):
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "a.md").write_text("hello\n")
        with Run("--exit", folder) as run:
            t.equal((run.url(), run.end()), ("", 0), "no address, and a good end")
            t.true("% hits" in run.printed, "after the tour")


@check("run.refuses_what_it_does_not_know")
def refuses_what_it_does_not_know(t):
    for arguments, said in ((["--serve"], "unknown option --serve"), (["--address"], "wants HOST:PORT"),
                            (["a", "b"], "one directory at most"), (["/no/such/directory"], "not a directory")):
        with Run(*arguments) as run:
            t.equal(run.end(), 2, f"{arguments}")
            t.true(said in run.printed, f"{arguments} says why: {run.printed}")
    with Run("--address", "0.0.0.0:0", str(ROOT / "docs")) as run:
        t.equal(run.url(), "", "strangers are not let in without tokens and TLS")
        t.true(run.end() != 0 and "--insecure" in run.printed, f"and it says so: {run.printed[-300:]}")


if __name__ == "__main__":
    main()
