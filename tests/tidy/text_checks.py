"""Rules on the text of one file: lengths, banned words, assertions."""

import ast
import re

import allowed
import source
from testing.checks import check

MAX_COLUMNS = 120
MAX_FUNCTION_LINES = 70
MAX_FILE_LINES = 600


@check("tidy.line_length")
def line_length(t):
    for name in source.cpp() + source.scripts() + source.matching(".cmake", "CMakeLists.txt", ".yaml", ".yml"):
        for number, line in enumerate(source.lines(name), 1):
            if len(line) > MAX_COLUMNS:
                t.fail(f"{len(line)} columns, at most {MAX_COLUMNS}", name, number)


@check("tidy.file_length")
def file_length(t):
    needed = set()
    for name in source.cpp() + source.scripts():
        count = len(source.lines(name)) - 1
        if count > MAX_FILE_LINES:
            needed.add(name)
            if name not in allowed.LONG_FILES:
                t.fail(f"{count} lines, at most {MAX_FILE_LINES}: split it by idea", name)
    check_needed(t, "LONG_FILES", allowed.LONG_FILES, needed)


def check_needed(t, table: str, entries: dict, needed: set) -> None:
    for name in entries:
        t.true(name in needed, f"tests/tidy/allowed.py {table}: {name} needs no exception any more")


def blank(match: re.Match) -> str:
    return re.sub(r"[^\n]", " ", match.group(0))


def functions(name: str):
    """(name, first line, lines) of each function body: a brace that opens after a parameter list or a class-less head.

    Goes by braces alone: a body is a block whose head (the text since the last ';', '{' or '}') has parentheses and is
    no namespace, type, initialiser or statement. Lambdas inside count with their function.
    """
    code = re.sub(r"^\s*#.*?(?<!\\)$", blank, source.code(name), flags=re.M | re.S)
    stack, head_start = [], 0
    for match in re.finditer(r"[;{}]", code):
        at = match.start()
        if match.group(0) == "{":
            stack.append((at, " ".join(code[head_start:at].split())))
        elif match.group(0) == "}" and stack:
            start, head = stack.pop()
            outer = [text for _, text in stack]
            if is_function(head) and not any(is_function(text) for text in outer):
                first, last = source.line_of(code, start), source.line_of(code, at)
                yield re.split(r"\(", head)[0].split()[-1], first, last - first + 1
        head_start = at + 1


def is_function(head: str) -> bool:
    if re.match(r"(\w+: )?(namespace|extern|enum|union|if|for|while|switch|do|else|try|catch|return)\b", head):
        return False
    if re.search(r"\b(class|struct)\s+[\w:<>]*\s*(final)?\s*(:[^(]*)?$", head) or re.search(r"=\s*$", head):
        return False
    return bool(re.search(r"[\w>~]\s*\(|operator", head))


@check("tidy.function_length")
def function_length(t):
    needed = set()
    found = [(name, *function) for name in source.cpp() for function in functions(name)]
    for name in source.matching(".py"):
        for node in ast.walk(ast.parse(source.text(name))):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                found.append((name, node.name, node.lineno, node.end_lineno - node.lineno + 1))
    for name, function, line, count in found:
        if count > MAX_FUNCTION_LINES:
            needed.add(f"{name}:{function}")
            if f"{name}:{function}" not in allowed.LONG_FUNCTIONS:
                t.fail(f"{function} has {count} lines, at most {MAX_FUNCTION_LINES}", name, line)
    check_needed(t, "LONG_FUNCTIONS", allowed.LONG_FUNCTIONS, needed)
    t.true(len(found) > 50, f"the detector finds functions at all: {len(found)}")


# (what to look for in the code, why, files where it is right, files it applies to)
EVERY = r".*"
# unique_ptr<T>(new T(...)) is how a private constructor is reached.
OWNED_AT_ONCE = re.compile(r"\b(?:unique_ptr<[^;()]*>|Ref)\s*\w*\(new\b")
BANNED = [
    (r"\bstd::(mutex|recursive_mutex|shared_mutex|timed_mutex|lock_guard|unique_lock|scoped_lock|shared_lock"
     r"|condition_variable)\b", "use ragfs/base/sync.h: the compiler checks its locks",
     {"ragfs/base/sync.h", "ragfs/base/sync.cc"}, r"(?!engines/).*"),  # plug-ins know nothing of the library
    (r"\bnew\s+[\w:(<]", "no raw new: make_unique, a container or Bytes", allowed.RAW_NEW,
     r"(ragfs|tests|bench)/.*"),
    (r"\bthrow\b", "errors are values: Result<T>", allowed.THROWS, r"(ragfs|tests)/.*"),
    (r"\b(f|s|sn|v|vf|vs|vsn)?printf\s*\(", "fmt instead of printf", set(), EVERY),
    (r"\bstd::(cout|cerr|clog)\b", "only the command line writes to the console", allowed.CONSOLE,
     r"(?!ragfs/cli/).*"),
    (r"\busing\s+namespace\s+(?!std::(\w+::)?\w*literals)", "no using namespace", set(), EVERY),
    (r"\b(sleep_for|sleep_until|usleep|nanosleep)\b|(?<![\w.:>])sleep\s*\(",
     "no sleeps: a deadline in code, a pause point (ragfs/base/pause_point.h) in tests", allowed.SLEEPS, EVERY),
    (r"\bDISABLED_", "no disabled tests: repair it or take it out", set(), EVERY),
    (r"\bGTEST_SKIP\s*\(\s*\)\s*;", "a skip says why: GTEST_SKIP() << reason", set(), EVERY),
]


