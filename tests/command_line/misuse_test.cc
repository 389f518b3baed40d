// Every command, called wrongly in every way that all have in common: exit code 2, nothing on standard output, a
// message that names what was wrong and where the help is, and nothing changed.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/command_line/program.h"

namespace ragfs::test {
namespace {

using Words = std::vector<std::string>;

// What a command needs at the least to be right, and how many paths or texts it takes at the most.
struct CommandShape {
  Words name;
  Words least;
  size_t most = 0;
};

const std::vector<CommandShape>& shapes() {
  constexpr size_t kAny = 99;
  static const std::vector<CommandShape> all = {
      {{"ls"}, {}, 1},
      {{"tree"}, {}, 1},
      {{"stat"}, {"/f.md"}, kAny},
      {{"glob"}, {"*.md"}, 2},
      {{"cat"}, {"/f.md"}, kAny},
      {{"grep"}, {"x"}, 2},
      {{"write"}, {"/f.md"}, 2},
      {{"mkdir"}, {"/new"}, kAny},
      {{"touch"}, {"/new"}, kAny},
      {{"rm"}, {"/f.md"}, kAny},
      {{"mv"}, {"/f.md", "/new"}, 2},
      {{"cp"}, {"/f.md", "/new"}, 2},
      {{"cache", "stats"}, {}, 0},
      {{"cache", "on"}, {}, 0},
      {{"cache", "off"}, {}, 0},
      {{"cache", "flush"}, {}, 0},
      {{"cache", "invalidate"}, {"/f.md"}, 1},
      {{"cache", "new-epoch"}, {}, 0},
      {{"cache", "rejoin"}, {}, 0},
      {{"cache", "verify"}, {}, 1},
      {{"cache", "top"}, {}, 1},
      {{"cache", "warm"}, {}, 1},
      {{"cache", "purge"}, {"--account", "x"}, 0},
      {{"config", "check"}, {}, 1},
      {{"config", "schema"}, {}, 0},
      {{"config", "keys"}, {}, 0},
      {{"bench", "coherence"}, {}, 0},
      {{"serve"}, {}, 0},
      {{"config", "show"}, {}, 0},
      {{"doctor"}, {}, 0},
      {{"tour"}, {}, 0},
      {{"shell"}, {}, 0},
      {{"version"}, {}, 0},
      {{"completion"}, {"bash"}, 1},
  };
  return all;
}

class Misuse : public CommandLineTest {
 protected:
  void SetUp() override { dir_.write("f.md", "kept\n"); }

  void expect_usage_error(Words arguments, const std::string& part) {
    std::string shown;
    for (const std::string& argument : arguments) shown += argument + " ";
    const Outcome outcome = ragfs(arguments);
    EXPECT_EQ(outcome.code, 2) << shown << outcome.out << outcome.err;
    EXPECT_EQ(outcome.out, "") << shown;
    EXPECT_TRUE(contains(outcome.err, part)) << shown << outcome.err;
    EXPECT_TRUE(contains(outcome.err, "--help")) << shown << outcome.err;
    arguments.emplace_back("--json");
    const auto error = nlohmann::json::parse(ragfs(arguments).err, nullptr, false);
    ASSERT_FALSE(error.is_discarded()) << shown << "the error is not JSON";
    EXPECT_EQ(error["error"]["exit_code"], 2) << shown;
    EXPECT_EQ(dir_.read("f.md"), "kept\n") << shown;
    EXPECT_FALSE(std::filesystem::exists(dir_.file("new"))) << shown;
  }
  static Words joined(Words first, const Words& second) {
    first.insert(first.end(), second.begin(), second.end());
    return first;
  }
};

TEST_F(Misuse, AnOptionThatACommandDoesNotHaveIsNamed) {
  for (const CommandShape& shape : shapes()) {
    expect_usage_error(joined(joined(shape.name, shape.least), {"--no-such-option"}), "--no-such-option");
  }
}

TEST_F(Misuse, TooFewArgumentsSayWhatIsRequired) {
  for (const CommandShape& shape : shapes()) {
    if (shape.least.empty()) continue;
    Words few = shape.name;
    if (!shape.least[0].starts_with("--")) few.insert(few.end(), shape.least.begin(), shape.least.end() - 1);
    expect_usage_error(few, "is required");
  }
}

TEST_F(Misuse, TooManyArgumentsNameTheFirstOne) {
  for (const CommandShape& shape : shapes()) {
    if (shape.most > 9) continue;
    Words many = joined(shape.name, shape.least);
    while (many.size() < shape.name.size() + shape.most) many.emplace_back("/f.md");
    many.emplace_back("one_too_many");
    expect_usage_error(many, "one_too_many");
  }
}

TEST_F(Misuse, NumbersThatAreNoneAreNamed) {
  for (const Words& command : std::vector<Words>{{"tree", "--levels"},
                                                 {"tree", "--limit"},
                                                 {"glob", "*", "--limit"},
                                                 {"grep", "x", "--limit"},
                                                 {"grep", "x", "--after"},
                                                 {"cat", "/f.md", "--size"},
                                                 {"tour", "--max-files"}}) {
    for (const char* number : {"many", "-1", "1.5", ""}) {
      expect_usage_error(joined(command, {number}), command[command.size() - 1]);
    }
  }
}

TEST_F(Misuse, APatternThatIsNoneSaysWhy) {
  const Outcome outcome = ragfs({"grep", "(", "/"});
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "(")) << outcome.err;
  EXPECT_EQ(outcome.out, "");
}

}  // namespace
}  // namespace ragfs::test
