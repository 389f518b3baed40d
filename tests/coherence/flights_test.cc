// Reads of one path at once: one backend read, its result or its error for all, and every way a leader can be lost.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "tests/coherence/hooked_fixture.h"

namespace ragfs {
namespace {

class FlightsTest : public HookedFixture {
 protected:
  // Makes the backend's whole-file reads stand still until open().
  void hold_reads() {
    hooked->set_before([hook = gate.hook()](std::string_view operation, PathView path) -> std::optional<Error> {
      if (operation == "read_file") hook(path.text());
      return std::nullopt;
    });
  }
  // So many threads read `path`; what each got.
  std::vector<std::string> read_by(size_t count, const std::string& path) {
    std::vector<std::string> answers(count);
    {
      std::vector<std::jthread> threads;
      for (size_t i = 0; i < count; ++i) threads.emplace_back([&, i] { answers[i] = read(path); });
      wait_for_readers(count);
      gate.open();
    }
    return answers;
  }
  // One leads and the others wait for it.
  void wait_for_readers(size_t count) {
    ASSERT_TRUE(gate.wait_for_arrivals());
    const auto& counts = domain->file_flights().counts();
    const Deadline until = Deadline::in_ms(20'000);
    while (counts.followers.load() + counts.leaders.load() < count && !until.expired()) std::this_thread::yield();
    ASSERT_EQ(counts.leaders.load(), 1U);
    ASSERT_EQ(counts.followers.load(), count - 1);
  }
  scripted::Gate gate;
};

TEST_F(FlightsTest, AHundredReadersOfAColdKeyMakeOneBackendRead) {
  put_in_backend("/f.md", "shared");
  hold_reads();
  for (const std::string& answer : read_by(100, "/f.md")) EXPECT_EQ(answer, "shared");
  EXPECT_EQ(hooked->calls("read_file"), 1U);
  EXPECT_EQ(read("/f.md"), "shared");
  EXPECT_EQ(hooked->calls("read_file"), 1U) << "it was filled";
  EXPECT_EQ(domain->file_flights().active(), 0U);
  EXPECT_EQ(domain->fills().running(), 0U);
}

TEST_F(FlightsTest, AHundredReadersShareTheError) {
  put_in_backend("/f.md", "never read");
  hooked->set_before([hook = gate.hook()](std::string_view operation, PathView path) -> std::optional<Error> {
    if (operation != "read_file") return std::nullopt;
    hook(path.text());
    return Error{ErrorCode::io, "/f.md", 5};
  });
  for (const std::string& answer : read_by(100, "/f.md")) EXPECT_EQ(answer, "ERROR io");
  EXPECT_EQ(hooked->calls("read_file"), 1U);
  hooked->set_before({});
  EXPECT_EQ(read("/f.md"), "never read") << "an error leaves no trace";
}

TEST_F(FlightsTest, TooLargeAndMissingFilesAreSharedAndLeaveNothing) {
  CachedMountConfig mount;
  mount.policy.max_file_size_bytes = 4;
  open_hooked({}, mount);
  put_in_backend("/big", "12345");
  hold_reads();
  for (const std::string& answer : read_by(20, "/big")) EXPECT_EQ(answer, "12345");
  EXPECT_EQ(hooked->calls("read_file"), 1U);
  EXPECT_TRUE(provider->keys().empty());
}

// What a backend throws becomes an error of the leader and of those who joined it; the key is not poisoned.
TEST_F(FlightsTest, AnExceptionInTheBackendIsAnErrorForAll) {
  put_in_backend("/f.md", "fine");
  hooked->set_before([hook = gate.hook()](std::string_view operation, PathView path) -> std::optional<Error> {
    if (operation != "read_file") return std::nullopt;
    hook(path.text());
    return Error{ErrorCode::io, std::string().substr(1)};  // out_of_range
  });
  for (const std::string& answer : read_by(50, "/f.md")) EXPECT_EQ(answer, "ERROR internal");
  hooked->set_before({});
  EXPECT_EQ(read("/f.md"), "fine");
  EXPECT_EQ(domain->fills().running(), 0U);
  EXPECT_EQ(domain->file_flights().active(), 0U);
}

TEST_F(FlightsTest, NoOperationLetsAnExceptionThrough) {
  put_in_backend("/d/f.md", "x");
  EXPECT_EQ(read("/d/f.md"), "x");
  hooked->set_before(
      [](std::string_view, PathView) -> std::optional<Error> { return Error{ErrorCode::io, std::string().substr(1)}; });
  const Path file = path_of("/d/f.md");
  const Path other = path_of("/d/g.md");
  EXPECT_EQ(kind_of(cached->create(ctx, other)), "internal");
  EXPECT_EQ(kind_of(cached->mkdir(ctx, other, kDefaultDirMode)), "internal");
  EXPECT_EQ(kind_of(cached->ensure_parent_dirs(ctx, path_of("/x/y"), kDefaultDirMode)), "internal");
  EXPECT_EQ(kind_of(cached->write(ctx, file, "y", 0, WriteFlag::create)), "internal");
  EXPECT_EQ(kind_of(cached->compare_and_write(ctx, file, "x", "y")), "internal");
  EXPECT_EQ(kind_of(cached->compare_and_remove(ctx, file, "x")), "internal");
  EXPECT_EQ(kind_of(cached->truncate(ctx, file, 0)), "internal");
  EXPECT_EQ(kind_of(cached->touch(ctx, file)), "internal");
  EXPECT_EQ(kind_of(cached->chmod(ctx, file, 0600)), "internal");
  EXPECT_EQ(kind_of(cached->rename(ctx, file, other)), "internal");
  EXPECT_EQ(kind_of(cached->replace(ctx, file, other)), "internal");
  EXPECT_EQ(kind_of(cached->copy(ctx, file, other)), "internal");
  EXPECT_EQ(kind_of(cached->remove(ctx, file)), "internal");
  EXPECT_EQ(kind_of(cached->remove_all(ctx, file)), "internal");
  EXPECT_EQ(kind_of(cached->read(ctx, other, 1, 1)), "internal");
  EXPECT_EQ(kind_of(cached->read_file(ctx, other)), "internal");
  EXPECT_EQ(kind_of(cached->read_dir(ctx, path_of("/d"))), "internal");
  EXPECT_EQ(kind_of(cached->read_internal_dir(ctx, path_of("/d"))), "internal");
  EXPECT_EQ(kind_of(cached->stat(ctx, other)), "internal");
  EXPECT_EQ(kind_of(cached->exists(ctx, other)), "internal");
  EXPECT_EQ(kind_of(cached->version(ctx, file)), "internal");
  EXPECT_EQ(kind_of(cached->resolve(ctx, file)), "internal");
  EXPECT_EQ(kind_of(cached->tree(ctx, path_of("/d"), {})), "internal");
  EXPECT_EQ(kind_of(cached->glob(ctx, path_of("/d"), "*", {})), "internal");
  EXPECT_EQ(kind_of(cached->grep(ctx, path_of("/d"), {.pattern = "x"}, [](GrepMatch&&) { return true; })), "internal");
  hooked->set_before({});
  EXPECT_EQ(read("/d/f.md"), "x");
  EXPECT_EQ(list("/d"), "f.md");
  EXPECT_TRUE(domain->settler().drain(Deadline::in_ms(5'000)));
}

// An exception after the backend did its work: the records are set all the same.
TEST_F(FlightsTest, AMutationThatThrowsAfterItsWorkIsRecorded) {
  put_in_backend("/f.md", "old");
  EXPECT_EQ(read("/f.md"), "old");
  hooked->set_after([](std::string_view operation, PathView) -> std::optional<Error> {
    if (operation != "write") return std::nullopt;
    return Error{ErrorCode::io, std::string().substr(1)};
  });
  EXPECT_FALSE(write("/f.md", "new"));
  EXPECT_EQ(read("/f.md"), "new");
}

TEST_F(FlightsTest, AFollowerWithADeadlineGetsATimeoutAndStartsNoSecondRead) {
  put_in_backend("/f.md", "late");
  hold_reads();
  std::string led;
  std::jthread leader([&] { led = read("/f.md"); });
  ASSERT_TRUE(gate.wait_for_arrivals());
  Context hurried;
  hurried.deadline = Deadline::in_ms(20);
  EXPECT_EQ(text_of(cached->read(hurried, path_of("/f.md"), 0, 0)), "ERROR timeout");
  EXPECT_EQ(hooked->calls("read_file"), 1U);
  EXPECT_EQ(domain->file_flights().counts().follower_timeouts.load(), 1U);
  gate.open();
  leader.join();
  EXPECT_EQ(led, "late");
}

TEST_F(FlightsTest, AFollowerWithoutADeadlineWaitsForTheTablesBoundAtMost) {
  CoherenceConfig config;
  config.inflight.follower_timeout_ms = 20;
  open_hooked(config, {});
  put_in_backend("/f.md", "late");
  hold_reads();
  std::jthread leader([&] { (void)read("/f.md"); });
  ASSERT_TRUE(gate.wait_for_arrivals());
  EXPECT_EQ(read("/f.md"), "ERROR timeout");
  gate.open();
}

TEST_F(FlightsTest, ALeaderPastItsTimeIsReplaced) {
  CoherenceConfig config;
  config.inflight.leader_timeout_ms = 1;
  open_hooked(config, {});
  put_in_backend("/f.md", "fine");
  std::atomic<int> reads{0};
  hooked->set_before([&, hook = gate.hook()](std::string_view operation, PathView path) -> std::optional<Error> {
    if (operation == "read_file" && reads.fetch_add(1) == 0) hook(path.text());  // only the first one hangs
    return std::nullopt;
  });
  std::jthread hung([&] { (void)read("/f.md"); });
  ASSERT_TRUE(gate.wait_for_arrivals());
  const Deadline until = Deadline::in_ms(2);
  while (!until.expired()) std::this_thread::yield();
  EXPECT_EQ(read("/f.md"), "fine");
  EXPECT_EQ(domain->file_flights().counts().leaders_replaced.load(), 1U);
  gate.open();
  hung.join();
  EXPECT_EQ(read("/f.md"), "fine");
  EXPECT_EQ(domain->file_flights().active(), 0U);
}

TEST_F(FlightsTest, PastAFullTableReadersGoThroughABoundedGate) {
  CoherenceConfig config;
  config.inflight.max_flights = 1;
  config.max_direct_reads = 1;
  open_hooked(config, {});
  for (const char* path : {"/a", "/b", "/c"}) put_in_backend(path, path);
  hold_reads();
  std::string a;
  std::string b;
  std::jthread first([&] { a = read("/a"); });
  ASSERT_TRUE(gate.wait_for_arrivals(1));
  std::jthread second([&] { b = read("/b"); });  // the table is full: a direct read
  ASSERT_TRUE(gate.wait_for_arrivals(2));
  Context hurried;
  hurried.deadline = Deadline::in_ms(20);
  EXPECT_EQ(text_of(cached->read(hurried, path_of("/c"), 0, 0)), "ERROR timeout") << "the gate is full too";
  EXPECT_EQ(domain->counters().read(CacheCounter::gate_timeout), 1U);
  gate.open();
  first.join();
  second.join();
  EXPECT_EQ(a, "/a");
  EXPECT_EQ(b, "/b");
  EXPECT_EQ(read("/c"), "/c");
}

TEST_F(FlightsTest, PastTheBoundOnFillsReadsAreRightAndNotFilled) {
  CoherenceConfig config;
  config.max_fills = 1;
  open_hooked(config, {});
  put_in_backend("/a", "1");
  put_in_backend("/b", "2");
  std::atomic<int> reads{0};
  hooked->set_before([&, hook = gate.hook()](std::string_view operation, PathView path) -> std::optional<Error> {
    if (operation == "read_file" && reads.fetch_add(1) == 0) hook(path.text());
    return std::nullopt;
  });
  std::jthread first([&] { (void)read("/a"); });
  ASSERT_TRUE(gate.wait_for_arrivals());
  EXPECT_EQ(read("/b"), "2");
  EXPECT_TRUE(provider->keys().empty());
  gate.open();
  first.join();
  EXPECT_EQ(read("/b"), "2");
  EXPECT_EQ(provider->keys().size(), 2U);
}

}  // namespace
}  // namespace ragfs
