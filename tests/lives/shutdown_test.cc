// The orderly end (3.6): its steps in their order, each within a bound, and nothing of it left afterwards.
#include <malloc.h>
#include <sys/wait.h>

#include <cerrno>

#include "tests/coherence/hooked_file_system.h"
#include "tests/lives/instance_fixture.h"
#include "tests/lives/lives_fixture.h"

namespace ragfs {
namespace {

using Op = ScriptedProvider::Op;
using Action = ScriptedProvider::Action;

int64_t took_ms(const std::function<void()>& work) {
  const int64_t start_ns = Clock::system().monotonic_ns();
  work();
  return (Clock::system().monotonic_ns() - start_ns) / 1'000'000;
}

class Shutdown : public LivesFixture {
 protected:
  static constexpr int64_t kClose_ms = 200;
  static constexpr int64_t kBound_ms = 2'000;  // that, and what a busy machine adds

  void SetUp() override {
    LivesFixture::SetUp();
    options.life.call_timeout_ms = kClose_ms;
    hooked = std::make_shared<HookedFileSystem>(backend);
    backend = hooked;
    put_in_backend("/d/f", "data");
  }
  // Calls of `operation` on the backend stand still until the gate opens.
  void hold(std::string_view operation, const scripted::Gate& gate) {
    hooked->set_before([stands = gate.hook(), operation](std::string_view called, PathView path) {
      if (called == operation) stands(path.text());
      return std::optional<Error>();
    });
  }
  bool has_marker() {
    return std::ranges::any_of(provider->keys(), [](const std::string& key) { return key.starts_with("clean:"); });
  }
  std::shared_ptr<HookedFileSystem> hooked;
};

// Fills end first: a read still works, and leaves nothing. Then mutations and erases that wait; then the marker.
TEST_F(Shutdown, FillsThenMutationsThenErasesThenTheMarker) {
  auto run = begin();
  EXPECT_EQ(run->read("/d/f"), "data");
  put_in_backend("/d/late", "late");
  provider->add_rule({.op = Op::erase, .key_prefix = "file:", .action = Action::fail, .times = 1});
  EXPECT_EQ(run->remove("/d/f"), "ok");
  std::vector<std::string> steps;
  PausePoints::set_handler("close.stopped", [&] {
    steps.emplace_back("stopped");
    const uint64_t fills = run->domain->counters().read(CacheCounter::fill);
    EXPECT_EQ(run->read("/d/late"), "late");
    EXPECT_EQ(run->domain->counters().read(CacheCounter::fill), fills);
  });
  PausePoints::set_handler("close.drained", [&] {
    steps.emplace_back("drained");
    EXPECT_EQ(run->domain->settler().pending(), 0U);
    EXPECT_FALSE(has_marker());
  });
  PausePoints::set_handler("close.after_marker", [&] {
    steps.emplace_back("marked");
    EXPECT_TRUE(has_marker());
  });
  EXPECT_TRUE(run->close());
  EXPECT_EQ(steps, (std::vector<std::string>{"stopped", "drained", "marked"}));
  EXPECT_EQ(run->read("/d/late"), "late") << "backends are open until the last";
}

TEST_F(Shutdown, AReadThatHangsInTheBackendIsNotWaitedForLonger) {
  auto run = begin();
  const scripted::Gate gate;
  hold("read_file", gate);
  std::string seen;
  std::jthread reader([&] { seen = run->read("/d/f"); });
  ASSERT_TRUE(gate.wait_for_arrivals());
  EXPECT_LT(took_ms([&] { EXPECT_FALSE(run->close(kClose_ms)); }), kBound_ms);
  EXPECT_FALSE(has_marker());
  gate.open();
  reader.join();
  EXPECT_EQ(seen, "data");
}

TEST_F(Shutdown, AMutationThatHangsInTheBackendIsNotWaitedForLonger) {
  auto run = begin();
  const scripted::Gate gate;
  hold("write", gate);
  std::string done;
  std::jthread writer([&] { done = run->write("/d/f", "new"); });
  ASSERT_TRUE(gate.wait_for_arrivals());
  EXPECT_LT(took_ms([&] { EXPECT_FALSE(run->close(kClose_ms)); }), kBound_ms);
  EXPECT_FALSE(has_marker());
  gate.open();
  writer.join();
  EXPECT_EQ(done, "ok");
  run.reset();
  EXPECT_EQ(begin()->read("/d/f"), "new");
}

TEST_F(Shutdown, AnEraseThatCannotBeMadeIsNotWaitedForLonger) {
  auto run = begin();
  EXPECT_EQ(run->read("/d/f"), "data");
  provider->add_rule({.op = Op::erase, .key_prefix = "file:", .action = Action::fail});
  EXPECT_EQ(run->remove("/d/f"), "ok");
  EXPECT_LT(took_ms([&] { EXPECT_FALSE(run->close(kClose_ms)); }), kBound_ms);
  EXPECT_FALSE(has_marker());
  run.reset();
  provider->clear_rules();
  EXPECT_EQ(begin()->read("/d/f"), "ERROR not_found");
}

TEST_F(Shutdown, AProviderThatDoesNotAnswerIsNotWaitedForLonger) {
  auto run = begin();
  EXPECT_EQ(run->read("/d/f"), "data");
  provider->add_rule({.action = Action::lose, .delay_ms = 60'000});
  EXPECT_LT(took_ms([&] { EXPECT_FALSE(run->close(10'000)); }), kBound_ms);
  EXPECT_EQ(run->read("/d/f"), "data");
}

TEST_F(Shutdown, ALookAtThePointerThatHangsIsNotWaitedForLonger) {
  options.life.pointer_check_ms = 10;
  auto run = begin();
  EXPECT_EQ(run->read("/d/f"), "data");
  const scripted::Gate gate;
  provider->add_rule({.op = Op::get, .key_prefix = "epoch:", .times = 1, .before = gate.hook()});
  ASSERT_TRUE(gate.wait_for_arrivals());
  provider->add_rule({.op = Op::get, .key_prefix = "epoch:", .action = Action::lose, .delay_ms = 60'000});
  gate.open();
  EXPECT_LT(took_ms([&] { EXPECT_TRUE(run->close()); }), kBound_ms);
}

class OpenAndClose : public InstanceFixture {
 protected:
  struct Left {
    size_t threads = 0;
    size_t descriptors = 0;
    size_t resident_bytes = 0;
  };
  static size_t entries_of(const std::string& directory) {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(directory), {}));
  }
  static Left left() {
    (void)::malloc_trim(0);
    std::ifstream statm("/proc/self/statm");
    size_t size = 0;
    size_t resident = 0;
    statm >> size >> resident;
    return {entries_of("/proc/self/task"), entries_of("/proc/self/fd"),
            resident * static_cast<size_t>(::sysconf(_SC_PAGESIZE))};
  }
  // A thread that has been joined may be seen in /proc for a moment.
  static void wait_for_threads(size_t threads) {
    const Deadline until = Deadline::in_ms(5'000);
    while (entries_of("/proc/self/task") > threads && !until.expired()) (void)::poll(nullptr, 0, 1);
  }
  void expect_nothing_left(const Config& config, int cycles) {
    const auto cycle = [&](int times) {
      for (int i = 0; i < times; ++i) {
        auto instance = open(config);
        ASSERT_TRUE(instance);
        ASSERT_EQ(write(*instance, "/f", std::to_string(i)), "");
        ASSERT_EQ(read(*instance, "/f"), std::to_string(i));
        ASSERT_TRUE(close(*instance));
      }
    };
    cycle(20);
    const Left before = left();
    cycle(cycles);
    wait_for_threads(before.threads);
    const Left after = left();
    EXPECT_EQ(after.threads, before.threads);
    EXPECT_EQ(after.descriptors, before.descriptors);
    EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "a child process is left";
    EXPECT_EQ(errno, ECHILD);
    // A sanitizer keeps freed memory for a while.
    if (std::getenv("RAGFS_TEST_SANITIZER") != nullptr) return;
    constexpr size_t kSlack = 4 << 20;
    EXPECT_LT(after.resident_bytes, before.resident_bytes + kSlack);
  }
};

TEST_F(OpenAndClose, AThousandTimesLeaveNoThreadDescriptorChildOrMemory) { expect_nothing_left(config(), 1'000); }

TEST_F(OpenAndClose, AHundredTimesWithADiskLeaveNothingEither) {
  std::filesystem::create_directories(root + "/disk");
  expect_nothing_left(config("      embedded: {dram_bytes: 16MiB, disk: {directories: ['" + root +
                             "/disk'], capacity_bytes: 256MiB, bucket_bytes: 8MiB, min_free_bytes: 0}}\n"),
                      100);
}

// What a client holds of a cache that was closed is of no harm: it reads on, past the cache.
TEST_F(OpenAndClose, PrefetchFillsDrainMarkerProviderAndBackendsInThatOrder) {
  std::filesystem::create_directories(root + "/disk");
  auto instance = open(config("      embedded: {dram_bytes: 16MiB, disk: {directories: ['" + root +
                              "/disk'], capacity_bytes: 256MiB, bucket_bytes: 8MiB, min_free_bytes: 0}}\n"));
  ASSERT_TRUE(instance);
  EXPECT_EQ(read(*instance, "/f"), "old");
  std::vector<std::string> steps;
  for (const char* step : {"close.prefetch_stopped", "close.stopped", "close.drained", "close.after_marker",
                           "disk.close", "disk.before_clean"}) {
    PausePoints::set_handler(step, [&steps, step] { steps.emplace_back(step); });
  }
  EXPECT_TRUE(close(*instance));
  PausePoints::clear();
  EXPECT_EQ(steps, (std::vector<std::string>{"close.prefetch_stopped", "close.stopped", "close.drained",
                                             "close.after_marker", "disk.close", "disk.before_clean"}));
  EXPECT_EQ(read(*instance, "/f"), "old");
  EXPECT_FALSE(hits(*instance, "/f"));
  EXPECT_EQ(write(*instance, "/f", "new"), "");
  EXPECT_EQ(read(*instance, "/f"), "new");
}

}  // namespace
}  // namespace ragfs
