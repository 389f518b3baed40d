// What a directory of a real machine can hold and do, through the program and its cache: a clear error or the right
// answer, cold and warm, and nothing lost.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <set>

#include "tests/command_line/program.h"

namespace ragfs::test {
namespace {

using nlohmann::json;
namespace host = std::filesystem;

class BadInput : public CommandLineTest {
 protected:
  // The same command three times in one process: the later ones may come from the cache.
  Outcome three_times(const std::string& command) { return shell(command + "\n" + command + "\n" + command + "\n"); }
};

TEST_F(BadInput, AnUnreadableDirectoryIsPermissionDeniedAndNotEmpty) {
  dir_.write("open/f.md", "readable\n");
  dir_.write("shut/f.md", "secret\n");
  ASSERT_EQ(::chmod(dir_.file("shut").c_str(), 0), 0);
  const RunOptions nobody{.as_nobody = true};
  for (const std::vector<std::string>& command : std::vector<std::vector<std::string>>{
           {"ls", "/shut"}, {"cat", "/shut/f.md"}, {"tree", "/shut"}, {"write", "/shut/new.md", "x"}}) {
    const Outcome outcome = ragfs(command, nobody);
    EXPECT_EQ(outcome.code, 4) << command[0] << ": " << outcome.out << outcome.err;
    EXPECT_EQ(outcome.out, "") << command[0];
    EXPECT_TRUE(contains(outcome.err, "permission denied")) << outcome.err;
  }
  EXPECT_EQ(ragfs({"cat", "/open/f.md"}, nobody).out, "readable\n") << "what is beside it is not concerned";
  ASSERT_EQ(::chmod(dir_.file("shut").c_str(), 0755), 0);
  EXPECT_EQ(dir_.read("shut/f.md"), "secret\n");
}

TEST_F(BadInput, AFullDiskIsAnErrorAndKeepsTheOldContent) {
  if (::mount("tmpfs", dir_.path().c_str(), "tmpfs", 0, "size=256k,mode=0755") != 0) {
    GTEST_SKIP() << "a small file system cannot be mounted here (needs root)";
  }
  struct Unmount {
    std::string path;
    ~Unmount() { ::umount(path.c_str()); }
  } const at_the_end{dir_.path()};
  const std::string big(400'000, 'b');
  const Outcome first = shell("write /keep.md old\ncat /keep.md\n");
  EXPECT_TRUE(contains(first.out, "old")) << first.err;
  const Outcome outcome = ragfs({"write", "/keep.md"}, {.input = big});
  EXPECT_EQ(outcome.code, 5) << outcome.out << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "/keep.md")) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "No space left on device")) << outcome.err;
  EXPECT_EQ(ragfs({"cat", "/keep.md"}).out, "old");
  EXPECT_EQ(ragfs({"write", "/other.md"}, {.input = big}).code, 5);
  EXPECT_EQ(ragfs({"ls"}).out, "keep.md\n") << "neither the half-written file nor a temporary one";
  EXPECT_EQ(ragfs({"write", "/small.md", "fits"}).code, 0) << "the space came back";
}

TEST_F(BadInput, DanglingAndLoopingLinksAreNamedAndHarmNobody) {
  dir_.write("f.md", "real\n");
  host::create_symlink("nowhere", dir_.file("dangling"));
  host::create_symlink("loop_b", dir_.file("loop_a"));
  host::create_symlink("loop_a", dir_.file("loop_b"));
  host::create_directory(dir_.file("d"));
  host::create_symlink("..", dir_.file("d/up"));
  host::create_symlink("/etc/passwd", dir_.file("out"));
  const Outcome dangling = ragfs({"cat", "/dangling"});
  EXPECT_EQ(dangling.code, 1) << dangling.err;
  EXPECT_TRUE(contains(dangling.err, "not found: /dangling")) << dangling.err;
  const Outcome loop = ragfs({"cat", "/loop_a"});
  EXPECT_NE(loop.code, 0);
  EXPECT_LT(loop.code, 10) << "an error, and no crash";
  EXPECT_TRUE(contains(loop.err, "/loop_a")) << loop.err;
  const Outcome out = ragfs({"cat", "/out"});
  EXPECT_NE(out.code, 0);
  EXPECT_EQ(out.out, "") << "no link leads out of the root";
  EXPECT_EQ(three_times("cat /d/up/f.md").out, "real\nreal\nreal\n");
  const Outcome tree = ragfs({"tree", "-a"});
  EXPECT_EQ(tree.code, 0) << tree.err;
  EXPECT_TRUE(contains(tree.out, "loop_a") && contains(tree.out, "dangling")) << tree.out;
  EXPECT_EQ(ragfs({"rm", "/dangling"}).code, 0);
  EXPECT_FALSE(host::is_symlink(dir_.file("dangling")));
  EXPECT_EQ(ragfs({"rm", "-r", "/d"}).code, 0);
  EXPECT_EQ(dir_.read("f.md"), "real\n") << "removing a tree removes its links and not what they name";
}

TEST_F(BadInput, NamesOf255BytesWorkAndLongerOnesAreRefused) {
  const std::string name(255, 'n');
  EXPECT_EQ(ragfs({"write", "/" + name, "long"}).code, 0);
  EXPECT_EQ(three_times("cat /" + name).out, "longlonglong");
  EXPECT_EQ(ragfs({"ls"}).out, name + "\n");
  EXPECT_EQ(ragfs({"mv", "/" + name, "/" + std::string(255, 'm')}).code, 0);
  EXPECT_EQ(dir_.read(std::string(255, 'm')), "long");
  const Outcome longer = ragfs({"write", "/" + name + "n", "x"});
  EXPECT_EQ(longer.code, 2) << longer.err;
  EXPECT_TRUE(contains(longer.err, "255")) << longer.err;
}

