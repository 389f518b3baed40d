// What the cache does without each ability of a provider: the fallback itself, seen at the provider. That the answers
// stay the same whatever is missing is provider_abilities_test.cc; life without native_ttl is expiry_test.cc.
#include <gtest/gtest.h>

#include "tests/coherence/hooked_fixture.h"
#include "tests/contract/measuring_provider.h"

namespace ragfs {
namespace {

using scripted::Op;

class CapabilityFallback : public CacheFixture {
 protected:
  // Everything but what `flip` changes.
  void without(const std::function<void(ProviderCapabilities&)>& flip) {
    provider = std::make_shared<ScriptedProvider>();
    ProviderCapabilities capabilities = ScriptedProvider::all_capabilities();
    flip(capabilities);
    provider->set_capabilities(capabilities);
    open_over({}, {});
  }
  const std::vector<CacheKey> keys_{CacheKey("file:a"), CacheKey("file:b"), CacheKey("file:c")};
};

TEST_F(CapabilityFallback, WithoutBatchGetEachKeyIsAskedForAlone) {
  without([](ProviderCapabilities& c) { c.batch_get = false; });
  EXPECT_EQ(domain->provider().get_many(keys_, Deadline::never()).size(), 3U);
  EXPECT_EQ(provider->calls(Op::get), 3U);
  EXPECT_EQ(provider->calls(Op::get_many), 0U);
}

TEST_F(CapabilityFallback, WithoutBatchPutEachKeyIsWrittenAndErasedAlone) {
  without([](ProviderCapabilities& c) { c.batch_put = false; });
  EXPECT_EQ(domain->provider().erase_many(keys_, Deadline::never()).size(), 3U);
  EXPECT_EQ(provider->calls(Op::erase), 3U);
  EXPECT_EQ(provider->calls(Op::erase_many), 0U);
  const std::vector<PutItem> items{{keys_[0], {"", "v"}, {}}, {keys_[1], {"", "w"}, {}}};
  for (const Result<void>& one : provider->put_many(items, Deadline::never())) EXPECT_TRUE(one);
  EXPECT_EQ(provider->calls(Op::put), 2U);
  EXPECT_EQ(provider->calls(Op::put_many), 0U);
}

TEST_F(CapabilityFallback, WithoutAtomicPutNothingAsksForIt) {
  without([](ProviderCapabilities& c) { c.atomic_put = 0; });
  EXPECT_EQ(kind_of(provider->put_atomic({}, Deadline::never())), "not_supported");
  ASSERT_TRUE(mkdir("/d") && write("/d/f", "v") && write("/d/g", "w"));
  ASSERT_TRUE(cached->rename(ctx, path_of("/d"), path_of("/e")));
  EXPECT_EQ(read("/e/f") + list("/e"), "vf g");
  EXPECT_EQ(provider->calls(Op::put_atomic), 0U);
}

TEST_F(CapabilityFallback, WithOrWithoutPartialReadARangeComesFromTheWholeObject) {
  for (const bool partial : {false, true}) {
    without([partial](ProviderCapabilities& c) { c.partial_read = partial; });
    ASSERT_TRUE(write("/f", "0123456789"));
    EXPECT_EQ(text_of(cached->read(ctx, path_of("/f"), 3, 4)), "3456");
    EXPECT_EQ(hits(), 1U);
  }
}

TEST_F(CapabilityFallback, WithoutZeroCopyCallsHaveADeadlineAndPlaces) {
  without([](ProviderCapabilities& c) { c.zero_copy = false; });
  put_in_backend("/f", "from the backend");
  provider->add_rule({.op = Op::get, .times = 1, .delay_ms = 600'000});
  EXPECT_EQ(read("/f"), "from the backend") << "a provider that hangs costs its deadline";
  EXPECT_GE(domain->provider().counts().errors[static_cast<size_t>(ErrorCode::timeout)], 1U);
  const auto measured = std::make_shared<contract::MeasuringProvider>(provider, 2, 100);
  GuardedProvider guarded(measured, {.operation_timeout_ms = 20'000, .concurrency = 1});
  std::vector<std::jthread> threads;
  threads.reserve(4);
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] { EXPECT_TRUE(guarded.get(keys_[0], Deadline::never())); });
  }
  threads.clear();
  EXPECT_EQ(measured->most_inside(), 1U);
}

TEST_F(CapabilityFallback, WhatMayResurrectKeepsItsRecords) {
  for (const bool may : {false, true}) {
    without([may](ProviderCapabilities& c) { c.may_resurrect = may; });
    put_in_backend("/f", "old");
    EXPECT_EQ(read("/f"), "old");
    ASSERT_TRUE(cached->remove(ctx, path_of("/f")));
    EXPECT_TRUE(domain->settler().drain(Deadline::in_ms(10'000)));
    EXPECT_EQ(domain->table().path_records() > 0, may) << "a confirmed erase ends a record only where it is final";
  }
}

TEST_F(CapabilityFallback, WithoutEnumerationSubtreeRecordsStayInsteadOfASweep) {
  for (const bool can : {false, true}) {
    without([can](ProviderCapabilities& c) { c.enumerates = can; });
    put_in_backend("/d/f", "old");
    EXPECT_EQ(read("/d/f"), "old");
    ASSERT_TRUE(cached->remove_all(ctx, path_of("/d")));
    EXPECT_EQ(kind_of(domain->settler().sweep()), can ? "ok" : "not_supported");
    EXPECT_EQ(domain->table().subtree_records() == 0, can);
    EXPECT_EQ(read("/d/f"), "ERROR not_found");
  }
}

}  // namespace
}  // namespace ragfs
