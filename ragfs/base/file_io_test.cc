#include "ragfs/base/file_io.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "ragfs/base/faulty_files.h"

namespace ragfs {
namespace {

using Fault = FaultyFiles::Fault;

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
  files.add(Fault("write", EINTR).times(2));
  files.add(Fault("write").times(-1).at_most(3));
  const WriteProgress wrote = write_fully(files, file.get(), "0123456789");
  EXPECT_EQ(wrote.error, 0);
  EXPECT_EQ(wrote.written, 10U);
  EXPECT_EQ(files.calls("write"), 2 + 4);

  files.add(Fault("pread", EINTR).after(1));
  files.add(Fault("pread").times(-1).at_most(4));
  char buffer[32] = {};
  EXPECT_EQ(pread_fully(files, file.get(), buffer, sizeof(buffer), 2), 8);
  EXPECT_EQ(std::string(buffer), "23456789");
}

TEST_F(FileIoTest, AFailureTellsHowFarItCame) {
  files.add(Fault("pwrite").at_most(4));
  files.add(Fault("pwrite", ENOSPC));
  const WriteProgress wrote = pwrite_fully(files, file.get(), "0123456789", 0);
  EXPECT_EQ(wrote.error, -ENOSPC);
  EXPECT_EQ(wrote.written, 4U);
}

TEST_F(FileIoTest, ReadErrorsAreErrorsAndTheEndIsNot) {
  ASSERT_EQ(write_fully(files, file.get(), "abc").written, 3U);
  char buffer[8];
  EXPECT_EQ(pread_fully(files, file.get(), buffer, sizeof(buffer), 100), 0);
  files.add(Fault("pread").at_most(1));
  files.add(Fault("pread", EIO));
  EXPECT_EQ(pread_fully(files, file.get(), buffer, 3, 0), -EIO);
}

TEST_F(FileIoTest, OwnedFdClosesOnceAndReportsTheError) {
  files.add(Fault("close", EIO));
  EXPECT_EQ(file.close(), -EIO);
  EXPECT_EQ(file.close(), 0);
  EXPECT_EQ(files.calls("close"), 1);
}

}  // namespace
}  // namespace ragfs
