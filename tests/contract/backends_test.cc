// What every method of every backend does: results, errors, flags.
#include "tests/contract/backend_contract.h"

namespace ragfs::contract {
namespace {

RAGFS_BACKEND_SUITE(BackendFiles);
RAGFS_BACKEND_SUITE(BackendWrites);
RAGFS_BACKEND_SUITE(BackendDirectories);
RAGFS_BACKEND_SUITE(BackendCopies);
RAGFS_BACKEND_SUITE(BackendTraits);

TEST_P(BackendTraits, SayWhatTheTreeDoes) {
  const FileSystemTraits& traits = fs().traits();
  EXPECT_FALSE(traits.type.empty());
  EXPECT_FALSE(traits.control);
  EXPECT_EQ(traits.late_apply_bound_ms, 0);
  BackendHarness other = GetParam().make();
  EXPECT_NE(traits.identity, other.fs->traits().identity) << "two stores share an identity: their cache keys collide";
  EXPECT_FALSE(traits.identity.empty());
}

TEST_P(BackendTraits, DirectoryTimesMoveWithMembersWhereTheTraitSaysSo) {
  if (!fs().traits().directory_times) GTEST_SKIP() << "the trait says that directories have no such times";
  make_dir("/d");
  const int64_t before = fs().stat(ctx, P("/d"))->mtime_ns;
  // Times of the host's file system have the grain of its clock tick: members are made until one is seen.
  const Deadline deadline = Deadline::in_ms(5'000);
  int made = 0;
  while (fs().stat(ctx, P("/d"))->mtime_ns == before && !deadline.expired()) put("/d/f" + std::to_string(made++), "x");
  EXPECT_GT(fs().stat(ctx, P("/d"))->mtime_ns, before);
}

// --- files ---

TEST_P(BackendFiles, CreateMakesAnEmptyFileOnce) {
  EXPECT_EQ(kind(fs().create(ctx, P("/f"))), "ok");
  EXPECT_EQ(get("/f"), "");
  EXPECT_EQ(kind(fs().create(ctx, P("/f"))), "already_exists");
  make_dir("/d");
  EXPECT_EQ(kind(fs().create(ctx, P("/d"))), "already_exists");
  EXPECT_EQ(kind(fs().create(ctx, P("/"))), "already_exists");
  EXPECT_EQ(kind(fs().create(ctx, P("/no/f"))), "not_found");
  EXPECT_EQ(kind(fs().create(ctx, P("/f/below"))), "not_a_directory");
  EXPECT_EQ(kind(fs().create(ctx, P("/f/below/deeper"))), "not_a_directory");
}

TEST_P(BackendFiles, ReadTakesRanges) {
  put("/f", "0123456789");
  EXPECT_EQ(fs().read(ctx, P("/f"), 0, 0)->view(), "0123456789");
  EXPECT_EQ(fs().read(ctx, P("/f"), 3, 4)->view(), "3456");
  EXPECT_EQ(fs().read(ctx, P("/f"), 8, 100)->view(), "89");
  EXPECT_EQ(fs().read(ctx, P("/f"), 10, 0)->view(), "");
  EXPECT_EQ(fs().read(ctx, P("/f"), 1000, 5)->view(), "");
  EXPECT_EQ(fs().read(ctx, P("/f"), (1ULL << 63) - 1, 10)->view(), "");
  EXPECT_EQ(fs().read(ctx, P("/f"), 3, (1ULL << 63) - 1)->view(), "3456789");
  EXPECT_EQ(fs().read(ctx, P("/f"), UINT64_MAX, UINT64_MAX)->view(), "");
  EXPECT_EQ(fs().read(ctx, P("/f"), 2, UINT64_MAX)->view(), "23456789");
}

TEST_P(BackendFiles, ReadErrors) {
  put("/f", "x");
  make_dir("/d");
  EXPECT_EQ(kind(fs().read(ctx, P("/no"), 0, 0)), "not_found");
  EXPECT_EQ(kind(fs().read(ctx, P("/no/no"), 0, 0)), "not_found");
  EXPECT_EQ(kind(fs().read(ctx, P("/f/below"), 0, 0)), "not_found");
  EXPECT_EQ(kind(fs().read(ctx, P("/d"), 0, 0)), "is_a_directory");
  EXPECT_EQ(kind(fs().read(ctx, P("/"), 0, 0)), "is_a_directory");
  EXPECT_EQ(kind(fs().read(ctx, P("/d"), 5, 1)), "is_a_directory");
  EXPECT_EQ(get("/no"), "<not_found>");
  EXPECT_EQ(get("/f/below"), "<not_found>");
  EXPECT_EQ(get("/d"), "<is_a_directory>");
  EXPECT_EQ(get("/"), "<is_a_directory>");
}

TEST_P(BackendFiles, BytesOfARemovedFileStayReadable) {
  put("/f", "kept by the reader");
  const Bytes held = *fs().read(ctx, P("/f"), 0, 0);
  put("/f", "other");
  ASSERT_EQ(kind(fs().write(ctx, P("/f"), "zzzzz", 0, WriteFlag::none)), "ok");
  ASSERT_EQ(kind(fs().remove(ctx, P("/f"))), "ok");
  EXPECT_EQ(held.view(), "kept by the reader");
}

TEST_P(BackendFiles, StatTellsNameSizeKindAndTime) {
  put("/f", "12345");
  make_dir("/d");
  const FileInfo file = *fs().stat(ctx, P("/f"));
  EXPECT_EQ(file.name, "f");
  EXPECT_EQ(file.size, 5U);
  EXPECT_EQ(file.mode, kDefaultFileMode);
  EXPECT_EQ(file.kind, FileKind::file);
  EXPECT_GT(file.mtime_ns, 1'600'000'000'000'000'000);
  const FileInfo dir = *fs().stat(ctx, P("/d"));
  EXPECT_EQ(dir.name, "d");
  EXPECT_EQ(dir.mode, kDefaultDirMode);
  EXPECT_EQ(dir.kind, FileKind::directory);
  const FileInfo root = *fs().stat(ctx, P("/"));
  EXPECT_EQ(root.name, "/");
  EXPECT_TRUE(root.is_dir());
  EXPECT_EQ(kind(fs().stat(ctx, P("/no"))), "not_found");
  EXPECT_EQ(kind(fs().stat(ctx, P("/f/below"))), "not_found");
  EXPECT_EQ(kind(fs().stat(ctx, P("/no/below"))), "not_found");
}

TEST_P(BackendFiles, ExistsIsFalseOnlyForNotFound) {
  put("/f", "x");
  make_dir("/d");
  EXPECT_TRUE(*fs().exists(ctx, P("/f")));
  EXPECT_TRUE(*fs().exists(ctx, P("/d")));
  EXPECT_TRUE(*fs().exists(ctx, P("/")));
  EXPECT_FALSE(*fs().exists(ctx, P("/no")));
  EXPECT_FALSE(*fs().exists(ctx, P("/no/no")));
  EXPECT_FALSE(*fs().exists(ctx, P("/f/below")));
}

TEST_P(BackendFiles, MetaOfReadFileWriteStatAndListingAgree) {
  auto written = fs().write(ctx, P("/f"), "content", 0, WriteFlag::create);
  ASSERT_TRUE(written.has_value());
  const FileContent content = *fs().read_file(ctx, P("/f"));
  const FileInfo info = *fs().stat(ctx, P("/f"));
  const FileInfo listed = fs().read_dir(ctx, P("/"))->at(0);
  EXPECT_EQ(content.meta.version, written->meta.version);
  EXPECT_EQ(*fs().version(ctx, P("/f")), written->meta.version);
  EXPECT_EQ(content.meta.mtime_ns, written->meta.mtime_ns);
  EXPECT_EQ(info.mtime_ns, written->meta.mtime_ns);
  EXPECT_EQ(info.mode, written->meta.mode);
  EXPECT_TRUE(content.meta.cacheable);
  EXPECT_TRUE(written->meta.cacheable);
  EXPECT_EQ(listed, info);
}

TEST_P(BackendFiles, VersionChangesWithEveryContent) {
  std::set<std::string> seen;
  auto note = [&] { EXPECT_TRUE(seen.insert(*fs().version(ctx, P("/f"))).second) << "a version came twice"; };
  for (int i = 0; i < 20; ++i) {
    put("/f", std::string(1, static_cast<char>('a' + i)));  // same size, times within one clock tick
    note();
  }
  EXPECT_EQ(kind(fs().version(ctx, P("/no"))), "not_found");
  EXPECT_EQ(kind(fs().version(ctx, P("/"))), "is_a_directory");
}

TEST_P(BackendFiles, TruncateCutsAndGrowsWithZeros) {
  put("/f", "0123456789");
  ASSERT_EQ(kind(fs().truncate(ctx, P("/f"), 4)), "ok");
  EXPECT_EQ(get("/f"), "0123");
  ASSERT_EQ(kind(fs().truncate(ctx, P("/f"), 6)), "ok");
  EXPECT_EQ(get("/f"), std::string("0123\0\0", 6));
  ASSERT_EQ(kind(fs().truncate(ctx, P("/f"), 0)), "ok");
  EXPECT_EQ(get("/f"), "");
  make_dir("/d");
  EXPECT_EQ(kind(fs().truncate(ctx, P("/no"), 1)), "not_found");
  EXPECT_EQ(kind(fs().truncate(ctx, P("/d"), 1)), "is_a_directory");
}

TEST_P(BackendFiles, TouchCreatesOrSetsTheTime) {
  ASSERT_EQ(kind(fs().touch(ctx, P("/f"))), "ok");
  EXPECT_EQ(get("/f"), "");
  put("/f", "kept");
  const int64_t before = fs().stat(ctx, P("/f"))->mtime_ns;
  const Deadline deadline = Deadline::in_ms(5'000);
  while (fs().stat(ctx, P("/f"))->mtime_ns == before && !deadline.expired()) {
    ASSERT_EQ(kind(fs().touch(ctx, P("/f"))), "ok");
  }
  EXPECT_GT(fs().stat(ctx, P("/f"))->mtime_ns, before);
  EXPECT_EQ(get("/f"), "kept");
  make_dir("/d");
  EXPECT_EQ(kind(fs().touch(ctx, P("/no/f"))), "not_found");
  EXPECT_EQ(kind(fs().touch(ctx, P("/d"))), "is_a_directory");
  EXPECT_EQ(kind(fs().touch(ctx, P("/"))), "is_a_directory");
  EXPECT_EQ(kind(fs().touch(ctx, P("/f/below"))), "not_a_directory");
}

TEST_P(BackendFiles, ChmodChecksExistence) {
  put("/f", "x");
  make_dir("/d");
  EXPECT_EQ(kind(fs().chmod(ctx, P("/f"), 0600)), "ok");
  EXPECT_EQ(kind(fs().chmod(ctx, P("/d"), 0700)), "ok");
  EXPECT_EQ(kind(fs().chmod(ctx, P("/no"), 0600)), "not_found");
  EXPECT_EQ(kind(fs().chmod(ctx, P("/f/below"), 0600)), "not_found");
  const bool kept = GetParam().keeps_modes;
  EXPECT_EQ(fs().stat(ctx, P("/f"))->mode, kept ? 0600U : kDefaultFileMode);
  EXPECT_EQ(fs().stat(ctx, P("/d"))->mode, kept ? 0700U : kDefaultDirMode);
  EXPECT_EQ(get("/f"), "x");
  put("/f", "y");  // a file that was made unwritable or unreadable by chmod stays the owner's
  EXPECT_EQ(get("/f"), "y");
}

// --- writes ---

TEST_P(BackendWrites, CreateReplacesTheWholeContent) {
  put("/f", "long content");
  put("/f", "short");
  EXPECT_EQ(get("/f"), "short");
  put("/f", "");
  EXPECT_EQ(get("/f"), "");
}

TEST_P(BackendWrites, CreateNewRefusesWhatIsThere) {
  EXPECT_EQ(kind(fs().write(ctx, P("/f"), "one", 0, WriteFlag::create_new)), "ok");
  const FileInfo before = *fs().stat(ctx, P("/f"));
  EXPECT_EQ(kind(fs().write(ctx, P("/f"), "two", 0, WriteFlag::create_new)), "already_exists");
  EXPECT_EQ(get("/f"), "one");
  EXPECT_EQ(*fs().stat(ctx, P("/f")), before);
  make_dir("/d");
  EXPECT_EQ(kind(fs().write(ctx, P("/d"), "two", 0, WriteFlag::create_new)), "already_exists");
  EXPECT_EQ(kind(fs().write(ctx, P("/no/f"), "two", 0, WriteFlag::create_new)), "not_found");
}

TEST_P(BackendWrites, TruncateReplacesOnlyWhatExists) {
  EXPECT_EQ(kind(fs().write(ctx, P("/f"), "x", 0, WriteFlag::truncate)), "not_found");
  EXPECT_EQ(get("/f"), "<not_found>");
  put("/f", "old and long");
  EXPECT_EQ(kind(fs().write(ctx, P("/f"), "new", 0, WriteFlag::truncate)), "ok");
  EXPECT_EQ(get("/f"), "new");
}

TEST_P(BackendWrites, AppendIgnoresTheOffset) {
  EXPECT_EQ(kind(fs().write(ctx, P("/f"), "x", 0, WriteFlag::append)), "not_found");
  EXPECT_EQ(get("/f"), "<not_found>");
  put("/f", "one");
  auto written = fs().write(ctx, P("/f"), " two", 1, WriteFlag::append);
  ASSERT_TRUE(written.has_value());
  EXPECT_EQ(written->bytes, 4U);
  EXPECT_EQ(written->meta.size, 7U);
  EXPECT_EQ(get("/f"), "one two");
  for (int i = 0; i < 100; ++i) ASSERT_EQ(kind(fs().write(ctx, P("/f"), "0123456789", 0, WriteFlag::append)), "ok");
  EXPECT_EQ(get("/f").size(), 1007U);
}

TEST_P(BackendWrites, NoneOverwritesInPlaceAndFillsGaps) {
  EXPECT_EQ(kind(fs().write(ctx, P("/f"), "x", 0, WriteFlag::none)), "not_found");
  put("/f", "0123456789");
  ASSERT_EQ(kind(fs().write(ctx, P("/f"), "ab", 3, WriteFlag::none)), "ok");
  EXPECT_EQ(get("/f"), "012ab56789");
  ASSERT_EQ(kind(fs().write(ctx, P("/f"), "end", 9, WriteFlag::none)), "ok");
  EXPECT_EQ(get("/f"), "012ab5678end");
  auto written = fs().write(ctx, P("/f"), "Z", 14, WriteFlag::none);
  ASSERT_TRUE(written.has_value());
  EXPECT_EQ(written->bytes, 1U);
  EXPECT_EQ(written->meta.size, 15U);
  EXPECT_EQ(get("/f"), std::string("012ab5678end\0\0Z", 15));
  ASSERT_EQ(kind(fs().write(ctx, P("/f"), "", 100, WriteFlag::none)), "ok");
  EXPECT_EQ(get("/f").size(), 15U) << "writing nothing extends nothing";
  EXPECT_NE(kind(fs().write(ctx, P("/f"), "x", UINT64_MAX, WriteFlag::none)), "ok");
  EXPECT_EQ(get("/f").size(), 15U);
}

TEST_P(BackendWrites, WholeFileFlagsRefuseAnOffset) {
  put("/f", "kept");
  for (const WriteFlag flag : {WriteFlag::create, WriteFlag::create_new, WriteFlag::truncate}) {
    EXPECT_EQ(kind(fs().write(ctx, P("/f"), "x", 2, flag)), "invalid_operation");
    EXPECT_EQ(kind(fs().write(ctx, P("/new"), "x", 2, flag)), "invalid_operation");
  }
  EXPECT_EQ(get("/f"), "kept");
  EXPECT_EQ(get("/new"), "<not_found>");
}

TEST_P(BackendWrites, EveryFlagNamesABadTarget) {
  make_dir("/d");
  put("/f", "x");
  for (const WriteFlag flag : {WriteFlag::none, WriteFlag::create, WriteFlag::append, WriteFlag::truncate}) {
    EXPECT_EQ(kind(fs().write(ctx, P("/d"), "x", 0, flag)), "is_a_directory") << static_cast<int>(flag);
    EXPECT_EQ(kind(fs().write(ctx, P("/"), "x", 0, flag)), "is_a_directory") << static_cast<int>(flag);
    EXPECT_EQ(kind(fs().write(ctx, P("/no/f"), "x", 0, flag)), "not_found") << static_cast<int>(flag);
  }
  EXPECT_EQ(kind(fs().write(ctx, P("/f/below"), "x", 0, WriteFlag::create)), "not_a_directory");
  EXPECT_EQ(kind(fs().write(ctx, P("/f/below"), "x", 0, WriteFlag::create_new)), "not_a_directory");
  EXPECT_EQ(names("/"), (std::set<std::string>{"d", "f"}));
  EXPECT_TRUE(names("/d").empty());
}

TEST_P(BackendWrites, CompareAndWriteSwapsOnlyWhatMatches) {
  put("/f", "one");
  EXPECT_EQ(fs().compare_and_write(ctx, P("/f"), "two", "three").value(), false);
  EXPECT_EQ(get("/f"), "one");
  EXPECT_EQ(fs().compare_and_write(ctx, P("/f"), "one", "a longer one").value(), true);
  EXPECT_EQ(get("/f"), "a longer one");
  EXPECT_EQ(fs().compare_and_write(ctx, P("/f"), "a longer one", "").value(), true);
  EXPECT_EQ(get("/f"), "");
  EXPECT_EQ(fs().compare_and_write(ctx, P("/f"), "", "x").value(), true);
  EXPECT_EQ(fs().compare_and_write(ctx, P("/no"), "", "x").value(), false);
  EXPECT_EQ(get("/no"), "<not_found>");
  make_dir("/d");
  EXPECT_EQ(kind(fs().compare_and_write(ctx, P("/d"), "", "x")), "is_a_directory");
}

TEST_P(BackendWrites, CompareAndRemoveTakesOnlyWhatMatches) {
  put("/f", "one");
  EXPECT_EQ(fs().compare_and_remove(ctx, P("/f"), "two").value(), false);
  EXPECT_EQ(fs().compare_and_remove(ctx, P("/f"), "on").value(), false);
  EXPECT_EQ(fs().compare_and_remove(ctx, P("/f"), "one").value(), true);
  EXPECT_EQ(get("/f"), "<not_found>");
  EXPECT_EQ(fs().compare_and_remove(ctx, P("/f"), "one").value(), false);
  make_dir("/d");
  EXPECT_EQ(kind(fs().compare_and_remove(ctx, P("/d"), "")), "is_a_directory");
}

// --- directories ---

TEST_P(BackendDirectories, MkdirMakesOne) {
  make_dir("/d");
  EXPECT_TRUE(fs().stat(ctx, P("/d"))->is_dir());
  EXPECT_TRUE(names("/d").empty());
  EXPECT_EQ(kind(fs().mkdir(ctx, P("/a/b"), 0755)), "not_found");
  EXPECT_EQ(get("/a"), "<not_found>");
}

TEST_P(BackendDirectories, EnsureParentDirsMakesAncestorsOnly) {
  ASSERT_EQ(kind(fs().ensure_parent_dirs(ctx, P("/a/b/c/f"), 0755)), "ok");
  EXPECT_EQ(names("/"), std::set<std::string>{"a"});
  EXPECT_EQ(names("/a/b"), std::set<std::string>{"c"});
  EXPECT_TRUE(names("/a/b/c").empty());
  EXPECT_EQ(kind(fs().ensure_parent_dirs(ctx, P("/a/b/c/f"), 0755)), "ok");
  EXPECT_EQ(kind(fs().ensure_parent_dirs(ctx, P("/top"), 0755)), "ok");
  EXPECT_EQ(kind(fs().ensure_parent_dirs(ctx, P("/"), 0755)), "ok");
  put("/a/f", "x");
  EXPECT_EQ(kind(fs().ensure_parent_dirs(ctx, P("/a/f/x"), 0755)), "not_a_directory");
  EXPECT_EQ(kind(fs().ensure_parent_dirs(ctx, P("/a/f/x/y"), 0755)), "not_a_directory");
  EXPECT_EQ(get("/a/f"), "x");
}

TEST_P(BackendDirectories, ReadDirListsDirectChildren) {
  make_dir("/d");
  make_dir("/d/sub");
  put("/d/sub/deep", "x");
  put("/d/f", "12");
  put("/d/.hidden", "");
  put("/d2", "not in /d");
  EXPECT_EQ(names("/d"), (std::set<std::string>{"sub", "f", ".hidden"}));
  EXPECT_EQ(names("/"), (std::set<std::string>{"d", "d2"}));
  const std::vector<FileInfo> entries = *fs().read_dir(ctx, P("/d"));
  for (const FileInfo& entry : entries) {
    EXPECT_EQ(entry.is_dir(), entry.name == "sub");
    EXPECT_EQ(entry.size, entry.name == "f" ? 2U : entry.is_dir() ? entry.size : 0U);
  }
  EXPECT_EQ(fs().read_internal_dir(ctx, P("/d"))->size(), 3U);
  EXPECT_EQ(kind(fs().read_dir(ctx, P("/no"))), "not_found");
  EXPECT_EQ(kind(fs().read_dir(ctx, P("/d2"))), "not_a_directory");
  EXPECT_EQ(kind(fs().read_internal_dir(ctx, P("/no"))), "not_found");
}

TEST_P(BackendDirectories, RemoveTakesAFileOrAnEmptyDirectory) {
  make_dir("/d");
  put("/d/f", "x");
  EXPECT_EQ(kind(fs().remove(ctx, P("/d"))), "directory_not_empty");
  EXPECT_EQ(kind(fs().remove(ctx, P("/"))), "directory_not_empty");
  EXPECT_EQ(kind(fs().remove(ctx, P("/d/f"))), "ok");
  EXPECT_EQ(kind(fs().remove(ctx, P("/d/f"))), "not_found");
  EXPECT_EQ(kind(fs().remove(ctx, P("/d"))), "ok");
  EXPECT_EQ(kind(fs().remove(ctx, P("/d"))), "not_found");
  EXPECT_EQ(kind(fs().remove(ctx, P("/no/no"))), "not_found");
  EXPECT_EQ(kind(fs().remove(ctx, P("/"))), "invalid_operation");
  put("/f", "x");
  EXPECT_EQ(kind(fs().remove(ctx, P("/f/below"))), "not_found");
  EXPECT_EQ(get("/f"), "x");
}

TEST_P(BackendDirectories, RemoveAllTakesEverythingAndNothingElse) {
  ASSERT_EQ(kind(fs().ensure_parent_dirs(ctx, P("/t/a/b/f"), 0755)), "ok");
  put("/t/a/b/f", "x");
  put("/t/.hidden", "x");
  make_dir("/tt");
  put("/tt/f", "sibling");
  put("/single", "x");
  EXPECT_EQ(kind(fs().remove_all(ctx, P("/t"))), "ok");
  EXPECT_EQ(kind(fs().stat(ctx, P("/t"))), "not_found");
  EXPECT_EQ(get("/tt/f"), "sibling");
  EXPECT_EQ(kind(fs().remove_all(ctx, P("/t"))), "not_found");
  EXPECT_EQ(kind(fs().remove_all(ctx, P("/single"))), "ok") << "a plain file is removed too";
  EXPECT_EQ(kind(fs().remove_all(ctx, P("/tt/f/below"))), "not_found");
  EXPECT_EQ(kind(fs().remove_all(ctx, P("/"))), "ok");
  EXPECT_TRUE(fs().stat(ctx, P("/"))->is_dir()) << "the root stays";
  EXPECT_TRUE(names("/").empty());
  put("/again", "works");
  EXPECT_EQ(get("/again"), "works");
}

// --- replace, copy ---

TEST_P(BackendCopies, ReplaceMovesAFileOverAnother) {
  put("/a", "new");
  put("/b", "old");
  make_dir("/d");
  EXPECT_EQ(kind(fs().replace(ctx, P("/a"), P("/b"))), "ok");
  EXPECT_EQ(get("/a"), "<not_found>");
  EXPECT_EQ(get("/b"), "new");
  EXPECT_EQ(kind(fs().replace(ctx, P("/b"), P("/d/c"))), "ok");
  EXPECT_EQ(get("/d/c"), "new");
  EXPECT_EQ(kind(fs().replace(ctx, P("/no"), P("/d/c"))), "not_found");
  EXPECT_EQ(kind(fs().replace(ctx, P("/d"), P("/e"))), "invalid_operation");
  EXPECT_EQ(kind(fs().replace(ctx, P("/d"), P("/d/c"))), "invalid_operation");
  EXPECT_EQ(kind(fs().replace(ctx, P("/d/c"), P("/d"))), "is_a_directory");
  EXPECT_EQ(kind(fs().replace(ctx, P("/d/c"), P("/"))), "is_a_directory");
  EXPECT_EQ(kind(fs().replace(ctx, P("/d/c"), P("/no/c"))), "not_found");
  EXPECT_EQ(kind(fs().replace(ctx, P("/d/c"), P("/d/c"))), "ok");
  EXPECT_EQ(get("/d/c"), "new");
}

TEST_P(BackendCopies, CopyMakesParentsAndReplaces) {
  put("/a", "content");
  auto copied = fs().copy(ctx, P("/a"), P("/x/y/b"));
  ASSERT_TRUE(copied.has_value()) << copied.error().text();
  EXPECT_EQ(copied->bytes, 7U);
  EXPECT_EQ(copied->meta.size, 7U);
  EXPECT_EQ(copied->meta.version, *fs().version(ctx, P("/x/y/b")));
  EXPECT_EQ(get("/x/y/b"), "content");
  EXPECT_EQ(get("/a"), "content");
  put("/a", "changed later");
  EXPECT_EQ(get("/x/y/b"), "content");
  ASSERT_EQ(kind(fs().copy(ctx, P("/a"), P("/x/y/b"))), "ok");
  EXPECT_EQ(get("/x/y/b"), "changed later");
  ASSERT_EQ(kind(fs().write(ctx, P("/x/y/b"), "!", 0, WriteFlag::append)), "ok");
  ASSERT_EQ(kind(fs().write(ctx, P("/a"), "?", 0, WriteFlag::append)), "ok");
  EXPECT_EQ(get("/a"), "changed later?");
  EXPECT_EQ(get("/x/y/b"), "changed later!");
}

TEST_P(BackendCopies, CopyErrorsLeaveTheTarget) {
  put("/a", "content");
  put("/b", "kept");
  make_dir("/d");
  EXPECT_EQ(kind(fs().copy(ctx, P("/no"), P("/b"))), "not_found");
  EXPECT_EQ(get("/b"), "kept");
  EXPECT_EQ(kind(fs().copy(ctx, P("/d"), P("/b"))), "is_a_directory");
  EXPECT_EQ(kind(fs().copy(ctx, P("/a"), P("/d"))), "is_a_directory");
  EXPECT_EQ(kind(fs().copy(ctx, P("/a"), P("/"))), "is_a_directory");
  EXPECT_EQ(kind(fs().copy(ctx, P("/a"), P("/b/below"))), "not_a_directory");
  EXPECT_EQ(kind(fs().copy(ctx, P("/no"), P("/new/b"))), "not_found");
  EXPECT_EQ(names("/"), (std::set<std::string>{"a", "b", "d"})) << "a copy of nothing makes no parents";
  EXPECT_EQ(kind(fs().copy(ctx, P("/a"), P("/a"))), "ok");
  EXPECT_EQ(get("/a"), "content");
}

}  // namespace
}  // namespace ragfs::contract
