// The commands on cache and configuration: what they print and do, their exit codes, their JSON.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "tests/command_line/program.h"

namespace ragfs::test {
namespace {

using nlohmann::json;

json parsed(const std::string& text) {
  json out = json::parse(text, nullptr, false);
  EXPECT_FALSE(out.is_discarded()) << text;
  return out;
}

// The last JSON document of a shell's output, a line each.
json last_line(const Outcome& outcome) {
  std::stringstream lines(outcome.out);
  std::string line;
  std::string last;
  while (std::getline(lines, line)) last = line;
  return parsed(last);
}

class CacheCommands : public CommandLineTest {
 protected:
  void SetUp() override { dir_.write("d/f.md", "content\n"); }
  json stats_after(const std::string& lines) {
    RunOptions options;
    options.input = lines + "cache stats\n";
    const Outcome outcome = run({"--root", dir_.path(), "--json", "shell"}, options);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return last_line(outcome);
  }
};

TEST_F(CacheCommands, StatsCountMissThenHit) {
  const json stats = stats_after("cat /d/f.md\ncat /d/f.md\ncat /d/f.md\n");
  EXPECT_EQ(stats["configured"], true);
  EXPECT_EQ(stats["on"], true);
  EXPECT_EQ(stats["provider"], "embedded");
  EXPECT_EQ(stats["breaker"], "closed");
  EXPECT_EQ(stats["misses"], 1);
  EXPECT_EQ(stats["hits"], 2);
  EXPECT_EQ(stats["counters"]["file_hit"], 2);
  EXPECT_EQ(stats["provider_metrics"]["dram_objects"], 1);
  const Outcome plain = shell("cat /d/f.md\ncat /d/f.md\ncache stats\n");
  EXPECT_TRUE(contains(plain.out, "hit rate    50.0% (1 of 2)")) << plain.out;
}

TEST_F(CacheCommands, OffAsksTheBackendAndOnServesAgain) {
  json stats = stats_after("cat /d/f.md\ncache off\ncat /d/f.md\n");
  EXPECT_EQ(stats["on"], false);
  EXPECT_EQ(stats["hits"], 0);
  EXPECT_EQ(stats["counters"]["bypass"], 1);
  stats = stats_after("cat /d/f.md\ncache off\ncat /d/f.md\ncache on\ncat /d/f.md\n");
  EXPECT_EQ(stats["on"], true);
  EXPECT_EQ(stats["hits"], 1);
}

TEST_F(CacheCommands, OnServesNothingThatChangedWhileItWasOff) {
  const Outcome outcome = shell("cat /d/f.md\ncache off\nwrite /d/f.md new\ncache on\ncat /d/f.md\n");
  EXPECT_TRUE(outcome.out.ends_with("cache is on\nnew")) << outcome.out << outcome.err;
}

TEST_F(CacheCommands, FlushAndInvalidateMakeTheNextReadAMiss) {
  EXPECT_EQ(stats_after("cat /d/f.md\ncache flush\ncat /d/f.md\n")["hits"], 0);
  EXPECT_EQ(stats_after("cat /d/f.md\ncache invalidate /d/f.md\ncat /d/f.md\n")["hits"], 0);
  EXPECT_EQ(stats_after("cat /d/f.md\ncache invalidate /d\ncat /d/f.md\n")["hits"], 0) << "and all below it";
  EXPECT_EQ(stats_after("cat /d/f.md\ncache invalidate /other\ncat /d/f.md\n")["hits"], 1);
}

TEST_F(CacheCommands, NewEpochAndRejoinSayWhatTheyDid) {
  const json stats = stats_after("cat /d/f.md\ncache new-epoch\ncat /d/f.md\n");
  EXPECT_EQ(stats["counters"]["new_epoch"], 1);
  EXPECT_EQ(stats["counters"]["stale_epoch"], 1) << "what was cached is refused, or checked with the file's version";
  EXPECT_EQ(stats_after("cat /d/f.md\ncache rejoin\ncat /d/f.md\n")["hits"], 1) << "it was in use all the time";
  EXPECT_TRUE(contains(ragfs({"cache", "new-epoch"}).out, "a new epoch has begun"));
  EXPECT_TRUE(contains(ragfs({"cache", "rejoin"}).out, "the cache is in use"));
  EXPECT_TRUE(contains(ragfs({"cache", "new-epoch"}).err, "the cache of this very process, which ends now"));
}

TEST_F(CacheCommands, VerifyComparesWhatIsCachedWithTheFiles) {
  const Outcome outcome = shell("cat /d/f.md\ncache verify\ncache verify /d/f.md\n");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(contains(outcome.out, "1 object compared of")) << outcome.out;
  EXPECT_TRUE(contains(outcome.out, "0 wrong, 0 not readable")) << outcome.out;
  EXPECT_EQ(ragfs({"cache", "verify", "/not/there"}).code, 1);
}

TEST_F(CacheCommands, PurgeErasesTheObjectsOfOneAccount) {
  EXPECT_TRUE(contains(shell("cat /d/f.md\ncache purge --account d\n").out, "1 object of d erased"));
  EXPECT_TRUE(contains(shell("cat /d/f.md\ncache purge --account other\n").out, "0 objects of other erased"));
  EXPECT_EQ(stats_after("cat /d/f.md\ncache purge --account d\ncat /d/f.md\n")["hits"], 0);
  EXPECT_EQ(ragfs({"cache", "purge"}).code, 2);
}

// The tenant's bytes lie on the disk since an earlier run; after the purge no file holds them.
TEST_F(CacheCommands, PurgeRemovesTheBytesFromTheDisk) {
  dir_.write("files/d/f.md", "the secret of d\n");
  dir_.write("files/e/f.md", "what e wrote\n");
  dir_.write("disk/.keep", "");
  std::filesystem::remove(dir_.path() + "/disk/.keep");
  dir_.write("ragfs.yaml", "storage:\n  agfs:\n    mounts:\n      - {path: /, type: localfs, local_dir: " +
                               dir_.path() + "/files}\n    cache:\n      state_dir: " + dir_.path() +
                               "/state\n      embedded: {disk: {directories: [" + dir_.path() + "/disk]}}\n");
  const auto on_disk = [&](std::string_view text) {
    for (const auto& entry : std::filesystem::directory_iterator(dir_.path() + "/disk")) {
      std::ifstream file(entry.path(), std::ios::binary);
      if (std::string(std::istreambuf_iterator<char>(file), {}).contains(text)) return true;
    }
    return false;
  };
  const auto with_disk = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"-c", dir_.path() + "/ragfs.yaml"});
    return run(words);
  };
  EXPECT_EQ(with_disk({"cat", "/d/f.md", "/e/f.md"}).code, 0);
  ASSERT_TRUE(on_disk("the secret of d"));
  const Outcome purged = with_disk({"--json", "cache", "purge", "--account", "d"});
  ASSERT_EQ(purged.code, 0) << purged.err;
  EXPECT_GE(parsed(purged.out)["erased"], 1);
  EXPECT_EQ(with_disk({"cache", "purge", "--account", "d"}).err, "") << "not the cache of one run alone";
  EXPECT_FALSE(on_disk("the secret of d"));
  EXPECT_TRUE(on_disk("what e wrote")) << "handed back to the disk when the run ended";
  EXPECT_TRUE(contains(with_disk({"cat", "/d/f.md"}).out, "the secret of d"));
}

