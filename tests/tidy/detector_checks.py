"""The detectors themselves: each finds what it should in a small bad example, and nothing in a good one."""

import re

import layout_checks
import source
import text_checks
from testing.checks import check


def functions_of(text: str, t) -> list[tuple[str, int]]:
    """Feeds the text to the function detector as if it were a file of the project."""
    original = source.text
    source.code.cache_clear()
    source.text = lambda name: text if name == "example.cc" else original(name)
    try:
        return [(name, count) for name, _, count in text_checks.functions("example.cc")]
    finally:
        source.text = original
        source.code.cache_clear()


@check("tidy.detects_long_functions")
def detects_long_functions(t):
    example = """namespace a {
struct S final : Base<int> {
  S() : x_(1) {
  }
  bool operator==(const S& o) const { return true; }
  int x_[2] = {1, 2};
};
Result<void> Class::method(const Context& ctx,
                           std::string_view text = "}{") const {
  if (x) {
    for (auto& y : z) { call([&] { return 1'000; }); }
  }
}  // }
enum class E : int { a, b };
TEST(Suite, Name) {
  EXPECT_TRUE(true);
}
}
"""
    found = functions_of(example, t)
    t.equal(found, [("S", 2), ("operator==", 1), ("Class::method", 5), ("TEST", 3)], "functions and their lines")


@check("tidy.detects_banned_words")
def detects_banned_words(t):
    bad = ["std::mutex m;", "auto* p = new Foo();", "throw 1;", 'printf("x");', "std::cout << 1;",
           "using namespace std;", "std::this_thread::sleep_for(1ms);", "TEST(A, DISABLED_B)", "GTEST_SKIP();"]
    good = ["MutexLock lock(mutex);", "int renew = 1;", "rethrow();", "fmt::print(x);",
            "using namespace std::literals;", "std::unique_ptr<A>(new A(b))", "std::unique_ptr<A> a(new A);",
            'GTEST_SKIP() << "no disk";', "asleep();", "cond.new_value = 1;"]
    for line in bad:
        t.true(any(re.search(pattern, line) for pattern, *_ in text_checks.BANNED), f"{line} is found")
    for line in good:
        code = text_checks.OWNED_AT_ONCE.sub("", line)
        hits = [pattern for pattern, *_ in text_checks.BANNED if re.search(pattern, code)]
        t.equal(hits, [], f"{line} is fine")


@check("tidy.detects_wrong_includes")
def detects_wrong_includes(t):
    wrong = [("ragfs/base/a.cc", "ragfs/fs/b.h"), ("ragfs/store/a.h", "ragfs/cache/b.h"),
             ("ragfs/cache/a.cc", "ragfs/providers/embedded/b.h"), ("ragfs/cache/a.cc", "ragfs/backends/mem/b.h"),
             ("ragfs/backends/mem/a.cc", "ragfs/backends/local/b.h"), ("ragfs/providers/redis/a.cc", "ragfs/store/b.h"),
             ("ragfs/config/a.cc", "ragfs/cli/b.h")]
    right = [("ragfs/cache/a.cc", "ragfs/fs/b.h"), ("ragfs/cache/a_test.cc", "ragfs/backends/mem/b.h"),
             ("ragfs/providers/embedded/a.cc", "ragfs/store/memory/b.h"), ("ragfs/store/disk/a.cc", "ragfs/store/b.h"),
             ("ragfs/cli/a.cc", "ragfs/config/b.h"), ("ragfs/cli/a.cc", "ragfs/server/b.h")]
    for name, included in wrong:
        t.true(not layout_checks.allowed(name, included), f"{name} must not include {included}")
    for name, included in right:
        t.true(layout_checks.allowed(name, included), f"{name} may include {included}")


@check("tidy.blanks_comments_and_strings")
def blanks_comments_and_strings(t):
    example = ('int a = 10\'000; // throw\nauto s = "throw \\" x"; /* new\n Foo */ auto r = R"x(throw")x"; '
               'char c = \'"\';\n')
    blanked = re.sub(r"[^\n]", "", example)
    text = source.TOKEN.sub(source._blank, re.sub(r"(?<=[0-9a-fA-F])'(?=[0-9a-fA-F]{3})", "_", example))
    t.equal(len(text), len(example), "length")
    t.equal(re.sub(r"[^\n]", "", text), blanked, "line ends")
    t.true("throw" not in text and "Foo" not in text and "char c" in text, f"only code is left: {text!r}")
