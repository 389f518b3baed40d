// Faults of the host's file system, entering where the kernel gives them.
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "ragfs/backends/local/local_test_tree.h"
#include "ragfs/base/pause_point.h"

namespace ragfs {
namespace {

namespace host = std::filesystem;

class LocalFaults : public LocalTestTree {};
class CaseA10 : public LocalTestTree {};
class CaseA11LocalErrors : public LocalTestTree {};
class CaseA37 : public LocalTestTree {};
class CaseA40LocalDeadline : public LocalTestTree {};
class CaseB14 : public LocalTestTree {};
class CaseD40LocalFullDisk : public LocalTestTree {};

// Each call that a whole operation makes, for the sweeps below.
constexpr const char* kCalls[] = {"openat",          "openat2",   "close",    "pread",  "write",      "pwrite",
                                  "copy_file_range", "fstat",     "fstatat",  "statx",  "getdents64", "rewind",
                                  "readlinkat",      "ftruncate", "futimens", "fchmod", "fdatasync",  "fsync",
                                  "try_lock",        "mkdirat",   "unlinkat", "linkat", "renameat2"};

struct Operation {
  const char* name;
  std::function<Error(LocalFileSystem&, const Context&)> run;  // code cancelled = success
};

template <typename T>
Error error_of(Result<T> result) {
  return result ? Error{.code = ErrorCode::cancelled, .message = "", .sys_errno = 0} : std::move(result.error());
}

PathView V(std::string_view text) { return PathView::from_normal(text); }

// What each leaves of /d/f must be "old content" or what it writes.
std::vector<Operation> operations() {
  return {
      {"create", [](auto& fs, auto& ctx) { return error_of(fs.create(ctx, V("/d/new"))); }},
      {"mkdir", [](auto& fs, auto& ctx) { return error_of(fs.mkdir(ctx, V("/d/newdir"), 0755)); }},
      {"ensure", [](auto& fs, auto& ctx) { return error_of(fs.ensure_parent_dirs(ctx, V("/d/x/y/z"), 0755)); }},
      {"read", [](auto& fs, auto& ctx) { return error_of(fs.read(ctx, V("/d/f"), 1, 4)); }},
      {"read_file", [](auto& fs, auto& ctx) { return error_of(fs.read_file(ctx, V("/d/f"))); }},
      {"write",
       [](auto& fs, auto& ctx) { return error_of(fs.write(ctx, V("/d/f"), "new content", 0, WriteFlag::create)); }},
      {"write_new",
       [](auto& fs, auto& ctx) { return error_of(fs.write(ctx, V("/d/n"), "new content", 0, WriteFlag::create_new)); }},
      {"append", [](auto& fs, auto& ctx) { return error_of(fs.write(ctx, V("/d/f"), "+more", 0, WriteFlag::append)); }},
      {"compare_and_write",
       [](auto& fs, auto& ctx) {
         return error_of(fs.compare_and_write(ctx, V("/d/f"), "old content", "new content"));
       }},
      {"compare_and_remove",
       [](auto& fs, auto& ctx) { return error_of(fs.compare_and_remove(ctx, V("/d/g"), "other")); }},
      {"touch", [](auto& fs, auto& ctx) { return error_of(fs.touch(ctx, V("/d/f"))); }},
      {"truncate", [](auto& fs, auto& ctx) { return error_of(fs.truncate(ctx, V("/d/g"), 2)); }},
      {"chmod", [](auto& fs, auto& ctx) { return error_of(fs.chmod(ctx, V("/d/f"), 0600)); }},
      {"read_dir", [](auto& fs, auto& ctx) { return error_of(fs.read_dir(ctx, V("/d"))); }},
      {"stat", [](auto& fs, auto& ctx) { return error_of(fs.stat(ctx, V("/d/f"))); }},
      {"stat_top", [](auto& fs, auto& ctx) { return error_of(fs.stat(ctx, V("/d"))); }},
      {"exists", [](auto& fs, auto& ctx) { return error_of(fs.exists(ctx, V("/d/f"))); }},
      {"version", [](auto& fs, auto& ctx) { return error_of(fs.version(ctx, V("/d/f"))); }},
      {"rename", [](auto& fs, auto& ctx) { return error_of(fs.rename(ctx, V("/d/g"), V("/e/g"))); }},
      {"replace", [](auto& fs, auto& ctx) { return error_of(fs.replace(ctx, V("/d/g"), V("/e/g"))); }},
      {"copy", [](auto& fs, auto& ctx) { return error_of(fs.copy(ctx, V("/d/f"), V("/new/dir/copy"))); }},
      {"remove", [](auto& fs, auto& ctx) { return error_of(fs.remove(ctx, V("/d/g"))); }},
      {"remove_all", [](auto& fs, auto& ctx) { return error_of(fs.remove_all(ctx, V("/t"))); }},
      {"remove_root", [](auto& fs, auto& ctx) { return error_of(fs.remove_all(ctx, V("/"))); }},
      {"through_link",
       [](auto& fs, auto& ctx) { return error_of(fs.write(ctx, V("/link"), "new content", 0, WriteFlag::create)); }},
  };
}

void make_tree(const host::path& root) {
  for (const auto& entry : host::directory_iterator(root)) host::remove_all(entry.path());
  host::create_directories(root / "d");
  host::create_directories(root / "e");
  host::create_directories(root / "t/sub/deep");
  for (const auto& [path, content] : std::initializer_list<std::pair<const char*, const char*>>{
           {"d/f", "old content"}, {"d/g", "other"}, {"t/a", "a"}, {"t/sub/b", "b"}, {"t/sub/deep/c", "c"}}) {
    std::ofstream(root / path) << content;
  }
  host::create_symlink("d/f", root / "link");
}

// Every call of every operation fails once. The operation says so with the code of that errno, and never not_found;
// nothing half-made is left; no descriptor leaks.
TEST_F(LocalFaults, EveryFailingCallIsAnErrorAndLeavesOldOrNew) {
  LocalConfig config;
  config.sync_writes = true;  // so that the syncs are part of the sweep
  open(config);
  const size_t fds_before = files.open_fds();
  int injected = 0;
  for (const Operation& operation : operations()) {
    for (const char* call : kCalls) {
      for (int nth = 0;; ++nth) {
        SCOPED_TRACE(std::string(operation.name) + ": " + call + " #" + std::to_string(nth));
        make_tree(root);
        files.clear();
        files.reset_calls();
        files.add(Fault(call, EIO).after(nth));
        const Error error = operation.run(*fs, ctx);
        const bool reached = files.calls(call) > nth;
        files.clear();
        if (!reached) break;
        ++injected;
        ASSERT_LT(nth, 100);
        // Calls whose failure the operation may outlive: it reads with other descriptors, or gives up a courtesy.
        const bool optional = std::string_view(call) == "close" || std::string_view(call) == "unlinkat";
        if (error.code == ErrorCode::cancelled) {
          EXPECT_TRUE(optional) << "an I/O error was taken for success";
        } else {
          EXPECT_EQ(kind_name(error.code), "io");
          EXPECT_EQ(error.sys_errno, EIO);
        }
        EXPECT_EQ(files.open_fds(), fds_before) << "a descriptor leaked";
        const std::string_view what(operation.name);
        if (what == "remove_root") continue;
        const std::string content = host_read(root / "d/f");
        EXPECT_TRUE(content == "old content" || content == "new content" || content == "old content+more") << content;
        if (std::string_view(call) == "unlinkat") continue;  // it is what removes them
        for (const char* dir : {"d", "e"}) {
          for (const std::string& name : host_names(root / dir)) EXPECT_FALSE(TempNames::is_temp(name)) << name;
        }
      }
    }
  }
  EXPECT_GT(injected, 150) << "the sweep lost its operations";
}

TEST_F(LocalFaults, InterruptedCallsAreRepeated) {
  for (const Operation& operation : operations()) {
    for (const char* call : kCalls) {
      if (std::string_view(call) == "close") continue;  // an interrupted close has closed
      SCOPED_TRACE(std::string(operation.name) + ": " + call);
      make_tree(root);
      files.clear();
      files.add(Fault(call, EINTR).times(3));
      const Error error = operation.run(*fs, ctx);
      EXPECT_EQ(error.code, ErrorCode::cancelled) << error.text();
    }
  }
}

TEST_F(LocalFaults, AFailureToAskIsNeverNotFoundNorEmpty) {
  make_tree(root);
  for (const int error : {EIO, EACCES, ENOMEM, EMFILE, ESTALE}) {
    SCOPED_TRACE(error);
    const std::string expected = error == EACCES ? "permission_denied" : "io";
    files.add(Fault("openat2", error).times(-1));
    files.add(Fault("fstatat", error).times(-1));
    EXPECT_EQ(kind(fs->exists(ctx, P("/d/f"))), expected);
    EXPECT_EQ(kind(fs->exists(ctx, P("/d"))), expected);
    EXPECT_EQ(kind(fs->stat(ctx, P("/d/f"))), expected);
    EXPECT_EQ(get("/d/f"), "<" + expected + ">");
    EXPECT_EQ(kind(fs->read_dir(ctx, P("/d"))), expected);
    EXPECT_EQ(kind(fs->remove_all(ctx, P("/d/sub"))), expected);
    EXPECT_EQ(kind(fs->compare_and_write(ctx, P("/d/f"), "x", "y")), expected);
    files.clear();
  }
  files.add(Fault("getdents64", EIO).after(1));
  EXPECT_EQ(kind(fs->read_dir(ctx, P("/d"))), "io") << "a listing that broke off is not a listing";
  files.clear();
  files.add(Fault("fstatat", EIO).on("g"));
  EXPECT_EQ(kind(fs->read_dir(ctx, P("/d"))), "io") << "an entry that cannot be asked is not left out";
}

TEST_F(LocalFaults, AnEntryThatVanishesDuringAListingIsLeftOut) {
  make_tree(root);
  files.add(Fault("fstatat").on("g").run([&] { host::remove(root / "d/g"); }));
  EXPECT_EQ(names("/d"), std::set<std::string>{"f"});
}

TEST_F(LocalFaults, TheLossOfTheRootIsNotAnEmptyTree) {
  host::remove_all(root);
  EXPECT_EQ(kind(fs->read_dir(ctx, P("/d"))), "io");
  EXPECT_EQ(get("/d/f"), "<io>");
  EXPECT_EQ(kind(fs->exists(ctx, P("/f"))), "io");
  EXPECT_NE(put("/f", "x"), "ok");
}

// The old content is kept when the disk is full, at whatever step.
TEST_F(LocalFaults, AFullDiskLeavesTheOldContent) {
  make_tree(root);
  files.add(Fault("write").at_most(4));
  files.add(Fault("write", ENOSPC));
  EXPECT_EQ(put("/d/f", "a longer new content"), "full");
  EXPECT_EQ(get("/d/f"), "old content");
  files.add(Fault("openat", ENOSPC));
  EXPECT_EQ(put("/d/f", "x"), "full");
  EXPECT_EQ(get("/d/f"), "old content");
  files.add(Fault("copy_file_range", ENOSPC));
  EXPECT_EQ(kind(fs->copy(ctx, P("/d/g"), P("/d/f"))), "full");
  EXPECT_EQ(get("/d/f"), "old content");
  files.add(Fault("write", EDQUOT));
  EXPECT_EQ(put("/d/new", "x"), "full");
  EXPECT_EQ(host_names(root / "d"), (std::set<std::string>{"f", "g"}));
}

TEST_F(CaseD40LocalFullDisk, ARealFullDiskLeavesTheOldContent) {
  const host::path small = base / "small";
  host::create_directory(small);
  if (::mount("tmpfs", small.c_str(), "tmpfs", 0, "size=256k") != 0) GTEST_SKIP() << "mounting a tmpfs needs root";
  root = small;
  open();
  ASSERT_EQ(put("/f", std::string(100'000, 'o')), "ok");
  EXPECT_EQ(put("/f", std::string(200'000, 'n')), "full");
  EXPECT_EQ(get("/f"), std::string(100'000, 'o'));
  EXPECT_EQ(put("/f", std::string(200'000, 'n'), WriteFlag::append), "full");
  EXPECT_EQ(get("/f"), std::string(100'000, 'o')) << "half an append is taken back";
  ASSERT_EQ(put("/g", std::string(100'000, 'g')), "ok");
  EXPECT_EQ(kind(fs->copy(ctx, P("/f"), P("/h"))), "full");
  EXPECT_EQ(names("/"), (std::set<std::string>{"f", "g"}));
  EXPECT_EQ(host_names(small), (std::set<std::string>{"f", "g"})) << "no temporary file stays";
  ASSERT_EQ(kind(fs->remove(ctx, P("/g"))), "ok");
  EXPECT_EQ(put("/f", std::string(120'000, 'n')), "ok") << "room that was freed can be used";
  fs.reset();
  EXPECT_EQ(::umount(small.c_str()), 0);
}

// An append that read the old content, failed at it, and wrote the new part alone.
TEST_F(CaseA10, AFailingAppendLeavesTheOldContent) {
  make_tree(root);
  for (const char* call : {"pread", "fstat", "openat2", "pwrite", "write"}) {
    for (const int error : {EIO, ETIMEDOUT, EAGAIN, ENOENT}) {
      SCOPED_TRACE(call);
      files.clear();
      files.reset_calls();
      files.add(Fault(call, error).times(-1));
      const std::string result = put("/d/f", "+part", WriteFlag::append);
      const bool reached = files.calls(call) > 0;
      files.clear();
      if (!reached) {
        EXPECT_EQ(result, "ok") << "an append needs no " << call;
        host_write(root / "d/f", "old content");
        continue;
      }
      EXPECT_NE(result, "ok");
      EXPECT_EQ(host_read(root / "d/f"), "old content");
    }
  }
  files.add(Fault("write").at_most(2));
  files.add(Fault("write", ENOSPC));
  EXPECT_EQ(put("/d/f", "+part", WriteFlag::append), "full");
  EXPECT_EQ(host_read(root / "d/f"), "old content");
}

TEST_F(CaseA11LocalErrors, MkdirPassesEveryErrorOn) {
  const std::initializer_list<std::pair<int, std::string>> errors = {{EACCES, "permission_denied"},
                                                                     {EPERM, "permission_denied"},
                                                                     {ENOSPC, "full"},
                                                                     {EDQUOT, "full"},
                                                                     {EROFS, "read_only"},
                                                                     {EIO, "io"},
                                                                     {EEXIST, "already_exists"},
                                                                     {EMLINK, "io"},
                                                                     {ENAMETOOLONG, "invalid_path"}};
  for (const auto& [error, expected] : errors) {
    files.add(Fault("mkdirat", error));
    EXPECT_EQ(kind(fs->mkdir(ctx, P("/new"), 0755)), expected);
    if (error == EEXIST) continue;  // there, as far as making parents is concerned: asked again
    files.add(Fault("mkdirat", error));
    EXPECT_EQ(kind(fs->ensure_parent_dirs(ctx, P("/new/f"), 0755)), expected);
    files.add(Fault("openat", error));
    EXPECT_EQ(kind(fs->create(ctx, P("/f"))), expected);
  }
  EXPECT_TRUE(host_names(root).empty());
}

TEST_F(CaseA37, AFileThatChangesDuringAReadIsReadAgain) {
  const auto change = [&](std::string_view content) { return [this, content] { host_write(root / "f", content); }; };
  for (const std::string_view changed : {"short", "a much longer content than before", "", "same size!!"}) {
    SCOPED_TRACE(changed);
    host_write(root / "f", "old content");
    files.add(Fault("pread").run(change(changed)));
    EXPECT_EQ(get("/f"), changed);
    host_write(root / "f", "old content");
    files.clear();
    files.add(Fault("fstat").after(1).run(change(changed)));  // between the read and the stat after it
    EXPECT_EQ(get("/f"), changed);
    files.clear();
  }
}

TEST_F(CaseA37, AFileThatKeepsChangingIsAnErrorNotAMix) {
  host_write(root / "f", "0");
  int size = 0;
  files.add(
      Fault("pread").times(-1).run([&] { host_write(root / "f", std::string(static_cast<size_t>(++size), 'x')); }));
  EXPECT_EQ(get("/f"), "<io>");
  EXPECT_EQ(files.calls("pread"), LocalConfig().snapshot_attempts) << "bounded";
}

TEST_F(CaseA37, ACopyOfAFileThatChangesIsConsistentOrAnError) {
  const auto change = [&](std::string_view content) { return [this, content] { host_write(root / "f", content); }; };
  for (const std::string_view changed : {"short", "a much longer content than before", "same size!!"}) {
    for (const char* call : {"copy_file_range", "futimens"}) {
      SCOPED_TRACE(call);
      host_write(root / "f", "old content");
      files.add(Fault(call).run(change(changed)));
      auto copied = fs->copy(ctx, P("/f"), P("/copy"));
      ASSERT_TRUE(copied.has_value()) << copied.error().text();
      const std::string copy = host_read(root / "copy");
      EXPECT_TRUE(copy == "old content" || copy == changed) << copy;
      EXPECT_EQ(copied->meta.size, copy.size());
      files.clear();
    }
  }
  host_write(root / "f", "old content");
  host_write(root / "copy", "kept");
  int size = 0;
  files.add(Fault("copy_file_range").times(-1).run([&] {
    host_write(root / "f", std::string(static_cast<size_t>(++size) + 20, 'x'));
  }));
  EXPECT_EQ(kind(fs->copy(ctx, P("/f"), P("/copy"))), "io");
  EXPECT_EQ(host_read(root / "copy"), "kept");
  EXPECT_EQ(host_names(root), (std::set<std::string>{"copy", "f"}));
}

TEST_F(CaseA37, AFileReplacedDuringAReadOrCopyGivesItsOldOrNewContent) {
  host_write(root / "f", "old content");
  const auto replace = [&] {
    host_write(root / "staged", "new");
    host::rename(root / "staged", root / "f");
  };
  files.add(Fault("pread").run(replace));
  EXPECT_EQ(get("/f"), "old content") << "the descriptor holds the old file, which is a snapshot";
  host_write(root / "f", "old content");
  files.add(Fault("copy_file_range").run(replace));
  ASSERT_EQ(kind(fs->copy(ctx, P("/f"), P("/copy"))), "ok");
  EXPECT_EQ(host_read(root / "copy"), "old content");
}

TEST_F(LocalFaults, CopyWorksWhereTheKernelCannotCopy) {
  const std::string content(700'000, 'c');
  host_write(root / "f", content);
  for (const int error : {EXDEV, EINVAL, ENOSYS, EOPNOTSUPP}) {
    files.add(Fault("copy_file_range", error).times(-1));
    ASSERT_EQ(kind(fs->copy(ctx, P("/f"), P("/copy"))), "ok");
    EXPECT_EQ(host_read(root / "copy"), content);
    files.clear();
  }
  files.add(Fault("copy_file_range").at_most(1000));
  files.add(Fault("copy_file_range", EXDEV).times(-1));  // half way
  ASSERT_EQ(kind(fs->copy(ctx, P("/f"), P("/copy"))), "ok");
  EXPECT_EQ(host_read(root / "copy"), content);
}

TEST_F(LocalFaults, CreateNewWorksWithoutRenameNoReplace) {
  files.add(Fault("renameat2", EINVAL).times(-1));
  EXPECT_EQ(put("/f", "one", WriteFlag::create_new), "ok");
  EXPECT_EQ(put("/f", "two", WriteFlag::create_new), "already_exists");
  EXPECT_EQ(host_read(root / "f"), "one");
  EXPECT_EQ(host_names(root), std::set<std::string>{"f"});
}

TEST_F(CaseA40LocalDeadline, ACopyPastItsDeadlineMakesNothing) {
  host_write(root / "f", "x");
  Context late;
  late.deadline = Deadline::at_ns(1);
  EXPECT_EQ(kind(fs->copy(late, P("/f"), P("/new/tree/f"))), "timeout");
  EXPECT_EQ(host_names(root), std::set<std::string>{"f"});
  host::create_directories(root / "t/sub");
  host_write(root / "t/sub/f", "x");
  EXPECT_EQ(kind(fs->remove_all(late, P("/t"))), "timeout");
  EXPECT_EQ(kind(fs->remove_all(ctx, P("/t"))), "ok");
}

// One call moves at most 2,147,479,552 bytes; the seam moves fewer, so that the loops run without gigabytes.
TEST_F(CaseB14, TransfersThatTheKernelCutsAreCompleted) {
  std::string content;
  for (int i = 0; i < 100'000; ++i) content += static_cast<char>('a' + i % 26);
  files.add(Fault("write").times(-1).at_most(4'097));
  files.add(Fault("pwrite").times(-1).at_most(1'013));
  files.add(Fault("pread").times(-1).at_most(999));
  files.add(Fault("copy_file_range").times(-1).at_most(10'007));
  ASSERT_EQ(put("/f", content), "ok");
  EXPECT_EQ(get("/f"), content);
  ASSERT_EQ(put("/f", content, WriteFlag::append), "ok");
  ASSERT_EQ(kind(fs->write(ctx, P("/f"), content, 100'001, WriteFlag::none)), "ok");
  EXPECT_EQ(fs->read(ctx, P("/f"), 100'001, 0)->view(), content);
  ASSERT_EQ(kind(fs->copy(ctx, P("/f"), P("/g"))), "ok");
  EXPECT_TRUE(get("/g") == get("/f"));
}

// Past the most that one call transfers (2 GiB) at full length; the same way with less memory and disk otherwise.
TEST_F(CaseB14, RealLargeTransfersAreWhole) {
  const bool full = std::getenv("RAGFS_TEST_FULL") != nullptr;
  const uint64_t size = (full ? 2ULL << 30 : 64ULL << 20) + 12'345;
  std::string content(size, 'x');
  content.back() = 'E';
  ASSERT_EQ(put("/f", content), "ok");
  const auto read = fs->read_file(ctx, P("/f"));
  ASSERT_TRUE(read.has_value());
  EXPECT_TRUE(read->data.view() == content);
  ASSERT_EQ(kind(fs->copy(ctx, P("/f"), P("/g"))), "ok");
  EXPECT_EQ(fs->read(ctx, P("/g"), size - 2, 0)->view(), "xE");
}

// A process that is killed between the write and the rename leaves the old content, and a file that is never seen.
TEST_F(LocalFaults, AKilledWriterLeavesTheOldContent) {
  make_tree(root);
  for (int round = 0; round < 5; ++round) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      PausePoints::set_handler("localfs.before_rename", [] { ::kill(::getpid(), SIGKILL); });
      (void)fs->write(ctx, P("/d/f"), "never seen", 0, WriteFlag::create).has_value();
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the pause point was not reached";
    EXPECT_EQ(host_names(root / "d").size(), 3U) << "the crash left a temporary file";
    EXPECT_EQ(get("/d/f"), "old content");
    EXPECT_EQ(names("/d"), (std::set<std::string>{"f", "g"}));
    EXPECT_EQ(host_names(root / "d"), (std::set<std::string>{"f", "g"})) << "the listing removed it";
  }
}

}  // namespace
}  // namespace ragfs
