#include "ragfs/config/instance.h"

#include <gtest/gtest.h>

#include <iterator>

#include <fstream>

#include <stdlib.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <thread>

#include "ragfs/base/pause_point.h"
#include "ragfs/config/loader.h"

namespace ragfs {
namespace {

PathView P(std::string_view text) { return PathView::from_normal(text); }

class InstanceTest : public ::testing::Test {
 protected:
  void start(const std::string& mounts, const std::string& cache = "") {
    auto config = parse_config("storage:\n  agfs:\n    mounts:\n" + mounts + "    cache:\n" +
                                   (cache.empty() ? "      enabled: true\n" : cache),
                               "t.yaml");
    ASSERT_TRUE(config) << config.error().message;
    opened_ = Instance::open(*config);
  }
  Instance& instance() { return **opened_; }
  std::string read(std::string_view path) {
    const auto got = instance().fs().read(ctx_, P(path), 0, 0);
    return got ? got->str() : "<" + std::string(kind_name(got.error().code)) + ">";
  }
  bool write(std::string_view path, std::string_view data) {
    return instance().fs().write(ctx_, P(path), data, 0, WriteFlag::create).has_value();
  }

  Context ctx_;
  Result<std::unique_ptr<Instance>> opened_;
};

TEST_F(InstanceTest, ReadingAheadIsSwitchedOnByItsKeyAndStoppedFirstWithinABound) {
  start("      - {path: /a, type: memfs}\n", "      prefetch: {enabled: true, concurrency: 1}\n");
  ASSERT_TRUE(opened_) << opened_.error().message;
  for (const char* directory : {"/a/d", "/a/d/one", "/a/d/two"})
    ASSERT_TRUE(instance().fs().mkdir(ctx_, P(directory), 0755));
  for (const char* file : {"/a/d/one/.abstract.md", "/a/d/two/.abstract.md"}) ASSERT_TRUE(write(file, "abstract"));
  ASSERT_TRUE(instance().flush_cache());
  const auto held = PausePoints::arm("fill.after_backend_read");
  ASSERT_TRUE(instance().fs().read_dir(ctx_, P("/a/d")));
  ASSERT_TRUE(held->wait_for_arrival());
  std::vector<std::string> order;
  PausePoints::set_handler("close.prefetch_stopped", [&] { order.emplace_back("prefetch"); });
  PausePoints::set_handler("close.stopped", [&] { order.emplace_back("fills"); });
  const int64_t began_ns = Clock::system().monotonic_ns();
  (void)instance().close(Deadline::in_ms(400));
  EXPECT_LT(Clock::system().monotonic_ns() - began_ns, 10'000'000'000);
  EXPECT_EQ(order, (std::vector<std::string>{"prefetch", "fills"}));
  held->release();
  opened_ = fail(ErrorCode::internal, "gone");
  PausePoints::clear();
}

class HotKeysOfAnInstance : public InstanceTest {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "ragfs_hot_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    home_ = name;
    std::filesystem::create_directories(home_ + "/tree/docs");
    for (const char* file : {"hot.md", "warm.md", "cold.md"}) std::ofstream(home_ + "/tree/docs/" + file) << file;
  }
  void TearDown() override {
    opened_ = fail(ErrorCode::internal, "gone");
    std::filesystem::remove_all(home_);
  }
  void begin(const std::string& more = "") {
    start("      - {path: /t, type: localfs, local_dir: " + home_ + "/tree}\n",
          "      state_dir: " + home_ + "/state\n" + more);
    ASSERT_TRUE(opened_) << opened_.error().message;
  }
  void end() {
    ASSERT_TRUE(instance().close(Deadline::in_ms(5'000)));
    opened_ = fail(ErrorCode::internal, "gone");
  }
  uint64_t count(std::string_view name) {
    for (const auto& [counter, value] : instance().cache_report().counters) {
      if (counter == name) return value;
    }
    return 0;
  }
  std::string home_;
};

TEST_F(HotKeysOfAnInstance, WhatWasReadMostIsKnownAndKnownToTheNextRun) {
  begin();
  for (int i = 0; i < 5; ++i) EXPECT_EQ(read("/t/docs/hot.md"), "hot.md");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(read("/t/docs/warm.md"), "warm.md");
  const auto keys = instance().hot_keys(P("/"), 10);
  ASSERT_TRUE(keys);
  ASSERT_EQ(keys->size(), 2U);
  EXPECT_EQ((*keys)[0], (HotKey{"/t/docs/hot.md", ObjectKind::file, 5}));
  EXPECT_EQ((*keys)[1], (HotKey{"/t/docs/warm.md", ObjectKind::file, 3}));
  EXPECT_EQ(instance().hot_keys(P("/t/docs"), 1)->size(), 1U);
  EXPECT_TRUE(instance().hot_keys(P("/t/other"), 1)->empty());
  end();
  begin();
  EXPECT_EQ((*instance().hot_keys(P("/"), 1))[0].path, "/t/docs/hot.md");
  std::filesystem::remove(home_ + "/tree/docs/warm.md");
  const auto report = instance().warm_cache(ctx_, P("/t"));
  ASSERT_TRUE(report);
  EXPECT_EQ(report->keys, 2U);
  EXPECT_EQ(report->read, 1U);
  EXPECT_EQ(report->bytes, 6U);
  EXPECT_EQ(report->gone, 1U);
  EXPECT_EQ(count("file_miss"), 0U) << "warming is nobody's miss";
  EXPECT_EQ(read("/t/docs/hot.md"), "hot.md");
  EXPECT_EQ(count("file_hit"), 1U);
  EXPECT_EQ(instance().warm_cache(ctx_, P("/t"))->cached, 1U);
}

TEST_F(HotKeysOfAnInstance, WarmOnStartReadsThemBesideTheReaders) {
  begin();
  (void)read("/t/docs/hot.md");
  end();
  begin("      warm_on_start: true\n");
  for (int i = 0; i < 10'000 && count("prefetch_filled") == 0; ++i) std::this_thread::yield();
  const Deadline until = Deadline::in_ms(10'000);
  while (count("prefetch_filled") == 0 && !until.expired()) std::this_thread::yield();
  EXPECT_EQ(read("/t/docs/hot.md"), "hot.md");
  EXPECT_EQ(count("file_hit"), 1U);
  EXPECT_EQ(count("file_miss"), 0U);
  EXPECT_EQ(count("prefetch_triggered"), 0U) << "reading ahead is still off";
}

TEST_F(HotKeysOfAnInstance, AFileThatIsDamagedOrOfAnotherTreeIsNothing) {
  begin();
  (void)read("/t/docs/hot.md");
  end();
  const std::string file = home_ + "/state/hot_keys";
  ASSERT_TRUE(std::filesystem::exists(file));
  EXPECT_EQ(std::filesystem::status(file).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  std::fstream(file, std::ios::in | std::ios::out | std::ios::binary).seekp(40).put('!');
  begin();
  EXPECT_TRUE(instance().hot_keys(P("/"), 10)->empty());
  EXPECT_EQ(read("/t/docs/hot.md"), "hot.md");
}

TEST_F(HotKeysOfAnInstance, TheirKeyTurnsThemOff) {
  begin("      hot_keys: false\n");
  (void)read("/t/docs/hot.md");
  EXPECT_TRUE(instance().hot_keys(P("/"), 10)->empty());
  end();
  EXPECT_FALSE(std::filesystem::exists(home_ + "/state/hot_keys"));
}

TEST_F(InstanceTest, MountsShareOneProviderAndEachHasItsSwitch) {
  start(
      "      - {path: /a, type: memfs}\n      - {path: /b, type: memfs}\n"
      "      - {path: /off, type: memfs, cache: false}\n");
  ASSERT_TRUE(opened_) << opened_.error().message;
  for (const MountStatus& mount : instance().mounts()) EXPECT_EQ(mount.cached, mount.path != "/off") << mount.path;
  for (const char* file : {"/a/f", "/b/f", "/off/f"}) {
    ASSERT_TRUE(write(file, std::string("of ") + file));
    for (int i = 0; i < 3; ++i) EXPECT_EQ(read(file), std::string("of ") + file);
  }
  const CacheReport report = instance().cache_report();
  EXPECT_EQ(report.provider, "embedded");
  EXPECT_EQ(report.hits, 6U) << "three reads of each cached file, none of the other";
}

TEST_F(InstanceTest, NothingMovesAcrossMountsAndTheRootListsThem) {
  start("      - {path: /a, type: memfs}\n      - {path: /b, type: memfs}\n");
  ASSERT_TRUE(opened_);
  ASSERT_TRUE(write("/a/f", "x"));
  EXPECT_FALSE(instance().fs().rename(ctx_, P("/a/f"), P("/b/f")));
  EXPECT_EQ(read("/a/f") + read("/b/f"), "x<not_found>");
  const auto root = instance().fs().read_dir(ctx_, P("/"));
  ASSERT_TRUE(root);
  EXPECT_EQ(root->size(), 2U);
}

TEST_F(InstanceTest, AProviderThatThisBuildLacksEndsTheStartByItsNameInEveryMode) {
  Config config = *parse_config("storage: {agfs: {mounts: [{path: /, type: memfs}]}}", "t.yaml");
  config.cache.provider = "engine_of_tomorrow";
  for (const char* mode : {"bypass", "strict"}) {
    config.cache.failure_mode = mode;
    const auto refused = Instance::open(config);
    ASSERT_FALSE(refused) << mode;
    EXPECT_EQ(refused.error().code, ErrorCode::config);
    EXPECT_NE(refused.error().message.find("engine_of_tomorrow"), std::string::npos) << refused.error().message;
  }
}

// Nothing listens there: bypass starts and serves the backends, strict does not start.
TEST_F(InstanceTest, AProviderThatDoesNotAnswerAtStartEndsItInStrictModeOnly) {
  const std::string mounts = "      - {path: /, type: memfs}\n";
  const std::string engine =
      "      provider: redis\n      redis: {endpoints: ['redis://127.0.0.1:1']}\n      operation_timeout_ms: 200\n";
  start(mounts, engine + "      failure_mode: strict\n");
  ASSERT_FALSE(opened_);
  EXPECT_NE(opened_.error().message.find("storage.agfs.cache.provider"), std::string::npos) << opened_.error().message;
  start(mounts, engine + "      failure_mode: bypass\n");
  ASSERT_TRUE(opened_) << opened_.error().message;
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(write("/f", std::to_string(i)));
    EXPECT_EQ(read("/f"), std::to_string(i));
  }
  ASSERT_TRUE(instance().fs().remove(ctx_, P("/f")));
  EXPECT_EQ(read("/f"), "<not_found>");
  EXPECT_EQ(instance().cache_report().hits, 0U);
}

TEST_F(InstanceTest, WithoutACacheItsCommandsSaySo) {
  start("      - {path: /, type: memfs}\n", "      enabled: false\n");
  ASSERT_TRUE(opened_);
  ASSERT_TRUE(write("/f", "x"));
  EXPECT_EQ(read("/f"), "x");
  EXPECT_FALSE(instance().cache_report().configured);
  EXPECT_EQ(instance().set_cache_on(false).error().code, ErrorCode::not_supported);
  EXPECT_EQ(instance().flush_cache().error().code, ErrorCode::not_supported);
  EXPECT_EQ(instance().invalidate(P("/f")).error().code, ErrorCode::not_supported);
}

TEST_F(InstanceTest, ADirectoryThatIsNotThereEndsTheStartAndNamesTheLine) {
  start("      - {path: /, type: localfs, local_dir: /nowhere/at/all}\n");
  ASSERT_FALSE(opened_);
  EXPECT_EQ(opened_.error().code, ErrorCode::config);
  EXPECT_NE(opened_.error().message.find("t.yaml:4"), std::string::npos) << opened_.error().message;
  EXPECT_NE(opened_.error().message.find("/nowhere/at/all"), std::string::npos) << opened_.error().message;
}

TEST_F(InstanceTest, PurgeErasesOneAccountsObjectsAndNoOther) {
  MountConfig mount;
  mount.path = "/";
  mount.type = "memfs";
  Config config;
  config.mounts = {mount};
  const auto instance = Instance::open(config).value();
  const Context ctx;
  const auto hits = [&](const char* path) {
    const uint64_t before = instance->cache_report().hits;
    EXPECT_TRUE(instance->fs().read(ctx, *Path::parse(path), 0, 0));
    return instance->cache_report().hits > before;
  };
  for (const char* account : {"/acct", "/acct2", "/name with spaces that is longer than a key's part"}) {
    EXPECT_TRUE(instance->fs().mkdir(ctx, *Path::parse(account), kDefaultDirMode));
    const Path file = *Path::parse(std::string(account) + "/f");
    EXPECT_TRUE(instance->fs().write(ctx, file, "data", 0, WriteFlag::create));
    EXPECT_TRUE(hits(std::string(file.text()).c_str()));
  }
  EXPECT_EQ(instance->purge_account("acct").value(), 1U);
  EXPECT_TRUE(hits("/acct2/f"));
  EXPECT_FALSE(hits("/acct/f"));
  EXPECT_TRUE(hits("/acct/f")) << "and is cached anew";
  EXPECT_EQ(instance->purge_account("name with spaces that is longer than a key's part").value(), 1U);
  EXPECT_EQ(instance->purge_account("nobody").value(), 0U);
  config.cache.enabled = false;
  config.cache.name_space = "without";
  EXPECT_EQ(Instance::open(config).value()->purge_account("acct").error().code, ErrorCode::not_supported);
}

TEST_F(InstanceTest, SlowCallsOfABackendGoToTheLogFile) {
  std::string name = ::testing::TempDir() + "slow-XXXXXX";
  ASSERT_NE(::mkdtemp(name.data()), nullptr);
  MountConfig mount;
  mount.path = "/m";
  mount.type = "memfs";
  Config config;
  config.mounts = {mount};
  config.cache.name_space = "slow";
  config.log.file = name + "/ragfs.log";
  const auto logged = [&] {
    std::ifstream in(config.log.file);
    return std::string{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  };
  {
    const auto instance = Instance::open(config).value();
    EXPECT_TRUE(instance->fs().write(Context(), *Path::parse("/m/f"), "data", 0, WriteFlag::create));
  }
  EXPECT_EQ(logged(), "") << "nothing takes a second here";
  config.log.file = name + "/none/ragfs.log";
  EXPECT_EQ(Instance::open(config).error().code, ErrorCode::config);
  std::filesystem::remove_all(name);
}

TEST_F(InstanceTest, OffAsksTheBackendAndOnServesNothingOld) {
  start("      - {path: /, type: memfs}\n");
  ASSERT_TRUE(opened_);
  ASSERT_TRUE(write("/f", "one"));
  EXPECT_EQ(read("/f"), "one");
  ASSERT_TRUE(instance().set_cache_on(false));
  ASSERT_TRUE(write("/f", "two"));
  EXPECT_EQ(read("/f"), "two");
  ASSERT_TRUE(instance().set_cache_on(true));
  EXPECT_EQ(read("/f"), "two");
  ASSERT_TRUE(instance().flush_cache());
  EXPECT_EQ(read("/f"), "two");
  EXPECT_TRUE(instance().check_provider(Deadline::in_ms(1'000)));
  EXPECT_TRUE(instance().close(Deadline::in_ms(1'000)));
  EXPECT_TRUE(instance().close(Deadline::in_ms(1'000)));
}

class OverlappingMounts : public InstanceTest {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "ragfs-overlap-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
    std::filesystem::create_directories(directory_ + "/a/sub/innermost");
  }
  void TearDown() override {
    opened_ = nullptr;
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
  }
  std::string local(const std::string& path, const std::string& below) {
    return "      - {path: " + path + ", type: localfs, local_dir: " + directory_ + below + "}\n";
  }
  std::string directory_;
};

TEST_F(OverlappingMounts, AreCachedUnderOneIdentityInWhateverOrderTheyAreNamed) {
  start(local("/inner", "/a/sub") + local("/innermost", "/a/sub/innermost") + local("/outer", "") +
        local("/same", "/a/../a/sub"));
  ASSERT_TRUE(opened_) << opened_.error().message;
  EXPECT_TRUE(instance().warnings().empty());
  for (const MountStatus& mount : instance().mounts()) EXPECT_TRUE(mount.cached) << mount.path;
  const std::vector<std::string> names = {"/outer/a/sub/innermost/f", "/inner/innermost/f", "/innermost/f",
                                          "/same/innermost/f"};
  for (const std::string& writer : names) {
    ASSERT_TRUE(write(writer, "by " + writer));
    const uint64_t hits = instance().cache_report().hits;
    for (const std::string& reader : names) EXPECT_EQ(read(reader), "by " + writer) << reader;
    EXPECT_EQ(instance().cache_report().hits, hits + names.size()) << "one object, four names";
  }
  ASSERT_TRUE(instance().fs().remove_all(ctx_, P("/inner/innermost")));
  for (const std::string& reader : names) EXPECT_NE(read(reader), "by " + names.back()) << reader;
}

TEST_F(OverlappingMounts, ADirectoryThatIsMountedAgainShowsWhatHappenedMeanwhile) {
  start("      - {path: /mem, type: memfs}\n");
  ASSERT_TRUE(opened_);
  MountConfig inner;
  inner.path = "/x";
  inner.type = "localfs";
  inner.local_dir = directory_ + "/a/sub";
  MountConfig outer = inner;
  outer.local_dir = directory_;
  ASSERT_TRUE(instance().mount(inner));
  ASSERT_TRUE(write("/x/f", "first"));
  EXPECT_EQ(read("/x/f"), "first");
  outer.path = "/y";
  EXPECT_EQ(instance().mount(outer).error().code, ErrorCode::config) << "at run time overlapping mounts are refused";
  ASSERT_TRUE(instance().unmount(P("/x")) && instance().mount(outer));
  ASSERT_TRUE(write("/y/a/sub/f", "second"));
  ASSERT_TRUE(instance().unmount(P("/y")) && instance().mount(inner));
  EXPECT_EQ(read("/x/f"), "second");
}

TEST_F(OverlappingMounts, TwoThatAreMountedAtOnceAreNotBothTaken) {
  start("      - {path: /mem, type: memfs}\n");
  ASSERT_TRUE(opened_);
  MountConfig outer;
  outer.path = "/outer";
  outer.type = "localfs";
  outer.local_dir = directory_;
  MountConfig inner = outer;
  inner.path = "/inner";
  inner.local_dir = directory_ + "/a";
  auto armed = PausePoints::arm("mount.reserved");
  Result<void> first;
  std::jthread mounting([&] { first = instance().mount(outer); });
  ASSERT_TRUE(armed->wait_for_arrival());
  EXPECT_EQ(instance().mount(inner).error().code, ErrorCode::config);
  armed->release();
  mounting.join();
  EXPECT_TRUE(first);
  ASSERT_TRUE(instance().unmount(P("/outer")));
  EXPECT_TRUE(instance().mount(inner)) << "nothing is left reserved";
}

}  // namespace
}  // namespace ragfs
