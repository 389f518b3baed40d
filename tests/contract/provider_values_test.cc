// Keys and values of every provider: what was put is what is read, byte by byte.
#include "tests/contract/provider_contract.h"

namespace ragfs::contract {
namespace {

TEST_P(ProviderValues, APutIsReadUntilItIsErased) {
  EXPECT_EQ(get("file:a"), "<miss>");
  ASSERT_TRUE(put("file:a", "one"));
  EXPECT_EQ(get("file:a"), "one");
  EXPECT_EQ(get("file:a"), "one");
  ASSERT_TRUE(put("file:b", "other"));
  EXPECT_EQ(get("file:a"), "one");
  ASSERT_TRUE(provider().erase(CacheKey("file:a"), soon()));
  EXPECT_EQ(get("file:a"), "<miss>");
  EXPECT_EQ(get("file:b"), "other");
}

TEST_P(ProviderValues, APutOverwritesALongerAndAShorterOne) {
  for (const std::string& value : {std::string("short"), std::string(100'000, 'l'), std::string("again")}) {
    ASSERT_TRUE(put("file:a", value));
    EXPECT_EQ(get("file:a"), value);
  }
}

TEST_P(ProviderValues, EraseOfAnAbsentKeySucceedsAndIsRepeatable) {
  EXPECT_EQ(kind(provider().erase(CacheKey("file:never"), soon())), "ok");
  ASSERT_TRUE(put("file:a", "v"));
  EXPECT_EQ(kind(provider().erase(CacheKey("file:a"), soon())), "ok");
  EXPECT_EQ(kind(provider().erase(CacheKey("file:a"), soon())), "ok");
  EXPECT_EQ(get("file:a"), "<miss>");
}

TEST_P(ProviderValues, WhatIsStoredIsTheHeaderThenThePayload) {
  const CacheKey key("file:parts");
  const ValueParts all[] = {{"head", "body"}, {"head", ""}, {"", "body"}, {"", ""}};
  for (const ValueParts& value : all) {
    ASSERT_TRUE(provider().put(key, value, {}, soon()));
    EXPECT_EQ(text(provider().get(key, soon())), std::string(value.header) + std::string(value.payload));
  }
}

TEST_P(ProviderValues, AnEmptyValueIsAValueAndNoMiss) {
  ASSERT_TRUE(put("file:empty", ""));
  EXPECT_EQ(get("file:empty"), "");
}

TEST_P(ProviderValues, EveryByteComesBack) {
  std::string value;
  for (int round = 0; round < 3; ++round) {
    for (int byte = 0; byte < 256; ++byte) value.push_back(static_cast<char>(byte));
  }
  value += std::string("\r\n$-1\r\n\0\0*3\r\n", 13);
  ASSERT_TRUE(put("file:bytes", value));
  EXPECT_EQ(get("file:bytes"), value);
}

TEST_P(ProviderValues, SizesRoundPowersOfTwoUpToAMebibyte) {
  for (size_t power = 1; power <= (size_t{1} << 20); power *= 4) {
    for (const size_t size : {power - 1, power, power + 1}) {
      const std::string value(size, static_cast<char>('a' + size % 26));
      ASSERT_EQ(kind(put("file:size", value)), "ok") << size;
      EXPECT_TRUE(get("file:size") == value) << size << " bytes came back otherwise";
    }
  }
}

TEST_P(ProviderValues, TheLargestItNamesIsTakenAndOneMoreIsTooLarge) {
  const size_t most = can().max_value_bytes;
  if (most > GetParam().largest_tried_bytes) return;  // no memory is large enough to try
  const CacheKey key(std::string(kMaxKeyBytes, 'k'));
  std::string value(most, 'v');
  ASSERT_EQ(kind(provider().put(key, {"", value}, {}, soon())), "ok");
  EXPECT_TRUE(text(provider().get(key, soon())) == value);
  value += 'v';
  EXPECT_EQ(kind(provider().put(key, {"", value}, {}, soon())), "too_large");
  EXPECT_EQ(kind(provider().put(key, {"vv", std::string_view(value).substr(2)}, {}, soon())), "too_large")
      << "the header counts too";
}

TEST_P(ProviderValues, KeysOfOneAndOfMostCharactersDifferInEachPlace) {
  std::vector<std::string> keys{"k", "K", "0", std::string(kMaxKeyBytes, 'k'), std::string(kMaxKeyBytes - 1, 'k')};
  for (const size_t place : {size_t{0}, size_t{63}, kMaxKeyBytes - 1}) {
    keys.emplace_back(kMaxKeyBytes, 'k');
    keys.back()[place] = 'x';
  }
  keys.emplace_back("file:Az09:_-");
  for (const std::string& key : keys) ASSERT_TRUE(put(key, "value of " + key));
  for (const std::string& key : keys) EXPECT_EQ(get(key), "value of " + key);
}

TEST_P(ProviderValues, AnEmptyKeyIsTheCallersFault) { EXPECT_EQ(kind(put("", "v")), "invalid_argument"); }

TEST_P(ProviderValues, AThousandMissesAreNoFailure) {
  for (const CacheKey& key : keys_of(1'000)) {
    ASSERT_EQ(text(provider().get(key, soon())), "<miss>");
  }
}

TEST_P(ProviderValues, BytesOutliveOverwriteAndErase) {
  ASSERT_TRUE(put("file:a", std::string(10'000, 'a')));
  const Bytes held = provider().get(CacheKey("file:a"), soon()).value().value_or(Bytes());
  ASSERT_TRUE(put("file:a", std::string(10'000, 'b')));
  ASSERT_TRUE(provider().erase(CacheKey("file:a"), soon()));
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(put("file:" + std::to_string(i), std::string(10'000, 'c')));
  EXPECT_TRUE(held.view() == std::string(10'000, 'a'));
}

TEST_P(ProviderValues, ItSaysWhoItIs) {
  EXPECT_FALSE(provider().name().empty());
  EXPECT_EQ(kind(provider().health(soon())), "ok");
  const std::string incarnation = provider().incarnation();
  EXPECT_FALSE(incarnation.empty());
  ASSERT_TRUE(put("file:a", "v"));
  EXPECT_EQ(provider().incarnation(), incarnation) << "nothing was lost, so it is the same";
  EXPECT_GE(can().max_batch_keys, 1U);
  for (const ProviderMetric& metric : provider().metrics()) {
    EXPECT_EQ(metric.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_"), std::string::npos) << metric.name;
    EXPECT_GE(metric.value, 0) << metric.name;
  }
}

TEST_P(ProviderValues, ACallWhoseDeadlineHasPassedIsATimeoutOrWasQuick) {
  ASSERT_TRUE(put("file:a", "v"));
  const Deadline passed = Deadline::in_ms(-1);
  const std::string got = text(provider().get(CacheKey("file:a"), passed));
  EXPECT_TRUE(got == "v" || got == "<timeout>") << got << ": it is there, so a miss is a lie";
  const Result<void> written = provider().put(CacheKey("file:a"), {"", "new"}, {}, passed);
  if (!written) {
    EXPECT_TRUE(outcome_unknown(written.error())) << kind(written);
  } else {
    EXPECT_EQ(get("file:a"), "new");
  }
  const Result<void> erased = provider().erase(CacheKey("file:b"), passed);
  EXPECT_TRUE(erased || erased.error().code == ErrorCode::timeout) << kind(erased);
  const auto many = provider().get_many(keys_of(3), passed);
  ASSERT_EQ(many.size(), 3U);
  for (const GetResult& one : many) EXPECT_TRUE(text(one) == "<miss>" || text(one) == "<timeout>") << text(one);
}

}  // namespace
}  // namespace ragfs::contract
