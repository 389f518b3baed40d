// LivesStories: one story for each rule of restarts, failovers and other writers (3.6, 3.9); each goes wrong when its
// rule is taken out.
//
// For: rules_of_lives_test.cc, which tells them with the rule and without it. Thread-safety: one story at a time.
#pragma once

#include <array>
#include <functional>
#include <utility>

#include "ragfs/config/instance.h"
#include "tests/lives/child.h"
#include "tests/lives/lives_fixture.h"

namespace ragfs {

// Each tells its story and answers whether an answer was wrong.
class LivesStories : public LivesFixture {
 public:
  // A life with the cache off changes the file; the pointer still names the life before.
  bool life_without_cache() {
    put_in_backend("/d/f", "old");
    live_and_close("/d/f");
    {
      auto off = begin_off();
      EXPECT_EQ(off->write("/d/f", "new"), "ok");
    }
    auto next = begin();
    return stale(*next, "/d/f");
  }

  // A life without its provider changes the file and is killed.
  bool witness_order() {
    put_in_backend("/d/f", "old");
    live_and_close("/d/f");
    provider->set_down(true);
    {
      auto apart = begin();
      EXPECT_EQ(apart->stage(), LifeStage::apart);
      EXPECT_EQ(apart->write("/d/f", "new"), "ok");
    }
    provider->set_down(false);
    auto next = begin();
    return stale(*next, "/d/f");
  }

  // The same life joins when the provider is back.
  bool cold_join() {
    put_in_backend("/d/f", "old");
    live_and_close("/d/f");
    provider->set_down(true);
    auto run = begin();
    EXPECT_EQ(run->write("/d/f", "new"), "ok");
    EXPECT_EQ(run->read("/d/f"), "new");
    provider->set_down(false);
    run->life->tend();
    EXPECT_EQ(run->stage(), LifeStage::joined);
    return stale(*run, "/d/f");
  }

  // A marker lands late, after another life had changed the file without being able to tell the provider.
  bool late_marker() {
    put_in_backend("/d/f", "old");
    {
      auto first = begin();
      (void)first->read("/d/f");
      provider->add_rule({.op = ScriptedProvider::Op::put,
                          .key_prefix = "clean:",
                          .action = ScriptedProvider::Action::land_late,
                          .times = 1});
      EXPECT_FALSE(first->close());
    }
    {
      auto second = begin();
      EXPECT_FALSE(second->warm());
      provider->add_rule(
          {.op = ScriptedProvider::Op::put, .key_prefix = "file:", .action = ScriptedProvider::Action::fail});
      provider->add_rule(
          {.op = ScriptedProvider::Op::erase, .key_prefix = "file:", .action = ScriptedProvider::Action::fail});
      EXPECT_EQ(second->write("/d/f", "new"), "ok");
      EXPECT_FALSE(second->close(50)) << "what could not be told is not settled";
    }
    provider->clear_rules();
    EXPECT_EQ(provider->land_all(), 1U);
    auto third = begin();
    return stale(*third, "/d/f");
  }

  // The provider is set back to an older state of one shard: the pointer and the marker stay.
  bool older_snapshot() {
    put_in_backend("/d/f", "old");
    {
      auto first = begin();
      (void)first->read("/d/f");
      const ScriptedProvider::State before = provider->snapshot();
      EXPECT_EQ(first->write("/d/f", "new"), "ok");
      EXPECT_TRUE(first->close());
      ScriptedProvider::State after = provider->snapshot();
      for (const auto& [key, stored] : before) {
        if (key.starts_with("file:")) after[key] = stored;
      }
      provider->restore(after);
      provider->new_incarnation();
    }
    auto next = begin();
    return stale(*next, "/d/f");
  }

  // Failed erases in a life whose clock began anew: old objects have greater stamps than its records.
  bool marker_clock() {
    put_in_backend("/d/f", "old");
    {
      auto first = begin();
      for (int i = 0; i < 20; ++i) (void)first->write("/d/g", std::to_string(i));
      (void)first->read("/d/f");
      EXPECT_TRUE(first->close());
    }
    auto next = begin();
    EXPECT_TRUE(next->warm());
    provider->add_rule(
        {.op = ScriptedProvider::Op::put, .key_prefix = "file:", .action = ScriptedProvider::Action::fail});
    provider->add_rule(
        {.op = ScriptedProvider::Op::erase, .key_prefix = "file:", .action = ScriptedProvider::Action::fail});
    EXPECT_EQ(next->write("/d/f", "new"), "ok");
    return stale(*next, "/d/f");
  }

  // What a subtree record refuses is still in the provider when the next life goes on.
  bool marker_records() {
    remote_provider();
    put_in_backend("/d/f", "old");
    {
      auto first = begin();
      (void)first->read("/d/f");
      EXPECT_TRUE(first->fs->remove_all(ctx, *Path::parse("/d")));
      EXPECT_TRUE(first->close());
    }
    auto next = begin();
    EXPECT_TRUE(next->warm());
    return stale(*next, "/d/f");
  }

