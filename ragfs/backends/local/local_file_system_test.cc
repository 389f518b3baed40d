// What only localfs does: modes and owners of the host, times, identity, locks of other programs, costs in calls.
#include "ragfs/backends/local/local_file_system.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "ragfs/backends/local/local_test_tree.h"

namespace ragfs {
namespace {

namespace host = std::filesystem;

class LocalFileSystemTest : public LocalTestTree {};
class LocalTemps : public LocalTestTree {};
class LocalCosts : public LocalTestTree {};
class CaseA16 : public LocalTestTree {};
class CaseD35 : public LocalTestTree {};

TEST_F(LocalFileSystemTest, ConfigurationIsChecked) {
  EXPECT_EQ(LocalFileSystem::open({}).error().code, ErrorCode::config);
  EXPECT_EQ(LocalFileSystem::open({}).error().message, "local_dir is required in configuration");
  LocalConfig config;
  config.root_dir = root;
  config.stale_temp_age_ms = 1;
  EXPECT_EQ(kind(LocalFileSystem::open(config)), "config");
  config = {};
  config.root_dir = root;
  config.snapshot_attempts = 0;
  EXPECT_EQ(kind(LocalFileSystem::open(config)), "config");
  config = {};
  config.root_dir = (base / "nowhere").string();
  EXPECT_EQ(LocalFileSystem::open(config).error().text(), "plugin error: base path does not exist: " + config.root_dir);
  host_write(base / "file", "x");
  config.root_dir = (base / "file").string();
  EXPECT_EQ(LocalFileSystem::open(config).error().text(),
            "plugin error: base path is not a directory: " + config.root_dir);
}

TEST_F(LocalFileSystemTest, AnOldKernelIsNamed) {
  files.add(Fault("openat2", ENOSYS));
  LocalConfig config;
  config.root_dir = root;
  EXPECT_EQ(kind(LocalFileSystem::open(config, files)), "not_supported");
}

TEST_F(LocalFileSystemTest, TheIdentityIsThatOfTheDirectory) {
  const std::string identity = fs->traits().identity;
  EXPECT_TRUE(identity.starts_with("local:")) << identity;
  host::create_symlink(root, base / "alias");
  LocalConfig config;
  config.root_dir = (base / "alias").string();
  const auto other = LocalFileSystem::open(config).value();
  EXPECT_EQ(other->traits().identity, identity);
  EXPECT_EQ(other->root_dir(), root.string());
  host::rename(root, base / "moved");
  config.root_dir = (base / "moved").string();
  EXPECT_EQ(LocalFileSystem::open(config).value()->traits().identity, identity) << "a moved directory is the same data";
  // The same name, and where the file system reuses inode numbers even the same inode, but other data.
  fs.reset();
  host::remove_all(base / "moved");
  host::create_directory(root);
  config.root_dir = root.string();
  EXPECT_NE(LocalFileSystem::open(config).value()->traits().identity, identity);
}

TEST_F(LocalFileSystemTest, ErrorsNameTheHostsParent) {
  EXPECT_EQ(fs->mkdir(ctx, P("/no/parent"), 0755).error().text(), "not found: " + (root / "no").string());
  EXPECT_EQ(fs->create(ctx, P("/no/f")).error().text(), "not found: " + (root / "no").string());
  EXPECT_EQ(fs->write(ctx, P("/no/f"), "x", 0, WriteFlag::create).error().text(),
            "not found: " + (root / "no").string());
  EXPECT_EQ(fs->read(ctx, P("/no/f"), 0, 0).error().text(), "not found: /no/f");
}

TEST_F(LocalFileSystemTest, OverwritingKeepsTheHostsModeAndOwner) {
  host_write(root / "f", "old");
  ASSERT_EQ(::chmod((root / "f").c_str(), 0640), 0);
  const bool is_root = ::geteuid() == 0;
  if (is_root) {
    ASSERT_EQ(::chown((root / "f").c_str(), 1234, 5678), 0);
  }
  ASSERT_EQ(put("/f", "new"), "ok");
  EXPECT_EQ(host_stat(root / "f").st_mode & 07777U, 0640U);
  if (is_root) {
    EXPECT_EQ(host_stat(root / "f").st_uid, 1234U);
    EXPECT_EQ(host_stat(root / "f").st_gid, 5678U);
  }
  EXPECT_EQ(fs->stat(ctx, P("/f"))->mode, kDefaultFileMode) << "the tree shows a constant";
  ASSERT_EQ(kind(fs->chmod(ctx, P("/f"), 0777)), "ok");
  EXPECT_EQ(host_stat(root / "f").st_mode & 07777U, 0640U) << "chmod has no effect";
  const mode_t old_umask = ::umask(022);
  ASSERT_EQ(put("/g", "x"), "ok");
  ASSERT_EQ(kind(fs->mkdir(ctx, P("/d"), 0700)), "ok");
  ::umask(old_umask);
  EXPECT_EQ(host_stat(root / "g").st_mode & 07777U, 0644U);
  EXPECT_EQ(host_stat(root / "d").st_mode & 07777U, 0755U);
}

// Runs `body` as an ordinary user in a process of its own; its result is the exit code.
template <typename Body>
int as_ordinary_user(Body body) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setegid(65534) != 0 || ::seteuid(65534) != 0) ::_exit(99);
    ::_exit(body());
  }
  int status = 0;
  if (::waitpid(child, &status, 0) != child || !WIFEXITED(status)) return 98;
  return WEXITSTATUS(status);
}