TEST_F(CacheCommands, OneRunSaysThatItsCacheEndsWithIt) {
  const Outcome outcome = ragfs({"cache", "flush"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_TRUE(contains(outcome.err, "this is the cache of this very process")) << outcome.err;
  EXPECT_EQ(parsed(ragfs({"cache", "off", "--json"}).out)["done"], "cache is off");
  EXPECT_EQ(ragfs({"cache", "invalidate"}).code, 2);
  EXPECT_EQ(ragfs({"cache", "invalidate", "/../x"}).code, 2);
}

TEST_F(CacheCommands, BypassAsksTheBackendForOneCommand) {
  RunOptions options;
  options.input = "cat /d/f.md\ncat /d/f.md\ncache stats\n";
  const Outcome outcome = run({"--root", dir_.path(), "--json", "--bypass-cache", "shell"}, options);
  EXPECT_EQ(last_line(outcome)["hits"], 0) << outcome.out;
}

// --- configuration ---

class ConfigCommands : public CommandLineTest {
 protected:
  std::string write_config(const std::string& cache, const std::string& name = "ragfs.yaml") {
    dir_.write("tree/f.md", "content\n");
    dir_.write(name, "storage:\n  agfs:\n    mounts:\n      - {path: /, type: localfs, local_dir: tree}\n    cache:\n" +
                         cache);
    return dir_.file(name);
  }
};

TEST_F(ConfigCommands, CheckSaysOkOrEveryProblemWithItsPlace) {
  const std::string good = write_config("      provider: embedded\n");
  Outcome outcome = run({"config", "check", good});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, good + ": ok\n");
  EXPECT_EQ(parsed(run({"--json", "config", "check", good}).out)["ok"], true);
  EXPECT_EQ(run({"--config", good, "cat", "/f.md"}).out, "content\n");

  const std::string bad =
      write_config("      provider: memcached\n      operation_timeout_ms: 0\n      enabld: true\n");
  outcome = run({"config", "check", bad});
  EXPECT_EQ(outcome.code, 3);
  EXPECT_EQ(outcome.out, "");
  for (const char* part : {":6: storage.agfs.cache.provider: \"memcached\" is not allowed; one of embedded, redis",
                           ":7: storage.agfs.cache.operation_timeout_ms: 0 is not allowed; an integer from 1 to 60000",
                           ":8: storage.agfs.cache.enabld: unknown key; did you mean \"enabled\"?"}) {
    EXPECT_TRUE(contains(outcome.err, part)) << part << "\n" << outcome.err;
  }
  const json error = parsed(run({"--json", "config", "check", bad}).err)["error"];
  EXPECT_EQ(error["kind"], "config");
  EXPECT_EQ(error["exit_code"], 3);
}

TEST_F(ConfigCommands, NoCommandStartsOnABrokenConfiguration) {
  const std::string bad = write_config("      sdk_concurrency: -1\n");
  for (const std::vector<std::string>& command :
       std::vector<std::vector<std::string>>{{"ls"}, {"cat", "/f.md"}, {"cache", "stats"}, {"doctor"}, {"shell"}}) {
    std::vector<std::string> arguments{"--config", bad};
    arguments.insert(arguments.end(), command.begin(), command.end());
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, 3) << command[0] << outcome.out << outcome.err;
    EXPECT_TRUE(contains(outcome.err + outcome.out, "sdk_concurrency")) << command[0] << outcome.err;
  }
}

