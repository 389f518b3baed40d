#include "ragfs/fs/path_lock_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <initializer_list>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "ragfs/base/sync.h"

namespace ragfs {
namespace {

constexpr int64_t kLongMs = 20'000;

PathLockRequest ask(std::string_view path, PathLockKind kind) { return {PathView::from_normal(path), kind}; }
PathLockRequest exact(std::string_view path) { return ask(path, PathLockKind::exact); }
PathLockRequest shared(std::string_view path) { return ask(path, PathLockKind::shared); }
PathLockRequest subtree(std::string_view path) { return ask(path, PathLockKind::subtree); }

Result<PathLockTable::Held> acquire(PathLockTable& table, std::vector<PathLockRequest> requests,
                                    Deadline deadline = Deadline::in_ms(kLongMs)) {
  return table.acquire(requests, deadline);
}

// Granted without waiting?
bool free_now(PathLockTable& table, std::vector<PathLockRequest> requests) {
  const Result<PathLockTable::Held> held = table.acquire(requests, Deadline::at_ns(0));
  if (!held) {
    EXPECT_EQ(held.error().code, ErrorCode::would_block);
  }
  return held.has_value();
}

void wait_for_waiting(const PathLockTable& table, uint64_t count) {
  const Deadline give_up = Deadline::in_ms(kLongMs);
  while (table.counts().waiting != count) {
    ASSERT_FALSE(give_up.expired()) << "waiting: " << table.counts().waiting << ", wanted " << count;
    std::this_thread::yield();
  }
}

// A thread that takes locks, tells the order in which it got them, and keeps them until told to let go.
class Taker {
 public:
  Taker(PathLockTable& table, std::vector<PathLockRequest> requests, int64_t timeout_ms = kLongMs)
      : thread_([this, &table, requests = std::move(requests), timeout_ms] {
          Result<PathLockTable::Held> held = table.acquire(requests, Deadline::in_ms(timeout_ms));
          const MutexLock lock(mutex_);
          if (!held) error_ = held.error().code;
          done_ = true;
          changed_.notify_all();
          while (!let_go_) changed_.wait_until(mutex_, Deadline::in_ms(kLongMs));
          if (held) held->release();
        }) {}
  ~Taker() { let_go(); }
  Taker(const Taker&) = delete;
  Taker& operator=(const Taker&) = delete;

  void let_go() {
    {
      const MutexLock lock(mutex_);
      let_go_ = true;
      changed_.notify_all();
    }
    if (thread_.joinable()) thread_.join();
  }
  bool done() {
    const MutexLock lock(mutex_);
    return done_;
  }
  // Waits for the answer; internal = granted.
  ErrorCode wait_done() {
    const MutexLock lock(mutex_);
    while (!done_) EXPECT_TRUE(changed_.wait_until(mutex_, Deadline::in_ms(kLongMs)));
    return error_;
  }
  bool granted() { return wait_done() == ErrorCode::internal; }

