// Batches and optional abilities of every provider: order, one result a key, and what is said where one is missing.
#include <set>
#include <thread>

#include "tests/contract/provider_contract.h"

namespace ragfs::contract {
namespace {

TEST_P(ProviderBatches, AThousandKeysKeepTheirOrder) {
  const std::vector<CacheKey> keys = keys_of(1'000);
  std::vector<std::string> values;
  values.reserve(keys.size());
  for (size_t i = 0; i < keys.size(); ++i) values.push_back("value " + std::to_string(i) + std::string(i % 300, '.'));
  std::vector<PutItem> items;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (i % 3 != 0) items.push_back({keys[i], {"", values[i]}, {}});
  }
  const auto stored = provider().put_many(items, soon());
  ASSERT_EQ(stored.size(), items.size());
  for (const Result<void>& one : stored) ASSERT_EQ(kind(one), "ok");

  const auto got = provider().get_many(keys, soon());
  ASSERT_EQ(got.size(), keys.size());
  for (size_t i = 0; i < keys.size(); ++i) EXPECT_EQ(text(got[i]), i % 3 == 0 ? "<miss>" : values[i]) << i;

  const auto erased = provider().erase_many(keys, soon());
  ASSERT_EQ(erased.size(), keys.size());
  for (const Result<void>& one : erased) ASSERT_EQ(kind(one), "ok");
  for (const GetResult& one : provider().get_many(keys, soon())) EXPECT_EQ(text(one), "<miss>");
}

TEST_P(ProviderBatches, KeysNamedTwiceAreAnsweredTwice) {
  const std::vector<CacheKey> keys{CacheKey("file:a"), CacheKey("file:b"), CacheKey("file:a"), CacheKey("file:a")};
  const std::vector<PutItem> items{{keys[0], {"", "first"}, {}}, {keys[1], {"", "b"}, {}}, {keys[2], {"", "last"}, {}}};
  for (const Result<void>& one : provider().put_many(items, soon())) ASSERT_EQ(kind(one), "ok");
  std::vector<std::string> seen;
  for (const GetResult& one : provider().get_many(keys, soon())) seen.push_back(text(one));
  EXPECT_EQ(seen, (std::vector<std::string>{"last", "b", "last", "last"})) << "input order decides";
  const auto erased = provider().erase_many(keys, soon());
  ASSERT_EQ(erased.size(), keys.size());
  for (const Result<void>& one : erased) EXPECT_EQ(kind(one), "ok");
  for (const GetResult& one : provider().get_many(keys, soon())) EXPECT_EQ(text(one), "<miss>");
}

TEST_P(ProviderBatches, NoKeysAreNoResults) {
  EXPECT_TRUE(provider().get_many({}, soon()).empty());
  EXPECT_TRUE(provider().put_many({}, soon()).empty());
  EXPECT_TRUE(provider().erase_many({}, soon()).empty());
}

TEST_P(ProviderBatches, OneBadItemDoesNotFailItsNeighbours) {
  const std::vector<PutItem> items{
      {CacheKey("file:a"), {"", "a"}, {}}, {CacheKey(""), {"", "bad"}, {}}, {CacheKey("file:c"), {"", "c"}, {}}};
  const auto stored = provider().put_many(items, soon());
  ASSERT_EQ(stored.size(), 3U);
  EXPECT_EQ(kind(stored[0]), "ok");
  EXPECT_EQ(kind(stored[1]), "invalid_argument");
  EXPECT_EQ(kind(stored[2]), "ok");
  EXPECT_EQ(get("file:a"), "a");
  EXPECT_EQ(get("file:c"), "c");
}

// The re-put of a key that was there already failed the whole batch.
TEST_P(CaseB04, APresentATooLargeAndABadKeyFailNoOther) {
  ASSERT_TRUE(put("file:there", "old"));
  const bool bounded = can().max_value_bytes < GetParam().largest_tried_bytes;
  const std::string large(bounded ? can().max_value_bytes + kMaxKeyBytes + 1 : 1, 'x');  // whatever its key
  const std::vector<PutItem> items{
      {CacheKey("file:new"), {"", "new"}, {}},         {CacheKey("file:there"), {"", "again"}, {}},
      {CacheKey("file:large"), {"", large}, {}},       {CacheKey(""), {"", "bad"}, {}},
      {CacheKey("file:there"), {"", "and again"}, {}}, {CacheKey("file:last"), {"", "last"}, {}}};
  std::vector<std::string> answers;
  for (const Result<void>& one : provider().put_many(items, soon())) answers.push_back(kind(one));
  const std::vector<std::string> expected{"ok", "ok", bounded ? "too_large" : "ok", "invalid_argument", "ok", "ok"};
  EXPECT_EQ(answers, expected);
  EXPECT_EQ(get("file:new"), "new");
  EXPECT_EQ(get("file:there"), "and again");
  EXPECT_TRUE(get("file:large") == (bounded ? "<miss>" : "x"));
  EXPECT_EQ(get("file:last"), "last");
}

TEST_P(ProviderBatches, BatchesAndSingleCallsSeeTheSameStore) {
  ASSERT_TRUE(put("file:a", "single"));
  const std::vector<CacheKey> keys{CacheKey("file:b"), CacheKey("file:a")};
  const auto got = provider().get_many(keys, soon());
  ASSERT_EQ(got.size(), 2U);
  EXPECT_EQ(text(got[0]), "<miss>");
  EXPECT_EQ(text(got[1]), "single");
  const std::vector<PutItem> items{{keys[0], {"head ", "batch"}, {}}};
  ASSERT_EQ(kind(provider().put_many(items, soon())[0]), "ok");
  EXPECT_EQ(get("file:b"), "head batch");
}

// --- put_atomic ---

std::vector<PutItem> items_of(const std::vector<CacheKey>& keys, std::string_view value) {
  std::vector<PutItem> items;
  items.reserve(keys.size());
  for (const CacheKey& key : keys) items.push_back({key, {"", value}, {}});
  return items;
}

TEST_P(ProviderAbilitiesContract, PutAtomicStoresAllOrSaysThatItCannot) {
  const uint32_t most = can().atomic_put;
  if (most == 0) {
    EXPECT_EQ(kind(provider().put_atomic(items_of(keys_of(1), "v"), soon())), "not_supported");
    EXPECT_EQ(text(provider().get(keys_of(1)[0], soon())), "<miss>");
    return;
  }
  const uint32_t tried = std::min(most, 1'000U);
  for (const uint32_t count : std::set<uint32_t>{1, std::min(2U, tried), tried}) {
    const auto keys = keys_of(count, "dir:atomic:" + std::to_string(count) + ":");
    ASSERT_EQ(kind(provider().put_atomic(items_of(keys, "v"), soon())), "ok") << count;
    for (const GetResult& one : provider().get_many(keys, soon())) EXPECT_EQ(text(one), "v");
  }
  if (most > tried) return;
  const auto keys = keys_of(most + 1, "dir:more:");
  EXPECT_EQ(kind(provider().put_atomic(items_of(keys, "v"), soon())), "too_large");
  for (const GetResult& one : provider().get_many(keys, soon())) EXPECT_EQ(text(one), "<miss>");
}

TEST_P(ProviderAbilitiesContract, PutAtomicWithABadItemStoresNone) {
  if (can().atomic_put < 2) return;  // the test above says what is answered
  const std::vector<PutItem> items{{CacheKey("file:a"), {"", "a"}, {}}, {CacheKey(""), {"", "bad"}, {}}};
  EXPECT_EQ(kind(provider().put_atomic(items, soon())), "invalid_argument");
  EXPECT_EQ(get("file:a"), "<miss>");
}

TEST_P(ProviderAbilitiesContract, ReadersNeverSeeTheOldAfterTheNewOfAnAtomicPut) {
  if (can().atomic_put < 2) return;
  const std::vector<CacheKey> keys = keys_of(2, "file:pair:");
  ASSERT_EQ(kind(provider().put_atomic(items_of(keys, "0"), soon())), "ok");
  std::atomic<bool> done{false};
  std::vector<std::string> wrong;
  std::atomic<uint64_t> pairs{0};
  std::jthread reader([&] {
    while (!done) {
      const GetResult first = provider().get(keys[0], soon());
      const GetResult second = provider().get(keys[1], soon());
      const bool both = first && *first && second && *second;
      const bool missed = first && second && !both;
      if (missed && GetParam().atomic_puts_are_missed) continue;
      ++pairs;
      if (!both || std::stoi(text(second)) < std::stoi(text(first))) {
        wrong.push_back(text(first) + " then " + text(second));
      }
    }
  });
  // Of a fast provider 300 puts are over before the reader has begun: it has its share of pairs in any case.
  const Deadline longest = soon();
  std::string answer = "ok";
  for (int i = 1; answer == "ok" && (i <= 300 || pairs < 300) && !longest.expired(); ++i) {
    answer = kind(provider().put_atomic(items_of(keys, std::to_string(i)), soon()));
  }
  done = true;
  reader.join();
  EXPECT_TRUE(wrong.empty()) << wrong.front();
  EXPECT_EQ(answer, "ok");
  EXPECT_GT(pairs, 0U) << "nothing was compared";
}

// --- TTL ---

TEST_P(ProviderAbilitiesContract, ATtlEndsAnObjectOnlyWhereItIsNative) {
  const int64_t ttl_ms = GetParam().ttl_ms;
  ASSERT_TRUE(put("file:short", "v", {.ttl_ms = ttl_ms}));
  ASSERT_TRUE(put("file:long", "v", {.ttl_ms = 3'600'000}));
  ASSERT_TRUE(put("file:none", "v"));
  ASSERT_TRUE(put("file:again", "v", {.ttl_ms = ttl_ms}));
  ASSERT_TRUE(put("file:again", "w"));
  EXPECT_EQ(get("file:long"), "v");
  if (!can().native_ttl) {
    EXPECT_EQ(get("file:short"), "v") << "a TTL is an option, never an error";
    return;
  }
  harness_.pass_time(ttl_ms * 2);
  EXPECT_EQ(get("file:short"), "<miss>");
  EXPECT_EQ(get("file:long"), "v");
  EXPECT_EQ(get("file:none"), "v");
  EXPECT_EQ(get("file:again"), "w") << "a put without TTL overwrites the TTL too";
}

TEST_P(ProviderAbilitiesContract, ATtlOfCenturiesIsNoError) {
  ASSERT_EQ(kind(put("file:a", "v", {.ttl_ms = int64_t{1} << 50})), "ok");
  EXPECT_EQ(get("file:a"), "v");
}

// --- erase_if ---

TEST_P(ProviderAbilitiesContract, EraseIfErasesWhatIsCoveredOrSaysThatItCannot) {
  for (const CacheKey& key : keys_of(100)) ASSERT_TRUE(put(key.text(), "old"));
  ASSERT_TRUE(put("dir:x", "new"));
  std::set<std::string, std::less<>> asked;
  const auto erased = provider().erase_if(
      [&](std::string_view key, std::string_view value) {
        asked.emplace(key);
        return value == "old" && key.ends_with('7');
      },
      soon());
  if (!can().enumerates) {
    EXPECT_EQ(kind(erased), "not_supported");
    EXPECT_TRUE(asked.empty());
    return;
  }
  ASSERT_EQ(kind(erased), "ok");
  EXPECT_EQ(*erased, 10U);
  EXPECT_EQ(asked.size(), 101U);
  for (const CacheKey& key : keys_of(100)) {
    EXPECT_EQ(text(provider().get(key, soon())), key.text().ends_with('7') ? "<miss>" : "old") << key.text();
  }
  EXPECT_EQ(get("dir:x"), "new");
}

TEST_P(ProviderAbilitiesContract, ErasePrefixesErasesEveryObjectOfThemOrSaysThatItCannot) {
  constexpr int kObjects = 1'500;  // more than a page
  const auto key = [](const char* begin, int i) { return begin + std::to_string(i); };
  for (int i = 0; i < kObjects; ++i) ASSERT_TRUE(put(key("file:t:a:", i), "theirs"));
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(put(key("dir:t:a:", i), "theirs"));
    ASSERT_TRUE(put(key("file:t:ab:", i), "another's"));
    ASSERT_TRUE(put(key("subtree:t:a:", i), "a record"));
  }
  const std::vector<std::string> prefixes = {"file:t:a:", "dir:t:a:"};
  const auto erased = provider().erase_prefixes(prefixes, soon());
  if (kind(erased) == "not_supported") {
    EXPECT_FALSE(can().enumerates);
    EXPECT_EQ(get("dir:t:a:0"), "theirs");
    return;
  }
  ASSERT_EQ(kind(erased), "ok");
  EXPECT_GT(*erased, 0U);
  for (int i = 0; i < kObjects; ++i) ASSERT_EQ(get(key("file:t:a:", i)), "<miss>") << i;
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(get(key("dir:t:a:", i)), "<miss>");
    EXPECT_EQ(get(key("subtree:t:a:", i)), "a record");
  }
  EXPECT_EQ(kind(provider().erase_prefixes(prefixes, soon())), "ok");
  EXPECT_EQ(get("file:t:ab:7"), "another's");
}

TEST_P(ProviderAbilitiesContract, OnlyAZeroCopyProviderPinsWhatItStored) {
  ASSERT_TRUE(put("file:a", std::string(1'000, 'a')));
  const Bytes first = provider().get(CacheKey("file:a"), soon()).value().value_or(Bytes());
  const Bytes second = provider().get(CacheKey("file:a"), soon()).value().value_or(Bytes());
  ASSERT_EQ(first.size() + second.size(), 2'000U);
  EXPECT_EQ(first.data() == second.data(), can().zero_copy);
}

TEST_P(ProviderAbilitiesContract, AHashFindsTheObjectOfItsKeyOrNothing) {
  const CacheKey key("file:a");
  ASSERT_TRUE(put("file:a", "first"));
  EXPECT_EQ(provider().get_by_hash(key.hash()).view(), can().by_hash ? "first" : "");
  ASSERT_TRUE(put("file:a", "second"));
  EXPECT_EQ(provider().get_by_hash(key.hash()).view(), can().by_hash ? "second" : "");
  EXPECT_TRUE(provider().get_by_hash(CacheKey("file:b").hash()).empty());
  ASSERT_TRUE(provider().erase(key, soon()));
  EXPECT_TRUE(provider().get_by_hash(key.hash()).empty());
  ASSERT_TRUE(put("file:c", "short-lived", {.ttl_ms = GetParam().ttl_ms}));
  harness_.pass_time(GetParam().ttl_ms * 2);
  EXPECT_TRUE(provider().get_by_hash(CacheKey("file:c").hash()).empty());
}

}  // namespace
}  // namespace ragfs::contract
