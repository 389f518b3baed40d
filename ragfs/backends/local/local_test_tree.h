// What the tests of localfs share: a directory of the host with a localfs over it, and faults in between.
// Not for: anything but tests. Thread-safety: a fixture belongs to one test.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <set>
#include <string>

#include "ragfs/backends/local/local_file_system.h"
#include "ragfs/base/faulty_files.h"

namespace ragfs {

using Fault = FaultyFiles::Fault;

class LocalTestTree : public ::testing::Test {
 protected:
  void SetUp() override {
    // In memory where there is such a place: many of these tests sync. The contract suite runs on the disk.
    const std::filesystem::path memory = "/dev/shm";
    const bool usable = ::access(memory.c_str(), W_OK) == 0;
    std::string pattern = ((usable ? memory : std::filesystem::temp_directory_path()) / "ragfs-local-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    base = std::filesystem::canonical(pattern);
    root = base / "root";
    std::filesystem::create_directory(root);
    open();
  }
  void TearDown() override {
    fs.reset();
    std::error_code ignored;
    std::filesystem::remove_all(base, ignored);
  }
  void open(LocalConfig config = {}) {
    config.root_dir = root.string();
    auto opened = LocalFileSystem::open(config, files);
    ASSERT_TRUE(opened.has_value()) << opened.error().text();
    fs = std::move(*opened);
  }

  static PathView P(std::string_view text) { return PathView::from_normal(text); }
  template <typename T>
  static std::string kind(const Result<T>& result) {
    return result.has_value() ? "ok" : std::string(kind_name(result.error().code));
  }
  // The content as the tree gives it, or the error's kind in angle brackets.
  std::string get(std::string_view path) {
    auto content = fs->read_file(ctx, P(path));
    return content ? content->data.str() : "<" + kind(content) + ">";
  }
  std::string put(std::string_view path, std::string_view data, WriteFlag flag = WriteFlag::create) {
    return kind(fs->write(ctx, P(path), data, 0, flag));
  }
  // Straight on the host, past the file system under test.
  static void host_write(const std::filesystem::path& path, std::string_view data) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << data;
  }
  static std::string host_read(const std::filesystem::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }
  static struct stat host_stat(const std::filesystem::path& path) {
    struct stat status = {};
    EXPECT_EQ(::lstat(path.c_str(), &status), 0) << path;
    return status;
  }
  static std::set<std::string> host_names(const std::filesystem::path& dir) {
    std::set<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(dir)) found.insert(entry.path().filename().string());
    return found;
  }
  std::set<std::string> names(std::string_view path) {
    auto entries = fs->read_dir(ctx, P(path));
    EXPECT_TRUE(entries.has_value()) << entries.error().text();
    std::set<std::string> found;
    if (entries) {
      for (const FileInfo& entry : *entries) found.insert(entry.name);
    }
    return found;
  }

  Context ctx;
  FaultyFiles files;
  std::filesystem::path base;  // of the test; holds what lies outside the root
  std::filesystem::path root;
  std::unique_ptr<LocalFileSystem> fs;
};

}  // namespace ragfs
