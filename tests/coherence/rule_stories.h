// RuleStories: one story for each rule of the protocol that the code consults; each goes wrong when its rule is off.
//
// For: rule_switch_test.cc, which tells them with the rule and without it. Not for: other tests.
// Thread-safety: one story at a time.
#pragma once

#include <functional>
#include <string_view>
#include <thread>

#include "tests/coherence/watched_fixture.h"

namespace ragfs {

class RuleStories : public WatchedFixture {
 public:
  // Each tells its story and answers whether an answer was wrong. `off`: the rule is taken out.
  bool running_mark(bool off);
  bool record_before_unmark(bool off);
  bool clock_after_backend(bool off);
  bool failed_mutation_records(bool off);
  bool unknown_backend_keeps_running(bool off);
  bool no_put_beside_late_call(bool off);
  bool mutation_lock_held(bool off);
  bool record_maximum(bool off);
  bool parent_listing(bool off);
  bool grandparent_listing(bool off);
  bool created_ancestors(bool off);
  bool near_erase(bool off);
  bool local_erase_after_fills(bool off);
  bool near_registered_before_get(bool off);
  bool negative_ancestors(bool off);
  bool stamp_check(bool off);
  bool subtree_check(bool off);
  bool leaf_before_root(bool off);
  bool records_before_get(bool off);
  bool epoch_on_hit(bool off);
  bool epoch_after_get(bool off);
  bool epoch_on_incarnation(bool off);
  bool fill_epoch_at_start(bool off);
  bool stat_plain_entries(bool off);
  bool negative_true_not_found(bool off);
  bool negative_record(bool off);
  bool flight_records(bool off);
  bool no_join_while_running(bool off);
  bool second_erase(bool off);
  bool records_survive_failed_erase(bool off);
  bool erase_settles_own_value(bool off);
  bool unknown_put_marks(bool off) { return late_put_comes_back(off); }
  bool drop_only_unmarked(bool off) { return late_put_comes_back(off); }
  bool mark_until_expiry(bool off);
  bool resurrect_keeps_records(bool off);
  bool sweep_after_fills(bool off);
  bool fold_parent_first(bool off);
  bool revalidate(bool off);
  bool expiry_not_rearmed(bool off);
  bool filled_at_before_backend(bool off);
  bool version_before_bytes(bool off);
  bool stat_listing_record(bool off);
  bool negative_epoch(bool off);
  bool epoch_drops_older_only(bool off);
  bool clock_kept_in_life(bool off);
  bool future_expired(bool off);
  bool racy_timestamp(bool off);

 protected:
  // "old" in the backend and in the cache.
  void begin(CoherenceConfig config = {}, CachedMountConfig mount = {}) {
    open_watched(std::move(config), std::move(mount));
    put_in_backend("/d/f", "old");
  }
  // The same with a provider of another process and a near tier in front of it.
  void begin_near(CoherenceConfig config = {}, const Clock& clock = Clock::system());
  bool answers(std::string_view path) { return read(path) != read_backend(path); }
  bool late_put_comes_back(bool off);
  bool joins_a_flight(const std::function<void()>& mutation_around, std::jthread& leader,
                      PausePoints::Armed& leader_stands);
};

}  // namespace ragfs