TEST_F(BadInput, NamesThatAreNotUtf8AreReadListedAndMoved) {
  const std::string name = "caf\xe9-\xff.md";
  dir_.write(name, "latin\n");
  EXPECT_EQ(three_times("cat /" + name).out, "latin\nlatin\nlatin\n");
  const Outcome listed = ragfs({"ls", "--json"});
  EXPECT_EQ(listed.code, 0) << listed.err;
  EXPECT_FALSE(json::parse(listed.out, nullptr, false).is_discarded()) << "the JSON stays JSON: " << listed.out;
  EXPECT_TRUE(contains(ragfs({"ls"}).out, name) || contains(ragfs({"ls"}).out, "caf")) << ragfs({"ls"}).out;
  EXPECT_EQ(ragfs({"mv", "/" + name, "/\xfe"}).code, 0);
  EXPECT_EQ(dir_.read("\xfe"), "latin\n");
}

TEST_F(BadInput, FilesOfNoBytesAreFiles) {
  dir_.write("empty.md", "");
  const Outcome outcome = three_times("cat /empty.md");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(ragfs({"write", "/new.md", ""}).code, 0);
  EXPECT_TRUE(host::is_regular_file(dir_.file("new.md")));
  EXPECT_EQ(ragfs({"grep", "x", "/empty.md"}).code, 1);
}

TEST_F(BadInput, ASparseFileOfTwoGibibytesIsReadByRange) {
  constexpr off_t kSize = off_t{2} << 30;
  const int fd = ::open(dir_.file("sparse.bin").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(::ftruncate(fd, kSize), 0);
  ASSERT_EQ(::pwrite(fd, "tail", 4, kSize - 4), 4);
  ::close(fd);
  EXPECT_TRUE(contains(ragfs({"ls", "-l"}).out, "2147483648")) << ragfs({"ls", "-l"}).out;
  const std::string tail = "cat --offset 2147483644 --size 4 /sparse.bin";
  EXPECT_EQ(three_times(tail).out, "tailtailtail");
  EXPECT_EQ(ragfs({"cat", "--offset", "2147483648", "/sparse.bin"}).out, "");
  EXPECT_EQ(ragfs({"stat", "/sparse.bin"}).code, 0);
}

TEST_F(BadInput, ADirectoryOf100000EntriesIsListedWholeColdAndWarm) {
  host::create_directory(dir_.file("many"));
  const int dir_fd = ::open(dir_.file("many").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  ASSERT_GE(dir_fd, 0);
  for (int i = 0; i < 100'000; ++i) {
    ASSERT_EQ(::mknodat(dir_fd, ("f" + std::to_string(i)).c_str(), S_IFREG | 0644, 0), 0);
  }
  ::close(dir_fd);
  const Outcome outcome = shell("ls /many\nls /many\nwrite /many/one_more x\nls /many\n");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '\n'),
            300'001 + (contains(outcome.out, "wrote") ? 1 : 0));
  EXPECT_TRUE(contains(outcome.out, "\none_more\n"));
  EXPECT_EQ(ragfs({"rm", "-r", "/many"}).code, 0);
  EXPECT_FALSE(host::exists(dir_.file("many")));
}

class CaseA08CommandLine : public BadInput {};
// A directory was moved by a listing of at most 1,000 entries, and the rest was lost with the source.
TEST_F(CaseA08CommandLine, TreesOfManyEntriesAreMovedCopiedAndRemovedWhole) {
  const auto names = [this](const char* directory) {
    std::set<std::string> found;
    for (const auto& entry : host::directory_iterator(dir_.file(directory))) found.insert(entry.path().filename());
    return found;
  };
  for (const int count : {999, 1'000, 1'001, 2'500}) {
    SCOPED_TRACE(count);
    host::create_directory(dir_.file("from"));
    std::set<std::string> made;
    for (int i = 0; i < count; ++i) {
      const std::string name = (i % 10 == 0 ? ".hidden-" : "f-") + std::to_string(i);
      ASSERT_EQ(::mknod(dir_.file("from/" + name).c_str(), S_IFREG | 0644, 0), 0);
      made.insert(name);
    }
    EXPECT_EQ(shell("ls /from\nmv /from /to\ncp -r /to /copy\n").code, 0);
    EXPECT_FALSE(host::exists(dir_.file("from")));
    EXPECT_EQ(names("to"), made);
    EXPECT_EQ(names("copy"), made);
    EXPECT_EQ(ragfs({"rm", "-r", "/to"}).code, 0);
    EXPECT_FALSE(host::exists(dir_.file("to")));
    EXPECT_EQ(names("copy"), made);
    EXPECT_EQ(ragfs({"rm", "-r", "/copy"}).code, 0);
  }
}

TEST_F(BadInput, PathsThatAreNoPathsAreUsageErrors) {
  for (const char* path : {"/../etc/passwd", "/a/../../b", ".."}) {
    const Outcome outcome = ragfs({"cat", path});
    EXPECT_EQ(outcome.code, 2) << path << ": " << outcome.err;
    EXPECT_EQ(outcome.out, "");
  }
}

}  // namespace
}  // namespace ragfs::test
