// The program described by itself: its pages, its help, JSON of every command, an exit code for each row of the table,
// completion. What a command is is asked of the program, so that a new one cannot be forgotten here.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/command_line/program.h"

namespace ragfs::test {
namespace {

using nlohmann::json;
using Words = std::vector<std::string>;

std::string page(const char* format) {
  const Outcome outcome = run({"page", format});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  return outcome.out;
}

std::string source_text(const std::string& name) {
  std::ifstream in(std::string(RAGFS_SOURCE_DIR) + "/" + name);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

// "cache stats" and all others, as the page of the manual heads them.
std::vector<std::string> all_commands() {
  std::vector<std::string> names;
  std::stringstream lines(page("markdown"));
  std::string line;
  while (std::getline(lines, line)) {
    if (line.starts_with("## ragfs ")) names.push_back(line.substr(9));
  }
  return names;
}

Words split(const std::string& text) {
  Words words;
  std::stringstream in(text);
  std::string word;
  while (in >> word) words.push_back(word);
  return words;
}

TEST(CommandPages, AreWhatTheProgramPrints) {
  const std::string page_of_docs = source_text("docs/cli.md");
  const std::string marker = "<!-- commands: made by `ragfs page markdown` -->\n";
  const size_t at = page_of_docs.find(marker);
  ASSERT_NE(at, std::string::npos);
  EXPECT_TRUE(page_of_docs.substr(at + marker.size()) == page("markdown"))
      << "below the marker docs/cli.md is what `build/debug/ragfs page markdown` prints";
  EXPECT_TRUE(source_text("docs/ragfs.1") == page("man")) << "run: build/debug/ragfs page man > docs/ragfs.1";
}

TEST(CommandPages, HelpOfEveryCommandHasExamplesAndEndsWell) {
  const std::vector<std::string> names = all_commands();
  ASSERT_GT(names.size(), 25U);
  for (const std::string& name : names) {
    Words command = split(name);
    command.emplace_back("--help");
    const Outcome outcome = run(command);
    EXPECT_EQ(outcome.code, 0) << name;
    EXPECT_EQ(outcome.err, "") << name;
    EXPECT_TRUE(contains(outcome.out, "examples") && contains(outcome.out, "\n  ")) << name << "\n" << outcome.out;
    Words other = split(name);
    other.insert(other.begin(), "help");
    EXPECT_EQ(run(other).out, outcome.out) << "help " << name;
  }
  EXPECT_EQ(run({"help"}).out, run({"--help"}).out);
  for (const char* group : {"cache", "config", "bench"}) EXPECT_EQ(run({group, "--help"}).code, 0) << group;
}

class CommandJson : public CommandLineTest {
 protected:
  void SetUp() override {
    dir_.write("d/f.md", "content\n");
    dir_.write("d/g.md", "more\n");
  }
};

// What each command is tried with. serve runs until it is told to end: its JSON is seen in tests/http.
const std::map<std::string, std::string>& tried_with() {
  static const std::map<std::string, std::string> all = {
      {"ls", "/d"},
      {"tree", "/"},
      {"stat", "/d/f.md"},
      {"glob", "**/*.md"},
      {"cat", "/d/f.md"},
      {"grep", "content"},
      {"write", "/w.md text"},
      {"mkdir", "/new"},
      {"touch", "/t.md"},
      {"rm", "/d/g.md"},
      {"mv", "/d/f.md /moved.md"},
      {"cp", "/d/f.md /copy.md"},
      {"cache stats", ""},
      {"cache off", ""},
      {"cache on", ""},
      {"cache flush", ""},
      {"cache invalidate", "/d"},
      {"cache new-epoch", ""},
      {"cache rejoin", ""},
      {"cache verify", ""},
      {"cache top", ""},
      {"cache warm", ""},
      {"cache purge", "--account d"},
      {"config check", ""},
      {"config show", ""},
      {"config schema", ""},
      {"config keys", ""},
      {"bench coherence", "--setting embedded --operations 500 --threads 2"},
      {"serve", ""},
      {"doctor", ""},
      {"tour", ""},
      {"shell", ""},
      {"version", ""},
      {"completion", "fish"},
  };
  return all;
}

TEST_F(CommandJson, EveryCommandAnswersOneDocument) {
  const std::vector<std::string> names = all_commands();
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), tried_with().size());
  for (const std::string& name : names) {
    if (name == "serve") continue;
    const auto arguments = tried_with().find(name);
    ASSERT_NE(arguments, tried_with().end()) << name << " has no example in this test";
    std::filesystem::remove_all(dir_.file("new"));
    SetUp();
    Words command = split(name + " " + arguments->second);
    command.emplace_back("--json");
    const Outcome outcome = ragfs(command, {.input = name == "shell" ? "stat /d\n" : ""});
    EXPECT_EQ(outcome.code, 0) << name << ": " << outcome.err;
    EXPECT_FALSE(json::parse(outcome.out, nullptr, false).is_discarded()) << name << ": " << outcome.out;
  }
}

class ExitCodes : public CommandLineTest {
 protected:
  std::string config_with(const std::string& cache) {
    dir_.write("tree/f.md", "content\n");
    dir_.write("other/g.md", "content\n");
    dir_.write("ragfs.yaml",
               "storage:\n  agfs:\n    mounts:\n      - {path: /a, type: localfs, local_dir: tree}\n"
               "      - {path: /b, type: localfs, local_dir: other}\n    cache: " +
                   cache + "\n");
    return dir_.file("ragfs.yaml");
  }
};

TEST_F(ExitCodes, EachOfTheTableIsGivenForWhatItSays) {
  const std::string good = config_with("{provider: embedded}");
  dir_.write("shut", "secret\n");
  ASSERT_EQ(::chmod(dir_.file("shut").c_str(), 0), 0);
  std::map<int, Outcome> seen;
  const auto expect = [&](int code, const Outcome& outcome) {
    EXPECT_EQ(outcome.code, code) << outcome.out << outcome.err;
    if (code > 0) {
      EXPECT_TRUE(outcome.err.starts_with("ragfs: ")) << code << ": " << outcome.err;
    }
    seen[outcome.code] = outcome;
  };
  expect(0, run({"-c", good, "ls", "/a"}));
  expect(1, run({"-c", good, "cat", "/a/absent.md"}));
  expect(2, run({"-c", good, "cat"}));
  expect(4, ragfs({"cat", "/shut"}, {.as_nobody = true}));
  expect(5, run({"-c", good, "write", "/a/x.md", "--from", "/nowhere"}));
  expect(7, ragfs({"--timeout", "0.000001", "tree"}));
  expect(8, run({"-c", good, "mkdir", "/a"}));
  expect(9, run({"-c", config_with("{enabled: false}"), "cache", "verify"}));
  expect(3, run({"-c", config_with("{provider: memcached}"), "ls"}));
  expect(6, run({"-c",
                 config_with("{provider: redis, failure_mode: strict, redis: {endpoints: [\"redis://127.0.0.1:1\"]}}"),
                 "cat", "/a/f.md"}));
  // The table of the page has these and no others.
  for (int code = 0; code < 10; ++code) {
    EXPECT_TRUE(seen.contains(code)) << code;
    EXPECT_TRUE(contains(page("markdown"), "\n| " + std::to_string(code) + " | ")) << code;
  }
  EXPECT_FALSE(contains(page("markdown"), "\n| 10 | "));
}

class Completion : public CommandLineTest {
 protected:
  void SetUp() override {
    dir_.write("docs/one.md", "one\n");
    dir_.write("docs/two.md", "two\n");
    dir_.write("data.md", "x\n");
  }
  // What bash offers for the last word of the line.
  std::set<std::string> offered(const std::string& line) const {
    std::string words;
    for (const std::string& word : split(line)) words += "'" + word + "' ";
    if (line.ends_with(' ')) words += "''";
    const std::string script = "ragfs() { \"$RAGFS\" \"$@\"; }; source <(ragfs completion bash)\nCOMP_WORDS=(" + words +
                               ")\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n"
                               "compopt() { :; }\n_ragfs\nprintf '%s\\n' \"${COMPREPLY[@]}\"\n";
    dir_.write("script.sh", script);
    const std::string command = "cd '" + dir_.path() + "' && RAGFS='" RAGFS_PROGRAM "' bash script.sh";
    FILE* pipe = ::popen(command.c_str(), "r");
    std::set<std::string> out;
    std::array<char, 4096> buffer{};
    while (::fgets(buffer.data(), buffer.size(), pipe) != nullptr) {
      std::string text = buffer.data();
      text.pop_back();
      if (!text.empty()) out.insert(text);
    }
    EXPECT_EQ(::pclose(pipe), 0);
    return out;
  }
};

TEST_F(Completion, OffersCommandsOptionsAndPathsOfTheTree) {
  const std::set<std::string> first = offered("ragfs ");
  for (const std::string& name : all_commands()) {
    const Words words = split(name);
    EXPECT_TRUE(first.contains(words[0])) << name;
    if (words.size() > 1) {
      EXPECT_TRUE(offered("ragfs " + words[0] + " ").contains(words[1])) << name;
    }
  }
  EXPECT_TRUE(offered("ragfs --ro").contains("--root"));
  EXPECT_TRUE(offered("ragfs tree --le").contains("--levels"));
  EXPECT_TRUE(offered("ragfs cache purge --ac").contains("--account"));
  EXPECT_TRUE(offered("ragfs bench coherence --se").contains("--seed"));
  const std::string root = "ragfs --root " + dir_.path() + " ";
  EXPECT_EQ(offered(root + "cat /d"), (std::set<std::string>{"/data.md", "/docs/"}));
  EXPECT_EQ(offered(root + "cat /docs/"), (std::set<std::string>{"/docs/one.md", "/docs/two.md"}));
  EXPECT_EQ(offered(root + "cat /nowhere/"), std::set<std::string>());
  EXPECT_EQ(offered("ragfs config check da"), std::set<std::string>{"data.md"});
  EXPECT_EQ(offered("ragfs completion "), (std::set<std::string>{"bash", "fish", "zsh"}));
}

TEST_F(Completion, NamesEveryCommandInEveryShell) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const std::string script = run({"completion", shell}).out;
    for (const std::string& name : all_commands()) EXPECT_TRUE(contains(script, split(name).back())) << shell << name;
  }
}

}  // namespace
}  // namespace ragfs::test
