"""The original module, from OpenViking's wheel. It is compared with; nothing of it is copied."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

VERSION = "0.5.2"
MODULE = "openviking/lib/ragfs_python.abi3.so"


def directory(root: Path) -> Path:
    """A directory with the module in it; fetches the wheel once. RuntimeError says why it could not."""
    folder = root / "build" / f"openviking-{VERSION}"
    if (folder / Path(MODULE).name).exists():
        return folder
    staged = folder.with_name(folder.name + ".part")
    shutil.rmtree(staged, ignore_errors=True)
    staged.mkdir(parents=True)
    done = subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check",
                           "--no-deps", "--only-binary=:all:", "-d", str(staged), f"openviking=={VERSION}"],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"pip download openviking=={VERSION}: {done.stderr[-600:]}")
    wheel = next(staged.glob("*.whl"))
    with zipfile.ZipFile(wheel) as archive:
        (staged / Path(MODULE).name).write_bytes(archive.read(MODULE))
        for name in archive.namelist():  # libraries that the module brings along
            if name.startswith("openviking.libs/"):
                archive.extract(name, staged)
    wheel.unlink()
    shutil.rmtree(folder, ignore_errors=True)
    staged.rename(folder)
    return folder