@check("tidy.banned_words")
def banned_words(t):
    for pattern, why, allow, where in BANNED:
        needed = set()
        for name in source.cpp():
            if not re.fullmatch(where, name):
                continue
            code = OWNED_AT_ONCE.sub(blank, source.code(name))
            for match in re.finditer(pattern, code):
                needed.add(name)
                if name not in allow:
                    t.fail(f"{match.group(0)}: {why}", name, source.line_of(code, match.start()))
        if isinstance(allow, dict):
            check_needed(t, "(table of " + why + ")", allow, needed)


@check("tidy.no_promises")
def no_promises(t):
    """Work left undone is an issue, not a comment."""
    words = re.compile(r"\b(" + "|".join(["TO" + "DO", "FIX" + "ME", "X" + "XX", "HA" + "CK"]) + r")\b")
    for name in source.cpp() + source.scripts() + source.matching(".md", ".cmake", "CMakeLists.txt"):
        for number, line in enumerate(source.lines(name), 1):
            found = words.search(line)
            if found:
                t.fail(f"{found.group(0)}: do it or take it out", name, number)


@check("tidy.no_machine_paths")
def no_machine_paths(t):
    """Nothing depends on where one person's checkout or home directory is. Tests may invent the home of "me"."""
    places = re.compile(r"(?<![\w.$}~/-])/(?:" + "|".join(["wo" + "rk", "ro" + "ot", "ho" + "me(?!/me\\b)"]) + r")/\w")
    for name in source.files():
        if name.endswith((".zst", ".png", ".bin")):
            continue
        for number, line in enumerate(source.lines(name), 1):
            found = places.search(line)
            if found:
                t.fail(f"absolute path {line[found.start():found.start() + 40]!r}", name, number)


ASSERTION = r"\b(EXPECT|ASSERT)_\w+|\bADD_FAILURE|\bFAIL\(|\bRC_ASSERT"


@check("tidy.every_test_asserts")
def every_test_asserts(t):
    """A test that cannot fail tests nothing. Assertions may stand in helpers, in the file itself or in a header."""
    tests = [name for name in source.cpp() if name.endswith("_test.cc") or name.startswith("tests/")]
    helpers = set()
    for _ in range(4):  # helpers of helpers
        pattern = re.compile(ASSERTION + "".join(f"|\\b{re.escape(name)}\\b" for name in sorted(helpers)))
        helpers |= {function for name in tests + source.headers() for function, body in bodies(name)
                    if pattern.search(body) and not re.fullmatch(r"TEST\w*|TYPED_TEST\w*", function)}
    pattern = re.compile(ASSERTION + "".join(f"|\\b{re.escape(name)}\\b" for name in sorted(helpers)))
    count = 0
    for name in tests:
        code = source.code(name)
        for match in re.finditer(r"\b(?:TYPED_)?TEST(?:_F|_P)?\(\s*(\w+)\s*,\s*(\w+)\s*\)\s*\{", code):
            count += 1
            if not pattern.search(block(code, match.end() - 1)):
                t.fail(f"{match.group(1)}.{match.group(2)} asserts nothing", name, source.line_of(code, match.start()))
    t.true(count > 0, "the detector finds tests at all")


def block(code: str, start: int) -> str:
    """The text from the brace at `start` to the one that closes it."""
    depth = 0
    for match in re.finditer(r"[{}]", code[start:]):
        depth += 1 if match.group(0) == "{" else -1
        if depth == 0:
            return code[start : start + match.end()]
    return code[start:]


def bodies(name: str):
    """(function name, text from its first line on) of the functions and function-like macros of a file."""
    text = source.lines(name)
    for function, first, count in functions(name):
        yield re.sub(r".*::", "", function), "\n".join(text[first - 1 : first + count])
    for macro in re.finditer(r"#define (\w+)\([^)]*\)((?:.*\\\n)*.*)", source.text(name)):
        yield macro.group(1), macro.group(2)
