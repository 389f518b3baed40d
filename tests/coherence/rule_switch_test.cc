// Each rule of the protocol that the code consults, taken out of the real code: a story that goes right with the rule
// must go wrong without it. A rule that is consulted and has no story here fails this test.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // of GCC 12's own <regex>, under a sanitizer
#endif

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "ragfs/backends/local/local_file_system.h"
#include "tests/coherence/rule_stories.h"
#include "tests/lives/told_rules.h"

namespace ragfs {
namespace {

// Expected to be safe without: they save work (docs/model.md).
constexpr std::array kSafeWithout{Rule::kFillCheck, Rule::kFreshPointerLife};

// Rules that the code does not consult.
constexpr std::array kWithoutSwitch{Rule::kFollowerRecheck};

}  // namespace

bool RuleStories::stamp_check(bool /*off*/) {
  begin();
  auto put = PausePoints::arm("fill.before_put");
  std::jthread reader([&] { (void)read("/d/f"); });
  EXPECT_TRUE(put->wait_for_arrival());
  auto hold = PausePoints::arm("settler.before_erase", 1'000);
  EXPECT_TRUE(append("/d/f", "+"));
  put->release();
  reader.join();
  return answers("/d/f");
}

bool RuleStories::subtree_check(bool /*off*/) {
  begin();
  (void)read("/d/f");
  EXPECT_TRUE(cached->remove_all(ctx, path_of("/d")));
  return answers("/d/f");
}

// While a reader looks the records up, the one that refuses moves from child to parent.
bool RuleStories::leaf_before_root(bool /*off*/) {
  CoherenceConfig config;
  config.table.max_subtree_records = 1;
  config.sweep_interval_ms = 0;
  open_watched(config, {});
  put_in_backend("/acct/resources/r/d/f", "old");
  put_in_backend("/acct/resources/r/e/f", "other");
  (void)read("/acct/resources/r/d/f");
  EXPECT_TRUE(cached->remove_all(ctx, path_of("/acct/resources/r/d")));
  auto between = PausePoints::arm("observe.between_leaf_and_root");
  std::string seen;
  std::jthread reader([&] { seen = read("/acct/resources/r/d/f"); });
  EXPECT_TRUE(between->wait_for_arrival());
  EXPECT_TRUE(cached->remove_all(ctx, path_of("/acct/resources/r/e")));
  for (int i = 0; i < 4; ++i) domain->table().enforce_limits();
  between->release();
  reader.join();
  return seen == "old";
}

bool RuleStories::records_before_get(bool /*off*/) {
  begin();
  (void)read("/d/f");
  auto hold = fail_next_erase("/d/f");
  EXPECT_TRUE(append("/d/f", "+"));
  auto has_got = PausePoints::arm("lookup.after_get");
  std::string seen;
  std::jthread reader([&] { seen = read("/d/f"); });
  EXPECT_TRUE(has_got->wait_for_arrival());
  hold->release();
  EXPECT_TRUE(domain->settler().drain(Deadline::in_ms(20'000)));
  has_got->release();
  reader.join();
  return seen == "old";
}

bool RuleStories::epoch_on_hit(bool /*off*/) {
  begin();
  (void)read("/d/f");
  auto hold = fail_next_erase("/d/f");
  EXPECT_TRUE(append("/d/f", "+"));
  domain->new_epoch();
  return answers("/d/f");
}

// A failover to a replica that has not seen the erase, between a reader's look at the epoch and its get.
bool RuleStories::epoch_after_get(bool /*off*/) {
  begin();
  (void)read("/d/f");
  const ScriptedProvider::State before = provider->snapshot();
  EXPECT_TRUE(append("/d/f", "+"));
  EXPECT_TRUE(domain->settler().drain(Deadline::in_ms(20'000)));
  auto gets = PausePoints::arm("lookup.before_get");
  std::string seen;
  std::jthread reader([&] { seen = read("/d/f"); });
  EXPECT_TRUE(gets->wait_for_arrival());
  provider->restore(before);
  domain->new_epoch();
  gets->release();
  reader.join();
  return seen == "old";
}

// A failover to a replica that lost an erase whose record has been let go.
bool RuleStories::epoch_on_incarnation(bool /*off*/) {
  begin();
  (void)read("/d/f");
  const ScriptedProvider::State before = provider->snapshot();
  EXPECT_TRUE(append("/d/f", "+"));
  EXPECT_TRUE(domain->settler().drain(Deadline::in_ms(20'000)));
  provider->restore(before);
  provider->new_incarnation();
  return answers("/d/f");
}

bool RuleStories::fill_epoch_at_start(bool /*off*/) {
  begin();
  auto has_read = PausePoints::arm("fill.after_backend_read");
  std::jthread reader([&] { (void)read("/d/f"); });
  EXPECT_TRUE(has_read->wait_for_arrival());
  EXPECT_TRUE(append("/d/f", "+"));
  domain->new_epoch();
  auto hold = PausePoints::arm("settler.before_erase", 1'000);
  has_read->release();
  reader.join();
  return answers("/d/f");
}

bool RuleStories::stat_plain_entries(bool /*off*/) {
  close_watched();
  char name[] = "/tmp/ragfs_rule_XXXXXX";
  EXPECT_NE(::mkdtemp(name), nullptr);
  const std::string root = name;
  LocalConfig config;
  config.root_dir = root;
  auto local = LocalFileSystem::open(config);
  EXPECT_TRUE(local);
  backend = std::shared_ptr<FileSystem>(*std::move(local));
  provider = std::make_shared<ScriptedProvider>();
  open_watched_over({}, {});
  EXPECT_TRUE(write("/f", "bytes"));
  std::filesystem::create_symlink("f", root + "/l");
  (void)list("/");
  const bool wrong = *cached->stat(ctx, path_of("/l")) != *backend->stat(ctx, path_of("/l"));
  std::filesystem::remove_all(root);
  return wrong;
}

bool RuleStories::negative_true_not_found(bool /*off*/) {
  begin({}, with_negative("f"));
  watched->set_faults(true);
  EXPECT_EQ(read("/d/f"), "ERROR io");
  watched->set_faults(false);
  return answers("/d/f");
}

// "Not there" is remembered after the directory had been moved into place.
bool RuleStories::negative_record(bool /*off*/) {
  open_watched({}, with_negative("f"));
  put_in_backend("/e/f", "moved");
  auto remember = PausePoints::arm("negative.before_remember");
  std::jthread reader([&] { (void)read("/d/f"); });
  EXPECT_TRUE(remember->wait_for_arrival());
  EXPECT_TRUE(cached->rename(ctx, path_of("/e"), path_of("/d")));
  remember->release();
  reader.join();
  return answers("/d/f");
}

// A second reader, who may or may not join the flight of the first.
bool RuleStories::joins_a_flight(const std::function<void()>& mutation_around, std::jthread& leader,
                                 PausePoints::Armed& leader_stands) {
  EXPECT_TRUE(leader_stands.wait_for_arrival());
  mutation_around();
  const std::string truth = read_backend("/d/f");
  std::string seen;
  std::atomic<bool> done{false};
  std::jthread second([&] {
    seen = read("/d/f");
    done = true;
  });
  const Deadline longest = Deadline::in_ms(20'000);
  while (!done && domain->file_flights().counts().followers.load() == 0 && !longest.expired()) {
    std::this_thread::yield();
  }
  leader_stands.release();
  leader.join();
  second.join();
  return seen != truth;
}

bool RuleStories::flight_records(bool /*off*/) {
  begin();
  auto stands = PausePoints::arm("fill.after_backend_read");
  std::jthread leader([&] { (void)read("/d/f"); });
  return joins_a_flight([&] { EXPECT_TRUE(cached->remove_all(ctx, path_of("/d"))); }, leader, *stands);
}

bool RuleStories::no_join_while_running(bool /*off*/) {
  begin();
  auto stands = PausePoints::arm("fill.after_backend_read");
  auto mutation_stands = PausePoints::arm("mutation.after_backend");
  std::jthread leader([&] { (void)read("/d/f"); });
  std::jthread writer;
  const bool wrong = joins_a_flight(
      [&] {
        writer = std::jthread([&] { (void)append("/d/f", "+"); });
        EXPECT_TRUE(mutation_stands->wait_for_arrival());
      },
      leader, *stands);
  mutation_stands->release();
  return wrong;
}

bool RuleStories::second_erase(bool /*off*/) {
  begin();
  auto put = PausePoints::arm("fill.before_put");
  std::jthread reader([&] { (void)read("/d/f"); });
  EXPECT_TRUE(put->wait_for_arrival());
  EXPECT_TRUE(append("/d/f", "+"));
  put->release();
  reader.join();
  return answers("/d/f");
}

bool RuleStories::records_survive_failed_erase(bool /*off*/) {
  begin();
  (void)read("/d/f");
  auto hold = fail_next_erase("/d/f");
  EXPECT_TRUE(append("/d/f", "+"));
  return answers("/d/f");
}

// The first mutation's erase of a shared listing is answered after a second one has set a newer record.
bool RuleStories::erase_settles_own_value(bool /*off*/) {
  begin();
  scripted::Gate answer;
  provider->add_rule({.op = ScriptedProvider::Op::erase,
                      .key_prefix = std::string(key_of("/d", ObjectKind::listing).text()),
                      .times = 1,
                      .after = answer.hook()});
  std::jthread first([&] { (void)write("/d/a", "1"); });
  EXPECT_TRUE(answer.wait_for_arrivals());
  auto put = PausePoints::arm("fill.before_put");
  std::jthread reader([&] { (void)list("/d"); });
  EXPECT_TRUE(put->wait_for_arrival());
  EXPECT_TRUE(write("/d/b", "2"));
  auto hold = PausePoints::arm("settler.before_erase", 1'000);
  put->release();
  reader.join();
  answer.open();
  first.join();
  return list("/d") != "a b f";
}

// A put that timed out lands after a removal was confirmed.
bool RuleStories::late_put_comes_back(bool /*off*/) {
  begin();
  provider->add_rule({.op = ScriptedProvider::Op::put, .action = ScriptedProvider::Action::land_late, .times = 1});
  (void)read("/d/f");
  EXPECT_TRUE(cached->remove(ctx, path_of("/d/f")));
  EXPECT_TRUE(domain->settler().drain(Deadline::in_ms(20'000)));
  EXPECT_EQ(provider->land_all(), 1U);
  return answers("/d/f");
}

bool RuleStories::mark_until_expiry(bool /*off*/) {
  CoherenceConfig config;
  config.default_ttl_ms = 3'600'000;
  begin(config);
  provider->add_rule({.op = ScriptedProvider::Op::put, .action = ScriptedProvider::Action::land_late, .times = 1});
  (void)read("/d/f");
  domain->table().expire_marks(domain->clock().monotonic_ns());
  EXPECT_TRUE(cached->remove(ctx, path_of("/d/f")));
  EXPECT_TRUE(domain->settler().drain(Deadline::in_ms(20'000)));
  EXPECT_EQ(provider->land_all(), 1U);
  return answers("/d/f");
}

bool RuleStories::resurrect_keeps_records(bool /*off*/) {
  open_watched({}, {});
  ProviderCapabilities capabilities = ScriptedProvider::all_capabilities();
  capabilities.may_resurrect = true;
  close_watched();
  provider->set_capabilities(capabilities);
  open_watched_over({}, {});
  put_in_backend("/d/f", "old");
  (void)read("/d/f");
  const ScriptedProvider::State before = provider->snapshot();
  EXPECT_TRUE(append("/d/f", "+"));
  EXPECT_TRUE(domain->settler().drain(Deadline::in_ms(20'000)));
  provider->restore(before);
  return answers("/d/f");
}

bool RuleStories::sweep_after_fills(bool /*off*/) {
  begin();
  auto put = PausePoints::arm("fill.before_put");
  std::jthread reader([&] { (void)read("/d/f"); });
  EXPECT_TRUE(put->wait_for_arrival());
  EXPECT_TRUE(cached->remove_all(ctx, path_of("/d")));
  (void)domain->settler().sweep();
  auto hold = PausePoints::arm("settler.before_erase", 1'000);
  put->release();
  reader.join();
  return answers("/d/f");
}

bool RuleStories::fold_parent_first(bool /*off*/) {
  CoherenceConfig config;
  config.table.max_subtree_records = 1;
  config.sweep_interval_ms = 0;
  open_watched(config, {});
  bool wrong = false;
  for (const char* directory : {"d", "e", "g"}) {
    const std::string path = std::string("/acct/resources/r/") + directory;
    put_in_backend(path + "/f", "old");
    (void)read(path + "/f");
  }
  PausePoints::set_handler("fold.between_parent_and_child", [&] {
    for (const char* directory : {"d", "e"}) {
      const std::string file = std::string("/acct/resources/r/") + directory + "/f";
      if (read_backend(file) == "ERROR not_found" && read(file) == "old") wrong = true;
    }
  });
  EXPECT_TRUE(cached->remove_all(ctx, path_of("/acct/resources/r/d")));
  EXPECT_TRUE(cached->remove_all(ctx, path_of("/acct/resources/r/e")));
  for (int i = 0; i < 4; ++i) domain->table().enforce_limits();
  return wrong;
}

bool RuleStories::revalidate(bool /*off*/) {
  ManualClock clock(1'000'000'000'000'000'000);
  CachedMountConfig mount;
  mount.revalidate_ms = 1'000;
  open_watched({}, mount, 60'000, clock);
  put_in_backend("/d/f", "old");
  (void)read("/d/f");
  put_in_backend("/d/f", "changed from outside");
  clock.advance_ms(10'000);
  const bool wrong = answers("/d/f");
  close_watched();  // before its clock
  return wrong;
}

namespace {

struct Story {
  Rule rule;
  bool (RuleStories::*tell)(bool off);
};

constexpr std::array kStories{
    Story{Rule::kRunningMark, &RuleStories::running_mark},
    Story{Rule::kRecordBeforeUnmark, &RuleStories::record_before_unmark},
    Story{Rule::kClockAfterBackend, &RuleStories::clock_after_backend},
    Story{Rule::kFailedMutationRecords, &RuleStories::failed_mutation_records},
    Story{Rule::kUnknownBackendKeepsRunning, &RuleStories::unknown_backend_keeps_running},
    Story{Rule::kNoPutBesideLateCall, &RuleStories::no_put_beside_late_call},
    Story{Rule::kMutationLockHeld, &RuleStories::mutation_lock_held},
    Story{Rule::kRecordMaximum, &RuleStories::record_maximum},
    Story{Rule::kParentListing, &RuleStories::parent_listing},
    Story{Rule::kGrandparentListing, &RuleStories::grandparent_listing},
    Story{Rule::kCreatedAncestors, &RuleStories::created_ancestors},
    Story{Rule::kNegativeAncestors, &RuleStories::negative_ancestors},
    Story{Rule::kNearErase, &RuleStories::near_erase},
    Story{Rule::kLocalEraseAfterFills, &RuleStories::local_erase_after_fills},
    Story{Rule::kNearRegisteredBeforeGet, &RuleStories::near_registered_before_get},
    Story{Rule::kStampCheck, &RuleStories::stamp_check},
    Story{Rule::kSubtreeCheck, &RuleStories::subtree_check},
    Story{Rule::kLeafBeforeRoot, &RuleStories::leaf_before_root},
    Story{Rule::kRecordsBeforeGet, &RuleStories::records_before_get},
    Story{Rule::kEpochOnHit, &RuleStories::epoch_on_hit},
    Story{Rule::kEpochAfterGet, &RuleStories::epoch_after_get},
    Story{Rule::kEpochOnIncarnation, &RuleStories::epoch_on_incarnation},
    Story{Rule::kFillEpochAtStart, &RuleStories::fill_epoch_at_start},
    Story{Rule::kStatPlainEntries, &RuleStories::stat_plain_entries},
    Story{Rule::kNegativeTrueNotFound, &RuleStories::negative_true_not_found},
    Story{Rule::kNegativeRecord, &RuleStories::negative_record},
    Story{Rule::kFlightRecords, &RuleStories::flight_records},
    Story{Rule::kNoJoinWhileRunning, &RuleStories::no_join_while_running},
    Story{Rule::kSecondErase, &RuleStories::second_erase},
    Story{Rule::kRecordsSurviveFailedErase, &RuleStories::records_survive_failed_erase},
    Story{Rule::kEraseSettlesOwnValue, &RuleStories::erase_settles_own_value},
    Story{Rule::kUnknownPutMarks, &RuleStories::unknown_put_marks},
    Story{Rule::kDropOnlyUnmarked, &RuleStories::drop_only_unmarked},
    Story{Rule::kMarkUntilExpiry, &RuleStories::mark_until_expiry},
    Story{Rule::kResurrectKeepsRecords, &RuleStories::resurrect_keeps_records},
    Story{Rule::kSweepAfterFills, &RuleStories::sweep_after_fills},
    Story{Rule::kFoldParentFirst, &RuleStories::fold_parent_first},
    Story{Rule::kRevalidate, &RuleStories::revalidate},
    Story{Rule::kExpiryNotRearmed, &RuleStories::expiry_not_rearmed},
    Story{Rule::kFilledAtBeforeBackend, &RuleStories::filled_at_before_backend},
    Story{Rule::kVersionBeforeBytes, &RuleStories::version_before_bytes},
    Story{Rule::kStatListingRecord, &RuleStories::stat_listing_record},
    Story{Rule::kNegativeEpoch, &RuleStories::negative_epoch},
    Story{Rule::kEpochDropsOlderOnly, &RuleStories::epoch_drops_older_only},
    Story{Rule::kClockKeptInLife, &RuleStories::clock_kept_in_life},
    Story{Rule::kFutureExpired, &RuleStories::future_expired},
    Story{Rule::kRacyTimestamp, &RuleStories::racy_timestamp},
};

void PrintTo(const Story& story, std::ostream* out) { *out << rule_info(story.rule).name; }

class RuleSwitchTest : public RuleStories, public ::testing::WithParamInterface<Story> {};

TEST_P(RuleSwitchTest, GoesRightWithTheRuleAndWrongWithoutIt) {
  const RuleInfo& info = rule_info(GetParam().rule);
  EXPECT_FALSE((this->*GetParam().tell)(false)) << "with the rule: " << info.sentence;
  PausePoints::clear();
  close_watched();
  const RuleSwitch off(GetParam().rule);
  EXPECT_TRUE((this->*GetParam().tell)(true)) << "not needed any more? " << info.sentence;
  PausePoints::clear();
  close_watched();
}

INSTANTIATE_TEST_SUITE_P(AllRules, RuleSwitchTest, ::testing::ValuesIn(kStories),
                         [](const auto& info) { return std::string(rule_info(info.param.rule).name); });

// The names after "Rule::" where ragfs/cache asks whether a rule holds.
std::set<std::string> consulted_rules() {
  std::set<std::string> names;
  const std::regex pattern(R"(rule_enabled\(Rule::(k\w+)\))");
  for (const auto& file : std::filesystem::recursive_directory_iterator(RAGFS_SOURCE_DIR "/ragfs")) {
    const std::string name = file.path().filename().string();
    if ((!name.ends_with(".cc") && !name.ends_with(".h")) || name == "rules.h" || name.ends_with("_test.cc")) continue;
    std::ifstream stream(file.path());
    std::stringstream text;
    text << stream.rdbuf();
    const std::string source = text.str();
    for (std::sregex_iterator at(source.begin(), source.end(), pattern), end; at != end; ++at) names.insert((*at)[1]);
  }
  return names;
}

// "kRunningMark" of "running_mark".
std::string enumerator_of(Rule rule) {
  std::string name = "k";
  bool upper = true;
  for (const char c : rule_info(rule).name) {
    if (c == '_') {
      upper = true;
      continue;
    }
    name += upper ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    upper = false;
  }
  return name;
}

TEST(RuleCoverage, EveryRuleThatTheCodeConsultsHasAStory) {
  const std::set<std::string> consulted = consulted_rules();
  EXPECT_GT(consulted.size(), 30U);
  for (const RuleInfo& info : rules()) {
    const bool has_story = std::ranges::any_of(kStories, [&](const Story& story) { return story.rule == info.rule; });
    const bool is_safe = std::ranges::count(kSafeWithout, info.rule) > 0;
    const bool is_absent = std::ranges::count(kWithoutSwitch, info.rule) > 0;
    const bool is_of_lives = std::ranges::count(kToldInLives, info.rule) > 0;
    EXPECT_EQ(has_story + is_safe + is_absent + is_of_lives, 1) << info.name << " must be in exactly one of the lists";
    EXPECT_EQ(consulted.contains(enumerator_of(info.rule)), !is_absent) << info.name;
  }
}

}  // namespace
}  // namespace ragfs
