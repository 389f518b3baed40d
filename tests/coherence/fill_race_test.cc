// A slow fill never survives a mutation: every interleaving of a fill with every kind of mutation.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "tests/coherence/fixture.h"

namespace ragfs {
namespace {

struct MutationCase {
  const char* name;
  std::function<bool(CachedFileSystem&, const Context&)> run;
  const char* expected;  // what /d/f reads afterwards
};

void PrintTo(const MutationCase& mutation, std::ostream* out) { *out << mutation.name; }

const Path kFile = path_of("/d/f");

std::vector<MutationCase> mutations() {
  using Fs = CachedFileSystem;
  return {
      {"write", [](Fs& fs, const Context& c) { return fs.write(c, kFile, "new", 0, WriteFlag::create).has_value(); },
       "new"},
      {"append", [](Fs& fs, const Context& c) { return fs.write(c, kFile, "+", 0, WriteFlag::append).has_value(); },
       "old+"},
      {"truncate", [](Fs& fs, const Context& c) { return fs.truncate(c, kFile, 1).has_value(); }, "o"},
      {"remove", [](Fs& fs, const Context& c) { return fs.remove(c, kFile).has_value(); }, "ERROR not_found"},
      {"rename_away", [](Fs& fs, const Context& c) { return fs.rename(c, kFile, path_of("/d/g")).has_value(); },
       "ERROR not_found"},
      {"rename_onto", [](Fs& fs, const Context& c) { return fs.rename(c, path_of("/d/other"), kFile).has_value(); },
       "other"},
      {"replace", [](Fs& fs, const Context& c) { return fs.replace(c, path_of("/d/other"), kFile).has_value(); },
       "other"},
      {"copy_onto", [](Fs& fs, const Context& c) { return fs.copy(c, path_of("/d/other"), kFile).has_value(); },
       "other"},
      {"remove_all", [](Fs& fs, const Context& c) { return fs.remove_all(c, path_of("/d")).has_value(); },
       "ERROR not_found"},
      {"rename_directory",
       [](Fs& fs, const Context& c) { return fs.rename(c, path_of("/d"), path_of("/e")).has_value(); },
       "ERROR not_found"},
      {"compare_and_write", [](Fs& fs, const Context& c) { return *fs.compare_and_write(c, kFile, "old", "cas"); },
       "cas"},
      {"compare_and_remove", [](Fs& fs, const Context& c) { return *fs.compare_and_remove(c, kFile, "old"); },
       "ERROR not_found"},
  };
}

class FillRace : public CacheFixture, public ::testing::WithParamInterface<std::tuple<MutationCase, const char*>> {};

// The fill stands at one of its steps while the whole mutation runs; then it goes on.
TEST_P(FillRace, ASlowFillDoesNotBringOldBytesBack) {
  const auto& [mutation, point] = GetParam();
  put_in_backend("/d/f", "old");
  put_in_backend("/d/other", "other");
  auto armed = PausePoints::arm(point);
  std::string slow_read;
  std::jthread reader([&] { slow_read = read("/d/f"); });
  ASSERT_TRUE(armed->wait_for_arrival());
  ASSERT_TRUE(mutation.run(*cached, ctx));
  EXPECT_EQ(read("/d/f"), mutation.expected) << "while the fill stands";
  armed->release();
  reader.join();
  EXPECT_TRUE(slow_read == "old" || slow_read == mutation.expected) << slow_read;
  EXPECT_EQ(read("/d/f"), mutation.expected) << "after the fill";
  EXPECT_TRUE(domain->settler().drain(Deadline::in_ms(5'000)));
  EXPECT_EQ(read("/d/f"), mutation.expected) << "after the records are settled";
  EXPECT_EQ(domain->table().path_records(), 0U);
}

// The mutation stands at one of its steps; reads see old or new bytes, and new ones only once it has returned.
TEST_P(FillRace, AMutationAtAnyStepIsNotOvertaken) {
  const auto& [mutation, ignored] = GetParam();
  for (const char* step : {"mutation.marked", "mutation.before_backend", "mutation.after_backend",
                           "mutation.before_settle", "mutation.settled", "mutation.before_publish"}) {
    open({}, {});
    put_in_backend("/d/f", "old");
    put_in_backend("/d/other", "other");
    EXPECT_EQ(read("/d/f"), "old");
    auto armed = PausePoints::arm(step);
    bool done = false;
    std::jthread writer([&] { done = mutation.run(*cached, ctx); });
    ASSERT_TRUE(armed->wait_for_arrival()) << step;
    const std::string truth = read_backend("/d/f");
    for (int i = 0; i < 3; ++i) EXPECT_EQ(read("/d/f"), truth) << step;
    armed->release();
    writer.join();
    PausePoints::clear();
    EXPECT_TRUE(done);
    EXPECT_EQ(read("/d/f"), mutation.expected) << step;
  }
}

INSTANTIATE_TEST_SUITE_P(AllMutations, FillRace,
                         ::testing::Combine(::testing::ValuesIn(mutations()),
                                            ::testing::Values("fill.before_backend_read", "fill.after_backend_read",
                                                              "fill.before_put", "flight.leads")),
                         [](const auto& info) {
                           std::string point = std::get<1>(info.param);
                           std::ranges::replace(point, '.', '_');
                           return std::string(std::get<0>(info.param).name) + "_" + point;
                         });

class FillRaceRules : public CacheFixture {};

// Without the second erase a fill's late put would outlive the record.
TEST_F(FillRaceRules, WithoutTheSecondEraseAFillOutlivesTheRecord) {
  put_in_backend("/d/f", "old");
  RuleSwitch off(Rule::kSecondErase);
  auto armed = PausePoints::arm("fill.before_put");
  std::jthread reader([&] { (void)read("/d/f"); });
  ASSERT_TRUE(armed->wait_for_arrival());
  ASSERT_TRUE(cached->remove(ctx, kFile));
  armed->release();
  reader.join();
  EXPECT_EQ(read("/d/f"), "old") << "the rule is not what keeps this right any more";
}

TEST_F(FillRaceRules, WithoutTheStampCheckALateFillIsServed) {
  put_in_backend("/d/f", "old");
  RuleSwitch off(Rule::kStampCheck);
  auto armed = PausePoints::arm("fill.before_put");
  std::jthread reader([&] { (void)read("/d/f"); });
  ASSERT_TRUE(armed->wait_for_arrival());
  auto hold = PausePoints::arm("settler.before_erase");  // keeps the second erase away
  ASSERT_TRUE(cached->write(ctx, kFile, "new!", 0, WriteFlag::append));
  armed->release();
  reader.join();
  EXPECT_EQ(read("/d/f"), "old");
  hold->release();
}

}  // namespace
}  // namespace ragfs
