// DiskTier: what a purge leaves in the directory, byte for byte.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "ragfs/base/pause_point.h"
#include "ragfs/store/disk/disk_tier_fixture.h"

namespace ragfs {
namespace {

class DiskPurge : public DiskTierTest {
 protected:
  static inline const std::vector<std::string> kTheirs = {"file:t:a:", "dir:t:a:"};
  static std::string key(std::string_view begin, int i) { return fmt::format("{}{}", begin, i); }
  // Whether a file of the directory holds this text anywhere.
  bool on_disk(std::string_view text) const {
    for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
      std::ifstream file(entry.path(), std::ios::binary);
      const std::string bytes{std::istreambuf_iterator<char>(file), {}};
      if (bytes.contains(text)) return true;
    }
    return false;
  }
  Result<uint64_t> purge(Deadline deadline = Deadline::in_ms(20'000)) { return tier_->purge(kTheirs, deadline); }
};

TEST_F(DiskPurge, NoByteOfTheirsIsLeftAndTheOthersAreHandedBack) {
  std::vector<DiskRecord> kept;
  ASSERT_TRUE(start(config(), {.keep = [&](DiskRecord record, uint64_t) { kept.push_back(std::move(record)); }}));
  std::vector<DiskRecord> mixed;
  for (int i = 0; i < 20; ++i) {
    mixed.push_back(record(key("file:t:a:", i), "their secret"));
    mixed.push_back(record(key("file:t:ab:", i), "another's"));
  }
  ASSERT_TRUE(write(mixed));
  ASSERT_TRUE(write({record(key("file:t:b:", 1), "far away")}));
  ASSERT_TRUE(write({record(key("dir:t:a:", 1), "their secret list")}));
  ASSERT_TRUE(on_disk("their secret"));
  const auto purged = purge();
  ASSERT_TRUE(purged) << purged.error().text();
  EXPECT_EQ(*purged, 21U);
  EXPECT_FALSE(on_disk("their secret"));
  EXPECT_FALSE(on_disk("file:t:a:"));
  EXPECT_EQ(read(key("file:t:a:", 3)), std::nullopt);
  EXPECT_EQ(read(key("file:t:b:", 1)), "far away") << "a bucket without theirs stays";
  ASSERT_EQ(kept.size(), 20U);
  EXPECT_EQ(kept[0].value.view(), "another's");
  restart();
  EXPECT_EQ(read(key("file:t:a:", 3)), std::nullopt);
  EXPECT_EQ(read(key("file:t:b:", 1)), "far away");
}

// What a tombstone covers cannot be read, but is there until its bucket goes.
TEST_F(DiskPurge, DeadCopiesGoToo) {
  start();
  ASSERT_TRUE(write({record(key("file:t:a:", 1), "their secret"), record("file:t:b:1", "v")}));
  EXPECT_TRUE(tier_->erase(hash64(key("file:t:a:", 1)), tier_->latest_generation(), Deadline::in_ms(10'000)));
  ASSERT_TRUE(on_disk("their secret"));
  EXPECT_EQ(purge().value(), 0U) << "none could be read";
  EXPECT_FALSE(on_disk("their secret"));
}

// A key that lies across two pieces of what is read at once is found.
TEST_F(DiskPurge, KeysAtEveryPlaceOfALongFileAreFound) {
  DiskTierConfig large = config();
  large.bucket_bytes = 8 << 20;
  large.capacity_bytes = 64 << 20;
  ASSERT_TRUE(start(large));
  for (const size_t before : {size_t{1} << 20, (size_t{1} << 20) - 4096, size_t{2} << 20, (size_t{3} << 20) - 50}) {
    ASSERT_TRUE(write({record(key("file:t:b:", static_cast<int>(before)), std::string(before, 'x')),
                       record(key("file:t:a:", static_cast<int>(before)), "their secret")}));
    EXPECT_EQ(purge().value(), 1U) << before;
    EXPECT_FALSE(on_disk("their secret")) << before;
  }
}

// Removed between the look and the removal of the bucket: what is handed back carries a ticket from before.
TEST_F(DiskPurge, WhatChangesWhileABucketIsTakenOutIsNotHandedBackAsNew) {
  uint64_t tickets = 0;
  std::vector<uint64_t> seen;
  ASSERT_TRUE(start(config(), {.before_keeping = [&] { return ++tickets; },
                               .keep = [&](const DiskRecord&, uint64_t ticket) { seen.push_back(ticket); }}));
  ASSERT_TRUE(write({record("file:t:a:1", "theirs"), record("file:t:b:1", "v")}));
  const auto paused = PausePoints::arm("disk.purge");
  std::jthread purger([&] { EXPECT_EQ(purge().value(), 1U); });
  ASSERT_TRUE(paused->wait_for_arrival());
  EXPECT_EQ(tickets, 1U);
  paused->release();
  purger.join();
  EXPECT_EQ(seen, std::vector<uint64_t>{1});
}

TEST_F(DiskPurge, WhatCannotBeRemovedIsAnError) {
  start();
  ASSERT_TRUE(write({record("file:t:a:1", "their secret")}));
  EXPECT_EQ(purge(Deadline::at_ns(1)).error().code, ErrorCode::timeout);
  EXPECT_TRUE(on_disk("their secret"));
  files_.add(FaultyFiles::Fault("unlinkat", EACCES).times(100));
  EXPECT_EQ(purge().error().code, ErrorCode::io);
  files_.clear();
  EXPECT_TRUE(purge());
  EXPECT_FALSE(on_disk("their secret"));
}

}  // namespace
}  // namespace ragfs
