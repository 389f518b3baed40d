"""CMake presets: configuring, building, and which test program is made of which sources."""

import json
import os
import re
import subprocess
from collections import defaultdict
from pathlib import Path

from .report import Report, print_tail

JOBS = max(1, min(3, os.cpu_count() or 2))


class Build:
    """The build directory of one preset."""

    def __init__(self, root: Path, preset: str, report: Report):
        self.root = root
        self.preset = preset
        self.report = report
        self.directory = root / "build" / preset
        self.log = root / "build" / "test-logs" / f"build-{preset}.log"
        # Relative paths in the cache's keys: a second clone finds what the first one compiled.
        self.env = {**os.environ, "CCACHE_BASEDIR": str(root), "CCACHE_NOHASHDIR": "true"}

    def _run(self, command: list[str], mode: str) -> bool:
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open(mode) as out:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                                  cwd=self.root, env=self.env, check=False)
        return done.returncode == 0

    def configure(self) -> bool:
        return self._run(["cmake", "--preset", self.preset], "w")

    def build(self, targets: list[str] | None = None) -> bool:
        """Builds the targets (all of them without any), as far as it gets; False and the errors printed on failure."""
        jobs = os.environ.get("RAGFS_BUILD_JOBS", str(JOBS))
        if self._run(["ninja", "-C", str(self.directory), "-j", jobs, *(["-k", "0"]), *(targets or [])], "a"):
            return True
        errors = [line for line in self.log.read_text(errors="replace").splitlines()
                  if re.search(r"error:|FAILED:|undefined reference|fatal", line)]
        self.report.say(f"  building preset {self.preset} failed:")
        for line in errors[:20]:
            self.report.say(f"    | {line[:300]}")
        print_tail(self.log)
        return False

    def programs(self) -> list[Path]:
        return sorted(p for p in (self.directory / "tests").glob("*_test") if os.access(p, os.X_OK) and p.is_file())

    def sources(self) -> dict[str, list[Path]]:
        """Test program name -> its own source files."""
        found = defaultdict(list)
        commands = self.directory / "compile_commands.json"
        if commands.exists():
            for entry in json.loads(commands.read_text()):
                target = re.search(r" -o \S*CMakeFiles/(\w+_test)\.dir/", entry["command"])
                if target:
                    found[target.group(1)].append(Path(entry["file"]))
        return dict(found)


def static_names(sources: list[Path]) -> list[str] | None:
    """The names of the tests in these sources as far as the text shows them; None where only the program knows."""
    names = []
    for source in sources:
        text = source.read_text(errors="replace")
        if re.search(r"INSTANTIATE_|TYPED_TEST|RegisterTest", text):
            return None
        names += [f"{m.group(1)}.{m.group(2)}" for m in re.finditer(r"\bTEST(?:_F)?\(\s*(\w+)\s*,\s*(\w+)\s*\)", text)]
    return names
