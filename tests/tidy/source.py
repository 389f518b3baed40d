"""The project's files, and C++ text without its comments and strings. Read once a run."""

import re
import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@cache
def files() -> list[str]:
    """Every file of the project, relative to its root: tracked, or new and not ignored."""
    done = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True,
                          check=True)
    return sorted(name for name in set(done.stdout.splitlines()) if (ROOT / name).is_file())


def matching(*endings: str) -> list[str]:
    return [name for name in files() if name.endswith(endings)]


def cpp() -> list[str]:
    return matching(".cc", ".h")


def headers() -> list[str]:
    return matching(".h")


def scripts() -> list[str]:
    """Python and shell, those without an ending too."""
    found = matching(".py", ".sh")
    for name in files():
        if "." not in Path(name).name or name.startswith(".ci/"):
            with (ROOT / name).open("rb") as opened:
                if opened.read(2) == b"#!":
                    found.append(name)
    return sorted(set(found))


@cache
def text(name: str) -> str:
    return (ROOT / name).read_text(errors="replace")


def lines(name: str) -> list[str]:
    return text(name).split("\n")


TOKEN = re.compile(
    r"""//[^\n]*|/\*.*?\*/|R"(?P<mark>[^()\\ ]{0,16})\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+'""",
    re.DOTALL)


def _blank(match: re.Match) -> str:
    token = match.group(0)
    if token[0] in "\"R":
        return '"' + re.sub(r"[^\n]", " ", token[1:-1]) + '"'
    return re.sub(r"[^\n]", " ", token)


@cache
def code(name: str) -> str:
    """The file with comments, strings and character literals blanked; every line keeps its number and length."""
    # A digit separator (10'000) is no literal: hide it first, with as many characters.
    return TOKEN.sub(_blank, re.sub(r"(?<=[0-9a-fA-F])'(?=[0-9a-fA-F]{3})", "_", text(name)))


def line_of(content: str, offset: int) -> int:
    return content.count("\n", 0, offset) + 1


@cache
def includes(name: str) -> list[tuple[int, str]]:
    """(line, path) of every #include "..."."""
    found = re.finditer(r'^\s*#\s*include\s+"([^"]+)"', text(name), re.MULTILINE)
    return [(line_of(text(name), match.start(1)), match.group(1)) for match in found]


@cache
def closure(name: str) -> frozenset[str]:
    """The file and all of the project's headers it includes, directly or not."""
    seen, todo = set(), [name]
    while todo:
        current = todo.pop()
        if current in seen or not (ROOT / current).is_file():
            continue
        seen.add(current)
        todo += [path for _, path in includes(current)]
    return frozenset(seen)
