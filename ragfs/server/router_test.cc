#include "ragfs/server/router.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ragfs::server {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Router made() {
  Router router;
  for (const auto& [method, path] : {std::pair("GET", "/handles/{id}"), std::pair("DELETE", "/handles/{id}"),
                                     std::pair("POST", "/handles/open"), std::pair("GET", "/handles/{id}/read")}) {
    router.add({method, path, Access::read, Place::worker, nullptr});
  }
  return router;
}

TEST(Router, CapturesWhatStandsForBraces) {
  const Router router = made();
  const Router::Match match = router.match("GET", "/handles/17/read");
  ASSERT_NE(match.route, nullptr);
  EXPECT_EQ(match.route->path, "/handles/{id}/read");
  EXPECT_THAT(match.captures, ElementsAre("17"));
}

TEST(Router, AWrittenOutPathGoesBeforeBraces) {
  const Router router = made();
  const Router::Match opens = router.match("POST", "/handles/open");
  ASSERT_NE(opens.route, nullptr);
  EXPECT_THAT(opens.captures, IsEmpty());
  const Router::Match shows = router.match("GET", "/handles/open");
  EXPECT_EQ(shows.route, nullptr) << "open is no handle";
  EXPECT_THAT(shows.allowed, ElementsAre("POST"));
}

TEST(Router, TellsAnUnknownPathFromAnUnknownMethod) {
  const Router router = made();
  EXPECT_THAT(router.match("GET", "/handles").allowed, IsEmpty());
  EXPECT_THAT(router.match("PUT", "/handles/1").allowed, ElementsAre("GET", "DELETE"));
  EXPECT_THAT(router.match("GET", "/handles/").allowed, IsEmpty()) << "braces stand for something";
}

TEST(Router, HeadIsGetAndOneSlashMayFollow) {
  const Router router = made();
  EXPECT_NE(router.match("HEAD", "/handles/1").route, nullptr);
  EXPECT_NE(router.match("GET", "/handles/1/").route, nullptr);
  EXPECT_EQ(router.match("GET", "/handles/1//").route, nullptr);
}

}  // namespace
}  // namespace ragfs::server