 private:
  Mutex mutex_;
  CondVar changed_;
  bool done_ RAGFS_GUARDED_BY(mutex_) = false;
  bool let_go_ RAGFS_GUARDED_BY(mutex_) = false;
  ErrorCode error_ RAGFS_GUARDED_BY(mutex_) = ErrorCode::internal;
  std::thread thread_;
};

struct Conflict {
  PathLockRequest held;
  PathLockRequest wanted;
  bool free;
};

TEST(PathLockTable, KindsExcludeEachOtherAsDocumented) {
  const std::vector<Conflict> cases = {
      {exact("/a"), exact("/a"), false},        {exact("/a"), exact("/b"), true},
      {exact("/a"), exact("/a/b"), true},       {exact("/a/b"), exact("/a"), true},
      {exact("/a"), shared("/a"), false},       {shared("/a"), shared("/a"), true},
      {shared("/a"), exact("/a"), false},       {shared("/a"), shared("/a/b"), true},
      {subtree("/a"), exact("/a"), false},      {subtree("/a"), exact("/a/b/c"), false},
      {subtree("/a"), shared("/a/b"), false},   {subtree("/a"), shared("/a"), false},
      {subtree("/a"), exact("/ab"), true},      {subtree("/a"), exact("/"), true},
      {subtree("/a/b"), exact("/a"), true},     {exact("/a/b/c"), subtree("/a"), false},
      {shared("/a/b/c"), subtree("/a"), false}, {exact("/a"), subtree("/a"), false},
      {exact("/a"), subtree("/a/b"), true},     {subtree("/a"), subtree("/a/b"), false},
      {subtree("/a/b"), subtree("/a"), false},  {subtree("/a"), subtree("/a"), false},
      {subtree("/a"), subtree("/b"), true},     {subtree("/a"), subtree("/ab"), true},
      {subtree("/"), exact("/x"), false},       {exact("/x"), subtree("/"), false},
      {subtree("/"), exact("/"), false},        {exact("/"), exact("/x"), true},
  };
  for (const Conflict& c : cases) {
    PathLockTable table;
    Result<PathLockTable::Held> held = acquire(table, {c.held});
    ASSERT_TRUE(held);
    EXPECT_EQ(free_now(table, {c.wanted}), c.free) << c.held.path.text() << " then " << c.wanted.path.text();
    held->release();
    EXPECT_TRUE(free_now(table, {c.wanted}));
    EXPECT_EQ(table.counts().held, 0U);
  }
}

TEST(PathLockTable, RequestsOfOneBatchDoNotConflict) {
  PathLockTable table;
  const Result<PathLockTable::Held> held =
      acquire(table, {subtree("/a"), exact("/a/b"), shared("/a/b"), exact("/a"), exact("/a"), subtree("/")});
  ASSERT_TRUE(held);
  EXPECT_EQ(table.counts().held, 6U);
  EXPECT_FALSE(free_now(table, {exact("/a/b")}));
}

TEST(PathLockTable, AnEmptyBatchIsGranted) {
  PathLockTable table;
  const Result<PathLockTable::Held> held = acquire(table, {});
  ASSERT_TRUE(held);
  EXPECT_TRUE(static_cast<bool>(*held));
  EXPECT_EQ(table.counts().held, 0U);
}

TEST(PathLockTable, ABatchIsGrantedWholeOrNotAtAll) {
  PathLockTable table;
  Result<PathLockTable::Held> held = acquire(table, {exact("/b")});
  Taker both(table, {exact("/a"), exact("/b"), exact("/c")});
  wait_for_waiting(table, 3);
  // What waits holds nothing, but keeps its place: a later request for /a does not overtake.
  EXPECT_FALSE(free_now(table, {exact("/a")}));
  EXPECT_TRUE(free_now(table, {exact("/d")}));
  EXPECT_FALSE(both.done());
  held->release();
  EXPECT_TRUE(both.granted());
  EXPECT_EQ(table.counts().held, 3U);
}

TEST(PathLockTable, MovedHeldReleasesOnce) {
  PathLockTable table;
  Result<PathLockTable::Held> first = acquire(table, {exact("/a")});
  PathLockTable::Held moved = std::move(*first);
  EXPECT_EQ(table.counts().held, 1U);
  moved = *acquire(table, {exact("/b")});
  EXPECT_TRUE(free_now(table, {exact("/a")}));
  EXPECT_FALSE(free_now(table, {exact("/b")}));
  moved.release();
  moved.release();
  EXPECT_FALSE(static_cast<bool>(moved));
  EXPECT_EQ(table.counts().held, 0U);
}

TEST(PathLockTable, ConflictingRequestsAreGrantedInOrderOfArrival) {
  PathLockTable table;
  Result<PathLockTable::Held> held = acquire(table, {exact("/a/b")});
  std::vector<std::unique_ptr<Taker>> takers;
  const std::vector<PathLockRequest> wanted = {exact("/a/b"), subtree("/a"), shared("/a/b"), exact("/a/b"),
                                               subtree("/a/b")};
  for (const PathLockRequest& request : wanted) {
    takers.push_back(std::make_unique<Taker>(table, std::vector{request}));
    wait_for_waiting(table, takers.size());
  }
  held->release();
  for (size_t i = 0; i < takers.size(); ++i) {
    EXPECT_TRUE(takers[i]->granted());
    for (size_t later = i + 1; later < takers.size(); ++later) EXPECT_FALSE(takers[later]->done());
    EXPECT_EQ(table.counts().held, 1U);
    takers[i]->let_go();
  }
}

TEST(PathLockTable, SharedRequestsEnterTogetherAndDoNotStarveAWriter) {
  PathLockTable table;
  Result<PathLockTable::Held> reader = acquire(table, {shared("/f")});
  Taker second(table, {shared("/f")});
  EXPECT_TRUE(second.granted());
  Taker writer(table, {exact("/f")});
  wait_for_waiting(table, 1);
  Taker late_reader(table, {shared("/f")});
  wait_for_waiting(table, 2);
  reader->release();
  EXPECT_FALSE(writer.done());
  second.let_go();
  EXPECT_TRUE(writer.granted());
  EXPECT_FALSE(late_reader.done());
  writer.let_go();
  EXPECT_TRUE(late_reader.granted());
}

TEST(PathLockTable, AWaiterThatTimesOutLetsThoseBehindItThrough) {
  PathLockTable table;
  Result<PathLockTable::Held> held = acquire(table, {shared("/f")});
  Taker writer(table, {exact("/f")}, 50);
  wait_for_waiting(table, 1);
  Taker reader(table, {shared("/f")});
  EXPECT_EQ(writer.wait_done(), ErrorCode::timeout);
  EXPECT_TRUE(reader.granted());
  EXPECT_EQ(table.counts().timeouts_total, 1U);
  EXPECT_EQ(table.counts().waiting, 0U);
}

TEST(PathLockTable, TheOneBehindATimeoutStillWaitsForTheHolder) {
  PathLockTable table;
  Result<PathLockTable::Held> held = acquire(table, {exact("/f")});
  Taker impatient(table, {exact("/f")}, 50);
  wait_for_waiting(table, 1);
  Taker patient(table, {exact("/f")});
  wait_for_waiting(table, 2);
  EXPECT_EQ(impatient.wait_done(), ErrorCode::timeout);
  EXPECT_FALSE(patient.done());
  held->release();
  EXPECT_TRUE(patient.granted());
}

TEST(PathLockTable, BoundsAreEnforced) {
  PathLockTable table({.max_waiting = 2, .max_held = 3});
  Result<PathLockTable::Held> held = acquire(table, {exact("/a"), exact("/b")});
  ASSERT_TRUE(held);
  EXPECT_FALSE(free_now(table, {exact("/c"), exact("/d")}));
  EXPECT_TRUE(free_now(table, {exact("/c")}));
  Taker waiter(table, {exact("/a"), exact("/b")});
  wait_for_waiting(table, 2);
  const Result<PathLockTable::Held> refused = acquire(table, {exact("/a")});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::would_block);
  EXPECT_EQ(table.counts().refused_total, 2U);
  held->release();
  EXPECT_TRUE(waiter.granted());
}

TEST(PathLockTable, HeldMayBeReleasedByAnotherThread) {
  PathLockTable table;
  Result<PathLockTable::Held> held = acquire(table, {exact("/a")});
  std::thread([moved = std::move(*held)]() mutable { moved.release(); }).join();
  EXPECT_TRUE(free_now(table, {exact("/a")}));
}

TEST(PathLockTable, DeepAndManyPathsAreTakenApart) {
  PathLockTable table({.max_waiting = 10, .max_held = 20'000});
  std::string deep;
  for (int i = 0; i < 2000; ++i) deep += "/d";
  const Result<PathLockTable::Held> bottom = acquire(table, {exact(deep)});
  ASSERT_TRUE(bottom);
  EXPECT_FALSE(free_now(table, {subtree("/d/d/d")}));
  std::vector<PathLockTable::Held> many;
  for (int i = 0; i < 10'000; ++i) {
    const std::string path = "/m/" + std::to_string(i % 100) + "/" + std::to_string(i);
    Result<PathLockTable::Held> held = acquire(table, {exact(path)});
    ASSERT_TRUE(held);
    many.push_back(std::move(*held));
  }
  EXPECT_FALSE(free_now(table, {exact("/m/7/9907")}));
  EXPECT_TRUE(free_now(table, {exact("/m/7/9908")}));
  EXPECT_FALSE(free_now(table, {subtree("/m/7")}));
  many.clear();
  EXPECT_TRUE(free_now(table, {subtree("/m")}));
  EXPECT_EQ(table.counts().held, 1U);
}

// What the table must never let happen, written down a second time and simply: two conflicting requests held at once.
class Referee {
 public:
  static bool conflict(const PathLockRequest& a, const PathLockRequest& b) {
    if (a.kind == PathLockKind::subtree && b.path.is_within(a.path)) return true;
    if (b.kind == PathLockKind::subtree && a.path.is_within(b.path)) return true;
    if (a.path != b.path) return false;
    return !(a.kind == PathLockKind::shared && b.kind == PathLockKind::shared);
  }
  void enter(const std::vector<PathLockRequest>& batch) {
    const MutexLock lock(mutex_);
    for (const std::vector<PathLockRequest>* other : inside_) {
      for (const PathLockRequest& a : *other) {
        for (const PathLockRequest& b : batch) violations_ += conflict(a, b) ? 1 : 0;
      }
    }
    inside_.push_back(&batch);
    most_inside_ = std::max(most_inside_, inside_.size());
  }
  void leave(const std::vector<PathLockRequest>& batch) {
    const MutexLock lock(mutex_);
    std::erase(inside_, &batch);
  }
  int violations() {
    const MutexLock lock(mutex_);
    return violations_;
  }
  size_t most_inside() {
    const MutexLock lock(mutex_);
    return most_inside_;
  }

 private:
  Mutex mutex_;
  std::vector<const std::vector<PathLockRequest>*> inside_ RAGFS_GUARDED_BY(mutex_);
  int violations_ RAGFS_GUARDED_BY(mutex_) = 0;
  size_t most_inside_ RAGFS_GUARDED_BY(mutex_) = 0;
};

TEST(PathLockTable, RandomBatchesOfManyThreadsNeverConflict) {
  constexpr std::array<std::string_view, 10> kPaths = {"/",      "/a", "/a/b", "/a/b/c", "/a/bc",
                                                       "/a/b/d", "/x", "/x/y", "/x/y/z", "/ab"};
  PathLockTable table;
  Referee referee;
  std::atomic<int> granted{0};
  std::atomic<int> timeouts{0};
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < 8; ++seed) {
    threads.emplace_back([&, seed] {
      std::mt19937 random(seed);
      for (int round = 0; round < 1500; ++round) {
        std::vector<PathLockRequest> batch;
        for (unsigned i = 0; i <= random() % 3; ++i) {
          const unsigned kind = random() % 8;
          batch.push_back(ask(kPaths[random() % kPaths.size()], kind == 0  ? PathLockKind::subtree
                                                                : kind < 4 ? PathLockKind::shared
                                                                           : PathLockKind::exact));
        }
        const Deadline deadline = random() % 4 == 0 ? Deadline::in_ns(random() % 20'000) : Deadline::in_ms(kLongMs);
        Result<PathLockTable::Held> held = table.acquire(batch, deadline);
        if (!held) {
          ++timeouts;
          continue;
        }
        ++granted;
        referee.enter(batch);
        if (random() % 4 == 0) std::this_thread::yield();
        referee.leave(batch);
        if (random() % 4 != 0) continue;
        // Then something else instead, without a moment of holding neither.
        const std::vector more{
            ask(kPaths[random() % kPaths.size()], random() % 2 == 0 ? PathLockKind::subtree : PathLockKind::exact)};
        Result<PathLockTable::Held> next = table.acquire_more(*held, more, Deadline::in_ms(2));
        if (!next) {
          ++timeouts;
          continue;
        }
        held->release();
        referee.enter(more);
        referee.leave(more);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(referee.violations(), 0);
  EXPECT_GT(referee.most_inside(), 1U);
  EXPECT_GE(granted + timeouts, 8 * 1500);
  const PathLockCounts counts = table.counts();
  EXPECT_EQ(counts.held, 0U);
  EXPECT_EQ(counts.waiting, 0U);
  EXPECT_EQ(counts.timeouts_total, static_cast<uint64_t>(timeouts));
  EXPECT_TRUE(free_now(table, {subtree("/")}));
}

TEST(CaseA20, BlockedWritersOfOnePathLeaveOthersAlone) {
  PathLockTable table({.max_waiting = 200, .max_held = 1000});
  Result<PathLockTable::Held> held = acquire(table, {exact("/session/hot")});
  std::vector<std::unique_ptr<Taker>> writers;
  for (uint64_t i = 1; i <= 200; ++i) {
    writers.push_back(std::make_unique<Taker>(table, std::vector{exact("/session/hot")}));
    wait_for_waiting(table, i);
  }
  EXPECT_TRUE(free_now(table, {exact("/session/cold")}));
  EXPECT_TRUE(free_now(table, {subtree("/resources")}));
  // Waiters are bounded: the 201st is refused at once.
  const Result<PathLockTable::Held> refused = acquire(table, {exact("/session/hot")});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::would_block);
  held->release();
  for (std::unique_ptr<Taker>& writer : writers) {
    EXPECT_TRUE(writer->granted());
    writer->let_go();
  }
  EXPECT_EQ(table.counts().held, 0U);
}

// Who waits for the owner must not keep the owner waiting: each would wait for the other.
TEST(PathLockTable, WhoAsksForMorePassesThoseThatWaitForHim) {
  PathLockTable table;
  auto owner = acquire(table, {exact("/a")});
  ASSERT_TRUE(owner);
  Taker stranger(table, {subtree("/")});
  wait_for_waiting(table, 1);
  EXPECT_FALSE(free_now(table, {exact("/b")})) << "a stranger queues behind the one that waits";
  const std::array more{subtree("/a"), exact("/b")};
  auto wider = table.acquire_more(*owner, more, Deadline::at_ns(0));
  ASSERT_TRUE(wider) << wider.error().text();
  owner->release();
  EXPECT_FALSE(free_now(table, {exact("/a/f")}));
  EXPECT_EQ(table.counts().waiting, 1U) << "the waiter waits for the wider lock now";
  wider->release();
  wait_for_waiting(table, 0);
}

TEST(PathLockTable, WhoAsksForMoreWaitsForWhatIsHeldAndNoLonger) {
  PathLockTable table;
  auto owner = acquire(table, {shared("/a")});
  auto later = acquire(table, {shared("/a")});
  ASSERT_TRUE(owner && later);
  const std::array more{exact("/a")};
  EXPECT_FALSE(table.acquire_more(*owner, more, Deadline::at_ns(0))) << "another one reads";
  std::jthread writer([&] {
    auto held = table.acquire_more(*owner, more, Deadline::in_ms(kLongMs));
    EXPECT_TRUE(held);
  });
  wait_for_waiting(table, 1);
  EXPECT_FALSE(free_now(table, {shared("/a")})) << "nobody new comes before it";
  later->release();
  writer.join();
  EXPECT_TRUE(free_now(table, {shared("/a")}));
}

TEST(PathLockTable, TwoThatAskForEachOthersLocksWaitToTheirDeadline) {
  PathLockTable table;
  auto first = acquire(table, {exact("/a")});
  auto second = acquire(table, {exact("/b")});
  ASSERT_TRUE(first && second);
  const std::array a{exact("/a")};
  const std::array b{exact("/b")};
  Result<PathLockTable::Held> one = fail(ErrorCode::internal, "not run");
  std::jthread crossing([&] { one = table.acquire_more(*first, b, Deadline::in_ms(100)); });
  wait_for_waiting(table, 1);
  const auto other = table.acquire_more(*second, a, Deadline::in_ms(10));
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, ErrorCode::timeout);
  crossing.join();
  ASSERT_FALSE(one);
  EXPECT_EQ(one.error().code, ErrorCode::timeout);
}

}  // namespace
}  // namespace ragfs