TEST_F(LocalFileSystemTest, ThePermissionsOfTheHostHold) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to become another user";
  ASSERT_EQ(::chmod(base.c_str(), 0755), 0);
  ASSERT_EQ(::chmod(root.c_str(), 0777), 0);
  host::create_directories(root / "closed");
  host_write(root / "closed/f", "x");
  host_write(root / "read-only", "kept");
  host_write(root / "secret", "kept");
  ASSERT_EQ(::chmod((root / "closed").c_str(), 0700), 0);
  ASSERT_EQ(::chmod((root / "read-only").c_str(), 0444), 0);
  ASSERT_EQ(::chmod((root / "secret").c_str(), 0600), 0);
  const int failed_step = as_ordinary_user([&] {
    const std::string denied = "permission_denied";
    if (kind(fs->read_dir(ctx, P("/closed"))) != denied) return 1;
    if (get("/closed/f") != "<permission_denied>") return 2;
    if (kind(fs->exists(ctx, P("/closed/f"))) != denied) return 3;
    if (kind(fs->remove_all(ctx, P("/closed"))) != denied) return 4;
    if (put("/closed/new", "x") != denied) return 5;
    if (put("/read-only", "x") != denied) return 6;  // the rename alone would be allowed
    if (put("/read-only", "x", WriteFlag::append) != denied) return 7;
    if (get("/secret") != "<permission_denied>") return 8;
    if (kind(fs->stat(ctx, P("/secret"))) != "ok") return 9;
    if (put("/mine", "x") != "ok" || put("/mine", "y") != "ok") return 10;
    return 0;
  });
  EXPECT_EQ(failed_step, 0);
  EXPECT_EQ(host_read(root / "read-only"), "kept");
}

TEST_F(LocalFileSystemTest, TimesBefore1970AreCarried) {
  host_write(root / "f", "old");
  const struct timespec times[2] = {{.tv_sec = -1'000'000, .tv_nsec = 250'000'000},
                                    {.tv_sec = -1'000'000, .tv_nsec = 250'000'000}};
  ASSERT_EQ(::utimensat(AT_FDCWD, (root / "f").c_str(), times, 0), 0);
  constexpr int64_t kExpected = -1'000'000LL * 1'000'000'000LL + 250'000'000LL;
  EXPECT_EQ(fs->stat(ctx, P("/f"))->mtime_ns, kExpected);
  EXPECT_EQ(fs->read_file(ctx, P("/f"))->meta.mtime_ns, kExpected);
  EXPECT_EQ(fs->read_dir(ctx, P("/"))->at(0).mtime_ns, kExpected);
}

