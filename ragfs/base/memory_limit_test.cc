#include "ragfs/base/memory_limit.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace ragfs {
namespace {

class MemoryLimit : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "limit-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    root_ = name;
    put("proc/meminfo", "MemTotal:        8388608 kB\nMemFree:  1 kB\n");
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void put(const std::string& file, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(root_ + "/" + file).parent_path());
    std::ofstream(root_ + "/" + file) << text;
  }
  uint64_t limit() const { return memory_limit_bytes(root_ + "/proc", root_ + "/cgroup"); }

  std::string root_;
};

constexpr uint64_t kMiB = 1 << 20;

TEST_F(MemoryLimit, WithoutAGroupItIsTheMachines) { EXPECT_EQ(limit(), 8192 * kMiB); }

TEST_F(MemoryLimit, OfTheSecondVersionTheLeastOfAllGroupsAboveCounts) {
  put("proc/self/cgroup", "0::/pods/pod1\n");
  put("cgroup/pods/pod1/memory.max", "max\n");
  EXPECT_EQ(limit(), 8192 * kMiB);
  put("cgroup/pods/memory.max", "536870912\n");
  EXPECT_EQ(limit(), 512 * kMiB);
  put("cgroup/pods/pod1/memory.max", "134217728\n");
  EXPECT_EQ(limit(), 128 * kMiB);
}

TEST_F(MemoryLimit, OfTheFirstVersionToo) {
  put("proc/self/cgroup", "5:cpu,cpuacct:/x\n4:hugetlb,memory:/docker/abc\n0::/\n");
  put("cgroup/memory/docker/abc/memory.limit_in_bytes", "268435456\n");
  EXPECT_EQ(limit(), 256 * kMiB);
  put("cgroup/memory/docker/abc/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(limit(), 8192 * kMiB) << "a number that means none";
}

TEST_F(MemoryLimit, InAContainerThePathOfTheHostNeedNotBeThere) {
  put("proc/self/cgroup", "4:memory:/docker/of-the-host\n");
  put("cgroup/memory/memory.limit_in_bytes", "67108864\n");
  EXPECT_EQ(limit(), 64 * kMiB);
}

TEST_F(MemoryLimit, GarbageIsNoLimit) {
  put("proc/self/cgroup", "0\n::\n0::relative\n0::/a\n");
  put("cgroup/a/memory.max", "many\n");
  EXPECT_EQ(limit(), 8192 * kMiB);
  std::filesystem::remove(root_ + "/proc/meminfo");
  EXPECT_EQ(limit(), UINT64_MAX);
}

}  // namespace
}  // namespace ragfs
