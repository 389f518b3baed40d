// Every provider under the cached stack, those that store nothing included: it never changes an answer, and several
// mounts share it.
#include <latch>
#include <thread>

#include "ragfs/backends/mem/mem_file_system.h"
#include "ragfs/cache/cached_file_system.h"
#include "tests/contract/measuring_provider.h"
#include "tests/contract/provider_contract.h"

namespace ragfs::contract {
namespace {

PathView path(std::string_view text) { return PathView::from_normal(text); }

struct Mount {
  std::shared_ptr<FileSystem> backend = MemFileSystem::open({}).value();
  std::shared_ptr<CachedFileSystem> cached;
  Context ctx;

  Mount(const std::shared_ptr<CoherenceDomain>& domain, std::string mount_path) {
    CachedMountConfig config;
    config.mount_path = std::move(mount_path);
    cached = std::make_shared<CachedFileSystem>(backend, domain, config);
  }
  bool write(std::string_view name, std::string_view data) {
    return cached->write(ctx, path(name), data, 0, WriteFlag::create).has_value();
  }
  std::string read(std::string_view name) {
    const Result<Bytes> got = cached->read(Context(), path(name), 0, 0);
    return got ? got->str() : "<" + std::string(kind_name(got.error().code)) + ">";
  }
  size_t entries(std::string_view name) {
    const auto listed = cached->read_dir(ctx, path(name));
    return listed ? listed->size() : 0;
  }
};

TEST_P(ProviderUnderTheCache, AnswersAreThoseOfTheBackend) {
  const auto domain = std::make_shared<CoherenceDomain>(CoherenceConfig{}, harness_.provider);
  Mount mount(domain, "/");
  ASSERT_TRUE(mount.cached->mkdir(mount.ctx, path("/d"), kDefaultDirMode));
  for (int pass = 0; pass < 3; ++pass) {
    const std::string content = "content " + std::to_string(pass);
    EXPECT_EQ(mount.read("/d/new"), "<not_found>");
    ASSERT_TRUE(mount.write("/d/f", content));
    for (int again = 0; again < 3; ++again) {
      EXPECT_EQ(mount.read("/d/f"), content);
      EXPECT_EQ(mount.entries("/d"), 1U);
    }
    ASSERT_TRUE(mount.cached->rename(mount.ctx, path("/d/f"), path("/d/new")));
    EXPECT_EQ(mount.read("/d/f"), "<not_found>");
    EXPECT_EQ(mount.read("/d/new"), content);
    ASSERT_TRUE(mount.cached->remove(mount.ctx, path("/d/new")));
    EXPECT_EQ(mount.entries("/d"), 0U);
  }
}

TEST_P(ProviderUnderTheCache, SeveralMountsShareOneProviderAndNoObject) {
  const auto domain = std::make_shared<CoherenceDomain>(CoherenceConfig{}, harness_.provider);
  std::vector<Mount> mounts;
  mounts.reserve(4);
  for (int i = 0; i < 4; ++i) mounts.emplace_back(domain, "/mount" + std::to_string(i));
  for (size_t i = 0; i < mounts.size(); ++i) ASSERT_TRUE(mounts[i].write("/f", "of mount " + std::to_string(i)));
  ASSERT_TRUE(mounts[2].cached->remove(mounts[2].ctx, path("/f")));
  for (int pass = 0; pass < 2; ++pass) {
    for (size_t i = 0; i < mounts.size(); ++i) {
      EXPECT_EQ(mounts[i].read("/f"), i == 2 ? "<not_found>" : "of mount " + std::to_string(i));
    }
  }
}

TEST_P(ProviderUnderTheCache, TwoNamespacesInOneProviderDoNotMeet) {
  CoherenceConfig one;
  one.name_space = "one";
  CoherenceConfig two;
  two.name_space = "two";
  const auto first = std::make_shared<CoherenceDomain>(one, harness_.provider);
  const auto second = std::make_shared<CoherenceDomain>(two, harness_.provider);
  Mount of_first(first, "/");
  Mount of_second(second, "/");
  ASSERT_TRUE(of_first.write("/f", "first") && of_second.write("/f", "second"));
  for (int pass = 0; pass < 2; ++pass) {
    EXPECT_EQ(of_first.read("/f"), "first");
    EXPECT_EQ(of_second.read("/f"), "second");
  }
}

TEST_P(ProviderUnderTheCache, ItsCallsStayWithinSdkConcurrencyWhenManyRead) {
  constexpr uint32_t kLimit = 2;
  const auto measured = std::make_shared<MeasuringProvider>(harness_.provider, kLimit, 2'000);
  CoherenceConfig config;
  config.guard.concurrency = kLimit;
  config.guard.operation_timeout_ms = 20'000;
  const auto domain = std::make_shared<CoherenceDomain>(config, measured);
  Mount mount(domain, "/");
  for (int i = 0; i < 64; ++i)
    ASSERT_TRUE(mount.backend->write(mount.ctx, path("/f" + std::to_string(i)), "file " + std::to_string(i), 0,
                                     WriteFlag::create));
  std::atomic<int> wrong{0};
  std::latch together(16);
  std::vector<std::jthread> threads;
  threads.reserve(16);
  for (int id = 0; id < 16; ++id) {
    threads.emplace_back([&, id] {
      together.arrive_and_wait();
      for (int i = 0; i < 64; ++i) {
        const std::string number = std::to_string((i + id * 4) % 64);
        if (mount.read("/f" + number) != "file " + number) ++wrong;
      }
    });
  }
  threads.clear();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(measured->most_inside(), kLimit);
}

}  // namespace
}  // namespace ragfs::contract