// A clock tick holds many writes; the version tells them apart all the same, with reused inode numbers too.
TEST_F(LocalFileSystemTest, VersionsDifferWithinOneClockTick) {
  std::set<std::string> seen;
  ASSERT_EQ(put("/f", "0000"), "ok");
  for (int i = 0; i < 300; ++i) {
    const std::string data = std::to_string(1000 + i);
    std::string version;
    if (i % 3 == 0) version = fs->write(ctx, P("/f"), data, 0, WriteFlag::create)->meta.version;
    if (i % 3 == 1) version = fs->write(ctx, P("/f"), data, 0, WriteFlag::none)->meta.version;
    if (i % 3 == 2) {
      ASSERT_EQ(put("/source", data), "ok");
      version = fs->copy(ctx, P("/source"), P("/f"))->meta.version;
    }
    EXPECT_TRUE(seen.insert(version).second) << version;
    EXPECT_EQ(*fs->version(ctx, P("/f")), version);
  }
}

TEST_F(LocalFileSystemTest, ADirectoryOf100000Entries) {
  host::create_directory(root / "d");
  const int dir_fd = ::open((root / "d").c_str(), O_RDONLY | O_DIRECTORY);
  ASSERT_GE(dir_fd, 0);
  constexpr size_t kEntries = 100'000;
  for (size_t i = 0; i < kEntries; ++i) {
    const int fd = ::openat(dir_fd, ("f" + std::to_string(i)).c_str(), O_WRONLY | O_CREAT | O_EXCL, 0644);
    ASSERT_GE(fd, 0);
    ::close(fd);
  }
  ::close(dir_fd);
  EXPECT_EQ(names("/d").size(), kEntries);
  files.reset_calls();
  EXPECT_EQ(kind(fs->stat(ctx, P("/d/f77777"))), "ok");
  EXPECT_EQ(put("/d/new", "x"), "ok");
  EXPECT_LE(files.all_calls(), 16) << "no work in proportion to the directory";
  EXPECT_EQ(kind(fs->remove_all(ctx, P("/d"))), "ok");
  EXPECT_TRUE(host_names(root).empty());
}

// --- locks of other programs ---

