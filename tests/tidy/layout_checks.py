"""Rules on how files stand together: folders, headers, what the build reaches."""

import json
import re
from pathlib import Path

import source
from testing.checks import check

# What a folder's files may include besides their own folder (docs/design.md section 2).
EVERYTHING = {"base", "fs", "backends", "cache", "engine", "providers", "store", "config"}
MAY_INCLUDE = {
    "base": set(),
    "fs": {"base"},
    "backends": {"base", "fs"},
    "cache": {"base", "fs"},
    "store": {"base", "fs"},
    "engine": {"base"},
    "providers": {"base", "fs", "cache", "engine"},
    "config": EVERYTHING,
    "server": EVERYTHING,
    "fuse": EVERYTHING,
    "cli": EVERYTHING | {"server", "fuse"},
}
# providers/embedded joins the cache's interface and the store.
ALSO = {"ragfs/providers/embedded": {"ragfs/store"}}
# Unit tests may stand on the in-memory backend and the scripted provider.
TEST_DOUBLES = ("ragfs/backends/mem/", "ragfs/providers/scripted/")


def allowed(name: str, included: str) -> bool:
    top, target = name.split("/")[1], included.split("/")[1]
    folder, target_folder = str(Path(name).parent), str(Path(included).parent)
    if name.endswith("_test.cc") and included.startswith(TEST_DOUBLES):
        return True
    if any(included.startswith(extra + "/") for extra in ALSO.get(folder, ())):
        return True
    if top == target:  # one backend or provider knows nothing of its neighbours
        return top not in ("backends", "providers") or folder == target_folder
    return target in MAY_INCLUDE.get(top, set())


@check("tidy.folder_dependencies")
def folder_dependencies(t):
    for name in source.cpp():
        for line, included in source.includes(name):
            if not (source.ROOT / included).is_file():
                t.fail(f'#include "{included}": quotes are for the project\'s files, by their whole path', name, line)
            elif name.startswith("ragfs/") and not included.startswith("ragfs/"):
                t.fail(f"{included}: code of the library does not include tests or tools", name, line)
            elif name.startswith("ragfs/") and not allowed(name, included):
                t.fail(f"{Path(name).parent} must not depend on {Path(included).parent}", name, line)


@check("tidy.folders_are_known")
def folders_are_known(t):
    for name in source.cpp():
        if name.startswith("ragfs/"):
            t.true(name.count("/") >= 2 and name.split("/")[1] in MAY_INCLUDE,
                   f"{name}: say in tests/tidy/layout_checks.py what its folder may depend on")


@check("tidy.pragma_once")
def pragma_once(t):
    for name in source.headers():
        if "#pragma once" not in source.lines(name):
            t.fail("a header needs #pragma once", name)


@check("tidy.header_comment")
def header_comment(t):
    """A header begins with what it is for, and says whether it may be used from several threads."""
    for name in source.headers():
        top = []
        for line in source.lines(name):
            if not line.startswith("//"):
                break
            top.append(line)
        comment = "\n".join(top)
        if len(comment) < 40:
            t.fail("a header begins with a comment that says what it is for", name)
        elif not re.search(r"thread.?safe|any\s+(//\s*)?threads?\b|synchroni[sz]ed|one thread", comment, re.IGNORECASE):
            t.fail("the comment at the top says nothing of thread-safety", name)


@check("tidy.reachable_from_cmake")
def reachable_from_cmake(t):
    """No source that nothing builds, no header that nothing includes, no script that nothing names."""
    commands = source.ROOT / "build" / "debug" / "compile_commands.json"
    built = {entry["file"] for entry in json.loads(commands.read_text())} if commands.exists() else None
    if built is None:
        t.fail("configure first: cmake --preset debug")
        return
    included = {path for name in source.cpp() for _, path in source.includes(name)}
    for name in source.cpp():
        if name.endswith(".h"):
            t.true(name in included, f"{name} is included by no file")
        elif str(source.ROOT / name) not in built and not in_a_cmake_list(name):
            t.fail("no target is built from this file", name)
    names = "\n".join(source.text(name) for name in source.files() if not name.startswith("docs/"))
    for name in source.scripts():
        stem = Path(name).stem
        if not name.endswith("_test.py") and not re.search(rf"(?<![\w]){re.escape(stem)}(?![\w])", names):
            t.fail("no file names this script", name)


def in_a_cmake_list(name: str) -> bool:
    """For presets other than debug: the folder's CMakeLists.txt names the file, or globs its ending."""
    path = Path(name)
    lists = f"{path.parent}/CMakeLists.txt"
    if lists not in source.files():
        return False
    text = source.text(lists)
    globs = [pattern.replace("*", ".*") for pattern in re.findall(r"(\*\w*\.cc)\b", text)]
    return bool(re.search(rf"\b{re.escape(path.stem)}\b", text)) or any(re.fullmatch(g, path.name) for g in globs)
