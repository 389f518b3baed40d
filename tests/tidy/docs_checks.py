"""Rules on what people read: links, the change log, the list of packages."""

import re
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
