#include "ragfs/base/file_io.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "ragfs/base/faulty_files.h"

namespace ragfs {
namespace {

class FileIoTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = "/tmp/ragfs-file-io-XXXXXX";
    const int fd = ::mkostemp(name.data(), O_CLOEXEC);
    ASSERT_GE(fd, 0);
    ::unlink(name.c_str());
    file = OwnedFd(files, fd);
  }
  FaultyFiles files;
  OwnedFd file;
};

TEST_F(FileIoTest, InterruptedAndShortTransfersGoOn) {
  files.add({.call = "write", .error = EINTR, .times = 2});
  files.add({.call = "write", .times = -1, .max_bytes = 3});
  const WriteProgress wrote = write_fully(files, file.get(), "0123456789");
  EXPECT_EQ(wrote.error, 0);
  EXPECT_EQ(wrote.written, 10U);
  EXPECT_EQ(files.calls("write"), 2 + 4);

  files.add({.call = "pread", .error = EINTR, .skip = 1, .times = 1});
  files.add({.call = "pread", .times = -1, .max_bytes = 4});
  char buffer[32] = {};
  EXPECT_EQ(pread_fully(files, file.get(), buffer, sizeof(buffer), 2), 8);
  EXPECT_EQ(std::string(buffer), "23456789");
}

TEST_F(FileIoTest, AFailureTellsHowFarItCame) {
  files.add({.call = "pwrite", .times = 1, .max_bytes = 4});
  files.add({.call = "pwrite", .error = ENOSPC});
  const WriteProgress wrote = pwrite_fully(files, file.get(), "0123456789", 0);
  EXPECT_EQ(wrote.error, -ENOSPC);
  EXPECT_EQ(wrote.written, 4U);
}

TEST_F(FileIoTest, ReadErrorsAreErrorsAndTheEndIsNot) {
  ASSERT_EQ(write_fully(files, file.get(), "abc").written, 3U);
  char buffer[8];
  EXPECT_EQ(pread_fully(files, file.get(), buffer, sizeof(buffer), 100), 0);
  files.add({.call = "pread", .times = 1, .max_bytes = 1});
  files.add({.call = "pread", .error = EIO});
  EXPECT_EQ(pread_fully(files, file.get(), buffer, 3, 0), -EIO);
}

TEST_F(FileIoTest, OwnedFdClosesOnceAndReportsTheError) {
  files.add({.call = "close", .error = EIO});
  EXPECT_EQ(file.close(), -EIO);
  EXPECT_EQ(file.close(), 0);
  EXPECT_EQ(files.calls("close"), 1);
}

}  // namespace
}  // namespace ragfs
