// Every command on files: what it prints, its exit code, its JSON, and how it takes misuse.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/command_line/program.h"

namespace ragfs::test {
namespace {

using nlohmann::json;

json parsed(const Outcome& outcome) {
  json out = json::parse(outcome.out, nullptr, false);
  EXPECT_FALSE(out.is_discarded()) << outcome.out << outcome.err;
  return out;
}

class Files : public CommandLineTest {
 protected:
  void SetUp() override {
    dir_.write("a.md", "alpha\nbeta\nURGENT gamma\n");
    dir_.write("docs/one.md", "one\n");
    dir_.write("docs/.abstract.md", "hidden\n");
    dir_.write("docs/deep/two.md", "two\n");
    dir_.write("empty.md", "");
  }
};

TEST_F(Files, LsListsDirectoriesFirst) {
  const Outcome outcome = ragfs({"ls"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "docs/\na.md\nempty.md\n");
  EXPECT_EQ(ragfs({"ls", "/docs"}).out, "deep/\n.abstract.md\none.md\n");
  EXPECT_EQ(ragfs({"ls", "/docs/one.md"}).out, "one.md\n");
}

TEST_F(Files, LsLongShowsModeSizeAndTime) {
  const Outcome outcome = ragfs({"ls", "-l", "/docs"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  std::stringstream lines(outcome.out);
  std::string line;
  std::getline(lines, line);
  EXPECT_TRUE(line.starts_with("drwxr-xr-x")) << line;
  EXPECT_TRUE(line.ends_with("deep/")) << line;
  std::getline(lines, line);
  std::getline(lines, line);
  EXPECT_TRUE(line.starts_with("-rw-r--r--")) << line;
  EXPECT_TRUE(contains(line, "  4  20")) << line;
  EXPECT_TRUE(contains(ragfs({"ls", "-l", "--human", "/docs"}).out, " 4 B ")) << ragfs({"ls", "-l", "--human"}).out;
}

TEST_F(Files, LsInJson) {
  const json out = parsed(ragfs({"ls", "--json", "/docs"}));
  EXPECT_EQ(out["path"], "/docs");
  ASSERT_EQ(out["entries"].size(), 3u);
  EXPECT_EQ(out["entries"][0]["name"], "deep");
  EXPECT_EQ(out["entries"][0]["kind"], "directory");
  EXPECT_EQ(out["entries"][2]["size"], 4);
  EXPECT_TRUE(out["entries"][2]["mtime_ns"].is_number_integer());
  EXPECT_TRUE(out["entries"][2]["mtime"].get<std::string>().ends_with("Z"));
}

TEST_F(Files, LsAndTreeForAgentsShowTheAbstracts) {
  dir_.write("docs/deep/.abstract.md", "about deep\nin two lines\n");
  const Outcome ls = ragfs({"ls", "--agent", "/"});
  EXPECT_EQ(ls.code, 0) << ls.err;
  EXPECT_EQ(ls.out, "docs/\n    hidden\na.md\nempty.md\n");
  EXPECT_EQ(ragfs({"ls", "--agent", "/docs"}).out, "deep/\n    about deep\n    in two lines\none.md\n");
  const Outcome tree = ragfs({"tree", "--agent", "/"});
  EXPECT_EQ(tree.code, 0) << tree.err;
  EXPECT_TRUE(contains(tree.out, "docs/\n    hidden\n  deep/\n      about deep\n")) << tree.out;
  EXPECT_FALSE(contains(ragfs({"tree", "--agent", "-L", "1", "/"}).out, "about deep"));
  const json listed = parsed(ragfs({"ls", "--agent", "--json", "/"}));
  EXPECT_EQ(listed["entries"][0]["abstract"], "hidden\n");
  EXPECT_EQ(listed["entries"].size(), 3U);
  EXPECT_EQ(ragfs({"ls", "--agent", "/none"}).code, 1);
}

TEST_F(Files, CatAndStatOfManyAnswerForEach) {
  const Outcome cat = ragfs({"cat", "/docs/one.md", "/none", "/docs/deep/two.md"});
  EXPECT_EQ(cat.out, "one\ntwo\n");
  EXPECT_EQ(cat.code, 1);
  EXPECT_TRUE(contains(cat.err, "/none")) << cat.err;
  const Outcome stat = ragfs({"stat", "/docs/one.md", "/none", "/docs"});
  EXPECT_EQ(stat.code, 1);
  EXPECT_TRUE(contains(stat.out, "/docs/one.md") && contains(stat.err, "/none")) << stat.out << stat.err;
}

TEST_F(Files, TreeDrawsBranchesAndCounts) {
  EXPECT_EQ(ragfs({"tree", "-a"}).out,
            "/\n|-- docs/\n|   |-- deep/\n|   |   `-- two.md\n|   |-- .abstract.md\n|   `-- one.md\n|-- a.md\n"
            "`-- empty.md\n\n2 directories, 5 files\n");
  const Outcome shallow = ragfs({"tree", "-L", "1"});
  EXPECT_FALSE(contains(shallow.out, "one.md")) << shallow.out;
  EXPECT_FALSE(contains(ragfs({"tree"}).out, ".abstract.md"));
  const json out = parsed(ragfs({"tree", "-a", "--json", "/docs"}));
  EXPECT_EQ(out["directories"], 1);
  EXPECT_EQ(out["files"], 3);
  EXPECT_EQ(out["entries"][1]["path"], "/docs/deep/two.md");
  EXPECT_EQ(out["entries"][1]["rel_path"], "deep/two.md");
  EXPECT_EQ(parsed(ragfs({"tree", "--json", "--limit", "2"}))["entries"].size(), 2u);
}

TEST_F(Files, CatPrintsBytesAsTheyAre) {
  EXPECT_EQ(ragfs({"cat", "/a.md", "/docs/one.md"}).out, "alpha\nbeta\nURGENT gamma\none\n");
  EXPECT_EQ(ragfs({"cat", "--offset", "6", "--size", "4", "/a.md"}).out, "beta");
  EXPECT_EQ(ragfs({"cat", "--offset", "999", "/a.md"}).out, "");
  EXPECT_EQ(ragfs({"cat", "/empty.md"}).code, 0);
  std::string binary("\x00\xff\x80 a\n", 6);
  dir_.write("binary", binary);
  EXPECT_EQ(ragfs({"cat", "/binary"}).out, binary);
  const json out = parsed(ragfs({"cat", "--json", "/binary", "/docs/one.md"}));
  EXPECT_EQ(out["files"][0]["content_b64"], "AP+AIGEK");
  EXPECT_EQ(out["files"][0]["size"], 6);
  EXPECT_EQ(out["files"][1]["content"], "one\n");
  EXPECT_FALSE(out["files"][1].contains("content_b64"));
}

TEST_F(Files, CatGoesOnAfterAMissingFile) {
  const Outcome outcome = ragfs({"cat", "/nope", "/docs/one.md"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.out, "one\n");
  EXPECT_EQ(outcome.err, "ragfs: cat: not found: /nope\n  look one level up with `ls`, or find it with `glob`\n");
}

TEST_F(Files, StatShowsOneFileOrMany) {
  const Outcome outcome = ragfs({"stat", "/a.md"});
  EXPECT_TRUE(contains(outcome.out, "/a.md\n  kind   file\n  size   24 (24 B)\n  mode   0644 (-rw-r--r--)\n"))
      << outcome.out;
  const json out = parsed(ragfs({"stat", "--json", "/", "/a.md", "/nope"}));
  EXPECT_EQ(out["files"].size(), 2u);
  EXPECT_EQ(out["files"][0]["name"], "/");
  EXPECT_EQ(ragfs({"stat", "/", "/nope"}).code, 1);
}

TEST_F(Files, GrepFindsLinesWithTheirPath) {
  EXPECT_EQ(ragfs({"grep", "URGENT"}).out, "/a.md:3:URGENT gamma\n");
  EXPECT_EQ(ragfs({"grep", "-i", "urgent", "/a.md"}).out, "/a.md:3:URGENT gamma\n");
  EXPECT_EQ(ragfs({"grep", "-C", "1", "beta", "/a.md"}).out, "/a.md-1-alpha\n/a.md:2:beta\n/a.md-3-URGENT gamma\n");
  EXPECT_EQ(ragfs({"grep", "-A", "1", "alpha|beta", "/a.md"}).out,
            "/a.md:1:alpha\n/a.md:2:beta\n/a.md-3-URGENT gamma\n");
  EXPECT_EQ(ragfs({"grep", "--limit", "1", "a", "/a.md"}).out, "/a.md:1:alpha\n");
  EXPECT_EQ(ragfs({"grep", "two|one", "--exclude", "/docs/deep", "/docs"}).out, "/docs/one.md:1:one\n");
  EXPECT_EQ(ragfs({"grep", "two", "--flat", "/docs"}).code, 1);
  const json out = parsed(ragfs({"grep", "--json", "-B", "1", "beta"}));
  EXPECT_EQ(out["count"], 1);
  EXPECT_EQ(out["matches"][0]["path"], "/a.md");
  EXPECT_EQ(out["matches"][0]["line"], 2);
  EXPECT_EQ(out["matches"][0]["before"][0]["content"], "alpha");
}

TEST_F(Files, GrepWithoutAMatchAnswersNo) {
  const Outcome outcome = ragfs({"grep", "zzz"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err, "");
  EXPECT_EQ(ragfs({"grep", "(", "/"}).code, 2);
  EXPECT_EQ(ragfs({"grep", "x", "/nope"}).code, 1);
}

TEST_F(Files, GlobFindsPaths) {
  EXPECT_EQ(ragfs({"glob", "**/*.md", "/docs"}).out, "/docs/deep/two.md\n/docs/one.md\n");
  EXPECT_TRUE(contains(ragfs({"glob", "-a", "**/.abstract.md"}).out, "/docs/.abstract.md\n"));
  EXPECT_EQ(ragfs({"glob", "*.zip"}).code, 1);
  EXPECT_EQ(ragfs({"glob", "x", "/nope"}).code, 1);
  EXPECT_EQ(ragfs({"glob", "--limit", "0", "x"}).code, 2);
  const Outcome some = ragfs({"glob", "--limit", "1", "**/*.md"});
  EXPECT_TRUE(contains(some.err, "there is more")) << some.err;
  EXPECT_EQ(parsed(ragfs({"glob", "--json", "*.md"}))["entries"].size(), 2u);
}

TEST_F(Files, WriteTakesTextFileOrStandardInput) {
  EXPECT_EQ(ragfs({"write", "/new.md", "hello"}).code, 0);
  EXPECT_EQ(dir_.read("new.md"), "hello");
  EXPECT_EQ(ragfs({"write", "/new.md"}, {.input = "from stdin"}).code, 0);
  EXPECT_EQ(dir_.read("new.md"), "from stdin");
  dir_.write("source", std::string("\0\xff", 2));
  EXPECT_EQ(ragfs({"write", "/new.md", "--from", dir_.file("source")}).code, 0);
  EXPECT_EQ(dir_.read("new.md"), std::string("\0\xff", 2));
  EXPECT_EQ(ragfs({"write", "/new.md", ""}).code, 0);
  EXPECT_EQ(dir_.read("new.md"), "");
  EXPECT_EQ(ragfs({"write", "/brackets", "{}"}).code, 0);
  EXPECT_EQ(dir_.read("brackets"), "{}");
  EXPECT_EQ(ragfs({"write", "--", "/dash", "--json"}).code, 0);
  EXPECT_EQ(dir_.read("dash"), "--json");
  const json out = parsed(ragfs({"write", "--json", "/new.md", "12345"}));
  EXPECT_EQ(out["written"], "/new.md");
  EXPECT_EQ(out["bytes"], 5);
  EXPECT_EQ(out["size"], 5);
}

TEST_F(Files, WriteModes) {
  EXPECT_EQ(ragfs({"write", "--append", "/log", "a"}).code, 0);
  EXPECT_EQ(ragfs({"write", "--append", "/log", "b"}).code, 0);
  EXPECT_EQ(dir_.read("log"), "ab");
  EXPECT_EQ(ragfs({"write", "--offset", "1", "/log", "XYZ"}).code, 0);
  EXPECT_EQ(dir_.read("log"), "aXYZ");
  EXPECT_EQ(ragfs({"write", "--create-new", "/log", "z"}).code, 8);
  EXPECT_EQ(dir_.read("log"), "aXYZ");
  EXPECT_EQ(ragfs({"write", "--create-new", "/fresh", "z"}).code, 0);
  EXPECT_EQ(ragfs({"write", "--offset", "0", "/absent", "z"}).code, 1);
  EXPECT_EQ(ragfs({"write", "/x/y/z", "deep"}).code, 1);
  EXPECT_EQ(ragfs({"write", "-p", "/x/y/z", "deep"}).code, 0);
  EXPECT_EQ(dir_.read("x/y/z"), "deep");
}

TEST_F(Files, WriteMisuse) {
  EXPECT_EQ(ragfs({"write", "--append", "--create-new", "/x", "z"}).code, 2);
  EXPECT_EQ(ragfs({"write", "/x", "z", "--from", "/etc/hostname"}).code, 2);
  const Outcome missing = ragfs({"write", "/x", "--from", "/nowhere/file"});
  EXPECT_EQ(missing.code, 5);
  EXPECT_TRUE(contains(missing.err, "/nowhere/file: No such file or directory")) << missing.err;
  EXPECT_EQ(ragfs({"write", "/docs", "z"}).code, 8);
  EXPECT_EQ(ragfs({"write", "/a.md/below", "z"}).code, 8);
  EXPECT_EQ(ragfs({"write", "/a/../../etc/passwd", "z"}).code, 2);
  EXPECT_EQ(ragfs({"write"}).code, 2);
  EXPECT_FALSE(std::filesystem::exists(dir_.file("x")));
}

TEST_F(Files, MkdirAndTouch) {
  EXPECT_EQ(ragfs({"mkdir", "/new"}).code, 0);
  EXPECT_TRUE(std::filesystem::is_directory(dir_.file("new")));
  EXPECT_EQ(ragfs({"mkdir", "/new"}).code, 8);
  EXPECT_EQ(ragfs({"mkdir", "-p", "/new"}).code, 0);
  EXPECT_EQ(ragfs({"mkdir", "-p", "/"}).code, 0);
  EXPECT_EQ(ragfs({"mkdir", "/no/parent"}).code, 1);
  EXPECT_EQ(ragfs({"mkdir", "-p", "/some/where/deep"}).code, 0);
  EXPECT_EQ(ragfs({"mkdir", "-p", "/a.md"}).code, 8);
  EXPECT_EQ(ragfs({"mkdir", "-p", "/a.md/x"}).code, 8);
  EXPECT_EQ(parsed(ragfs({"mkdir", "--json", "/j"}))["created"], "/j");
  EXPECT_EQ(ragfs({"touch", "/t1", "/t2"}).code, 0);
  EXPECT_TRUE(std::filesystem::exists(dir_.file("t2")));
  EXPECT_EQ(ragfs({"touch", "/no/parent"}).code, 1);
}

TEST_F(Files, RmRemovesOnlyWhatItWasAskedTo) {
  EXPECT_EQ(ragfs({"rm", "/docs"}).code, 8);
  EXPECT_TRUE(contains(ragfs({"rm", "/docs"}).err, "rm -r"));
  EXPECT_EQ(ragfs({"rm", "/a.md", "/empty.md"}).code, 0);
  EXPECT_FALSE(std::filesystem::exists(dir_.file("a.md")));
  EXPECT_EQ(ragfs({"rm", "/a.md"}).code, 1);
  EXPECT_EQ(ragfs({"rm", "-f", "/a.md"}).code, 0);
  EXPECT_EQ(ragfs({"rm", "-r", "/docs"}).code, 0);
  EXPECT_FALSE(std::filesystem::exists(dir_.file("docs")));
  EXPECT_EQ(ragfs({"rm", "-r", "/docs"}).code, 1);
  EXPECT_EQ(ragfs({"rm", "/"}).code, 2);
}

TEST_F(Files, MvRenamesOrMovesInto) {
  EXPECT_EQ(ragfs({"mv", "/a.md", "/b.md"}).code, 0);
  EXPECT_FALSE(std::filesystem::exists(dir_.file("a.md")));
  EXPECT_EQ(ragfs({"mv", "/b.md", "/docs"}).code, 0);
  EXPECT_EQ(dir_.read("docs/b.md"), "alpha\nbeta\nURGENT gamma\n");
  EXPECT_EQ(ragfs({"mv", "/docs/b.md", "/docs/one.md"}).code, 0);
  EXPECT_EQ(dir_.read("docs/one.md"), "alpha\nbeta\nURGENT gamma\n");
  EXPECT_EQ(ragfs({"mv", "/nope", "/x"}).code, 1);
  EXPECT_EQ(ragfs({"mv", "/docs", "/docs/deep/in"}).code, 2);
  EXPECT_EQ(parsed(ragfs({"mv", "--json", "/empty.md", "/full.md"}))["to"], "/full.md");
  EXPECT_EQ(ragfs({"mv", "/full.md"}).code, 2);
}

TEST_F(Files, CpCopiesFilesAndTrees) {
  EXPECT_EQ(ragfs({"cp", "/a.md", "/b.md"}).code, 0);
  EXPECT_EQ(dir_.read("b.md"), dir_.read("a.md"));
  EXPECT_EQ(ragfs({"cp", "/a.md", "/docs"}).code, 0);
  EXPECT_EQ(dir_.read("docs/a.md"), dir_.read("a.md"));
  const Outcome refused = ragfs({"cp", "/docs", "/copy"});
  EXPECT_EQ(refused.code, 8);
  EXPECT_TRUE(contains(refused.err, "cp -r")) << refused.err;
  const json out = parsed(ragfs({"cp", "-r", "--json", "/docs", "/copy"}));
  EXPECT_EQ(out["files"], 4);
  EXPECT_EQ(out["directories"], 2);
  EXPECT_EQ(out["failed"], 0);
  EXPECT_EQ(dir_.read("copy/.abstract.md"), "hidden\n");
  EXPECT_EQ(dir_.read("copy/deep/two.md"), "two\n");
  EXPECT_EQ(ragfs({"cp", "-r", "/docs", "/docs/deep/in"}).code, 2);
  EXPECT_EQ(ragfs({"cp", "-r", "/nope", "/x"}).code, 1);
  EXPECT_EQ(ragfs({"cp", "-r", "/docs", "/copy"}).code, 0) << "an existing directory takes it in";
  EXPECT_EQ(dir_.read("copy/docs/one.md"), "one\n");
}

TEST_F(Files, NamesOfCommandsAreFineAsNamesOfFiles) {
  EXPECT_EQ(ragfs({"write", "ls", "x"}).code, 0);
  EXPECT_EQ(ragfs({"mv", "ls", "stat"}).code, 0);
  EXPECT_EQ(ragfs({"cat", "stat"}).out, "x");
}

TEST_F(Files, MisuseSaysHowToGoOn) {
  const auto usage = [&](std::vector<std::string> arguments, const std::string& part) {
    const Outcome outcome = ragfs(std::move(arguments));
    EXPECT_EQ(outcome.code, 2) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_TRUE(contains(outcome.err, part)) << outcome.err;
    EXPECT_TRUE(contains(outcome.err, "--help")) << outcome.err;
  };
  usage({}, "say which command to run");
  usage({"lss"}, "unknown command \"lss\"; did you mean \"ls\"?");
  usage({"cache", "stat"}, "unknown command \"stat\"; did you mean \"stats\"?");
  usage({"cache"}, "ragfs: cache: say which command to run");
  usage({"ls", "--bogus"}, "--bogus");
  usage({"ls", "/a", "/b"}, "/b");
  usage({"cat"}, "PATH is required");
  usage({"cat", "--offset", "-3", "/a.md"}, "\"-3\" is not a whole number");
  usage({"cat", "--offset", "99999999999999999999", "/a.md"}, "is not a whole number");
  usage({"--timeout", "soon", "ls"}, "--timeout");
  usage({"completion", "tcsh"}, "tcsh");
  const Outcome json_error = ragfs({"--json", "cat", "/nope"});
  const json error = json::parse(json_error.err, nullptr, false);
  ASSERT_FALSE(error.is_discarded()) << json_error.err;
  EXPECT_EQ(error["error"]["kind"], "not_found");
  EXPECT_EQ(error["error"]["exit_code"], 1);
}

TEST_F(Files, WithoutATreeTheProgramAsksWhich) {
  const Outcome outcome = run({"ls"}, {.directory = "/"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(contains(outcome.err, "--root DIR")) << outcome.err;
  EXPECT_EQ(run({"--root", "/a", "--config", "/b", "ls"}).code, 2);
  const Outcome missing = run({"--root", "/nowhere", "ls"});
  EXPECT_EQ(missing.code, 2);
  EXPECT_TRUE(contains(missing.err, "--root /nowhere: No such file or directory")) << missing.err;
  const Outcome file = run({"--root", dir_.file("a.md"), "ls"});
  EXPECT_TRUE(contains(file.err, "Not a directory")) << file.err;
}

}  // namespace
}  // namespace ragfs::test
