// Bug reports of other file systems as tests of every backend.
#include <algorithm>

#include "tests/contract/backend_contract.h"

namespace ragfs::contract {
namespace {

RAGFS_BACKEND_SUITE(CaseA07);
RAGFS_BACKEND_SUITE(CaseA08);
RAGFS_BACKEND_SUITE(CaseA11);
RAGFS_BACKEND_SUITE(CaseA13);
RAGFS_BACKEND_SUITE(CaseA23);
RAGFS_BACKEND_SUITE(CaseA31);
RAGFS_BACKEND_SUITE(CaseA32);
RAGFS_BACKEND_SUITE(CaseA40);
RAGFS_BACKEND_SUITE(CaseA41);
RAGFS_BACKEND_SUITE(CaseB13);
RAGFS_BACKEND_SUITE(CaseB22);
RAGFS_BACKEND_SUITE(CaseD16);
RAGFS_BACKEND_SUITE(CaseD31);
RAGFS_BACKEND_SUITE(CaseD34);
RAGFS_BACKEND_SUITE(CaseD44);

// "parent directory does not exist", or a listing of the parent that is empty while the child can be read.
TEST_P(CaseA07, ParentsExistWhileAChildDoes) {
  ASSERT_EQ(kind(fs().ensure_parent_dirs(ctx, P("/a/b/c.md"), 0755)), "ok");
  put("/a/b/c.md", "x");
  EXPECT_TRUE(fs().stat(ctx, P("/a"))->is_dir());
  EXPECT_TRUE(fs().stat(ctx, P("/a/b"))->is_dir());
  EXPECT_EQ(names("/"), std::set<std::string>{"a"});
  EXPECT_EQ(names("/a"), std::set<std::string>{"b"});
  put("/a/b/d.md", "y");
  ASSERT_EQ(kind(fs().remove(ctx, P("/a/b/c.md"))), "ok");
  ASSERT_EQ(kind(fs().remove(ctx, P("/a/b/d.md"))), "ok");
  EXPECT_EQ(kind(fs().stat(ctx, P("/a/b"))), fs().traits().implicit_directories ? "not_found" : "ok");
}

// Moving a directory listed with a limit of 1000 lost the rest.
TEST_P(CaseA08, DirectoriesOfManyEntriesMoveAndGoWhole) {
  for (const size_t count : {999, 1000, 1001, 2500}) {
    SCOPED_TRACE(count);
    make_dir("/from");
    std::set<std::string> expected;
    for (size_t i = 0; i < count; ++i) {
      const std::string name = (i % 10 == 0 ? ".hidden-" : "f-") + std::to_string(i);
      expected.insert(name);
      ASSERT_EQ(kind(fs().create(ctx, P("/from/" + name))), "ok");
    }
    ASSERT_EQ(names("/from"), expected);
    ASSERT_EQ(kind(fs().rename(ctx, P("/from"), P("/to"))), "ok");
    EXPECT_EQ(kind(fs().stat(ctx, P("/from"))), "not_found");
    ASSERT_EQ(names("/to"), expected);
    for (const std::string& name : expected) {
      ASSERT_EQ(kind(fs().copy(ctx, P("/to/" + name), P("/copy/" + name))), "ok");
    }
    EXPECT_EQ(names("/copy"), expected);
    ASSERT_EQ(kind(fs().remove_all(ctx, P("/to"))), "ok");
    EXPECT_EQ(kind(fs().stat(ctx, P("/to"))), "not_found");
    EXPECT_EQ(names("/copy"), expected);
    ASSERT_EQ(kind(fs().remove_all(ctx, P("/copy"))), "ok");
  }
}

TEST_P(CaseA11, MkdirNamesWhatIsWrong) {
  make_dir("/d");
  put("/f", "x");
  EXPECT_EQ(kind(fs().mkdir(ctx, P("/d"), 0755)), "already_exists");
  EXPECT_EQ(kind(fs().mkdir(ctx, P("/f"), 0755)), "already_exists");
  EXPECT_EQ(kind(fs().mkdir(ctx, P("/"), 0755)), "already_exists");
  EXPECT_EQ(kind(fs().mkdir(ctx, P("/no/d"), 0755)), "not_found");
  EXPECT_EQ(kind(fs().mkdir(ctx, P("/f/d"), 0755)), "not_a_directory");
  EXPECT_EQ(kind(fs().mkdir(ctx, P("/f/d/e"), 0755)), "not_a_directory");
  EXPECT_EQ(get("/f"), "x");
}

// The guard stands where paths enter: nothing that could escape becomes a PathView.
TEST_P(CaseA13, PathsThatCouldEscapeAreNoPaths) {
  put("/f", "x");
  for (const std::string_view raw : {"/..", "/../etc/passwd", "/a/../../etc", "..", "/f/..", "/./.."}) {
    EXPECT_EQ(kind(Path::parse(raw)), "invalid_path") << raw;
    EXPECT_FALSE(PathView::is_normal(raw)) << raw;
  }
  EXPECT_EQ(kind(Path::parse(std::string_view("/a\0b", 4))), "invalid_path");
  for (const std::string_view raw : {"//f", "/./f", "f", "/f/", "/f/."}) {
    EXPECT_EQ(fs().read(ctx, *Path::parse(raw), 0, 0)->view(), "x") << raw;
  }
  put("/..f", "dots are fine in names");
  EXPECT_EQ(get("/..f"), "dots are fine in names");
  EXPECT_EQ(get("/..."), "<not_found>");
}

TEST_P(CaseA23, BytesComeBackAsTheyWere) {
  std::string all_bytes;
  for (int byte = 0; byte < 256; ++byte) all_bytes += static_cast<char>(byte);
  const std::vector<std::string> contents = {std::string("\xff\x00\x80\x61", 4),
                                             "",
                                             "x",
                                             std::string(1, '\0'),
                                             "\xed\xa0\x80",
                                             "\xed\xbf\xbf",
                                             "line\r\nline\n\n",
                                             all_bytes};
  for (const std::string& content : contents) {
    put("/f", content);
    EXPECT_EQ(get("/f"), content);
    EXPECT_EQ(fs().read(ctx, P("/f"), 0, 0)->view(), content);
    EXPECT_EQ(fs().stat(ctx, P("/f"))->size, content.size());
    ASSERT_EQ(kind(fs().write(ctx, P("/f"), content, 0, WriteFlag::append)), "ok");
    EXPECT_EQ(get("/f"), content + content);
    ASSERT_EQ(kind(fs().copy(ctx, P("/f"), P("/g"))), "ok");
    EXPECT_EQ(get("/g"), content + content);
    ASSERT_TRUE(*fs().compare_and_write(ctx, P("/g"), content + content, content));
    EXPECT_EQ(get("/g"), content);
  }
}

// Names from Chinese headings passed 255 bytes.
TEST_P(CaseA31, NamesOf255BytesWorkInEveryOperation) {
  std::string cjk;
  for (int i = 0; i < 85; ++i) cjk += "\xe4\xb8\xad";  // 85 characters of 3 bytes
  for (const std::string& name : {std::string(255, 'n'), cjk, std::string(250, 'n') + ".lock"}) {
    ASSERT_EQ(name.size(), 255U);
    const std::string path = "/" + name;
    put(path, "one");
    put(path, "two");
    ASSERT_EQ(kind(fs().write(ctx, P(path), "3", 0, WriteFlag::append)), "ok");
    ASSERT_EQ(kind(fs().write(ctx, P(path), "four", 0, WriteFlag::truncate)), "ok");
    ASSERT_TRUE(*fs().compare_and_write(ctx, P(path), "four", "five"));
    EXPECT_EQ(get(path), "five");
    EXPECT_EQ(names("/"), std::set<std::string>{name});
    make_dir("/d");
    ASSERT_EQ(kind(fs().copy(ctx, P(path), P("/d" + path))), "ok");
    ASSERT_EQ(kind(fs().rename(ctx, P(path), P("/d" + path))), "ok");
    ASSERT_EQ(kind(fs().write(ctx, P("/d" + path), "x", 0, WriteFlag::create_new)), "already_exists");
    EXPECT_EQ(get("/d" + path), "five");
    ASSERT_EQ(kind(fs().remove_all(ctx, P("/d"))), "ok");
    make_dir(path);
    ASSERT_EQ(kind(fs().remove(ctx, P(path))), "ok");
  }
}

TEST_P(CaseA31, LongerNamesAndPathsAreRefusedAlike) {
  std::string cjk;
  for (int i = 0; i < 86; ++i) cjk += "\xe4\xb8\xad";
  EXPECT_EQ(kind(Path::parse("/" + cjk)), "invalid_path");
  EXPECT_EQ(kind(Path::parse("/" + std::string(256, 'n'))), "invalid_path");
  EXPECT_EQ(kind(Path::join(PathView(), std::string(256, 'n'))), "invalid_path");
  std::string deep;
  while (deep.size() + 2 <= 4095) deep += "/p";
  ASSERT_EQ(deep.size(), 4094U);
  EXPECT_EQ(kind(Path::parse(deep + "/p")), "invalid_path");
  // The longest path that is one works, or is refused without leaving half of it.
  const auto parents = fs().ensure_parent_dirs(ctx, P(deep), 0755);
  ASSERT_TRUE(parents.has_value()) << parents.error().text();
  put(deep, "deep");
  EXPECT_EQ(get(deep), "deep");
  ASSERT_EQ(kind(fs().remove_all(ctx, P("/p"))), "ok");
  EXPECT_TRUE(names("/").empty());
}

TEST_P(CaseA32, NamesAreBytes) {
  const std::set<std::string> odd = {
      "caf\xc3\xa9",   // NFC
      "cafe\xcc\x81",  // NFD of the same letter
      "\xff\xfe",
      "a\xff",
      " leading",
      "trailing ",
      "back\\slash",
      "new\nline",
      "tab\t",
      "*",
      "?",
      "[a]",
      "-rf",
      "~",
      "\xe4\xb8\xad\xe6\x96\x87 name.md",
      "...",
      ".ragfs-tmp-mine",
      ".ragfs-tmp-",
  };
  for (const std::string& name : odd) put("/" + name, "content of " + name);
  EXPECT_EQ(names("/"), odd);
  for (const std::string& name : odd) {
    EXPECT_EQ(get("/" + name), "content of " + name);
    EXPECT_EQ(fs().stat(ctx, P("/" + name))->name, name);
  }
  for (const std::string& name : odd) EXPECT_EQ(kind(fs().remove(ctx, P("/" + name))), "ok");
  EXPECT_TRUE(names("/").empty());
}

// A late write below a tree that was removed must not bring the tree back.
TEST_P(CaseA40, WritesBelowARemovedTreeDoNotRecreateIt) {
  ASSERT_EQ(kind(fs().ensure_parent_dirs(ctx, P("/t/sub/f"), 0755)), "ok");
  put("/t/sub/f", "x");
  ASSERT_EQ(kind(fs().remove_all(ctx, P("/t"))), "ok");
  EXPECT_EQ(kind(fs().write(ctx, P("/t/sub/f"), "late", 0, WriteFlag::create)), "not_found");
  EXPECT_EQ(kind(fs().write(ctx, P("/t/sub/f"), "late", 0, WriteFlag::append)), "not_found");
  EXPECT_EQ(kind(fs().create(ctx, P("/t/sub/g"))), "not_found");
  EXPECT_EQ(kind(fs().touch(ctx, P("/t/sub/g"))), "not_found");
  EXPECT_EQ(kind(fs().mkdir(ctx, P("/t/sub"), 0755)), "not_found");
  put("/other", "x");
  EXPECT_EQ(kind(fs().rename(ctx, P("/other"), P("/t/sub/g"))), "not_found");
  EXPECT_EQ(kind(fs().replace(ctx, P("/other"), P("/t/sub/g"))), "not_found");
  EXPECT_EQ(names("/"), std::set<std::string>{"other"});
}

TEST_P(CaseA41, FilesOfZeroToFourBytes) {
  for (size_t size = 0; size <= 4; ++size) {
    const std::string content = std::string("OVE1").substr(0, size);
    put("/f", content);
    EXPECT_EQ(get("/f"), content);
    EXPECT_EQ(fs().read(ctx, P("/f"), 0, 4)->view(), content);
    EXPECT_EQ(fs().read(ctx, P("/f"), 1, 4)->view(), size > 1 ? content.substr(1) : "");
    ASSERT_EQ(kind(fs().copy(ctx, P("/f"), P("/g"))), "ok");
    EXPECT_EQ(get("/g"), content);
  }
}

// Sizes past 2 and 4 GiB wrapped.
TEST_P(CaseB13, SizesAndOffsetsPast32Bits) {
  put("/f", "start");
  constexpr uint64_t kGiB = 1ULL << 30;
  for (const uint64_t size : {2 * kGiB - 1, 2 * kGiB, 4 * kGiB + 1}) {
    SCOPED_TRACE(size);
    if (!GetParam().sparse_files) {
      EXPECT_EQ(kind(fs().truncate(ctx, P("/f"), 4 * kGiB + size)), "full") << "refused cleanly";
      EXPECT_EQ(get("/f"), "start");
      continue;
    }
    ASSERT_EQ(kind(fs().truncate(ctx, P("/f"), 5)), "ok");
    ASSERT_EQ(kind(fs().truncate(ctx, P("/f"), size)), "ok");
    EXPECT_EQ(fs().stat(ctx, P("/f"))->size, size);
    auto written = fs().write(ctx, P("/f"), "END", size, WriteFlag::none);
    ASSERT_EQ(kind(written), "ok");
    EXPECT_EQ(written->meta.size, size + 3);
    EXPECT_EQ(fs().read(ctx, P("/f"), size - 1, 0)->view(), std::string("\0END", 4));
    EXPECT_EQ(fs().read(ctx, P("/f"), size + 1, 1)->view(), "N");
    EXPECT_EQ(fs().read(ctx, P("/f"), size + 3, 0)->view(), "");
    ASSERT_EQ(kind(fs().write(ctx, P("/f"), "!", 0, WriteFlag::append)), "ok");
    EXPECT_EQ(fs().read(ctx, P("/f"), size, 100)->view(), "END!");
    EXPECT_EQ(fs().read(ctx, P("/f"), 0, 6)->view(), std::string("start\0", 6));
  }
}

TEST_P(CaseB22, EmptyFileEmptyDirectoryAndNothingAreThreeThings) {
  put("/empty", "");
  make_dir("/dir");
  EXPECT_EQ(get("/empty"), "");
  EXPECT_EQ(fs().stat(ctx, P("/empty"))->size, 0U);
  EXPECT_EQ(kind(fs().read_dir(ctx, P("/empty"))), "not_a_directory");
  EXPECT_EQ(get("/dir"), "<is_a_directory>");
  EXPECT_EQ(fs().read_dir(ctx, P("/dir"))->size(), 0U);
  EXPECT_EQ(get("/absent"), "<not_found>");
  EXPECT_EQ(kind(fs().read_dir(ctx, P("/absent"))), "not_found");
}

TEST_P(CaseD16, WhatWasAbsentIsVisibleOnceCreated) {
  EXPECT_FALSE(*fs().exists(ctx, P("/f")));
  EXPECT_EQ(kind(fs().stat(ctx, P("/f"))), "not_found");
  put("/f", "x");
  EXPECT_TRUE(*fs().exists(ctx, P("/f")));
  EXPECT_EQ(names("/"), std::set<std::string>{"f"});
  EXPECT_EQ(get("/f"), "x");
}

// One rule for renames on every backend.
TEST_P(CaseD31, FilesReplaceFiles) {
  put("/a", "new");
  put("/b", "old");
  EXPECT_EQ(kind(fs().rename(ctx, P("/a"), P("/b"))), "ok");
  EXPECT_EQ(get("/a"), "<not_found>");
  EXPECT_EQ(get("/b"), "new");
  EXPECT_EQ(kind(fs().rename(ctx, P("/b"), P("/b"))), "ok");
  EXPECT_EQ(get("/b"), "new");
  EXPECT_EQ(kind(fs().rename(ctx, P("/no"), P("/b"))), "not_found");
  EXPECT_EQ(kind(fs().rename(ctx, P("/no"), P("/no"))), "not_found");
  EXPECT_EQ(kind(fs().rename(ctx, P("/b"), P("/no/b"))), "not_found");
  EXPECT_EQ(kind(fs().rename(ctx, P("/b/below"), P("/c"))), "not_found");
  put("/c", "x");
  EXPECT_EQ(kind(fs().rename(ctx, P("/b"), P("/c/below"))), "not_a_directory");
  EXPECT_EQ(get("/b"), "new");
}

TEST_P(CaseD31, DirectoriesReplaceOnlyEmptyDirectories) {
  ASSERT_EQ(kind(fs().ensure_parent_dirs(ctx, P("/d/sub/f"), 0755)), "ok");
  put("/d/sub/f", "moved");
  make_dir("/empty");
  make_dir("/full");
  put("/full/f", "kept");
  EXPECT_EQ(kind(fs().rename(ctx, P("/d"), P("/full"))), "directory_not_empty");
  EXPECT_EQ(get("/full/f"), "kept");
  EXPECT_EQ(kind(fs().rename(ctx, P("/d"), P("/full/f"))), "not_a_directory");
  EXPECT_EQ(kind(fs().rename(ctx, P("/full/f"), P("/d"))), "is_a_directory");
  EXPECT_EQ(kind(fs().rename(ctx, P("/full/f"), P("/empty"))), "is_a_directory");
  EXPECT_EQ(kind(fs().rename(ctx, P("/d"), P("/empty"))), "ok");
  EXPECT_EQ(get("/empty/sub/f"), "moved");
  EXPECT_EQ(kind(fs().stat(ctx, P("/d"))), "not_found");
  EXPECT_EQ(kind(fs().rename(ctx, P("/empty"), P("/fresh"))), "ok");
  EXPECT_EQ(get("/fresh/sub/f"), "moved");
}

TEST_P(CaseD31, NothingMovesIntoItselfOrOverItsAncestors) {
  ASSERT_EQ(kind(fs().ensure_parent_dirs(ctx, P("/d/sub/f"), 0755)), "ok");
  put("/d/sub/f", "x");
  EXPECT_EQ(kind(fs().rename(ctx, P("/d"), P("/d"))), "ok");
  EXPECT_EQ(kind(fs().rename(ctx, P("/d"), P("/d/in"))), "invalid_operation");
  EXPECT_EQ(kind(fs().rename(ctx, P("/d"), P("/d/sub/in"))), "invalid_operation");
  EXPECT_EQ(kind(fs().rename(ctx, P("/d"), P("/d/sub"))), "invalid_operation");
  EXPECT_EQ(kind(fs().rename(ctx, P("/"), P("/d/in"))), "invalid_operation");
  EXPECT_EQ(kind(fs().rename(ctx, P("/"), P("/"))), "ok");
  EXPECT_EQ(kind(fs().rename(ctx, P("/d/sub"), P("/d"))), "directory_not_empty");
  EXPECT_EQ(kind(fs().rename(ctx, P("/d/sub/f"), P("/d"))), "directory_not_empty");
  EXPECT_EQ(kind(fs().rename(ctx, P("/d"), P("/"))), "directory_not_empty");
  EXPECT_EQ(get("/d/sub/f"), "x") << "nothing was lost";
  make_dir("/dd");
  EXPECT_EQ(kind(fs().rename(ctx, P("/d"), P("/dd/in"))), "ok") << "/dd is not within /d";
  EXPECT_EQ(get("/dd/in/sub/f"), "x");
}

TEST_P(CaseD34, NamesAreListedOnceWhateverHappenedToThem) {
  for (int i = 0; i < 20; ++i) {
    put("/f", "x");
    make_dir("/d");
    ASSERT_EQ(kind(fs().remove(ctx, P("/f"))), "ok");
    ASSERT_EQ(kind(fs().remove_all(ctx, P("/d"))), "ok");
  }
  put("/f", "x");
  put("/f", "y");
  make_dir("/d");
  EXPECT_EQ(names("/"), (std::set<std::string>{"d", "f"}));  // names() fails on a name that comes twice
}

TEST_P(CaseD44, OneMtimeForOneWrite) {
  for (const WriteFlag flag : {WriteFlag::create, WriteFlag::append, WriteFlag::none, WriteFlag::truncate}) {
    auto written = fs().write(ctx, P("/f"), "content", 0, flag);
    ASSERT_EQ(kind(written), "ok");
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(fs().stat(ctx, P("/f"))->mtime_ns, written->meta.mtime_ns);
      EXPECT_EQ(fs().read_file(ctx, P("/f"))->meta.mtime_ns, written->meta.mtime_ns);
      EXPECT_EQ(fs().read_dir(ctx, P("/"))->at(0).mtime_ns, written->meta.mtime_ns);
      EXPECT_EQ(*fs().version(ctx, P("/f")), written->meta.version);
    }
  }
}

}  // namespace
}  // namespace ragfs::contract
