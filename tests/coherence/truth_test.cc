// Stat, exists and listings against the backend after every kind of mutation, with everything cached before it: on
// localfs (whose directories have times and sizes of their own), on memfs, and on a store with implicit directories.
#include <gtest/gtest.h>

#include <functional>

#include "tests/cases/stack_fixture.h"

namespace ragfs {
namespace {

struct Step {
  const char* name;
  std::function<bool(FileSystem&, const Context&)> run;
};

using Fs = FileSystem;

std::vector<Step> steps() {
  const auto write = [](const char* path, const char* data, uint64_t offset, WriteFlag flag) {
    return [=](Fs& fs, const Context& c) { return fs.write(c, path_of(path), data, offset, flag).has_value(); };
  };
  return {
      {"create", [](Fs& fs, const Context& c) { return fs.create(c, path_of("/a/b/new.md")).has_value(); }},
      {"write", write("/a/b/f.md", "another text", 0, WriteFlag::create)},
      {"write_new", write("/a/b/new.md", "fresh", 0, WriteFlag::create_new)},
      {"append", write("/a/b/f.md", "+", 0, WriteFlag::append)},
      {"truncate", [](Fs& fs, const Context& c) { return fs.truncate(c, path_of("/a/b/f.md"), 1).has_value(); }},
      {"touch", [](Fs& fs, const Context& c) { return fs.touch(c, path_of("/a/b/f.md")).has_value(); }},
      {"chmod", [](Fs& fs, const Context& c) { return fs.chmod(c, path_of("/a/b/f.md"), 0600).has_value(); }},
      {"chmod_directory", [](Fs& fs, const Context& c) { return fs.chmod(c, path_of("/a/b"), 0700).has_value(); }},
      {"mkdir", [](Fs& fs, const Context& c) { return fs.mkdir(c, path_of("/a/b/sub"), 0755).has_value(); }},
      {"parents_on_the_way",
       [](Fs& fs, const Context& c) {
         return fs.ensure_parent_dirs(c, path_of("/a/p/q/r/f"), kDefaultDirMode).has_value();
       }},
      {"copy",
       [](Fs& fs, const Context& c) { return fs.copy(c, path_of("/a/b/f.md"), path_of("/a/copy.md")).has_value(); }},
      {"remove", [](Fs& fs, const Context& c) { return fs.remove(c, path_of("/a/b/f.md")).has_value(); }},
      {"remove_empty_directory",
       [](Fs& fs, const Context& c) { return fs.remove(c, path_of("/a/empty")).has_value(); }},
      {"remove_all", [](Fs& fs, const Context& c) { return fs.remove_all(c, path_of("/a/b")).has_value(); }},
      {"rename_file",
       [](Fs& fs, const Context& c) { return fs.rename(c, path_of("/a/b/f.md"), path_of("/a/g.md")).has_value(); }},
      {"rename_directory",
       [](Fs& fs, const Context& c) { return fs.rename(c, path_of("/a/b"), path_of("/a/moved")).has_value(); }},
      {"replace",
       [](Fs& fs, const Context& c) { return fs.replace(c, path_of("/a/b/f.md"), path_of("/a/top.md")).has_value(); }},
      {"compare_and_write",
       [](Fs& fs, const Context& c) {
         return fs.compare_and_write(c, path_of("/a/b/f.md"), "12345", "swapped").value_or(false);
       }},
      {"compare_and_remove",
       [](Fs& fs, const Context& c) {
         return fs.compare_and_remove(c, path_of("/a/b/f.md"), "12345").value_or(false);
       }},
  };
}

class TruthAfter : public CachedStack {
 protected:
  void fill_backend() {
    put_in_backend("/a/b/f.md", "12345");
    put_in_backend("/a/b/c/deep.md", "deep");
    put_in_backend("/a/top.md", "top");
    ASSERT_TRUE(backend->mkdir(ctx, path_of("/a/empty"), kDefaultDirMode));
  }
  // Twice: what the first pass fills, the second is answered from.
  void expect_truth(const char* when) {
    for (int pass = 0; pass < 2; ++pass) {
      for (const char* path : kPaths) {
        const std::string where = std::string(when) + " " + path + " pass " + std::to_string(pass);
        (void)cached->read(ctx, path_of(path), 0, 0);
        const auto listed = cached->read_dir(ctx, path_of(path));
        auto entries = backend->read_dir(ctx, path_of(path));
        ASSERT_EQ(listed.has_value(), entries.has_value()) << where;
        if (entries) {
          sort_entries(*entries);
          EXPECT_EQ(*listed, *entries) << where;
        }
        const auto seen = cached->stat(ctx, path_of(path));
        const auto truth = backend->stat(ctx, path_of(path));
        ASSERT_EQ(seen.has_value(), truth.has_value()) << where;
        if (truth) {
          EXPECT_EQ(*seen, *truth) << where;
        }
        EXPECT_EQ(cached->exists(ctx, path_of(path)).value_or(false), truth.has_value()) << where;
      }
    }
  }
  static constexpr const char* kPaths[] = {"/",        "/a",           "/a/b",     "/a/b/f.md",      "/a/b/new.md",
                                           "/a/b/c",   "/a/top.md",    "/a/empty", "/a/b/c/deep.md", "/a/b/sub",
                                           "/a/p",     "/a/p/q",       "/a/p/q/r", "/a/copy.md",     "/a/g.md",
                                           "/a/moved", "/a/moved/f.md"};
};

TEST_P(TruthAfter, EveryKindOfMutation) {
  for (const Step& step : steps()) {
    open_stack({}, {});
    fill_backend();
    expect_truth("before");
    ASSERT_TRUE(step.run(*cached, ctx)) << step.name;
    expect_truth(step.name);
  }
}

// A mutation that fails for certain changes nothing; one whose answer is lost may have changed all.
TEST_P(TruthAfter, EveryKindOfMutationWhoseAnswerIsLost) {
  for (const Step& step : steps()) {
    open_stack({}, {});
    fill_backend();
    expect_truth("before");
    hooked->set_after([](std::string_view operation, PathView path) -> std::optional<Error> {
      const bool asks = operation == "stat" || operation == "read" || operation == "read_file" ||
                        operation == "read_dir" || operation == "version" || operation == "exists";
      return asks ? std::nullopt : std::optional(Error{ErrorCode::io, std::string(path.text())});
    });
    EXPECT_FALSE(step.run(*cached, ctx)) << step.name;
    hooked->set_after({});
    expect_truth(step.name);
  }
}

INSTANTIATE_TEST_SUITE_P(Stacks, TruthAfter, all_stacks(), stack_name);

class ImplicitDirectories : public HookedFixture {};

// The last file of a chain of directories takes them along in such a store: the listings above must follow.
TEST_F(ImplicitDirectories, ListingsAboveFollowWhatIsEmptiedOrMadeOnTheWay) {
  open_hooked({}, {});
  hooked->mutable_traits().implicit_directories = true;
  put_in_backend("/a/x", "1");
  EXPECT_EQ(list("/"), "a");
  EXPECT_EQ(list("/a"), "x");
  EXPECT_EQ(list("/a/b"), "ERROR not_found");
  // A write below directories that are not there makes them in such a store.
  hooked->set_before([&](std::string_view operation, PathView path) -> std::optional<Error> {
    if (operation == "write") (void)backend->ensure_parent_dirs(ctx, path, kDefaultDirMode);
    return std::nullopt;
  });
  ASSERT_TRUE(write("/a/b/c/f", "deep"));
  EXPECT_EQ(list("/a"), "b x");
  EXPECT_EQ(list("/a/b"), "c");
  EXPECT_EQ(list("/a/b/c"), "f");
  // And its removal takes them away.
  hooked->set_after([&](std::string_view operation, PathView) -> std::optional<Error> {
    if (operation == "remove") (void)backend->remove_all(ctx, path_of("/a/b"));
    return std::nullopt;
  });
  ASSERT_TRUE(cached->remove(ctx, path_of("/a/b/c/f")));
  EXPECT_EQ(list("/a"), "x");
  EXPECT_EQ(list("/a/b"), "ERROR not_found");
}

}  // namespace
}  // namespace ragfs
