// The contract of ragfs::FileSystem: one list of backends, one suite for all of them.
//
// For: tests named TEST_P(SuiteOfBackendContract, ...), which run once per backend. What backends may do differently is
// data here (BackendCase), never an `if` on a backend's name in a test. To add a backend, add a line to all_backends().
// Not for: what only one backend does (its own tests stand beside its source).
// Thread-safety: test code; a harness belongs to one test.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "ragfs/backends/local/local_file_system.h"
#include "ragfs/backends/mem/mem_file_system.h"
#include "ragfs/fs/file_system.h"

namespace ragfs::contract {

// A directory of the host, removed with the object.
class TempDir {
 public:
  TempDir() {
    std::string pattern = (std::filesystem::temp_directory_path() / "ragfs-contract-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) std::abort();
    path_ = pattern;
  }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

struct BackendHarness {
  std::shared_ptr<TempDir> dir;  // nullptr for a backend without one
  std::unique_ptr<FileSystem> fs;
};

struct BackendCase {
  std::string name;
  std::function<BackendHarness()> make;
  bool keeps_modes = false;   // chmod and mkdir's mode show in stat
  bool sparse_files = false;  // 4 GiB of zeros cost nothing
  friend void PrintTo(const BackendCase& backend, std::ostream* out) { *out << backend.name; }
};

inline BackendHarness make_local_harness() {
  auto dir = std::make_shared<TempDir>();
  return {.dir = dir, .fs = LocalFileSystem::open({.root_dir = dir->path()}).value()};
}

inline std::vector<BackendCase> all_backends() {
  return {
      {.name = "memfs",
       .make = [] { return BackendHarness{.dir = nullptr, .fs = MemFileSystem::open({}).value()}; },
       .keeps_modes = true,
       .sparse_files = false},
      {.name = "localfs", .make = make_local_harness, .keeps_modes = false, .sparse_files = true},
  };
}

inline std::string backend_name(const ::testing::TestParamInfo<BackendCase>& info) { return info.param.name; }

// The paths of tests are literals in their one spelling.
inline PathView P(std::string_view text) { return PathView::from_normal(text); }

class BackendContract : public ::testing::TestWithParam<BackendCase> {
 protected:
  void SetUp() override {
    harness_ = GetParam().make();
    ASSERT_NE(harness_.fs, nullptr);
  }
  FileSystem& fs() { return *harness_.fs; }

  void put(std::string_view path, std::string_view data) {
    auto written = fs().write(ctx, P(path), data, 0, WriteFlag::create);
    ASSERT_TRUE(written.has_value()) << written.error().text();
    EXPECT_EQ(written->bytes, data.size());
    EXPECT_EQ(written->meta.size, data.size());
  }
  void make_dir(std::string_view path) {
    auto made = fs().mkdir(ctx, P(path), kDefaultDirMode);
    ASSERT_TRUE(made.has_value()) << made.error().text();
  }
  // The whole content, or the error's kind in angle brackets.
  std::string get(std::string_view path) {
    auto content = fs().read_file(ctx, P(path));
    if (!content) return "<" + std::string(kind_name(content.error().code)) + ">";
    EXPECT_EQ(content->data.size(), content->meta.size);
    return content->data.str();
  }
  std::set<std::string> names(std::string_view path) {
    auto entries = fs().read_dir(ctx, P(path));
    EXPECT_TRUE(entries.has_value()) << entries.error().text();
    std::set<std::string> found;
    if (entries) {
      for (const FileInfo& entry : *entries) EXPECT_TRUE(found.insert(entry.name).second) << "twice: " << entry.name;
    }
    return found;
  }

  Context ctx;
  BackendHarness harness_;
};

// The kind of a failed result, "ok" for a success: EXPECT_EQ(kind(fs.remove(..)), "not_found").
template <typename T>
std::string kind(const Result<T>& result) {
  return result.has_value() ? "ok" : std::string(kind_name(result.error().code));
}

}  // namespace ragfs::contract

// A suite `Suite` of the contract, run for every backend.
#define RAGFS_BACKEND_SUITE(Suite)                                                                  \
  class Suite : public ::ragfs::contract::BackendContract {};                                       \
  INSTANTIATE_TEST_SUITE_P(Backends, Suite, ::testing::ValuesIn(::ragfs::contract::all_backends()), \
                           ::ragfs::contract::backend_name)
