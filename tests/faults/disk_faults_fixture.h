// DiskFaults: a memory tier over a second tier on a FaultDisk, with what tests of them need.
// Not for: anything but tests. Thread-safety: what put(), get_from_disk() and logged() touch may be used by any thread.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "ragfs/base/faulty_files.h"
#include "ragfs/store/disk/fence_rules.h"
#include "ragfs/store/node/second_tier.h"
#include "tests/faults/fault_disk.h"

namespace ragfs::faults {

inline constexpr size_t kValueBytes = 4000;

class DiskFaults : public testing::Test {
 protected:
  ~DiskFaults() override { stop(); }

  // False: the machine cannot, and the test is skipped.
  bool make_disk(const FaultDisk::Options& options) {
    auto made = FaultDisk::make(options);
    if (!made) {
      skip_reason_ = made.error().text();
      return false;
    }
    disk_ = std::move(*made);
    return true;
  }
  SecondTierConfig config() const {
    return {.disks = {{.directory = disk_->directory(),
                       .capacity_bytes = 64 << 20,
                       .bucket_bytes = 1 << 20,
                       .min_free_bytes = 1 << 20,
                       .hang_timeout_ms = 200}},
            .admit_all = true,
            .promote_hits = 0,
            .flush_ms = 1};
  }
  void start(SecondTierConfig with) { start(std::move(with), files_); }
  void start(SecondTierConfig with, PosixFiles& files) {
    const auto log = [this](std::string_view line) {
      const MutexLock lock(log_mutex_);
      if (line.starts_with("action=disk_fenced")) fenced_at_ns_.store(Clock::system().monotonic_ns());
      lines_.emplace_back(line);
    };
    tier_ = SecondTier::open(std::move(with), log, files).value();
    memory_ =
        MemoryTier::create({.capacity_bytes = 8 << 20, .max_objects = 256, .shards = 1, .sink = tier_.get()}).value();
    tier_->attach(*memory_);
  }
  void stop() {
    if (tier_ == nullptr) return;
    tier_->close(Deadline::in_ms(10'000));
    memory_.reset();
    tier_.reset();
  }
  static std::string value_of(const std::string& key) {
    std::string value = key + ":";
    value.resize(kValueBytes, 'v');
    return value;
  }
  bool put(const std::string& key) {
    const uint64_t hash = hash64(key);
    const std::string value = value_of(key);
    const SecondTier::Change change(*tier_, hash, Deadline::in_ms(1'000));
    return memory_->put({.key = key, .hash = hash, .head = value}).has_value();
  }
  // Puts a thousand objects of this name, of which memory keeps a quarter.
  void put_many(const std::string& name, int count = 1'000) {
    for (int i = 0; i < count; ++i) ASSERT_TRUE(put(fmt::format("{}{}", name, i)));
  }
  // 1 = hit, 0 = miss; wrong bytes fail the test.
  int get_from_disk(const std::string& key, int64_t timeout_ms = 5'000) {
    const auto found = tier_->get(key, hash64(key), Deadline::in_ms(timeout_ms));
    EXPECT_TRUE(!found || found->view() == value_of(key)) << key;
    return found ? 1 : 0;
  }
  int hits(const std::string& name, int count = 1'000) {
    int sum = 0;
    for (int i = 0; i < count; ++i) sum += get_from_disk(fmt::format("{}{}", name, i));
    return sum;
  }
  DiskTier& tier() { return *tier_->lanes()[0]->disk(); }
  bool wait_until(const std::function<bool()>& condition, int64_t timeout_ms = 20'000) {
    const Deadline until = Deadline::in_ms(timeout_ms);
    while (!condition()) {
      if (until.expired()) return false;
      std::this_thread::yield();
    }
    return true;
  }
  bool logged(std::string_view part) {
    const MutexLock lock(log_mutex_);
    return std::any_of(lines_.begin(), lines_.end(), [&](const auto& l) { return l.find(part) != l.npos; });
  }
  // From then until the fence fell (it is logged a moment after): 0 when it had fallen before, infinity when never.
  double ms_since(int64_t from_ns) {
    if (!wait_until([&] { return fenced_at_ns_.load() != 0; })) return std::numeric_limits<double>::infinity();
    return static_cast<double>(std::max<int64_t>(fenced_at_ns_.load() - from_ns, 0)) / 1e6;
  }

  std::unique_ptr<FaultDisk> disk_;
  std::string skip_reason_;
  FaultyFiles files_;
  std::unique_ptr<SecondTier> tier_;
  std::unique_ptr<MemoryTier> memory_;
  std::atomic<int64_t> fenced_at_ns_{0};
  Mutex log_mutex_;
  std::vector<std::string> lines_ RAGFS_GUARDED_BY(log_mutex_);
};

#define NEEDS_DISK(...) \
  if (!make_disk(__VA_ARGS__)) GTEST_SKIP() << skip_reason_

}  // namespace ragfs::faults
