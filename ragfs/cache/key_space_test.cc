#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // of GCC 12's own <regex>, under a sanitizer
#endif

#include "ragfs/cache/key_space.h"

#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <string>

#include "ragfs/cache/provider.h"

namespace ragfs {
namespace {

std::string key_text(const KeySpace& keys, ObjectKind kind, const std::string& path, uint64_t identity = 0) {
  return std::string(keys.key(kind, identity, PathView::from_normal(path)).text());
}

// These vectors were made once and hold for ever: other processes find their objects by them. The path hashes are
// XXH3-128 with the identity's hash as seed (0 here: what `xxhsum -H2` prints).
TEST(KeySpace, KnownAnswers) {
  const KeySpace keys("openviking");
  EXPECT_EQ(key_text(keys, ObjectKind::file, "/acct/resources/r/f.md"),
            "file:openviking:acct:24894962884c61316762ab1281c96fab");
  EXPECT_EQ(key_text(keys, ObjectKind::listing, "/acct/resources/r/f.md"),
            "dir:openviking:acct:24894962884c61316762ab1281c96fab");
  EXPECT_EQ(key_text(keys, ObjectKind::subtree, "/acct/resources/r/f.md"),
            "subtree:openviking:acct:24894962884c61316762ab1281c96fab");
  EXPECT_EQ(key_text(keys, ObjectKind::listing, "/"), "dir:openviking:_:d6f5222ffc6d3eaf474292953285562e");
  EXPECT_EQ(key_text(keys, ObjectKind::file, "/acct/resources/r/f.md", 42),
            "file:openviking:acct:9a451a3ed0f727dc40fa861024fa2c76");
  EXPECT_EQ(encode_key_part("a:b"), "h_4b83cb671c7db94535a581");
}

TEST(KeySpace, EveryKeyIsShortAndOfTheAllowedCharacters) {
  const std::regex allowed("(file|dir|subtree):[A-Za-z0-9_-]{1,24}:[A-Za-z0-9_-]{1,24}:[0-9a-f]{32}");
  const std::string names[] = {"a",
                               "openviking",
                               std::string(24, 'n'),
                               std::string(25, 'n'),
                               "a:b",
                               "\xe4\xb8\xad\xe6\x96\x87",
                               "\xff",
                               std::string(255, 'x'),
                               "with space",
                               ".",
                               "h_0123456789abcdef012345"};
  for (const std::string& name_space : names) {
    const KeySpace keys(name_space);
    for (const std::string& account : names) {
      if (account == ".") continue;
      for (const ObjectKind kind : {ObjectKind::file, ObjectKind::listing, ObjectKind::subtree}) {
        const std::string key = key_text(keys, kind, "/" + account + "/f");
        EXPECT_LE(key.size(), kMaxKeyBytes);
        EXPECT_TRUE(std::regex_match(key, allowed)) << key;
      }
    }
  }
}

TEST(KeySpace, PathsKindsIdentitiesAndNamespacesDoNotMeet) {
  std::set<std::string> seen;
  size_t made = 0;
  for (const char* name_space : {"a", "b", "a:b", "a_b", "h_a"}) {
    const KeySpace keys(name_space);
    for (const ObjectKind kind : {ObjectKind::file, ObjectKind::listing, ObjectKind::subtree}) {
      for (const char* path : {"/", "/a", "/a/b", "/ab", "/b/a", "/A", "/a:b", "/_"}) {
        for (const uint64_t identity : {0, 1, 2}) {
          seen.insert(key_text(keys, kind, path, identity));
          ++made;
        }
      }
    }
  }
  EXPECT_EQ(seen.size(), made);
}

TEST(KeySpace, OwnsTheKeysOfItsNamespaceAlone) {
  const KeySpace a("a");
  for (const ObjectKind kind : {ObjectKind::file, ObjectKind::listing, ObjectKind::subtree}) {
    EXPECT_TRUE(a.owns(key_text(a, kind, "/b/f")));
    for (const char* other : {"a:b", "b", "aa", "a_"}) EXPECT_FALSE(a.owns(key_text(KeySpace(other), kind, "/b/f")));
  }
  EXPECT_FALSE(a.owns("epoch:a"));
}

// A name that looks like a hash is hashed too, so that it never is another name's.
TEST(KeySpace, AnAccountsObjectsBeginAlikeAndNoOthersDo) {
  const KeySpace keys("ns");
  const auto begins = [&](ObjectKind kind, std::string_view account, const char* path) {
    return begins_with_any(keys.key(kind, 7, PathView::from_normal(path)).text(), keys.object_prefixes(account));
  };
  for (const ObjectKind kind : {ObjectKind::file, ObjectKind::listing}) {
    EXPECT_TRUE(begins(kind, "acct", "/acct/f"));
    EXPECT_TRUE(begins(kind, "acct", "/acct"));
    EXPECT_FALSE(begins(kind, "acct", "/acct2/f"));
    EXPECT_FALSE(begins(kind, "acct", "/other/acct"));
    EXPECT_TRUE(begins(kind, "a name with spaces", "/a name with spaces/f"));
  }
  EXPECT_FALSE(begins(ObjectKind::subtree, "acct", "/acct")) << "records stay";
}

TEST(KeySpace, AnEncodedPartIsNotAPlainOne) {
  const std::string encoded = encode_key_part("a:b");
  EXPECT_EQ(encoded.size(), 24U);
  EXPECT_NE(encode_key_part(encoded), encoded);
  EXPECT_EQ(encode_key_part("h_short"), "h_short");
}

TEST(KeySpace, EqualKeysHaveEqualHashes) {
  const KeySpace one("ns");
  const KeySpace two("ns");
  const CacheKey a = one.key(ObjectKind::file, 5, PathView::from_normal("/a/b"));
  const CacheKey b = two.key(ObjectKind::file, 5, PathView::from_normal("/a/b"));
  EXPECT_EQ(a, b);
  EXPECT_EQ(a.hash(), b.hash());
  EXPECT_EQ(a.hash(), one.key_hash(ObjectKind::file, 5, PathView::from_normal("/a/b")));
  EXPECT_NE(a.hash(), one.key_hash(ObjectKind::listing, 5, PathView::from_normal("/a/b")));
  EXPECT_NE(a.hash(), one.key_hash(ObjectKind::file, 6, PathView::from_normal("/a/b")));
  EXPECT_NE(a.hash(), KeySpace("other").key_hash(ObjectKind::file, 5, PathView::from_normal("/a/b")));
  EXPECT_FALSE(a == one.key(ObjectKind::listing, 5, PathView::from_normal("/a/b")));
}

TEST(ScopeLength, EndsAtTheSemanticBoundary) {
  const std::pair<const char*, const char*> cases[] = {
      {"/", "/"},
      {"/acct", "/acct"},
      {"/acct/f", "/acct"},
      {"/acct/other/x/y", "/acct"},
      {"/acct/resources", "/acct"},
      {"/acct/resources/r", "/acct/resources/r"},
      {"/acct/resources/r/d/f", "/acct/resources/r"},
      {"/acct/user/space/f", "/acct/user/space"},
      {"/acct/agent/space/f", "/acct/agent/space"},
      {"/acct/session/id/f", "/acct/session/id"},
      {"/acct/temp", "/acct/temp"},
      {"/acct/temp/a/b", "/acct/temp"},
      {"/acct/resources2/r/f", "/acct"},
      {"/acct/temporary/f", "/acct"},
  };
  for (const auto& [path, scope] : cases) {
    EXPECT_EQ(std::string_view(path).substr(0, scope_length(PathView::from_normal(path))), scope) << path;
  }
}

}  // namespace
}  // namespace ragfs
