"""The Python of tests that need packages: build/venv, made from tests/requirements.txt and kept until that changes."""

import hashlib
import subprocess
import sys
import venv
from pathlib import Path


def python(root: Path) -> Path:
    """The interpreter with the packages; installs what is missing. RuntimeError says why it could not."""
    wanted = root / "tests" / "requirements.txt"
    folder = root / "build" / "venv"
    mark = folder / "requirements.sha256"
    digest = hashlib.sha256(wanted.read_bytes() + sys.version.encode()).hexdigest()
    program = folder / "bin" / "python3"
    if mark.exists() and mark.read_text() == digest:
        return program
    venv.create(folder, clear=True, with_pip=True)
    done = subprocess.run([program, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", wanted],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"pip install -r {wanted.name}: {done.stderr[-600:]}")
    mark.write_text(digest)
    return program
