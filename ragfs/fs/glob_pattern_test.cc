#include "ragfs/fs/glob_pattern.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace ragfs {
namespace {

bool matches(std::string_view pattern, std::string_view path) {
  const Result<GlobPattern> parsed = GlobPattern::parse(pattern);
  EXPECT_TRUE(parsed) << pattern;
  return parsed && parsed->match(path).matches;
}

std::string error_of(std::string_view pattern) {
  const Result<GlobPattern> parsed = GlobPattern::parse(pattern);
  return parsed ? "" : parsed.error().text();
}

struct Case {
  std::string_view pattern;
  std::string_view path;
  bool matches;
};

TEST(GlobPattern, MatchesAsGlobsetDoes) {
  const std::vector<Case> cases = {
      {"*.md", "a.md", true},
      {"*.md", "a/x.md", false},
      {"*.md", ".md", true},
      {"**/*.md", "x.md", true},
      {"**/*.md", "a/b/x.md", true},
      {"**/*.md", "a/b/x.mdx", false},
      {"**", "a", true},
      {"**", "a/b/c", true},
      {"a/**", "a", false},
      {"a/**", "a/b", true},
      {"a/**", "a/b/c", true},
      {"a/**", "ab/c", false},
      {"a/**/b", "a/b", true},
      {"a/**/b", "a/x/y/b", true},
      {"a/**/b", "a/xb", false},
      {"a/**/**/b", "a/b", true},
      {"**/**/b", "b", true},
      {"**/**", "x/y", true},
      {"a/**/**", "a/x", true},
      {"a/**/**", "a", false},
      {"a**b", "axxb", true},
      {"a**b", "ax/xb", false},
      {"?", "a", true},
      {"?", "ab", false},
      {"?", "\xE4\xB8\xAD", true},
      {"?", "\xFF", true},
      {"??", "\xFF", false},
      {"a?b", "a/b", false},
      {"[a-c]x", "bx", true},
      {"[a-c]x", "dx", false},
      {"[!a-c]x", "dx", true},
      {"[^a-c]x", "ax", false},
      {"[]]", "]", true},
      {"[a-]", "-", true},
      {"[-a]", "-", true},
      {"[!/]", "/", false},
      {"[\xE4\xB8\x80-\xE9\xBE\xA5]", "\xE4\xB8\xAD", true},
      {"{a,b}.md", "b.md", true},
      {"{a,b}.md", "c.md", false},
      {"{a,b{c,d}}", "bd", true},
      {"{a,b{c,d}}", "b", false},
      {"{,x}y", "y", true},
      {"{**/a,b}", "q/a", true},
      {"{a/**,b}", "a/z", true},
      {"\\*", "*", true},
      {"\\*", "x", false},
      {"a,b", "a,b", true},
      {"/a//./b/", "a/b", true},
      {"./*.md", "a.md", true},
      {"/", "a", false},
      {"A.md", "a.md", false},
      {"a.b", "axb", false},
      {"*", "a\nb", true},
      {"a/*/c", "a/b/c", true},
      {"a/*/c", "a/c", false},
      {"a/*", "a/", true},
  };
  for (const Case& c : cases) EXPECT_EQ(matches(c.pattern, c.path), c.matches) << c.pattern << " on " << c.path;
}

TEST(GlobPattern, NamesWhatIsWrong) {
  EXPECT_EQ(error_of(""), "invalid operation: empty glob pattern");
  EXPECT_EQ(error_of("."), "invalid operation: empty glob pattern");
  EXPECT_EQ(error_of("./."), "invalid operation: empty glob pattern");
  EXPECT_EQ(error_of("["),
            "invalid operation: invalid glob pattern: error parsing glob '[': unclosed character class; "
            "missing ']'");
  EXPECT_EQ(error_of("[z-a]"),
            "invalid operation: invalid glob pattern: error parsing glob '[z-a]': invalid range; "
            "'z' > 'a'");
  EXPECT_EQ(error_of("a}"),
            "invalid operation: invalid glob pattern: error parsing glob 'a}': unopened alternate "
            "group; missing '{' (maybe escape '}' with '[}]'?)");
  EXPECT_EQ(error_of("{a"),
            "invalid operation: invalid glob pattern: error parsing glob '{a': unclosed alternate "
            "group; missing '}' (maybe escape '{' with '[{]'?)");
  EXPECT_EQ(error_of("a\\"), "invalid operation: invalid glob pattern: error parsing glob 'a\\': dangling '\\'");
  EXPECT_NE(error_of(std::string(5000, 'a')), "");
  EXPECT_NE(error_of(std::string(100, '{')), "");
}

bool enters(std::string_view pattern, std::string_view dir) {
  return GlobPattern::parse(pattern)->match(dir).below_may_match;
}

TEST(GlobPattern, KnowsWhereNothingCanMatch) {
  EXPECT_FALSE(enters("*.md", "a"));
  EXPECT_TRUE(enters("a/*.md", "a"));
  EXPECT_FALSE(enters("a/*.md", "b"));
  EXPECT_FALSE(enters("a/*.md", "a/b"));
  EXPECT_TRUE(enters("**/x", "a/b/c"));
  EXPECT_TRUE(enters("a/**", "a"));
  EXPECT_FALSE(enters("a/**", "b"));
  EXPECT_TRUE(enters("{a,b/c}/d", "b"));
  EXPECT_FALSE(enters("{a,b/c}/d", "c"));
  EXPECT_FALSE(enters("/", "a"));
}

TEST(GlobPattern, TakesBoundedTimeOnHostilePatterns) {
  std::string stars;
  for (int i = 0; i < 1000; ++i) stars += "*a";
  EXPECT_FALSE(matches(stars + "b", std::string(3000, 'a')));
  std::string braces;
  for (int i = 0; i < 500; ++i) braces += "{a,b,}";
  EXPECT_TRUE(matches(braces, std::string(400, 'a')));
}

}  // namespace
}  // namespace ragfs