TEST_F(ConfigCommands, FilesThatAreNoConfigurationSayWhy) {
  const auto refused = [&](const std::string& file, const std::string& part) {
    const Outcome outcome = run({"config", "check", file});
    EXPECT_EQ(outcome.code, 3) << outcome.err;
    EXPECT_TRUE(contains(outcome.err, part)) << outcome.err;
  };
  refused(dir_.file("nope.yaml"), "No such file or directory");
  refused(dir_.path(), "directory");
  dir_.write("broken.yaml", "storage: [1, 2\n");
  refused(dir_.file("broken.yaml"), "broken.yaml:");
  dir_.write("list.yaml", "- a\n- b\n");
  refused(dir_.file("list.yaml"), "list.yaml");
  dir_.write("nul.yaml", std::string("storage:\0\n", 10));
  EXPECT_EQ(run({"config", "check", dir_.file("nul.yaml")}).code, 3);
}

TEST_F(ConfigCommands, AnUnbuiltProviderFailsAtStartByItsName) {
  for (const std::string provider : {"mooncake", "yuanrong"}) {
    const std::string strict =
        write_config("      provider: " + provider + "\n      failure_mode: strict\n", provider + ".yaml");
    const Outcome outcome = run({"--config", strict, "cat", "/f.md"});
    if (outcome.code == 0) continue;  // this build has it, and it works
    EXPECT_TRUE(contains(outcome.err, provider)) << outcome.err;
    EXPECT_EQ(outcome.out, "");
  }
}

TEST_F(ConfigCommands, ShowPrintsWhatIsInForceAndReadsBack) {
  const std::string good = write_config("      sdk_concurrency: 7\n");
  const Outcome shown = run({"--config", good, "config", "show"});
  EXPECT_EQ(shown.code, 0);
  EXPECT_TRUE(contains(shown.out, "sdk_concurrency: 7")) << shown.out;
  dir_.write("again.yaml", shown.out);
  EXPECT_EQ(run({"config", "check", dir_.file("again.yaml")}).code, 0);
  EXPECT_EQ(
      parsed(run({"--config", good, "--json", "config", "show"}).out)["storage"]["agfs"]["cache"]["sdk_concurrency"],
      7);
  EXPECT_TRUE(parsed(run({"config", "schema"}).out).contains("properties"));
}

TEST_F(ConfigCommands, DoctorNamesWhatIsWell) {
  const Outcome outcome = run({"--config", write_config("      provider: embedded\n"), "doctor"});
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  EXPECT_TRUE(contains(outcome.out, "cache provider embedded: works")) << outcome.out;
}

}  // namespace
}  // namespace ragfs::test
