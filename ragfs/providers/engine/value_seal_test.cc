#include "ragfs/providers/engine/value_seal.h"

#include <gtest/gtest.h>

namespace ragfs::engine {
namespace {

TEST(EngineValueSeal, AValueIsItsKeysAndWhole) {
  for (const SealKind kind : {SealKind::key_and_size, SealKind::all_bytes}) {
    for (const std::string& payload : {std::string(), std::string("payload"), std::string(5'000, 'x')}) {
      const std::string sealed = make_seal(kind, "key", "header ", payload) + "header " + payload;
      EXPECT_TRUE(seal_is_intact("key", sealed));
      EXPECT_FALSE(seal_is_intact("other", sealed));
      EXPECT_FALSE(seal_is_intact("key", sealed + "x"));
      EXPECT_FALSE(seal_is_intact("key", sealed.substr(0, sealed.size() - 1)));
    }
  }
  EXPECT_TRUE(seal_is_intact("key", make_seal(SealKind::all_bytes, "key", "", "")));
  EXPECT_FALSE(seal_is_intact("key", ""));
}

TEST(EngineValueSeal, AMixtureOfTwoValuesIsFoundOut) {
  const std::string payload(5'000, 'x');
  std::string sealed = make_seal(SealKind::all_bytes, "key", "", payload) + payload;
  sealed[kSealBytes + 4'000] = 'y';
  EXPECT_FALSE(seal_is_intact("key", sealed));
}

}  // namespace
}  // namespace ragfs::engine
