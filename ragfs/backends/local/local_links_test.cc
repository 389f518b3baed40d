// Symlinks, hard links and what is neither file nor directory.
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "ragfs/backends/local/local_test_tree.h"

namespace ragfs {
namespace {

namespace host = std::filesystem;

class LocalLinks : public LocalTestTree {};
class CaseA13LocalEscapes : public LocalTestTree {};

TEST_F(CaseA13LocalEscapes, NoLinkLeadsOutOfTheRoot) {
  host::create_directory(base / "outside");
  host_write(base / "outside/secret", "secret");
  host::create_symlink(base / "outside", root / "absolute");
  host::create_symlink("../outside", root / "relative");
  host::create_symlink(base / "outside/secret", root / "file");
  host::create_symlink("/etc/passwd", root / "passwd");
  host::create_symlink("..", root / "up");
  host::create_symlink("/proc/self/root", root / "magic");
  for (const std::string_view path :
       {"/absolute/secret", "/relative/secret", "/file", "/passwd", "/up/outside/secret", "/magic/etc/passwd"}) {
    SCOPED_TRACE(path);
    EXPECT_EQ(kind(fs->read(ctx, P(path), 0, 0)), "permission_denied");
    EXPECT_EQ(get(path), "<permission_denied>");
    EXPECT_EQ(kind(fs->stat(ctx, P(path))), "permission_denied");
    EXPECT_EQ(kind(fs->exists(ctx, P(path))), "permission_denied");
    EXPECT_EQ(kind(fs->version(ctx, P(path))), "permission_denied");
    EXPECT_EQ(put(path, "overwritten"), "permission_denied");
    EXPECT_EQ(put(path, "x", WriteFlag::append), "permission_denied");
    EXPECT_EQ(put(path, "x", WriteFlag::none), "permission_denied");
    EXPECT_EQ(put(path, "x", WriteFlag::truncate), "permission_denied");
    EXPECT_EQ(kind(fs->truncate(ctx, P(path), 0)), "permission_denied");
    EXPECT_EQ(kind(fs->touch(ctx, P(path))), "permission_denied");
    EXPECT_EQ(kind(fs->copy(ctx, P(path), P("/copy"))), "permission_denied");
    EXPECT_EQ(kind(fs->compare_and_write(ctx, P(path), "secret", "x")), "permission_denied");
    EXPECT_EQ(kind(fs->compare_and_remove(ctx, P(path), "secret")), "permission_denied");
  }
  for (const std::string_view dir : {"/absolute", "/relative", "/up", "/magic"}) {
    SCOPED_TRACE(dir);
    const std::string below = std::string(dir) + "/new";
    EXPECT_EQ(kind(fs->read_dir(ctx, P(dir))), "permission_denied");
    EXPECT_EQ(kind(fs->create(ctx, P(below))), "permission_denied");
    EXPECT_EQ(kind(fs->mkdir(ctx, P(below), 0755)), "permission_denied");
    EXPECT_EQ(kind(fs->ensure_parent_dirs(ctx, P(below + "/x"), 0755)), "permission_denied");
    EXPECT_EQ(put(below, "x", WriteFlag::create_new), "permission_denied");
    EXPECT_EQ(kind(fs->remove(ctx, P(below))), "permission_denied");
    EXPECT_EQ(kind(fs->remove_all(ctx, P(below))), "permission_denied");
    ASSERT_EQ(put("/mine", "mine"), "ok");
    EXPECT_EQ(kind(fs->rename(ctx, P("/mine"), P(below))), "permission_denied");
    EXPECT_EQ(kind(fs->replace(ctx, P("/mine"), P(below))), "permission_denied");
    EXPECT_EQ(kind(fs->copy(ctx, P("/mine"), P(below))), "permission_denied");
    EXPECT_EQ(kind(fs->glob(ctx, P(dir), "**", {})), "permission_denied");
    EXPECT_EQ(kind(fs->tree(ctx, P(dir), {})), "permission_denied");
    EXPECT_EQ(kind(fs->grep(ctx, P(dir), {.pattern = "secret"}, [](GrepMatch&&) { return true; })),
              "permission_denied");
  }
  EXPECT_EQ(host_read(base / "outside/secret"), "secret");
  EXPECT_EQ(host_names(base / "outside"), std::set<std::string>{"secret"});
  // Removing a link removes the link.
  EXPECT_EQ(kind(fs->remove(ctx, P("/file"))), "ok");
  EXPECT_EQ(kind(fs->remove_all(ctx, P("/absolute"))), "ok");
  EXPECT_EQ(kind(fs->remove_all(ctx, P("/"))), "ok");
  EXPECT_EQ(host_read(base / "outside/secret"), "secret");
}

TEST_F(LocalLinks, LinksInsideTheRootAreFollowed) {
  host::create_directories(root / "real/sub");
  host_write(root / "real/f", "content");
  host::create_symlink("real", root / "dir");
  host::create_symlink(root / "real", root / "absolute");  // absolute, and leads inside
  host::create_symlink("../real/f", root / "real/sub-link");
  host::create_symlink("real/f", root / "file");
  host::create_symlink("file", root / "chain");
  for (const std::string_view path : {"/dir/f", "/absolute/f", "/file", "/chain", "/dir/sub-link"}) {
    SCOPED_TRACE(path);
    const auto content = fs->read_file(ctx, P(path));
    ASSERT_TRUE(content.has_value()) << content.error().text();
    EXPECT_EQ(content->data.view(), "content");
    EXPECT_FALSE(content->meta.cacheable) << "another path changes it";
    EXPECT_EQ(fs->stat(ctx, P(path))->size, 7U);
    EXPECT_EQ(fs->stat(ctx, P(path))->kind, FileKind::file);
  }
  EXPECT_TRUE(fs->read_file(ctx, P("/real/f"))->meta.cacheable);
  EXPECT_TRUE(fs->stat(ctx, P("/dir"))->is_dir());
  EXPECT_EQ(names("/dir"), (std::set<std::string>{"f", "sub", "sub-link"}));
  EXPECT_EQ(names("/absolute"), (std::set<std::string>{"f", "sub", "sub-link"}));
}

TEST_F(LocalLinks, WritesGoThroughALinkAndLeaveIt) {
  host::create_directory(root / "real");
  host_write(root / "real/f", "old");
  host::create_symlink("real/f", root / "link");
  host::create_symlink(root / "real", root / "dir");
  auto written = fs->write(ctx, P("/link"), "through the link", 0, WriteFlag::create);
  ASSERT_TRUE(written.has_value()) << written.error().text();
  EXPECT_FALSE(written->meta.cacheable);
  EXPECT_EQ(host_read(root / "real/f"), "through the link");
  EXPECT_TRUE(host::is_symlink(root / "link"));
  EXPECT_EQ(put("/link", "!", WriteFlag::append), "ok");
  EXPECT_EQ(host_read(root / "real/f"), "through the link!");
  EXPECT_EQ(put("/dir/g", "new"), "ok");
  EXPECT_EQ(host_read(root / "real/g"), "new");
  EXPECT_EQ(kind(fs->copy(ctx, P("/dir/g"), P("/link"))), "ok");
  EXPECT_EQ(host_read(root / "real/f"), "new");
  EXPECT_TRUE(*fs->compare_and_write(ctx, P("/link"), "new", "swapped"));
  EXPECT_EQ(host_read(root / "real/f"), "swapped");
  EXPECT_TRUE(host::is_symlink(root / "link"));
  EXPECT_EQ(put("/link", "x", WriteFlag::create_new), "already_exists");
  EXPECT_EQ(kind(fs->rename(ctx, P("/link"), P("/moved"))), "ok");
  EXPECT_TRUE(host::is_symlink(root / "moved")) << "a rename moves the link";
  EXPECT_EQ(kind(fs->remove(ctx, P("/moved"))), "ok");
  EXPECT_EQ(host_read(root / "real/f"), "swapped");
}

TEST_F(LocalLinks, DanglingLinksAndLoops) {
  host::create_symlink("nowhere", root / "dangling");
  host::create_symlink("loop2", root / "loop1");
  host::create_symlink("loop1", root / "loop2");
  EXPECT_EQ(get("/dangling"), "<not_found>");
  EXPECT_EQ(kind(fs->stat(ctx, P("/dangling"))), "not_found");
  EXPECT_FALSE(*fs->exists(ctx, P("/dangling")));
  EXPECT_EQ(put("/dangling", "x"), "not_found");
  EXPECT_EQ(put("/dangling", "x", WriteFlag::create_new), "already_exists");
  EXPECT_EQ(kind(fs->touch(ctx, P("/dangling"))), "not_found");
  EXPECT_EQ(kind(fs->create(ctx, P("/dangling"))), "already_exists");
  EXPECT_EQ(kind(fs->ensure_parent_dirs(ctx, P("/dangling/f"), 0755)), "io");
  EXPECT_EQ(get("/loop1"), "<invalid_path>");
  EXPECT_EQ(get("/loop1/f"), "<invalid_path>");
  EXPECT_EQ(kind(fs->exists(ctx, P("/loop1"))), "invalid_path");
  EXPECT_EQ(put("/loop1", "x"), "invalid_path");
  EXPECT_EQ(names("/"), (std::set<std::string>{"dangling", "loop1", "loop2"}));
  EXPECT_EQ(kind(fs->remove(ctx, P("/loop1"))), "ok");
  EXPECT_EQ(kind(fs->remove_all(ctx, P("/dangling"))), "ok");
}

TEST_F(LocalLinks, ListingsShowLinksAsOtherAndWalksPassThem) {
  host::create_directories(root / "dir/sub");
  host_write(root / "dir/sub/f", "needle");
  host::create_symlink("dir", root / "link");
  host::create_symlink("..", root / "dir/sub/parent");  // a walk that followed it would not end
  host::create_symlink("dir/sub/f", root / "file-link");
  for (const FileInfo& entry : fs->read_dir(ctx, P("/")).value_or(std::vector<FileInfo>())) {
    EXPECT_EQ(entry.kind, entry.name == "dir" ? FileKind::directory : FileKind::other) << entry.name;
  }
  std::set<std::string> walked;
  const auto tree = fs->tree(ctx, P("/"), {});
  ASSERT_TRUE(tree.has_value()) << tree.error().text();
  for (const TreeEntry& entry : *tree) walked.insert(entry.rel_path);
  EXPECT_EQ(walked, (std::set<std::string>{"dir", "dir/sub", "dir/sub/f", "dir/sub/parent", "file-link", "link"}));
  int matches = 0;
  ASSERT_EQ(
      kind(fs->grep(ctx, P("/"), {.pattern = "needle", .recursive = true}, [&](GrepMatch&&) { return ++matches > 0; })),
      "ok");
  EXPECT_EQ(matches, 1);
  EXPECT_EQ(kind(fs->remove_all(ctx, P("/dir"))), "ok");
  EXPECT_EQ(host_names(root), (std::set<std::string>{"file-link", "link"}));
}

TEST_F(LocalLinks, HardLinksAreNotCacheable) {
  host_write(root / "a", "shared");
  ASSERT_TRUE(fs->read_file(ctx, P("/a"))->meta.cacheable);
  host::create_hard_link(root / "a", root / "b");
  EXPECT_FALSE(fs->read_file(ctx, P("/a"))->meta.cacheable);
  EXPECT_FALSE(fs->read_file(ctx, P("/b"))->meta.cacheable);
  EXPECT_EQ(put("/a", "!", WriteFlag::append), "ok");
  EXPECT_EQ(get("/b"), "shared!");
  EXPECT_EQ(put("/a", "replaced as a whole"), "ok");
  EXPECT_EQ(get("/b"), "shared!");
  EXPECT_TRUE(fs->read_file(ctx, P("/b"))->meta.cacheable);
}

// rename(2) of two names of one file succeeds and leaves both.
TEST_F(LocalLinks, RenamingOneHardLinkOverAnotherRemovesTheOldName) {
  host_write(root / "a", "shared");
  host::create_hard_link(root / "a", root / "b");
  EXPECT_EQ(kind(fs->rename(ctx, P("/a"), P("/b"))), "ok");
  EXPECT_EQ(host_names(root), std::set<std::string>{"b"});
  EXPECT_EQ(get("/b"), "shared");
}

TEST_F(LocalLinks, DevicesSocketsAndFifosAreListedButNotRead) {
  ASSERT_EQ(::mkfifo((root / "fifo").c_str(), 0644), 0);
  const int socket_fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
  struct sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  (root / "socket").string().copy(address.sun_path, sizeof(address.sun_path) - 1);
  ASSERT_EQ(::bind(socket_fd, reinterpret_cast<struct sockaddr*>(&address), sizeof(address)), 0);
  EXPECT_EQ(names("/"), (std::set<std::string>{"fifo", "socket"}));
  for (const std::string_view path : {"/fifo", "/socket"}) {
    SCOPED_TRACE(path);  // a FIFO without a writer would block an ordinary open for ever
    EXPECT_EQ(fs->stat(ctx, P(path))->kind, FileKind::other);
    EXPECT_EQ(get(path), "<invalid_operation>");
    EXPECT_EQ(put(path, "x"), "invalid_operation");
    EXPECT_EQ(put(path, "x", WriteFlag::append), "invalid_operation");
    EXPECT_EQ(kind(fs->copy(ctx, P(path), P("/copy"))), "invalid_operation");
    EXPECT_EQ(kind(fs->compare_and_write(ctx, P(path), "", "x")), "invalid_operation");
    EXPECT_EQ(kind(fs->touch(ctx, P(path))), "invalid_operation");
  }
  EXPECT_EQ(kind(fs->remove_all(ctx, P("/"))), "ok");
  EXPECT_TRUE(names("/").empty());
  ::close(socket_fd);
}

}  // namespace
}  // namespace ragfs
