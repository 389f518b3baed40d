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

CacheDecision decide(const MountPolicy& policy, std::string_view path, CacheOp op = CacheOp::read,
                     const Context& ctx = {}) {
  return policy.cache_policy(PathView::from_normal(path), op, ctx);
}

TEST(MountPolicy, OnlyWhatIsNamedCacheableIsWhenAnythingIs) {
  const MountPolicy policy = policy_of({.cacheable_prefixes = {"/local/docs"}, .bypass_prefixes = {"/local/docs/tmp"}});
  EXPECT_FALSE(bypasses(policy, "/docs"));
  EXPECT_FALSE(bypasses(policy, "/docs/a/b"));
  for (const char* path : {"/", "/docs2", "/other/f", "/docs/tmp/f"}) EXPECT_TRUE(bypasses(policy, path)) << path;
  EXPECT_TRUE(bypasses(policy_of({.cacheable_prefixes = {"/elsewhere"}}), "/f")) << "the mount is not among them";
  EXPECT_FALSE(bypasses(policy_of({.cacheable_prefixes = {"/"}}), "/f"));
}

TEST(MountPolicy, EachClassHasItsDecision) {
  const MountPolicy policy = policy_of({.bypass_prefixes = {"/local/tmp"},
                                        .permission_dependent_prefixes = {"/local/private"},
                                        .negative_only_prefixes = {"/local/new"},
                                        .no_prefetch_prefixes = {"/local/hot"},
                                        .negative_ttl_ms = 100});
  for (const auto& [path, path_class] :
       {std::pair{"/tmp/f", CacheClass::bypass}, std::pair{"/a/x.lock", CacheClass::bypass},
        std::pair{"/private/f", CacheClass::permission_dependent}, std::pair{"/new/f", CacheClass::negative_only},
        std::pair{"/a/f", CacheClass::cacheable}}) {
    const bool cacheable = path_class == CacheClass::cacheable;
    EXPECT_EQ(bypasses(policy, path), !cacheable) << path;
    for (const CacheOp op : {CacheOp::read, CacheOp::list, CacheOp::stat, CacheOp::write}) {
      const CacheDecision decision = decide(policy, path, op);
      EXPECT_EQ(decision.path_class, path_class) << path;
      EXPECT_EQ(decision.may_fill, cacheable && op != CacheOp::stat) << path;
      const bool negative = path_class == CacheClass::negative_only && op == CacheOp::read;
      EXPECT_EQ(decision.may_hit, negative || (cacheable && op != CacheOp::write)) << path;
      EXPECT_EQ(decision.negative_ttl_ms, negative ? 100 : 0) << path;
      EXPECT_EQ(decision.may_prefetch, cacheable && (op == CacheOp::read || op == CacheOp::list)) << path;
    }
  }
}

TEST(MountPolicy, WhoAsksForTheBackendGetsNoHitAndMayFill) {
  const MountPolicy policy = policy_of({});
  Context ctx;
  ctx.bypass_cache = true;
  const CacheDecision decision = decide(policy, "/a/f", CacheOp::read, ctx);
  EXPECT_FALSE(decision.may_hit);
  EXPECT_FALSE(decision.may_prefetch);
  EXPECT_TRUE(decision.may_fill);
}

TEST(MountPolicy, HintsGoByNameAndPlace) {
  const MountPolicy policy = policy_of({.no_prefetch_prefixes = {"/local/hot"}, .negative_ttl_ms = 100});
  EXPECT_TRUE(decide(policy, "/a/.abstract.md").preferred);
  EXPECT_FALSE(decide(policy, "/a/x.abstract.md").preferred);
  EXPECT_TRUE(decide(policy, "/a/x", CacheOp::list).preferred) << "listings always are";
  EXPECT_EQ(decide(policy, "/a/.overview.md").negative_ttl_ms, 100);
  EXPECT_EQ(decide(policy, "/a/.overview.md", CacheOp::list).negative_ttl_ms, 0);
  EXPECT_EQ(decide(policy, "/a/f.md").negative_ttl_ms, 0);
  EXPECT_FALSE(decide(policy, "/hot/a").may_prefetch);
  EXPECT_TRUE(decide(policy, "/hot/a").may_fill);
  EXPECT_TRUE(decide(policy, "/hotter/a").may_prefetch);
  EXPECT_EQ(decide(policy_of({}), "/a/.overview.md").negative_ttl_ms, 0) << "off by default";
}

TEST(MountPolicy, LimitsAreOfFilesAndOfListings) {
  const MountPolicy policy = policy_of({.max_file_size_bytes = 10, .max_listing_bytes = 20});
  EXPECT_EQ(decide(policy, "/a/f").max_bytes, 10U);
  EXPECT_EQ(decide(policy, "/a/f", CacheOp::write).max_bytes, 10U);
  EXPECT_EQ(decide(policy, "/a/f", CacheOp::list).max_bytes, 20U);
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
  EXPECT_NE(message({.cacheable_prefixes = {"a"}}).find("cacheable_prefixes: 'a'"), std::string::npos);
  EXPECT_NE(message({.negative_only_prefixes = {"/a"}}).find("negative_only_prefixes: needs"), std::string::npos);
  EXPECT_NE(message({.bypass_globs = {"["}}).find("bypass_globs: '['"), std::string::npos);
  EXPECT_NE(message({.negative_ttl_ms = 99}).find("negative_ttl_ms: 99"), std::string::npos);
  EXPECT_NE(message({.negative_ttl_ms = 1'001}).find("negative_ttl_ms: 1001"), std::string::npos);
}

}  // namespace
}  // namespace ragfs
