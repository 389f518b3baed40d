"""Rules on what people read: links, the change log, the list of packages."""

import re
import subprocess
from pathlib import Path

import source
from testing.checks import check


def prose(name: str) -> str:
    """The page without its code blocks and code spans."""
    text = re.sub(r"^```.*?^```", "", source.text(name), flags=re.M | re.S)
    return re.sub(r"`[^`\n]*`", "", text)


def anchors(name: str) -> set[str]:
    """The anchors that a page's headings get."""
    found = set()
    for heading in re.findall(r"^#+\s+(.*)$", re.sub(r"^```.*?^```", "", source.text(name), flags=re.M | re.S), re.M):
        found.add(re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-"))
    return found


@check("tidy.docs_links")
def docs_links(t):
    """Every link inside the project leads somewhere."""
    for name in source.matching(".md"):
        for match in re.finditer(r"\]\(([^)\s]+)\)", prose(name)):
            target = match.group(1)
            if re.match(r"[a-z]+:", target):
                continue
            path, _, anchor = target.partition("#")
            place = (Path(name).parent / path) if path else Path(name)
            resolved = (source.ROOT / place).resolve()
            if not resolved.exists() or not resolved.is_relative_to(source.ROOT):
                t.fail(f"the link {target} leads nowhere", name)
            elif anchor and resolved.suffix == ".md":
                page = str(resolved.relative_to(source.ROOT))
                t.true(anchor in anchors(page), f"{name}: {page} has no heading #{anchor}")


@check("tidy.changelog")
def changelog(t):
    """One line a change, newest release first: '## Unreleased' or '## 1.2.3 (2026-12-31)', then '- what changed'."""
    name = "CHANGELOG.md"
    content = source.lines(name)
    t.equal(content[0], "# Changelog", f"{name}: first line")
    section = None
    for number, line in enumerate(content[1:], 2):
        if line.startswith("#"):
            section = line
            if not re.fullmatch(r"## (Unreleased|\d+\.\d+\.\d+ \(\d{4}-\d\d-\d\d\))", line):
                t.fail("a section is '## Unreleased' or '## 1.2.3 (2026-12-31)'", name, number)
        elif section and line and not re.fullmatch(r"- [A-Za-z`./].{8,180}", line):
            t.fail("one line a change, '- what changed for the user', at most 180 characters", name, number)
    t.true(section is not None, f"{name} has no section")


@check("tidy.packages")
def packages(t):
    """packages.txt: sections that begin with a comment, each sorted, no package twice."""
    name = "packages.txt"
    seen, before = set(), ""
    for number, line in enumerate(source.lines(name), 1):
        package = line.strip()
        if package.startswith("#") or not package:
            before = ""
            continue
        if not re.fullmatch(r"[a-z0-9][a-z0-9+.-]+", package):
            t.fail(f"{package!r} is no name of a package", name, number)
        t.true(package not in seen, f"{name}:{number}: {package} is listed twice")
        if package < before:
            t.fail(f"{package} belongs before {before}", name, number)
        seen.add(package)
        before = package


def listed_packages() -> set[str]:
    return {line.strip() for line in source.lines("packages.txt") if line.strip() and not line.startswith("#")}


def installed_with(packages: set[str]) -> set[str]:
    """Those packages and all that they depend on, as far as it is installed."""
    shown = subprocess.run(["dpkg-query", "-W", "-f", "${Package}\t${Provides}\t${Pre-Depends}, ${Depends}\n"],
                           capture_output=True, text=True, check=True).stdout
    needs, providers = {}, {}
    for line in shown.splitlines():
        package, provides, depends = line.split("\t")
        needs[package] = re.findall(r"(?:^|[,|])\s*([a-z0-9][a-z0-9+.-]+)", depends)
        for name in [package, *re.findall(r"(?:^|,)\s*([a-z0-9][a-z0-9+.-]+)", provides)]:
            providers.setdefault(name, set()).add(package)
    found, new = set(), set(packages)
    while new:
        found |= new
        new = {real for package in new for need in needs.get(package, []) for real in providers.get(need, ())} - found
    return found


@check("tidy.packages_bring_headers")
def packages_bring_headers(t):
    """Headers of libraries come with packages.txt, not with what this machine has besides."""
    places = [Path("/usr/include"), *Path("/usr/include").glob("*-linux-gnu*")]
    included = {}
    for name in source.cpp():
        for header in re.findall(r"^\s*#\s*include <([^>]+)>", source.text(name), re.M):
            included.setdefault(header, name)
    paths = {str(place / header): header for header in included for place in places if (place / header).is_file()}
    owners = subprocess.run(["dpkg-query", "-S", *paths], capture_output=True, text=True, check=False).stdout
    brought = installed_with(listed_packages())
    t.true(owners, "dpkg knows none of the headers")
    for line in owners.splitlines():
        names, path = line.rsplit(": ", 1)
        owning = {name.strip().split(":")[0] for name in names.split(",")}
        if not owning & brought:
            header = paths[path]
            t.fail(f"<{header}> is of {', '.join(sorted(owning))}, which packages.txt does not bring", included[header])


@check("tidy.pages_exist")
def pages_exist(t):
    """What a newcomer looks for first."""
    for name in ("README.md", "LICENSE", "CHANGELOG.md", "CONTRIBUTING.md", "docs/design.md", "docs/formats.md",
                 "packages.txt", "run", "test", ".ci/run"):
        t.true(name in source.files(), f"{name} is missing")


CASES_IN = {"_test.cc": re.compile(r"\bTEST(?:_[FP])?\(\s*Case((?:[A-F]\d\d)+)"),
            "_test.py": re.compile(r"^@check\(\"\w+\.case_([a-f]\d\d)_", re.MULTILINE)}


@check("tidy.cases_page")
def cases_page(t):
    """docs/cases.md names for each report files whose tests carry its ID, at least one where there is any."""
    tested = {}
    for ending, pattern in CASES_IN.items():
        for name in source.matching(ending):
            for ids in pattern.findall(source.text(name)):
                for case in re.findall(r"[A-F]\d\d", ids.upper()):
                    tested.setdefault(case, set()).add(name)
    page = "docs/cases.md"
    listed = {}
    for number, line in enumerate(source.lines(page), 1):
        row = re.match(r"\| ([A-F]\d\d) \| [^|]+ \| ([^|]+) \|$", line)
        if row:
            listed[row.group(1)] = set(re.findall(r"`([\w/.]+)`", row.group(2)))
            there = tested.get(row.group(1), set())
            t.equal(sorted(listed[row.group(1)] - there), [], f"{page}:{number}: files without a test of it")
            t.true(bool(listed[row.group(1)]) or not there, f"{page}:{number}: is tested in {sorted(there)}")
    t.equal(sorted(set(tested) - set(listed)), [], f"{page} has no row of these")
    t.true(len(listed) > 100, f"{page} has a row for each report")
