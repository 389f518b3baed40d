"""Running one program to its end: output to a file, a time limit, no processes or files left behind."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path


RUNNING: set[subprocess.Popen] = set()


class Ended:
    """How a program ended: `code` as subprocess gives it (negative = signal), or a timeout."""

    def __init__(self, code: int, timed_out: bool, seconds: float):
        self.code = code
        self.timed_out = timed_out
        self.seconds = seconds

    def text(self) -> str:
        if self.timed_out:
            return f"timed out after {self.seconds:.0f} s"
        if self.code < 0:
            try:
                return f"killed by {signal.Signals(-self.code).name}"
            except ValueError:
                return f"killed by signal {-self.code}"
        return f"exit code {self.code}"


def kill_group(process: subprocess.Popen) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def kill_all() -> None:
    """For Ctrl-C and SIGTERM: programs in sessions of their own do not get those."""
    for process in list(RUNNING):
        kill_group(process)


def run_to_log(command: list[str], log: Path, timeout_s: float, cwd: Path, env: dict[str, str]) -> Ended:
    """Runs `command` in a session and a temporary directory of its own; what it leaves of either is removed."""
    log.parent.mkdir(parents=True, exist_ok=True)
    scratch = tempfile.mkdtemp(prefix="ragfs-test-")
    os.chmod(scratch, 0o711)  # tests run programs as another user, who must get through to what is shown to him
    full_env = {**os.environ, **env, "TMPDIR": scratch, "XDG_STATE_HOME": f"{scratch}/state"}
    start = time.monotonic()
    timed_out = False
    try:
        with log.open("wb") as out:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, cwd=cwd,
                                       env=full_env, start_new_session=True)
            RUNNING.add(process)
            try:
                code = process.wait(timeout=timeout_s)
            except subprocess.TimeoutExpired:
                timed_out = True
                kill_group(process)
                code = process.wait()
            finally:
                kill_group(process)  # and daemons that a test started and did not stop
                RUNNING.discard(process)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return Ended(code, timed_out, time.monotonic() - start)
