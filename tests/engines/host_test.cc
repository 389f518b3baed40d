// The engine host: its supervision, what late answers leave behind, versions, and what a broken plug-in says.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "ragfs/cache/guarded_provider.h"
#include "tests/engines/engine_fixture.h"

namespace ragfs::engine_test {
namespace {

using engine::EngineConfig;
using engine::EngineProvider;

Deadline soon() { return Deadline::in_ms(20'000); }
int64_t ms_since(int64_t began_ns) { return (Clock::system().monotonic_ns() - began_ns) / 1'000'000; }

bool healthy(EngineProvider& provider) {
  return eventually([&] { return provider.health(Deadline::in_ms(1'000)).has_value(); });
}

TEST(EngineHost, AHostThatIsKilledIsStartedAgainAsAnotherIncarnation) {
  const ExampleEngine example;
  const auto provider = EngineProvider::create(example.config(false)).value();
  std::atomic<int> changes{0};
  provider->watch_incarnation([&] { ++changes; });
  const std::string before = provider->incarnation();
  EXPECT_NE(before, "");
  ASSERT_TRUE(provider->put(CacheKey("file:a"), {"", "v"}, {}, soon()));
  signal_host(*provider, SIGKILL);
  ASSERT_TRUE(eventually([&] { return metric(*provider, "host_starts_total") == 2; }));
  ASSERT_TRUE(healthy(*provider));
  EXPECT_NE(provider->incarnation(), before);
  EXPECT_GE(changes, 1);
  EXPECT_FALSE(provider->get(CacheKey("file:a"), soon()).value().has_value()) << "its memory went with it";
  EXPECT_EQ(metric(*provider, "host_ends_total"), 1);
  EXPECT_TRUE(provider->close(soon()));
}

TEST(EngineHost, AStoppedHostCostsACallItsDeadlineAndLateAnswersGiveTheirMemoryBack) {
  const ExampleEngine example;
  const auto provider = EngineProvider::create(example.config(false)).value();
  ASSERT_TRUE(provider->put(CacheKey("file:a"), {"", std::string(100'000, 'a')}, {}, soon()));
  signal_host(*provider, SIGSTOP);
  for (int i = 0; i < 4; ++i) {
    const int64_t began_ns = Clock::system().monotonic_ns();
    const auto got = provider->get(CacheKey("file:a"), Deadline::in_ms(30));
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().code, ErrorCode::timeout);
    EXPECT_GE(ms_since(began_ns), 29);
  }
  EXPECT_GE(metric(*provider, "arena_used_bytes"), 4 * 100'000) << "the host may still write there";
  signal_host(*provider, SIGCONT);
  EXPECT_TRUE(eventually([&] { return metric(*provider, "arena_used_bytes") == 0; }));
  EXPECT_GE(metric(*provider, "late_answers_total"), 4);
  EXPECT_EQ(provider->get(CacheKey("file:a"), soon()).value().value().size(), 100'000U);
  EXPECT_EQ(metric(*provider, "host_starts_total"), 1) << "a host that was slow goes on";
}

TEST(EngineHost, CallsWaitForRoomInTheSharedMemoryNoLongerThanTheirDeadline) {
  const ExampleEngine example;
  EngineConfig config = example.config(false);
  config.arena_bytes = 1 << 20;
  config.max_value_bytes = 128 << 10;
  const auto provider = EngineProvider::create(config).value();
  signal_host(*provider, SIGSTOP);
  const std::string value(120'000, 'v');
  for (int i = 0; i < 12; ++i) {
    const auto put = provider->put(CacheKey("file:a"), {"", value}, {}, Deadline::in_ms(20));
    ASSERT_FALSE(put);
    EXPECT_EQ(put.error().code, ErrorCode::timeout);
  }
  EXPECT_GE(metric(*provider, "arena_waits_total"), 1);
  signal_host(*provider, SIGCONT);
  EXPECT_TRUE(eventually([&] { return metric(*provider, "arena_used_bytes") == 0; }));
  EXPECT_TRUE(provider->put(CacheKey("file:a"), {"", value}, {}, soon()));
}

TEST(EngineHost, AHostThatOwesAnAnswerForTooLongIsKilled) {
  const ExampleEngine example;
  EngineConfig config = example.config(false);
  config.hang_ms = 1'000;
  const auto provider = EngineProvider::create(config).value();
  signal_host(*provider, SIGSTOP);
  ASSERT_TRUE(eventually([&] { return metric(*provider, "host_kills_total") == 1; }));
  EXPECT_TRUE(healthy(*provider));
  EXPECT_TRUE(provider->put(CacheKey("file:a"), {"", "v"}, {}, soon()));
}

TEST(EngineHost, AnEngineThatIsNotThereJoinsByItselfWhenItIs) {
  const ExampleEngine example;
  EngineConfig config = example.config(false);
  config.command = {"/bin/sh", "-c", "test -e \"$1\" && exec \"$0\" \"$1\"", config.command[0], config.command[1]};
  example.take_away();
  const auto provider = EngineProvider::create(config).value();
  const auto got = provider->get(CacheKey("file:a"), soon());
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, ErrorCode::unavailable) << "at once, with a deadline far away";
  EXPECT_EQ(provider->capabilities().atomic_put, 0U) << "what it can do is not known";
  std::atomic<int> changes{0};
  provider->watch_incarnation([&] { ++changes; });
  example.bring_back();
  ASSERT_TRUE(healthy(*provider));
  EXPECT_GE(changes, 1);
  ASSERT_TRUE(provider->put(CacheKey("file:a"), {"", "v"}, {.ttl_ms = 50}, soon()));
  EXPECT_EQ(provider->get(CacheKey("file:a"), soon()).value().value().str(), "v");
}

TEST(EngineHost, WhatCanNeverWorkFailsAtStartAndSaysWhy) {
  const ExampleEngine example;
  EngineConfig unknown = example.config(false);
  unknown.options = {"colour=blue"};
  const auto refused = EngineProvider::create(unknown);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::config);
  EXPECT_NE(refused.error().message.find("option colour: is not known"), std::string::npos) << refused.error().message;
  for (const char* value : {"", "much", "64k", "-1", "1"}) {
    EngineConfig wrong = example.config(false);
    wrong.options = {fmt::format("capacity_bytes={}", value)};
    const auto provider = EngineProvider::create(wrong);
    ASSERT_FALSE(provider) << value;
    EXPECT_EQ(provider.error().code, ErrorCode::config);
    EXPECT_NE(provider.error().message.find("at least 1048576"), std::string::npos) << provider.error().message;
  }

  for (const bool in_process : {false, true}) {
    redis_test::TempDir dir;
    std::ofstream(dir / "text.so") << "no library";
    EngineConfig config = example.config(in_process);
    config.plugin = dir / "text.so";
    config.command.back() = config.plugin;
    const auto broken = EngineProvider::create(config);
    ASSERT_FALSE(broken);
    EXPECT_EQ(broken.error().code, ErrorCode::config);
    EXPECT_NE(broken.error().message.find("cannot be loaded"), std::string::npos) << broken.error().message;
  }
}

TEST(EngineHost, AHostOfAnotherProtocolIsRefused) {
  const ExampleEngine example;
  EngineConfig config = example.config(false);
  config.command = {"python3", "-c",
                    "import socket; s = socket.socket(fileno=3); s.recv(99999); "
                    "s.send(b'RGE1\\2\\0' + bytes(60)); s.recv(9)"};
  const auto refused = EngineProvider::create(config);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::config);
  EXPECT_NE(refused.error().message.find("another version of the protocol"), std::string::npos);
}

// A host in another language: its frames are as docs/formats.md says. Values of 100 bytes are of no use to a cache.
TEST(EngineHost, AnEngineOfSmallValuesAloneIsRefused) {
  const ExampleEngine example;
  EngineConfig config = example.config(false);
  config.command = {"python3", "-c", R"(
import socket, struct, zlib
s = socket.socket(fileno=3)
s.recv(99999)
body = struct.pack("<8IQ", 1, 0, 0, 1, 0, 0, 64, 0, 100) + b"small\nsmall 1.0"
def header(checksum):
    return struct.pack("<IHHQQqIIiI", 0x31454752, 1, 1 | 0x8000, 0, 0, 0, 0, len(body), 0, checksum)
s.send(header(zlib.crc32(header(0) + body)) + body)
s.recv(9)
)"};
  const auto refused = EngineProvider::create(config);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::config);
  EXPECT_NE(refused.error().message.find("takes values of 100 bytes"), std::string::npos) << refused.error().message;
}

TEST(EngineHost, AnAtomicPutThatHasNoRoomIsRefusedAndNotDivided) {
  const ExampleEngine example;
  EngineConfig config = example.config(false);
  config.arena_bytes = 1 << 20;
  config.max_value_bytes = 128 << 10;
  const auto provider = EngineProvider::create(config).value();
  const std::string value(100'000, 'v');
  std::vector<PutItem> items;
  for (const char* key : {"file:a", "file:b", "file:c", "file:d"}) items.push_back({CacheKey(key), {"", value}, {}});
  const auto refused = provider->put_atomic(items, soon());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::too_large) << refused.error().message;
  for (const PutItem& item : items) EXPECT_FALSE(provider->get(item.key, soon()).value().has_value());
  items.resize(2);
  EXPECT_TRUE(provider->put_atomic(items, soon()));
}

// The host ended its engine while a worker was inside it.
TEST(EngineHost, AnEngineIsEndedWhenNobodyIsInsideItAnyMore) {
  EngineConfig config = ExampleEngine().config(false);
  config.command = {built("ragfs-engine-host"), built("libragfs_engine_slow.so")};
  const auto provider = EngineProvider::create(config).value();
  const auto got = provider->get(CacheKey("file:a"), Deadline::in_ms(100));
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, ErrorCode::timeout);
  const auto closed = provider->close(soon());
  EXPECT_TRUE(closed) << closed.error().message;
}

TEST(EngineHost, ClosingDoesNotWaitForAHostThatStarts) {
  const ExampleEngine example;
  EngineConfig config = example.config(false);
  config.command = {"sleep", "1000"};
  config.connect_timeout_ms = 60'000;
  config.start_wait_ms = 0;
  auto provider = EngineProvider::create(config).value();
  ASSERT_TRUE(eventually([&] { return metric(*provider, "host_starts_total") == 1; }));
  const int64_t began_ns = Clock::system().monotonic_ns();
  EXPECT_TRUE(provider->close(soon()));
  provider.reset();
  EXPECT_LT(ms_since(began_ns), 10'000);
}

TEST(EngineHost, ClosingAStoppedHostTakesItsDeadlineAndLeavesNoProcess) {
  const ExampleEngine example;
  const auto provider = EngineProvider::create(example.config(false)).value();
  const auto pid = static_cast<pid_t>(metric(*provider, "host_pid"));
  signal_host(*provider, SIGSTOP);
  const int64_t began_ns = Clock::system().monotonic_ns();
  const auto closed = provider->close(Deadline::in_ms(200));
  ASSERT_FALSE(closed);
  EXPECT_EQ(closed.error().code, ErrorCode::timeout);
  EXPECT_LT(ms_since(began_ns), 2'000);
  EXPECT_NE(::kill(pid, 0), 0) << "the host was killed, and waited for";
}

TEST(EngineHost, TheBreakerKeepsCallsFromAHostThatIsGone) {
  const ExampleEngine example;
  const std::shared_ptr<EngineProvider> provider = EngineProvider::create(example.config(false)).value();
  GuardedProvider guarded(
      provider, {.operation_timeout_ms = 50, .failures_to_open = 3, .first_pause_ms = 60'000, .max_pause_ms = 60'000});
  signal_host(*provider, SIGSTOP);
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(guarded.get(CacheKey("file:a"), Deadline::never()));
  const int64_t began_ns = Clock::system().monotonic_ns();
  for (int i = 0; i < 1'000; ++i) EXPECT_FALSE(guarded.get(CacheKey("file:a"), Deadline::never()));
  EXPECT_LT(ms_since(began_ns), 1'000) << "none of them waited";
  EXPECT_EQ(guarded.counts().shed, 1'000U);
  signal_host(*provider, SIGCONT);
}

TEST(EngineHost, WhenItsProgramGoesTheHostGoes) {
  // The host of a shell that ends at once, with the socket's other end: it sees the end of the conversation.
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
  const int memory = ::memfd_create("test", 0);
  ASSERT_EQ(::ftruncate(memory, 4096), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    const int socket = ::dup(ends[1]);
    const int arena = ::dup(memory);
    ::dup2(::fcntl(socket, F_DUPFD, 20), 3);
    ::dup2(::fcntl(arena, F_DUPFD, 20), 4);
    for (int fd = 5; fd < 64; ++fd) ::close(fd);
    ::execl(built("ragfs-engine-host").c_str(), "host", built("libragfs_engine_example.so").c_str(), nullptr);
    ::_exit(127);
  }
  ::close(ends[1]);
  engine::FrameHeader hello;
  hello.op = static_cast<uint16_t>(engine::Op::hello);
  const timeval patience{.tv_sec = 20, .tv_usec = 0};
  ASSERT_EQ(::setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), 0);
  const std::string frame = engine::make_frame(hello, "");
  ASSERT_EQ(::send(ends[0], frame.data(), frame.size(), 0), static_cast<ssize_t>(frame.size()));
  char answer[4096];
  ASSERT_GT(::recv(ends[0], answer, sizeof answer, 0), 0);
  ::close(ends[0]);
  int status = 0;
  const bool ended = eventually([&] { return ::waitpid(child, &status, WNOHANG) == child; });
  if (!ended) ::kill(child, SIGKILL);
  ASSERT_TRUE(ended);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  ::close(memory);
}

TEST(EngineHost, AnOperatorIsToldWhatThePlugInSaysOfItself) {
  const ExampleEngine example;
  for (const bool in_process : {false, true}) {
    const auto provider = EngineProvider::create(example.config(in_process)).value();
    const auto warnings = provider->warnings(soon());
    ASSERT_EQ(warnings.size(), 1U);
    EXPECT_NE(warnings[0].find("memory of its host"), std::string::npos);
  }
}

TEST(EngineHost, ValuesOfEverySizeAreFoundAtOnceTheSecondTime) {
  const ExampleEngine example;
  const auto provider = EngineProvider::create(example.config(false)).value();
  const std::string value(1 << 20, 'm');
  ASSERT_TRUE(provider->put(CacheKey("file:a"), {"", value}, {}, soon()));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(provider->get(CacheKey("file:a"), soon()).value().value().size(), 1U << 20);
  EXPECT_EQ(metric(*provider, "repeated_gets_total"), 0) << "whoever put it knows its size";
}

}  // namespace
}  // namespace ragfs::engine_test
