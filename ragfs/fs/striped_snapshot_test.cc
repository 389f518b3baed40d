#include "ragfs/fs/striped_snapshot.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

namespace ragfs {
namespace {

// Counts how many of it live, and breaks when it is used after its end.
struct Tracked {
  explicit Tracked(std::atomic<int>& count, int number) : alive(count), value(number), copy(number) { ++alive; }
  ~Tracked() {
    copy = -1;
    --alive;
  }
  Tracked(const Tracked&) = delete;
  Tracked& operator=(const Tracked&) = delete;
  std::atomic<int>& alive;
  const int value;
  int copy;
};

TEST(StripedSnapshot, AValueLivesUntilItsLastPin) {
  std::atomic<int> alive{0};
  {
    StripedSnapshot<Tracked> snapshot(std::make_shared<const Tracked>(alive, 1));
    {
      const auto old = snapshot.pin();
      snapshot.replace(std::make_shared<const Tracked>(alive, 2));
      EXPECT_EQ(old->value, 1);
      EXPECT_EQ(snapshot.pin()->value, 2);
      EXPECT_EQ(alive, 2);
    }
    EXPECT_EQ(alive, 1);
  }
  EXPECT_EQ(alive, 0);
}

TEST(StripedSnapshot, ManyThreadsSeeValuesWholeAndInOrder) {
  std::atomic<int> alive{0};
  std::atomic<int> broken{0};
  std::atomic<bool> stop{false};
  {
    StripedSnapshot<Tracked> snapshot(std::make_shared<const Tracked>(alive, 0));
    std::vector<std::thread> readers;
    for (int i = 0; i < 6; ++i) {
      readers.emplace_back([&] {
        int last = 0;
        while (!stop) {
          const auto pin = snapshot.pin();
          if (pin->value != pin->copy || pin->value < last) ++broken;
          last = pin->value;
        }
      });
    }
    for (int i = 1; i <= 500; ++i) snapshot.replace(std::make_shared<const Tracked>(alive, i));
    stop = true;
    for (std::thread& reader : readers) reader.join();
    EXPECT_EQ(snapshot.pin()->value, 500);
    EXPECT_EQ(alive, 1);
  }
  EXPECT_EQ(broken, 0);
  EXPECT_EQ(alive, 0);
}

TEST(StripedSnapshot, PinsInsidePinsOfOneThreadAreAllHeld) {
  std::atomic<int> alive{0};
  StripedSnapshot<Tracked> snapshot(std::make_shared<const Tracked>(alive, 0));
  const std::function<void(int)> deeper = [&](int depth) {
    const auto pin = snapshot.pin();
    EXPECT_EQ(pin->value, depth);
    if (depth < 9) {
      snapshot.replace(std::make_shared<const Tracked>(alive, depth + 1));
      deeper(depth + 1);
    }
    EXPECT_EQ(pin->copy, depth);
  };
  deeper(0);
  EXPECT_EQ(alive, 1);
}

TEST(StripedSnapshot, MoreThreadsThanSlotsPinAndAreCounted) {
  std::atomic<int> alive{0};
  std::atomic<int> broken{0};
  {
    StripedSnapshot<Tracked> snapshot(std::make_shared<const Tracked>(alive, 0));
    std::vector<std::jthread> readers;
    for (size_t i = 0; i < kThreadSlots + 16; ++i) {
      readers.emplace_back([&] {
        for (int n = 0; n < 300; ++n) {
          const auto pin = snapshot.pin();
          std::this_thread::yield();
          if (pin->value != pin->copy) ++broken;
        }
      });
    }
    for (int i = 1; i <= 200; ++i) snapshot.replace(std::make_shared<const Tracked>(alive, i));
    readers.clear();
    EXPECT_EQ(alive, 1);
  }
  EXPECT_EQ(broken, 0);
  EXPECT_EQ(alive, 0);
}

}  // namespace
}  // namespace ragfs
