#include "ragfs/cache/policy.h"

#include <gtest/gtest.h>

namespace ragfs {
namespace {

MountPolicy policy_of(CachePolicyConfig config, std::string_view mount = "/local") {
  EXPECT_TRUE(config.validate());
  return MountPolicy(config, PathView::from_normal(mount));
}

bool bypasses(const MountPolicy& policy, std::string_view path) { return policy.bypasses(PathView::from_normal(path)); }

TEST(MountPolicy, LockAndControlFilesAreAlwaysBypassed) {
  const MountPolicy policy = policy_of({});
  for (const char* name : {".path.ovlock", ".exact.ovlock.abc", "x.lock", "x.lck", "enqueue", "dequeue", "peek", "ack",
                           "clear", "size", "messages", "heartbeat", "lease", "cursor", "offset", "pid"}) {
    EXPECT_TRUE(bypasses(policy, "/a/" + std::string(name))) << name;
  }
  for (const char* name : {".abstract.md", "size.md", "sizes", "unlock", "lock", "x.locks", "peek.txt", "enqueue2",
                           ".path.ovlock2", "a.lock.md"}) {
    EXPECT_FALSE(bypasses(policy, "/a/" + std::string(name))) << name;
  }
  EXPECT_FALSE(bypasses(policy, "/"));
}

TEST(MountPolicy, PrefixesAreAbsoluteAndEndAtASlash) {
  const MountPolicy policy = policy_of({.bypass_prefixes = {"/local/tmp", "/queue", "/local/acct//x/"}});
  for (const char* path : {"/tmp", "/tmp/f", "/tmp/a/b", "/acct/x", "/acct/x/y"}) {
    EXPECT_TRUE(bypasses(policy, path)) << path;
  }
  for (const char* path : {"/tmpfile", "/tmp2/f", "/queue", "/local/tmp", "/acct/xy", "/acct", "/"}) {
    EXPECT_FALSE(bypasses(policy, path)) << path;
  }
}

TEST(MountPolicy, APrefixAtOrAboveTheMountCoversAllOfIt) {
  for (const char* prefix : {"/", "/queue", "/queue/"}) {
    EXPECT_TRUE(bypasses(policy_of({.bypass_prefixes = {prefix}}, "/queue"), "/anything")) << prefix;
  }
  EXPECT_FALSE(bypasses(policy_of({.bypass_prefixes = {"/queue"}}, "/queue2"), "/anything"));
  EXPECT_FALSE(bypasses(policy_of({.bypass_prefixes = {"/q"}}, "/queue"), "/anything"));
}

TEST(MountPolicy, GlobsSeeTheAbsolutePath) {
  const MountPolicy policy = policy_of({.bypass_globs = {"/local/*/secret/**", "**/*.tmp"}});
  EXPECT_TRUE(bypasses(policy, "/acct/secret/a"));
  EXPECT_TRUE(bypasses(policy, "/acct/secret/a/b"));
  EXPECT_TRUE(bypasses(policy, "/x.tmp"));
  EXPECT_TRUE(bypasses(policy, "/a/b/c.tmp"));
  EXPECT_FALSE(bypasses(policy, "/acct/other/a"));
  EXPECT_FALSE(bypasses(policy, "/a/b.tmp.md"));
}

TEST(MountPolicy, PermissionDependentPathsAreBypassed) {
  const MountPolicy policy = policy_of({.permission_dependent_prefixes = {"/local/private"}});
  EXPECT_TRUE(bypasses(policy, "/private/f"));
  EXPECT_FALSE(bypasses(policy, "/public/f"));
}

TEST(MountPolicy, HintsGoByName) {
  const MountPolicy policy = policy_of({.no_prefetch_prefixes = {"/local/hot"}, .negative_ttl_ms = 100});
  EXPECT_TRUE(policy.is_preferred(PathView::from_normal("/a/.abstract.md")));
  EXPECT_FALSE(policy.is_preferred(PathView::from_normal("/a/x.abstract.md")));
  EXPECT_TRUE(policy.remembers_absence(PathView::from_normal("/a/.overview.md")));
  EXPECT_FALSE(policy.remembers_absence(PathView::from_normal("/a/f.md")));
  EXPECT_FALSE(policy.allows_prefetch(PathView::from_normal("/hot/a")));
  EXPECT_TRUE(policy.allows_prefetch(PathView::from_normal("/hotter/a")));
  EXPECT_FALSE(policy_of({}).remembers_absence(PathView::from_normal("/a/.overview.md"))) << "off by default";
}

TEST(CachePolicyConfig, ErrorsNameFieldValueAndWhatIsAllowed) {
  const auto message = [](const CachePolicyConfig& config) {
    const auto checked = config.validate();
    return checked ? std::string() : checked.error().message;
  };
  EXPECT_EQ(message({}), "");
  EXPECT_EQ(message({.max_file_size_bytes = 0}), "max_file_size_bytes: 0 is not allowed; it must be 1 to 1073741824");
  EXPECT_NE(message({.max_listing_bytes = uint64_t{1} << 40}).find("max_listing_bytes"), std::string::npos);
  EXPECT_NE(message({.bypass_prefixes = {"queue"}}).find("bypass_prefixes: 'queue'"), std::string::npos);
  EXPECT_NE(message({.bypass_prefixes = {"/a/../b"}}).find("bypass_prefixes"), std::string::npos);
  EXPECT_NE(message({.bypass_globs = {"["}}).find("bypass_globs: '['"), std::string::npos);
  EXPECT_NE(message({.negative_ttl_ms = 99}).find("negative_ttl_ms: 99"), std::string::npos);
  EXPECT_NE(message({.negative_ttl_ms = 1'001}).find("negative_ttl_ms: 1001"), std::string::npos);
}

}  // namespace
}  // namespace ragfs
