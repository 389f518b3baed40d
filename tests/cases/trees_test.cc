// Bug reports about directories with many entries, reads that break off and removals that are done by halves (groups A
// and D), through the cache.
#include <gtest/gtest.h>

#include <set>

#include "ragfs/base/faulty_files.h"
#include "tests/cases/stack_fixture.h"

namespace ragfs {
namespace {

class ManyEntries : public CachedStack {
 protected:
  std::set<std::string> names(std::string_view path) {
    std::set<std::string> found;
    const auto entries = cached->read_dir(ctx, path_of(path));
    EXPECT_TRUE(entries) << path;
    if (!entries) return found;
    for (const FileInfo& entry : *entries) EXPECT_TRUE(found.insert(entry.name).second) << "twice: " << entry.name;
    return found;
  }
  // Every tenth name is a hidden one.
  std::set<std::string> fill(const std::string& directory, int count) {
    std::set<std::string> made;
    EXPECT_TRUE(mkdir(directory));
    for (int i = 0; i < count; ++i) {
      const std::string name = (i % 10 == 0 ? ".hidden-" : "f-") + std::to_string(i);
      EXPECT_TRUE(cached->create(ctx, path_of(directory + "/" + name)));
      made.insert(name);
    }
    return made;
  }
};

class CaseA08Cached : public ManyEntries {};
// A move worked from a listing of 1,000 entries and then removed its source.
TEST_P(CaseA08Cached, ListingsOfManyEntriesAreWholeWhereverTheyComeFrom) {
  const std::vector<int> counts = GetParam().local ? std::vector{1'001} : std::vector{999, 1'000, 1'001, 2'500};
  for (const int count : counts) {  // all of them on localfs: tests/contract, without a cache
    SCOPED_TRACE(count);
    const std::set<std::string> made = fill("/from", count);
    for (int pass = 0; pass < 2; ++pass) EXPECT_EQ(names("/from"), made) << "cold, then from the cache";
    ASSERT_TRUE(cached->rename(ctx, path_of("/from"), path_of("/to")));
    for (int pass = 0; pass < 2; ++pass) EXPECT_EQ(names("/to"), made);
    EXPECT_EQ(list("/from"), "ERROR not_found");
    for (const std::string& name : made) {
      ASSERT_TRUE(cached->copy(ctx, path_of("/to/" + name), path_of("/copy/" + name)));
    }
    ASSERT_TRUE(cached->remove_all(ctx, path_of("/to")));
    EXPECT_EQ(list("/to"), "ERROR not_found");
    for (int pass = 0; pass < 2; ++pass) EXPECT_EQ(names("/copy"), made);
    expect_read("/copy/.hidden-0", "");
    ASSERT_TRUE(cached->remove_all(ctx, path_of("/copy")));
    expect_read("/copy/.hidden-0", "ERROR not_found");
  }
}
INSTANTIATE_TEST_SUITE_P(Stacks, CaseA08Cached, all_stacks(), stack_name);

class CaseD35Cached : public ManyEntries {};
// To create, look at or remove one file of a large directory must not list it.
TEST_P(CaseD35Cached, OneFileOfALargeDirectoryIsHandledWithoutListingIt) {
  (void)fill("/d", 20'000);
  for (const bool listed : {false, true}) {
    if (listed) {
      EXPECT_EQ(names("/d").size(), 20'000U);
    }
    hooked->forget_calls();
    ASSERT_TRUE(write("/d/new", "x"));
    EXPECT_EQ(stat_size("/d/new"), "1");
    expect_read("/d/new", "x");
    EXPECT_EQ(stat_size("/d/absent"), "ERROR not_found");
    ASSERT_TRUE(cached->rename(ctx, path_of("/d/new"), path_of("/d/newer")));
    ASSERT_TRUE(cached->remove(ctx, path_of("/d/newer")));
    EXPECT_EQ(hooked->calls("read_dir"), 0U) << "listed before: " << listed;
  }
  EXPECT_EQ(names("/d").size(), 20'000U);
}
// localfs by itself: ragfs/backends/local.
INSTANTIATE_TEST_SUITE_P(Stacks, CaseD35Cached, ::testing::Values(StackKind{false, false}, StackKind{false, true}),
                         stack_name);

class CaseD34Cached : public CachedStack {};
// A read that was interrupted left a part of the file in the cache.
TEST_P(CaseD34Cached, AReadThatEndsInTheMiddleLeavesNoPartOfTheFile) {
  constexpr size_t kPiece_bytes = 4'096;
  constexpr int kPieces = 100;
  FaultyFiles files;
  dir = std::make_unique<contract::TempDir>();
  LocalConfig config;
  config.root_dir = dir->path();
  backend = LocalFileSystem::open(config, files).value();
  second.reset();
  open_over({}, {});
  second = std::make_shared<CachedFileSystem>(backend, domain, CachedMountConfig{});
  std::string content;
  for (int piece = 0; piece < kPieces; ++piece)
    content += std::string(kPiece_bytes, static_cast<char>('a' + piece % 26));
  put_in_backend("/f", content);
  for (const int percent : {10, 50, 99}) {
    domain->new_epoch();
    files.add(FaultyFiles::Fault("pread").times(percent).at_most(kPiece_bytes));
    files.add(FaultyFiles::Fault("pread", EIO));  // once the pieces above are used up
    EXPECT_TRUE(read("/f") == "ERROR io") << percent;
    files.clear();
    EXPECT_EQ(stat_size("/f"), std::to_string(content.size()));
    expect_read("/f", content);
  }
  second.reset();
  cached.reset();
  backend.reset();  // while `files` is there
}
INSTANTIATE_TEST_SUITE_P(Stacks, CaseD34Cached, ::testing::Values(StackKind{true, false}), stack_name);

class CaseA43 : public CachedStack {};
// The files were removed although the second store still named them. Here the second store is the cache: in strict mode
// the removal is refused before anything is changed when the cache cannot follow, or its failure is an error.
TEST_P(CaseA43, ARemovalWhoseSecondStoreFailsIsAnErrorAndCanBeMadeAgain) {
  CoherenceConfig config;
  config.failure_mode = FailureMode::strict;
  config.guard.failures_to_open = 1;
  config.guard.first_pause_ms = 1;
  config.guard.max_pause_ms = 1;
  config.retry_first_ms = 60'000;  // nobody but the caller tries again
  config.retry_most_ms = 60'000;
  open_stack(config, {});
  ASSERT_TRUE(mkdir("/d"));
  ASSERT_TRUE(write("/d/f", "kept"));
  ASSERT_TRUE(write("/d/g", "kept"));
  expect_read("/d/f", "kept");
  provider->set_down(true);
  EXPECT_EQ(kind_of(cached->remove(ctx, path_of("/d/f"))), "cache_not_updated") << "it was under way: visible";
  EXPECT_EQ(kind_of(cached->remove_all(ctx, path_of("/d"))), "unavailable") << "refused before the files are touched";
  EXPECT_EQ(read_backend("/d/g"), "kept");
  expect_read("/d/f", "ERROR not_found");
  provider->set_down(false);
  const Deadline until = Deadline::in_ms(10'000);
  while (!cached->remove_all(ctx, path_of("/d")) && !until.expired()) {
  }
  expect_read("/d/g", "ERROR not_found");
  EXPECT_EQ(list("/"), "");
}
INSTANTIATE_TEST_SUITE_P(Stacks, CaseA43, scripted_stacks(), stack_name);

}  // namespace
}  // namespace ragfs