TEST_F(CaseA16, CompareAndSwapMeetsTheFcntlLockOfAnotherProcess) {
  host_write(root / "token", "owner:1:E");
  int ready[2];
  int go[2];
  ASSERT_EQ(::pipe(ready), 0);
  ASSERT_EQ(::pipe(go), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const int fd = ::open((root / "token").c_str(), O_RDWR);
    struct flock lock = {};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    char byte = ::fcntl(fd, F_SETLK, &lock) == 0 ? 'y' : 'n';
    if (::write(ready[1], &byte, 1) != 1 || ::read(go[0], &byte, 1) != 1) ::_exit(1);
    ::_exit(0);
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  ASSERT_EQ(byte, 'y');
  EXPECT_EQ(kind(fs->compare_and_write(ctx, P("/token"), "owner:1:E", "owner:2:E")), "would_block");
  EXPECT_EQ(kind(fs->compare_and_remove(ctx, P("/token"), "owner:1:E")), "would_block");
  EXPECT_EQ(get("/token"), "owner:1:E");
  ASSERT_EQ(::write(go[1], "x", 1), 1);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(*fs->compare_and_write(ctx, P("/token"), "owner:1:E", "owner:2:E"));
  EXPECT_EQ(get("/token"), "owner:2:E");
  for (const int fd : {ready[0], ready[1], go[0], go[1]}) ::close(fd);
}

TEST_F(CaseA16, AReplacedFileIsNotSwapped) {
  host_write(root / "token", "same");
  files.add(Fault("try_lock").run([&] {
    host_write(root / "other", "same");
    host::rename(root / "other", root / "token");
  }));
  EXPECT_FALSE(*fs->compare_and_write(ctx, P("/token"), "same", "new")) << "the file is another one by now";
  EXPECT_EQ(get("/token"), "same");
  files.add(Fault("try_lock").run([&] { host::remove(root / "token"); }));
  EXPECT_FALSE(*fs->compare_and_remove(ctx, P("/token"), "same"));
}

TEST_F(CaseA16, EmptyAndOddTokensAreSwappedByContent) {
  for (const std::string_view token : {"", "garbage", "owner:99999999999999999999:E", "\n"}) {
    host_write(root / "token", token);
    EXPECT_FALSE(*fs->compare_and_write(ctx, P("/token"), std::string(token) + "x", "mine"));
    EXPECT_TRUE(*fs->compare_and_write(ctx, P("/token"), token, "mine"));
    EXPECT_EQ(get("/token"), "mine");
  }
}

// --- temporary files ---

TEST_F(LocalTemps, NamesHaveOneFormAndOneLength) {
  TempNames names_maker;
  const std::string name = names_maker.next();
  EXPECT_TRUE(TempNames::is_temp(name)) << name;
  EXPECT_NE(name, names_maker.next());
  EXPECT_NE(TempNames().next().substr(29), name.substr(29)) << "two objects share a counter";
  EXPECT_LE(name.size(), 255U);
  EXPECT_TRUE(TempNames::in_path(P("/" + name)));
  EXPECT_TRUE(TempNames::in_path(P("/a/" + name + "/b")));
  for (const std::string& other :
       {std::string(".ragfs-tmp-"), name + "0", name.substr(1), "x" + name, name.substr(0, name.size() - 1) + "g"}) {
    EXPECT_FALSE(TempNames::is_temp(other)) << other;
    EXPECT_FALSE(TempNames::in_path(P("/d/" + other))) << other;
  }
}

TEST_F(LocalTemps, AreNeitherListedNorReached) {
  const std::string name = TempNames().next();
  host_write(root / name, "in flight");
  ASSERT_EQ(put("/f", "x"), "ok");
  EXPECT_EQ(names("/"), std::set<std::string>{"f"});
  EXPECT_EQ(get("/" + name), "<not_found>");
  EXPECT_FALSE(*fs->exists(ctx, P("/" + name)));
  EXPECT_EQ(put("/" + name, "x"), "invalid_path");
  EXPECT_EQ(kind(fs->mkdir(ctx, P("/" + name), 0755)), "invalid_path");
  EXPECT_EQ(kind(fs->ensure_parent_dirs(ctx, P("/" + name + "/f"), 0755)), "invalid_path");
  EXPECT_EQ(kind(fs->rename(ctx, P("/f"), P("/" + name))), "invalid_path");
  EXPECT_TRUE(host::exists(root / name)) << "a living process may still be filling it";
}

TEST_F(LocalTemps, ThoseOfTheDeadAreRemoved) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) ::_exit(0);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  const std::string mine = TempNames().next();
  const std::string pid_digits = fmt::format("{:08x}", static_cast<unsigned>(child));
  std::string of_the_dead = mine;
  of_the_dead.replace(20, 8, pid_digits);
  std::string of_another_machine = mine;
  of_another_machine.replace(11, 8, "00000000");
  std::string old_of_another_machine = of_another_machine;
  old_of_another_machine.back() = old_of_another_machine.back() == '0' ? '1' : '0';
  for (const std::string& name : {mine, of_the_dead, of_another_machine, old_of_another_machine}) {
    ASSERT_TRUE(TempNames::is_temp(name)) << name;
    host_write(root / name, "left");
  }
  host::last_write_time(root / old_of_another_machine, host::file_time_type::clock::now() - std::chrono::hours(2));
  EXPECT_TRUE(names("/").empty());
  EXPECT_EQ(host_names(root), (std::set<std::string>{mine, of_another_machine}));
}

