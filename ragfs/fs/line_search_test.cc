#include "ragfs/fs/line_search.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace ragfs {
namespace {

// What a search gives, a text per match; `text` comes in pieces of `piece` bytes.
std::vector<std::string> found(const std::string& pattern, const LineSearchOptions& options, const std::string& text,
                               size_t piece, uint64_t most) {
  const auto compiled = LinePattern::compile(pattern, false);
  std::vector<std::string> all;
  const GrepSink sink = [&](GrepMatch&& match) {
    std::string shown = std::to_string(match.line) + ":" + match.content;
    for (const GrepLine& line : match.before) shown += " <" + std::to_string(line.line) + line.content;
    for (const GrepLine& line : match.after) shown += " >" + std::to_string(line.line) + line.content;
    all.push_back(std::move(shown));
    return true;
  };
  LineSearch search(*compiled, options, "f", most, sink);
  for (size_t at = 0; at < text.size(); at += piece) {
    if (!search.feed(std::string_view(text).substr(at, piece))) break;
  }
  search.finish();
  return all;
}

// A pattern that is plain text is looked for in whole pieces; in parentheses it is a regular expression for each line.
TEST(LineSearch, PlainTextGivesWhatTheRegularExpressionGives) {
  std::mt19937 random(7);  // NOLINT(cert-msc51-cpp): the same texts each time
  const std::vector<std::string> words = {"ne", "needle", "\n",   "\r\n",     "\n\n",
                                          " ",  "\xFF",   "中文", "neneedle", "\xEF\xBF\xBD"};
  size_t matches = 0;
  for (int round = 0; round < 3'000; ++round) {
    std::string text;
    for (size_t count = random() % 30; count > 0; --count) text += words[random() % words.size()];
    const LineSearchOptions options{random() % 4 == 0 ? 1U : 0U, random() % 3, random() % 2 == 0, false};
    const size_t piece = 1 + random() % 20;
    const uint64_t most = 1 + random() % 4;
    for (const std::string pattern : {"needle", "中文", "\xEF\xBF\xBD", " "}) {
      const auto plain = found(pattern, options, text, piece, most);
      EXPECT_EQ(plain, found("(?:" + pattern + ")", options, text, piece, most)) << pattern << " in " << text;
      matches += plain.size();
    }
  }
  EXPECT_GT(matches, 1'000U);
}

TEST(LineSearch, OnlyPlainTextIsALiteral) {
  EXPECT_EQ(LinePattern::compile("some words", false)->literal(), "some words");
  for (const char* pattern : {"a.b", "a|b", "^a", "a$", "[a]", "a\\b", "a{2}", "\xEF\xBF\xBD", ""}) {
    EXPECT_EQ(LinePattern::compile(pattern, false)->literal(), "") << pattern;
  }
  EXPECT_EQ(LinePattern::compile("words", true)->literal(), "");
}

}  // namespace
}  // namespace ragfs
