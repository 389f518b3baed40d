// The stories of the rules that a mutation keeps (3.1 and 3.2); told by rule_switch_test.cc.
#include <gtest/gtest.h>

#include <thread>

#include "tests/coherence/rule_stories.h"

namespace ragfs {

// A mutation stands after its backend call: who reads past the cache sees the new bytes, the next reader must too.
bool RuleStories::running_mark(bool /*off*/) {
  begin();
  (void)read("/d/f");
  auto stands = PausePoints::arm("mutation.after_backend");
  std::jthread writer([&] { (void)append("/d/f", "+"); });
  EXPECT_TRUE(stands->wait_for_arrival());
  const bool wrong = answers("/d/f");
  stands->release();  // before the writer is joined
  return wrong;
}

bool RuleStories::record_before_unmark(bool off) {
  begin();
  (void)read("/d/f");
  auto stands = PausePoints::arm(off ? "mutation.between_unmark_and_record" : "mutation.before_settle");
  std::jthread writer([&] { (void)append("/d/f", "+"); });
  EXPECT_TRUE(stands->wait_for_arrival());
  const bool wrong = answers("/d/f");
  stands->release();  // before the writer is joined
  return wrong;
}

bool RuleStories::clock_after_backend(bool /*off*/) {
  begin();
  auto writes = PausePoints::arm("mutation.before_backend");
  std::jthread writer([&] { (void)append("/d/f", "+"); });
  EXPECT_TRUE(writes->wait_for_arrival());
  auto has_read = PausePoints::arm("fill.after_backend_read");
  std::jthread reader([&] { (void)read("/d/f"); });
  EXPECT_TRUE(has_read->wait_for_arrival());
  writes->release();
  writer.join();
  has_read->release();
  reader.join();
  return answers("/d/f");
}

bool RuleStories::failed_mutation_records(bool /*off*/) {
  begin();
  (void)read("/d/f");
  watched->force_next(Fate::fail_after);
  EXPECT_FALSE(append("/d/f", "+"));
  return answers("/d/f");
}

bool RuleStories::unknown_backend_keeps_running(bool /*off*/) {
  begin();
  watched->force_next(Fate::time_out_late);
  EXPECT_FALSE(append("/d/f", "+"));
  (void)read("/d/f");
  EXPECT_EQ(watched->land_now(), 1U);
  return answers("/d/f");
}

bool RuleStories::no_put_beside_late_call(bool /*off*/) {
  open_watched({}, {}, 1);
  put_in_backend("/d/f", "old");
  watched->force_next(Fate::time_out_late);
  auto finish = PausePoints::arm("settler.before_finish_unknown");
  EXPECT_FALSE(write("/d/f", "late"));
  auto publish = PausePoints::arm("mutation.before_publish");
  std::jthread writer([&] { (void)write("/d/f", "second"); });
  EXPECT_TRUE(publish->wait_for_arrival());
  EXPECT_EQ(watched->land_now(), 1U);
  finish->release();
  EXPECT_TRUE(domain->settler().drain(Deadline::in_ms(20'000)));
  publish->release();
  writer.join();
  return answers("/d/f");
}

// Two writes of one path whose puts reach the provider in the other order.
bool RuleStories::mutation_lock_held(bool /*off*/) {
  begin();
  auto publish = PausePoints::arm("mutation.before_publish");
  std::jthread first([&] { (void)write("/d/f", "one"); });
  EXPECT_TRUE(publish->wait_for_arrival());
  Context brief;
  brief.deadline = Deadline::in_ms(50);  // with the rule it waits for the lock in vain
  (void)cached->write(brief, path_of("/d/f"), "two", 0, WriteFlag::create);
  publish->release();
  first.join();
  return answers("/d/f");
}

// Two mutations below one directory: the one with the older clock value ends last.
bool RuleStories::record_maximum(bool /*off*/) {
  begin();
  auto first_has_clock = PausePoints::arm("mutation.clock_advanced");
  std::jthread first([&] { (void)write("/d/a", "1"); });
  EXPECT_TRUE(first_has_clock->wait_for_arrival());
  auto has_listed = PausePoints::arm("fill.after_backend_list");
  std::jthread reader([&] { (void)list("/d"); });
  EXPECT_TRUE(has_listed->wait_for_arrival());
  EXPECT_TRUE(write("/d/b", "2"));
  first_has_clock->release();
  first.join();
  auto hold = PausePoints::arm("settler.before_erase", 1'000);
  has_listed->release();
  reader.join();
  return list("/d") != "a b f";
}

bool RuleStories::parent_listing(bool /*off*/) {
  begin();
  EXPECT_EQ(list("/d"), "f");
  EXPECT_TRUE(write("/d/g", "1"));
  return list("/d") != "f g";
}

bool RuleStories::grandparent_listing(bool /*off*/) {
  begin();
  (void)list("/");
  EXPECT_TRUE(write("/d/g", "1"));
  return *cached->stat(ctx, path_of("/d")) != *backend->stat(ctx, path_of("/d"));
}

bool RuleStories::created_ancestors(bool /*off*/) {
  begin();
  EXPECT_EQ(list("/"), "d");
  EXPECT_TRUE(cached->ensure_parent_dirs(ctx, path_of("/x/y/z"), kDefaultDirMode));
  return list("/") != "d x";
}

bool RuleStories::negative_ancestors(bool /*off*/) {
  begin({}, with_negative("x"));
  EXPECT_EQ(read("/x"), "ERROR not_found");
  EXPECT_TRUE(cached->ensure_parent_dirs(ctx, path_of("/x/y/z"), kDefaultDirMode));
  return answers("/x");
}

}  // namespace ragfs
