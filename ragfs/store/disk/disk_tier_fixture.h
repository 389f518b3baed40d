// DiskTierTest: a disk tier in a directory of its own whose system calls a test can fail.
//
// For: the tests of the disk tier. Thread-safety: one thread at a time, but for the log.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ragfs/base/faulty_files.h"
#include "ragfs/store/disk/disk_tier.h"

namespace ragfs {

class DiskTierTest : public testing::Test {
 protected:
  DiskTierTest() {
    std::string name = testing::TempDir() + "disk_tier_XXXXXX";
    directory_ = ::mkdtemp(name.data());
  }
  ~DiskTierTest() override {
    tier_.reset();
    std::filesystem::remove_all(directory_);
  }

  DiskTierConfig config() const {
    return {.directory = directory_, .capacity_bytes = 16 << 20, .bucket_bytes = 1 << 20, .min_free_bytes = 0};
  }
  Result<void> start(DiskTierConfig with, DiskTierEvents events = {}) {
    events.log = [this](std::string_view line) {
      const MutexLock lock(log_mutex_);
      lines_.emplace_back(line);
    };
    auto opened = DiskTier::open(std::move(with), std::move(events), files_);
    if (!opened) return std::unexpected(opened.error());
    tier_ = std::move(*opened);
    tier_->wait_recovered(Deadline::in_ms(20'000));
    return {};
  }
  void start() { ASSERT_TRUE(start(config()).has_value()); }
  void restart() {
    tier_->close(Deadline::in_ms(5'000));
    tier_.reset();
    start();
  }
  DiskRecord record(const std::string& key, const std::string& value) {
    generation_ = tier_->next_generation();
    return {.hash = hash64(key), .key = key, .generation = generation_, .value = Bytes::copy(value)};
  }
  Result<size_t> write(const std::vector<DiskRecord>& records) {
    return tier_->write(records, [](const DiskRecord&) { return true; });
  }
  std::optional<std::string> read(const std::string& key) {
    const auto hit = tier_->read(key, hash64(key), Deadline::in_ms(10'000));
    return hit ? std::optional(hit->value.str()) : std::nullopt;
  }
  bool erase(const std::string& key) { return tier_->erase(hash64(key), generation_, Deadline::in_ms(10'000)); }
  std::string only_file(std::string_view ending) {
    std::string found;
    for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
      if (entry.path().string().ends_with(ending)) found = entry.path().string();
    }
    return found;
  }
  bool logged(std::string_view part) {
    const MutexLock lock(log_mutex_);
    return std::any_of(lines_.begin(), lines_.end(), [&](const auto& l) { return l.find(part) != l.npos; });
  }

  std::string directory_;
  ManualClock clock_{int64_t{1'700'000'000} * 1'000'000'000};
  FaultyFiles files_;
  std::unique_ptr<DiskTier> tier_;
  uint64_t generation_ = 0;
  Mutex log_mutex_;
  std::vector<std::string> lines_ RAGFS_GUARDED_BY(log_mutex_);
};

}  // namespace ragfs
