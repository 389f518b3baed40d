// Stories of the rules of epochs, versions and time (rule_stories.h), which rule_switch_test.cc tells.
#include <gtest/gtest.h>

#include <thread>

#include "tests/coherence/hooked_file_system.h"
#include "tests/coherence/rule_stories.h"

namespace ragfs {
namespace {

// Ahead of the backend's own time, so that no file is taken for just changed.
int64_t a_minute_ahead_ns() { return Clock::system().wall_ns() + 60'000'000'000; }

CachedMountConfig revalidated() {
  CachedMountConfig mount;
  mount.revalidate_ms = 1'000;
  return mount;
}

}  // namespace

// Somebody edits the file just after a slow fill had read it, or a slow write had written it.
bool RuleStories::filled_at_before_backend(bool off) {
  ManualClock clock(a_minute_ahead_ns());
  open_watched({}, revalidated(), 60'000, clock);
  put_in_backend("/d/f", "old");
  auto has_read = PausePoints::arm("fill.after_backend_read");
  std::jthread reader([&] { (void)read("/d/f"); });
  EXPECT_TRUE(has_read->wait_for_arrival());
  put_in_backend("/d/f", "edited behind the cache");
  clock.advance_ms(10'000);
  has_read->release();
  reader.join();
  const bool fill_wrong = answers("/d/f");

  auto has_written = PausePoints::arm("mutation.before_publish");
  std::jthread writer([&] { EXPECT_TRUE(write("/d/g", "written")); });
  EXPECT_TRUE(has_written->wait_for_arrival());
  put_in_backend("/d/g", "edited behind the cache");
  clock.advance_ms(10'000);
  has_written->release();
  writer.join();
  const bool write_wrong = answers("/d/g");
  close_watched();  // before its clock
  return off ? fill_wrong && write_wrong : fill_wrong || write_wrong;
}

// The file changes between the reading of its bytes and of its version.
bool RuleStories::version_before_bytes(bool /*off*/) {
  ManualClock clock(a_minute_ahead_ns());
  open_watched({}, revalidated(), 60'000, clock);
  put_in_backend("/d/f", "old");
  auto has_read = PausePoints::arm("fill.after_backend_read");
  std::jthread reader([&] { (void)read("/d/f"); });
  EXPECT_TRUE(has_read->wait_for_arrival());
  put_in_backend("/d/f", "new");
  has_read->release();
  reader.join();
  clock.advance_ms(10'000);
  const bool wrong = answers("/d/f");
  close_watched();  // before its clock
  return wrong;
}

// The erase of the listing fails, so that what it says of the file is still there.
bool RuleStories::stat_listing_record(bool /*off*/) {
  begin();
  (void)list("/d");
  provider->add_rule({.op = ScriptedProvider::Op::erase,
                      .key_prefix = std::string(key_of("/d", ObjectKind::listing).text()),
                      .action = ScriptedProvider::Action::fail,
                      .times = 1});
  auto hold = PausePoints::arm("settler.before_erase", 1'000);
  EXPECT_TRUE(append("/d/f", "+"));
  return cached->stat(ctx, path_of("/d/f"))->size != backend->stat(ctx, path_of("/d/f"))->size;
}

// A read that found nothing remembers it after the file was created and a new epoch had dropped the record.
bool RuleStories::negative_epoch(bool /*off*/) {
  open_watched({}, {});
  close_watched();
  ProviderCapabilities remote = ScriptedProvider::all_capabilities();
  remote.zero_copy = false;  // then the settler makes its second erase, which forgets the entry too, where it is held
  provider->set_capabilities(remote);
  open_watched_over({}, with_negative("f"));
  auto remember = PausePoints::arm("negative.before_remember");
  std::jthread reader([&] { (void)read("/f"); });
  EXPECT_TRUE(remember->wait_for_arrival());
  auto hold = PausePoints::arm("settler.before_erase", 1'000);
  EXPECT_TRUE(write("/f", "there"));
  domain->new_epoch();
  remember->release();
  reader.join();
  return answers("/f");
}

// A fill and a mutation of the new epoch come between its beginning and the dropping of what it does not need.
bool RuleStories::epoch_drops_older_only(bool /*off*/) {
  begin();
  auto drops = PausePoints::arm("epoch.before_reset");
  std::jthread changer([&] { domain->new_epoch(); });
  EXPECT_TRUE(drops->wait_for_arrival());
  EXPECT_EQ(read("/d/f"), "old");
  auto hold = fail_next_erase("/d/f");
  EXPECT_TRUE(append("/d/f", "+"));
  drops->release();
  changer.join();
  return answers("/d/f");
}

// A write that holds its value of the clock while the epoch changes puts in the new one.
bool RuleStories::clock_kept_in_life(bool /*off*/) {
  begin();
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(write("/d/g", std::to_string(i)));
  auto puts = PausePoints::arm("mutation.before_publish");
  std::jthread writer([&] { EXPECT_TRUE(write("/d/f", "one")); });
  EXPECT_TRUE(puts->wait_for_arrival());
  domain->new_epoch();
  puts->release();
  writer.join();
  auto hold = fail_next_erase("/d/f");
  EXPECT_TRUE(append("/d/f", "+"));
  return answers("/d/f");
}

// An object that was filled under a wall clock which has stepped back since: nobody knows how old it is.
bool RuleStories::future_expired(bool /*off*/) {
  ManualClock clock(1'700'000'000'000'000'000);
  CoherenceConfig config;
  config.default_ttl_ms = 10'000;
  open_watched(config, {}, 60'000, clock);
  put_in_backend("/d/f", "old");
  (void)read("/d/f");
  put_in_backend("/d/f", "changed behind");
  const std::string key(key_of("/d/f", ObjectKind::file).text());
  const std::string object = *provider->peek(key);
  auto decoded = decode_envelope(object, true);
  EXPECT_TRUE(decoded);
  decoded->info.filled_at_ns += 3'600'000'000'000;
  decoded->info.expires_at_ns += 3'600'000'000'000;
  provider->poke(key, encode_envelope(decoded->info, decoded->payload) + std::string(decoded->payload));
  clock.advance_ms(60'000);
  const bool wrong = answers("/d/f");
  close_watched();  // before its clock
  return wrong;
}

// A file that changes twice within one tick of its timestamps.
bool RuleStories::racy_timestamp(bool /*off*/) {
  ManualClock clock(Clock::system().wall_ns());
  open({}, {});
  const auto coarse = std::make_shared<HookedFileSystem>(backend);
  coarse->give_every_file_the_version("of this tick");
  backend = coarse;
  open_watched_over({}, revalidated(), 60'000, clock);
  put_in_backend("/d/f", "old");
  (void)read("/d/f");
  put_in_backend("/d/f", "new");
  clock.advance_ms(10'000);
  const bool wrong = answers("/d/f");
  close_watched();  // before its clock
  return wrong;
}

}  // namespace ragfs
