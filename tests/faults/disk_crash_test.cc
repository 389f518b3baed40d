// kill -9 at every step of the disk tier's work and at random moments: the next life serves no older, removed or wrong
// object, and what had been flushed is there.
//
// The victim is a child process; what it was promised lies in memory that it shares with its parent.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <random>
#include <thread>

#include "ragfs/base/pause_point.h"
#include "ragfs/store/node/second_tier.h"

namespace ragfs::faults {
namespace {

constexpr int kKeys = 400;
constexpr int kQuietKeys = 100;  // put and flushed once, then left alone
constexpr int kThreads = 2;

// One key's history: every put and erase has a number, growing over all lives.
struct Promise {
  std::atomic<uint64_t> issued{0};
  std::atomic<uint64_t> acked{0};
  std::atomic<bool> acked_is_erase{false};
};
struct Shared {
  std::array<Promise, kKeys> promises;
  std::atomic<bool> quiet_flushed{false};
  std::atomic<bool> ready{false};  // the child is past its start
};

std::string key_of(int key) { return fmt::format("key{}", key); }
std::string value_of(int key, uint64_t version) {
  std::string value = fmt::format("{} {} ", key, version);
  value.resize(100 + (key * 37 + version * 101) % 5'000, static_cast<char>('a' + version % 26));
  return value;
}
uint64_t version_of(int key, std::string_view value) {
  int seen_key = -1;
  unsigned long long version = 0;
  const std::string text(value);
  if (std::sscanf(text.c_str(), "%d %llu ", &seen_key, &version) != 2 || seen_key != key) return UINT64_MAX;
  return value == value_of(key, version) ? version : UINT64_MAX;
}

class Life {
 public:
  explicit Life(const std::string& directory) {
    second_ = SecondTier::open({.disks = {{.directory = directory,
                                           .capacity_bytes = 2 << 20,
                                           .bucket_bytes = 256 << 10,
                                           .min_free_bytes = 0,
                                           .most_tombstones = 512}},
                                .admit_all = true,
                                .promote_hits = 2,
                                .flush_ms = 2},
                               {})
                  .value();
    memory_ =
        MemoryTier::create({.capacity_bytes = 4 << 20, .max_objects = 64, .shards = 1, .sink = second_.get()}).value();
    second_->attach(*memory_);
  }
  ~Life() {
    second_->close(Deadline::in_ms(10'000));
    memory_.reset();
  }
  void put(int key, uint64_t version, Shared& shared) {
    Promise& promise = shared.promises[static_cast<size_t>(key)];
    promise.issued.store(version);
    const std::string text = key_of(key), value = value_of(key, version);
    bool kept = false;
    {
      const SecondTier::Change change(*second_, hash64(text), Deadline::in_ms(10'000));
      kept = memory_->put({.key = text, .hash = hash64(text), .head = value}).has_value();
    }
    promise.acked_is_erase.store(!kept);
    promise.acked.store(version);
  }
  void erase(int key, uint64_t version, Shared& shared) {
    Promise& promise = shared.promises[static_cast<size_t>(key)];
    promise.issued.store(version);
    const std::string text = key_of(key);
    {
      const SecondTier::Change change(*second_, hash64(text), Deadline::in_ms(10'000));
      memory_->erase(text, hash64(text));
    }
    promise.acked_is_erase.store(true);
    promise.acked.store(version);
  }
  std::optional<std::string> get(int key) {
    const std::string text = key_of(key);
    std::optional<Bytes> found = memory_->get(text, hash64(text));
    if (!found) found = second_->get(text, hash64(text), Deadline::in_ms(10'000));
    return found ? std::optional(found->str()) : std::nullopt;
  }
  void flush() { second_->flush(Deadline::in_ms(10'000)); }
  void flood() {
    for (int i = 0; i < 200; ++i) {
      const std::string text = fmt::format("flood{}", i);
      const SecondTier::Change change(*second_, hash64(text), Deadline::in_ms(10'000));
      (void)memory_->put({.key = text, .hash = hash64(text), .head = "x"});
    }
  }
  bool recovered() {
    EXPECT_NE(second_->lanes()[0]->disk(), nullptr) << second_->lanes()[0]->reason();
    if (second_->lanes()[0]->disk() == nullptr) return false;
    return second_->lanes()[0]->disk()->wait_recovered(Deadline::in_ms(10'000));
  }

 private:
  std::unique_ptr<SecondTier> second_;
  std::unique_ptr<MemoryTier> memory_;
};

class DiskCrash : public testing::Test {
 protected:
  DiskCrash() {
    std::string name = testing::TempDir() + "disk_crash_XXXXXX";
    directory_ = ::mkdtemp(name.data());
    void* memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    shared_ = std::construct_at(static_cast<Shared*>(memory));
  }
  ~DiskCrash() override {
    ::munmap(shared_, sizeof(Shared));
    std::filesystem::remove_all(directory_);
  }

  // Changes keys until it is killed, or `rounds` are done; then ends in order.
  void live(uint64_t seed, int rounds) {
    Life life(directory_);
    shared_->ready.store(true);
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&, thread] {
        std::mt19937_64 random(seed * 31 + static_cast<uint64_t>(thread));
        for (int i = 0; i < rounds; ++i) {
          const int key = kQuietKeys + static_cast<int>(random() % (kKeys - kQuietKeys)) / kThreads * kThreads + thread;
          if (key >= kKeys) continue;
          const uint64_t version = shared_->promises[static_cast<size_t>(key)].issued.load() + 1;
          if (random() % 4 == 0) {
            life.erase(key, version, *shared_);
          } else {
            life.put(key, version, *shared_);
          }
          if (random() % 3 == 0) (void)life.get(static_cast<int>(random() % kKeys));
        }
      });
    }
  }
  // The child, killed at the `nth` arrival at `point`, or after `delay_us` when there is none. Whether it was killed.
  bool kill_one(const std::string& point, int nth, uint64_t seed, int64_t delay_us) {
    shared_->ready.store(false);
    const pid_t child = ::fork();
    if (child == 0) {
      std::atomic<int> arrivals{0};
      if (!point.empty()) {
        PausePoints::set_handler(point, [&] {
          if (++arrivals == nth) ::kill(::getpid(), SIGKILL);
        });
      }
      live(seed, point.empty() ? 1'000'000 : 1'500);
      ::_exit(0);
    }
    if (point.empty()) {
      while (!shared_->ready.load()) std::this_thread::yield();
      const Deadline until = Deadline::in_ns(delay_us * 1'000);
      while (!until.expired()) std::this_thread::yield();
      ::kill(child, SIGKILL);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFSIGNALED(status);
  }
  void check(const std::string& where) {
    Life life(directory_);
    ASSERT_TRUE(life.recovered());
    for (int key = 0; key < kKeys; ++key) {
      const Promise& promise = shared_->promises[static_cast<size_t>(key)];
      const auto found = life.get(key);
      if (!found) continue;
      const uint64_t version = version_of(key, *found);
      const uint64_t acked = promise.acked.load();
      ASSERT_NE(version, UINT64_MAX) << where << ": wrong bytes of key " << key;
      ASSERT_LE(version, promise.issued.load()) << where;
      ASSERT_GE(version, acked) << where << ": key " << key << " is older than acknowledged";
      ASSERT_FALSE(version == acked && promise.acked_is_erase.load()) << where << ": key " << key << " came back";
    }
  }
  void put_quiet_keys() {
    Life life(directory_);
    for (int key = 0; key < kQuietKeys; ++key) life.put(key, 1, *shared_);
    life.flood();
    life.flush();
  }
  int quiet_survivors() {
    Life life(directory_);
    life.recovered();
    int found = 0;
    for (int key = 0; key < kQuietKeys; ++key) found += life.get(key).has_value() ? 1 : 0;
    return found;
  }

  std::string directory_;
  Shared* shared_ = nullptr;
};

using CaseB08E16 = DiskCrash;
using CaseE25 = DiskCrash;

TEST_F(CaseB08E16, KilledAtEveryStep) {
  constexpr const char* kSteps[] = {
      "disk.before_data",  "disk.write_data",   "disk.before_datasync", "disk.before_meta", "disk.before_rename",
      "disk.after_rename", "disk.before_admit", "disk.tombstone",       "disk.evict",       "disk.evict_unlink",
      "disk.recover",      "disk.close",        "disk.before_clean"};
  int killed = 0;
  uint64_t seed = 1;
  for (const char* step : kSteps) {
    for (const int nth : {1, 2, 7}) {
      const bool was_killed = kill_one(step, nth, ++seed, 0);
      killed += was_killed ? 1 : 0;
      EXPECT_TRUE(was_killed || nth > 1) << step << " is not reached";
      ASSERT_NO_FATAL_FAILURE(check(fmt::format("{} #{}", step, nth)));
    }
  }
  EXPECT_GT(killed, 26);
}

TEST_F(DiskCrash, KilledAtRandomMoments) {
  const int rounds = std::getenv("RAGFS_TEST_FULL") != nullptr ? 1'000 : 40;
  std::mt19937_64 random(20261202);
  for (int round = 0; round < rounds; ++round) {
    EXPECT_TRUE(kill_one("", 0, random(), static_cast<int64_t>(random() % 60'000)));
    ASSERT_NO_FATAL_FAILURE(check(fmt::format("round {}", round)));
  }
}

TEST_F(CaseE25, WhatWasFlushedSurvives) {
  put_quiet_keys();
  kill_one("disk.before_rename", 1, 5, 0);
  EXPECT_GE(quiet_survivors(), kQuietKeys * 95 / 100);
}

}  // namespace
}  // namespace ragfs::faults
