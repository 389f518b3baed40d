// `ragfs bench coherence`: the harness of the randomized test as a command.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/command_line/program.h"

namespace ragfs::test {
namespace {

class BenchCoherence : public CommandLineTest {};

TEST_F(BenchCoherence, SaysThatNoAnswerWasWrong) {
  const Outcome outcome = ragfs({"bench", "coherence", "--setting", "embedded", "--setting", "remote-like",
                                 "--operations", "3000", "--seed", "7", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  const auto answer = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(answer.at("seed"), 7);
  EXPECT_EQ(answer.at("passed"), true);
  ASSERT_EQ(answer.at("runs").size(), 2U);
  EXPECT_EQ(answer.at("runs")[0].at("setting"), "embedded");
  EXPECT_GE(answer.at("runs")[0].at("operations"), 3'000);
  EXPECT_GT(answer.at("runs")[0].at("hits"), 100);
  EXPECT_GT(answer.at("runs")[1].at("provider_faults"), 10);
  EXPECT_EQ(answer.at("runs")[1].at("violations"), 0);
}

TEST_F(BenchCoherence, RunsOverAnEngineForATime) {
  const Outcome outcome = ragfs({"bench", "coherence", "--provider", "embedded", "--minutes", "0.01"});
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  EXPECT_TRUE(contains(outcome.out, "no answer was wrong")) << outcome.out;
  EXPECT_TRUE(contains(outcome.out, "setting embedded seed")) << outcome.out;
}

TEST_F(BenchCoherence, RefusesWhatItCannotRun) {
  const Outcome setting = ragfs({"bench", "coherence", "--setting", "nope"});
  EXPECT_EQ(setting.code, 2);
  EXPECT_TRUE(contains(setting.err, "remote-like")) << setting.err;
  const Outcome engine = ragfs({"bench", "coherence", "--provider", "nope"});
  EXPECT_EQ(engine.code, 2);
  EXPECT_TRUE(contains(engine.err, "nope")) << engine.err;
  EXPECT_NE(ragfs({"bench", "coherence", "--threads", "0"}).code, 0);
  EXPECT_EQ(ragfs({"bench", "coherence", "--minutes", "-1"}).code, 2);
}

}  // namespace
}  // namespace ragfs::test
