#include "ragfs/base/error.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <set>

namespace ragfs {
namespace {

TEST(Error, EveryKindHasANameOfItsOwnAndALabel) {
  std::set<std::string_view> names;
  for (size_t i = 0; i < kErrorCodeCount; ++i) {
    const auto code = static_cast<ErrorCode>(i);
    EXPECT_TRUE(names.insert(kind_name(code)).second) << kind_name(code);
    EXPECT_FALSE(kind_label(code).empty()) << kind_name(code);
    EXPECT_EQ(kind_name(code).find_first_not_of("abcdefghijklmnopqrstuvwxyz_"), std::string_view::npos);
  }
}

TEST(Error, TextIsLabelAndMessage) {
  EXPECT_EQ((Error{ErrorCode::not_found, "/a"}.text()), "not found: /a");
  EXPECT_EQ(fail(ErrorCode::timeout, "/a").error().code, ErrorCode::timeout);
}

TEST(Error, OnlyENOENTIsNotFound) {
  EXPECT_EQ(error_from_errno(ENOENT, "/a").code, ErrorCode::not_found);
  for (int number = 1; number < 140; ++number) {
    const Error error = error_from_errno(number, "/a");
    EXPECT_EQ(error.sys_errno, number);
    EXPECT_NE(error.message.find("/a"), std::string::npos) << number;
    if (number != ENOENT) {
      EXPECT_NE(error.code, ErrorCode::not_found) << number;
    }
  }
  for (const int number : {EIO, ESTALE, EMFILE, 139}) {
    EXPECT_EQ(error_from_errno(number, "/a").code, ErrorCode::io) << number;
  }
  EXPECT_EQ(error_from_errno(ENOSPC, "/a").code, ErrorCode::full);
  EXPECT_EQ(error_from_errno(EACCES, "/a").code, ErrorCode::permission_denied);
  EXPECT_EQ(error_from_errno(EEXIST, "/a").code, ErrorCode::already_exists);
  EXPECT_EQ(error_from_errno(ENOTDIR, "/a").code, ErrorCode::not_a_directory);
  EXPECT_EQ(error_from_errno(EISDIR, "/a").code, ErrorCode::is_a_directory);
  EXPECT_EQ(error_from_errno(ENOTEMPTY, "/a").code, ErrorCode::directory_not_empty);
}

}  // namespace
}  // namespace ragfs