TEST_F(LocalTemps, DoNotKeepAnEmptyDirectoryFromGoingOrBeingReplaced) {
  std::string stale = TempNames().next();
  stale.replace(11, 8, "00000000");
  for (const char* dir : {"d", "e", "g"}) host::create_directory(root / dir);
  for (const char* dir : {"d", "e"}) {
    host_write(root / dir / stale, "left");
    host::last_write_time(root / dir / stale, host::file_time_type::clock::now() - std::chrono::hours(2));
  }
  EXPECT_EQ(kind(fs->remove(ctx, P("/d"))), "ok");
  EXPECT_EQ(kind(fs->rename(ctx, P("/g"), P("/e"))), "ok");
  EXPECT_EQ(host_names(root), std::set<std::string>{"e"});
}

// --- costs ---

TEST_F(LocalCosts, AReadIsOneCallAStep) {
  host::create_directories(root / "a/b");
  host_write(root / "a/b/f", std::string(4096, 'x'));
  files.reset_calls();
  ASSERT_EQ(kind(fs->read(ctx, P("/a/b/f"), 0, 0)), "ok");
  EXPECT_EQ(files.all_calls(), 4) << "open, fstat, read, close";
  files.reset_calls();
  ASSERT_EQ(kind(fs->read_file(ctx, P("/a/b/f"))), "ok");
  EXPECT_EQ(files.all_calls(), 5) << "and the fstat that makes it a snapshot";
  files.reset_calls();
  ASSERT_EQ(kind(fs->stat(ctx, P("/a/b/f"))), "ok");
  EXPECT_EQ(files.all_calls(), 3);
  files.reset_calls();
  ASSERT_EQ(kind(fs->stat(ctx, P("/a"))), "ok");
  EXPECT_EQ(files.all_calls(), 1);
  files.reset_calls();
  ASSERT_EQ(put("/a/b/f", "x"), "ok");
  EXPECT_LE(files.all_calls(), 10);
}

// To open one file of a directory with millions of them took minutes.
TEST_F(CaseD35, OneFileCostsTheSameCallsHoweverManyLieBesideIt) {
  const auto calls_of_everything = [&](const std::string& directory) {
    files.reset_calls();
    EXPECT_EQ(put(directory + "/f", "x", WriteFlag::create_new), "ok");
    EXPECT_EQ(put(directory + "/f", "y"), "ok");
    EXPECT_EQ(get(directory + "/f"), "y");
    EXPECT_EQ(kind(fs->stat(ctx, P(directory + "/f"))), "ok");
    EXPECT_EQ(kind(fs->stat(ctx, P(directory + "/absent"))), "not_found");
    EXPECT_EQ(kind(fs->touch(ctx, P(directory + "/f"))), "ok");
    EXPECT_EQ(kind(fs->rename(ctx, P(directory + "/f"), P(directory + "/g"))), "ok");
    EXPECT_EQ(kind(fs->remove(ctx, P(directory + "/g"))), "ok");
    return files.all_calls();
  };
  host::create_directory(root / "few");
  host::create_directory(root / "many");
  for (int i = 0; i < 50'000; ++i) {
    ASSERT_EQ(::mknod((root / "many" / ("f" + std::to_string(i))).c_str(), S_IFREG | 0644, 0), 0);
  }
  EXPECT_EQ(calls_of_everything("/many"), calls_of_everything("/few"));
}

TEST_F(LocalCosts, ARangeOfALargeFileReadsTheRangeOnly) {
  host_write(root / "f", "");
  ASSERT_EQ(::truncate((root / "f").c_str(), 1LL << 42), 0);  // 4 TiB, sparse: reading it whole cannot work
  files.reset_calls();
  EXPECT_EQ(fs->read(ctx, P("/f"), 1ULL << 41, 10)->view(), std::string(10, '\0'));
  EXPECT_EQ(files.calls("pread"), 1);
}

}  // namespace
}  // namespace ragfs