  // A put that timed out in one life lands in the next, after a removal was confirmed.
  bool marker_marks() {
    put_in_backend("/d/f", "old");
    provider->add_rule({.op = ScriptedProvider::Op::put,
                        .key_prefix = "file:",
                        .action = ScriptedProvider::Action::land_late,
                        .times = 1});
    live_and_close("/d/f");
    auto next = begin();
    EXPECT_TRUE(next->warm());
    EXPECT_EQ(next->remove("/d/f"), "ok");
    EXPECT_TRUE(next->domain->settler().drain(Deadline::in_ms(20'000)));
    EXPECT_EQ(provider->land_all(), 1U);
    return stale(*next, "/d/f");
  }

  // A fill of the life before is still under way when the next one begins.
  bool close_drains() {
    put_in_backend("/d/f", "old");
    auto first = begin();
    scripted::Gate gate;
    provider->add_rule({.op = ScriptedProvider::Op::put, .key_prefix = "file:", .times = 1, .before = gate.hook()});
    std::jthread reader([&] { (void)first->read("/d/f"); });
    EXPECT_TRUE(gate.wait_for_arrivals());
    (void)first->close(100);
    auto next = begin();
    EXPECT_EQ(next->remove("/d/f"), "ok");
    EXPECT_TRUE(next->domain->settler().drain(Deadline::in_ms(20'000)));
    gate.open();
    reader.join();
    return stale(*next, "/d/f");
  }

  // The first life goes on writing after it was closed.
  bool mutation_after_close() {
    put_in_backend("/d/f", "old");
    auto first = begin();
    (void)first->read("/d/f");
    EXPECT_TRUE(first->close());
    EXPECT_EQ(first->write("/d/f", "new"), "ok");
    auto next = begin();
    return stale(*next, "/d/f");
  }

  // A failover to a replica that never heard of the last write.
  bool failover() {
    remote_provider();
    put_in_backend("/d/f", "old");
    auto run = begin();
    (void)run->read("/d/f");
    const ScriptedProvider::State before = provider->snapshot();
    EXPECT_EQ(run->write("/d/f", "new"), "ok");
    EXPECT_TRUE(run->domain->settler().drain(Deadline::in_ms(20'000)));
    provider->restore(before);
    provider->new_incarnation();
    return stale(*run, "/d/f");
  }

  // A mutation comes between the version check of an inherited object and its re-stamping.
  bool restamp_is_fill() {
    // Ahead of the backend's own time, so that the file is not taken for just changed.
    ManualClock clock(Clock::system().wall_ns() + 60'000'000'000);
    options.clock = &clock;
    options.domain.verify_inherited = true;
    put_in_backend("/d/f", "old");
    {
      auto first = begin();
      (void)first->read("/d/f");
    }
    auto next = begin();
    EXPECT_FALSE(next->warm());
    bool once = true;
    PausePoints::set_handler("revalidate.version_read", [&] {
      if (!std::exchange(once, false)) return;
      EXPECT_EQ(next->remove("/d/f"), "ok");
    });
    EXPECT_EQ(next->read("/d/f"), "old") << "it was the truth when it was checked";
    EXPECT_TRUE(next->domain->settler().drain(Deadline::in_ms(20'000)));
    PausePoints::clear();
    return stale(*next, "/d/f");
  }

  // A life with this mount uncached is left out of the marker: nobody told the provider of what changed there.
  bool uncached_mount() {
    put_in_backend("/d/f", "old");
    live_and_close("/d/f");
    {
      RunOptions uncached = options;
      uncached.mount.enabled = false;
      OneLife second(uncached, backend, provider);
      EXPECT_TRUE(second.warm());
      put_in_backend("/d/f", "new");  // by a mount that has no part in the cache at all
      EXPECT_TRUE(second.close());
    }
    auto next = begin();
    EXPECT_TRUE(next->warm());
    return stale(*next, "/d/f");
  }

  // Somebody edits the file while nothing runs.
  bool edited_while_down() {
    options.domain.verify_inherited = true;
    options.mount.use.verify_earlier_lives = true;
    put_in_backend("/d/f", "old");
    live_and_close("/d/f");
    put_in_backend("/d/f", "new");
    auto next = begin();
    EXPECT_TRUE(next->warm());
    return stale(*next, "/d/f");
  }

  // The state directory is copied; the original moves on with the cache off.
  bool copied_state_directory() {
    put_in_backend("/d/f", "old");
    live_and_close("/d/f");
    const std::string copy = options.life.state_dir + "-copy";
    std::filesystem::copy(options.life.state_dir, copy, std::filesystem::copy_options::recursive);
    {
      auto off = begin_off();
      EXPECT_EQ(off->write("/d/f", "new"), "ok");
    }
    options.life.state_dir = copy;
    auto next = begin();
    return stale(*next, "/d/f");
  }

  // The wall clock is set back between two lives, so that the object's time seems to go on.
  bool clock_set_back() {
    const int64_t began_ns = Clock::system().wall_ns();
    options.domain.default_ttl_ms = 100'000;
    put_in_backend("/d/f", "old");
    ManualClock first(began_ns);
    options.clock = &first;
    {
      auto run = begin();
      (void)run->read("/d/f");
      first.advance_ms(70'000);
      EXPECT_TRUE(run->close());
    }
    put_in_backend("/d/f", "changed behind");
    ManualClock second(began_ns + 10'000'000'000);
    options.clock = &second;
    auto next = begin();
    second.advance_ms(50'000);  // 120 s after the fill
    const bool wrong = stale(*next, "/d/f");
    next.reset();
    options.clock = &Clock::system();
    return wrong;
  }

  // A directory gets another file while nothing runs; its listing is of an epoch that was not closed.
  bool inherited_listing() {
    options.domain.verify_inherited = true;
    put_in_backend("/d/f", "x");
    const auto names = [&](OneLife& run) { return run.fs->read_dir(ctx, *Path::parse("/d"))->size(); };
    EXPECT_EQ(names(*begin()), 1U);
    put_in_backend("/d/g", "y");
    return names(*begin()) != 2;
  }

  // Another machine writes the same files, and cannot tell the provider of one of them.
  bool foreign_pointer() {
    put_in_backend("/d/f", "old");
    auto run = begin();
    (void)run->read("/d/f");
    RunOptions elsewhere = options;
    elsewhere.life.state_dir = options.life.state_dir + "-elsewhere";
    OneLife other(elsewhere, backend, provider);
    run->life->tend();
    (void)run->read("/d/f");  // it would be served from now on
    changes_untold(other);
    return stale(*run, "/d/f");
  }

  // A second process of the same machine.
  bool second_process() {
    put_in_backend("/d/f", "old");
    auto run = begin();
    (void)run->read("/d/f");
    auto second = begin();
    changes_untold(*second);
    return stale(*run, "/d/f");
  }

  // Two processes that share the files, each with a cache.
  bool shared_processes() {
    // Ahead of the backend's own time, so that the file is not taken for just changed.
    ManualClock clock(Clock::system().wall_ns() + 60'000'000'000);
    options.clock = &clock;
    options.life.shared = true;
    put_in_backend("/d/f", "old");
    bool wrong = false;
    {
      auto run = begin();
      auto other = begin();
      (void)run->read("/d/f");
      changes_untold(*other);
      wrong = stale(*run, "/d/f");
    }
    options.clock = &Clock::system();
    return wrong;
  }

  // Two clients of one process, which knows nothing of the second one's write.
  bool two_clients() {
    std::filesystem::create_directories(root + "/files");
    Config config;
    MountConfig mount;
    mount.path = "/";
    mount.type = "localfs";
    mount.local_dir = root + "/files";
    config.mounts = {mount};
    config.cache.state_dir = options.life.state_dir;
    auto one = Instance::open(config).value();
    auto other = Instance::open(config).value();
    const Path file = *Path::parse("/f");
    const auto write = [&](Instance& instance, std::string_view text) {
      return instance.fs().write(ctx, file, text, 0, WriteFlag::create).has_value();
    };
    EXPECT_TRUE(write(*one, "old"));
    (void)one->fs().read(ctx, file, 0, 0);
    if (!write(*other, "new")) return true;  // they are in each other's way
    return one->fs().read(ctx, file, 0, 0)->str() != "new";
  }

  // A child of fork() reads after its parent has written.
  bool child_of_fork() {
    put_in_backend("/d/f", "old");
    auto run = begin();
    (void)run->read("/d/f");
    Child child([&](Child& self) {
      // What the parent does to files, which a child of a memory file system cannot see.
      put_in_backend("/d/f", "new");
      self.say();
      return run->read("/d/f") == "new" && run->write("/d/f", "by the child") == "read_only" ? 0 : 1;
    });
    EXPECT_TRUE(child.wait_for_word());
    return child.wait() != 0;
  }

 private:
  // `run` writes /d/f, if it may, while the provider takes and forgets nothing.
  void changes_untold(OneLife& run) {
    using Op = ScriptedProvider::Op;
    for (const Op op : {Op::put, Op::erase}) {
      provider->add_rule({.op = op, .key_prefix = "file:", .action = ScriptedProvider::Action::fail});
    }
    (void)run.write("/d/f", "new");
    provider->clear_rules();
  }
};

}  // namespace ragfs
