// InstanceFixture: a directory of files, a state directory, and whole instances over them.
//
// For: tests of restarts and of several processes with everything in place. Thread-safety: as gtest's.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include "ragfs/config/instance.h"
#include "ragfs/config/loader.h"
#include "tests/lives/child.h"

namespace ragfs {

class InstanceFixture : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "instances-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    root = name;
    std::filesystem::create_directories(root + "/files");
    put("f", "old");
    put("g", "other");
  }
  void TearDown() override { std::filesystem::remove_all(root); }

  // Behind every cache; an hour old, so that its version can be trusted.
  void put(const std::string& name, const std::string& data) const {
    std::ofstream(root + "/files/" + name, std::ios::binary) << data;
    std::filesystem::last_write_time(root + "/files/" + name,
                                     std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  }
  std::string truth(const std::string& name) const {
    std::ifstream in(root + "/files/" + name, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }
  // `cache`: more lines of that section; `mount`: more keys of the mount.
  Config config(const std::string& cache = "", const std::string& mount = "") const {
    const std::string text = "storage:\n  agfs:\n    mounts:\n      - {path: /, type: localfs, local_dir: " + root +
                             "/files" + mount + "}\n    cache:\n      state_dir: " + state + "\n" + cache;
    auto parsed = parse_config(text, root + "/t.yaml");
    EXPECT_TRUE(parsed) << parsed.error().message;
    return parsed ? *parsed : Config();
  }
  static std::unique_ptr<Instance> open(const Config& config) {
    auto opened = Instance::open(config);
    EXPECT_TRUE(opened) << opened.error().message;
    return opened ? *std::move(opened) : nullptr;
  }
  static std::string read(Instance& instance, std::string_view path) {
    const auto got = instance.fs().read(Context(), *Path::parse(path), 0, 0);
    return got ? got->str() : "<" + std::string(kind_name(got.error().code)) + ">";
  }
  // "" or the error.
  static std::string write(Instance& instance, std::string_view path, std::string_view data) {
    const auto done = instance.fs().write(Context(), *Path::parse(path), data, 0, WriteFlag::create);
    return done ? "" : done.error().text();
  }
  static bool hits(Instance& instance, std::string_view path) {
    const uint64_t before = instance.cache_report().hits;
    (void)read(instance, path);
    return instance.cache_report().hits > before;
  }
  static Result<void> close(Instance& instance) { return instance.close(Deadline::in_ms(10'000)); }

  std::string root;
  std::string state = "./state";  // below root
};

}  // namespace ragfs
