// The contract of ragfs::CacheProvider (the top of ragfs/cache/provider.h): one suite, run on every provider.
//
// To add a provider: a file NAME_contract_test.cc beside this one with a function that makes a ProviderCase and one
// line RAGFS_PROVIDER_CONTRACT(Name, the_case()). The case's make() starts whatever the provider needs on an empty
// store, or says in skip_reason why this machine cannot. What providers may do differently is data here, or a
// capability of theirs; never an `if` on a name in a test. For: what every provider promises. Not for: what one
// provider does beyond that (its tests stand beside its source). Thread-safety: test code; a harness belongs to one
// test, its provider may be called from all the test's threads.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ragfs/cache/provider.h"

namespace ragfs::contract {

// Ways in which an engine fails from outside.
enum class EngineFault : uint8_t {
  none,    // works again
  gone,    // cannot be reached
  hangs,   // takes calls and does not answer
  breaks,  // answers every call with an error of its own
};
inline std::string_view fault_name(EngineFault fault) {
  switch (fault) {
    case EngineFault::none: return "none";
    case EngineFault::gone: return "gone";
    case EngineFault::hangs: return "hangs";
    case EngineFault::breaks: break;
  }
  return "breaks";
}

struct ProviderHarness {
  std::string skip_reason;                  // not empty: cannot run here, and this is why
  std::shared_ptr<void> engine;             // a server, a clock, a directory; outlives the provider
  std::shared_ptr<CacheProvider> provider;  // on an empty store
  // Lets the store's time pass, by hand or by waiting. Only called where native_ttl is true.
  std::function<void(int64_t ms)> pass_time;
  // Puts the engine into a state of ProviderCase::faults, or back to none.
  std::function<void(EngineFault)> set_fault;
};

struct ProviderCase {
  std::string name;
  std::function<ProviderHarness()> make;
  std::vector<EngineFault> faults;  // those that the harness can cause
  int64_t ttl_ms = 1'000;           // the shortest that the store counts well
  // An object of the largest size is put where it is at most this.
  size_t largest_tried_bytes = size_t{64} << 20;
  // Of gets of what is there: an object that is on its way from one tier to the next may be in neither for a moment.
  int misses_percent = 0;
  // While an atomic put replaces objects they may be missed, old or new.
  bool atomic_puts_are_missed = false;
  friend void PrintTo(const ProviderCase& provider, std::ostream* out) { *out << provider.name; }
};

struct FaultCase {
  ProviderCase provider;
  EngineFault fault;
  friend void PrintTo(const FaultCase& one, std::ostream* out) { *out << one.provider.name << fault_name(one.fault); }
};

inline std::vector<FaultCase> fault_cases(const ProviderCase& provider) {
  std::vector<FaultCase> cases;
  cases.reserve(provider.faults.size());
  for (const EngineFault fault : provider.faults) cases.push_back({provider, fault});
  return cases;
}

// What the suites share. The waits are long so that a slow machine is not a failure; nothing waits so long that works.
class ProviderTestBase : public ::testing::Test {
 protected:
  static Deadline soon() { return Deadline::in_ms(20'000); }

  void start(const ProviderCase& provider_case) {
    harness_ = provider_case.make();
    if (!harness_.skip_reason.empty()) GTEST_SKIP() << harness_.skip_reason;
    ASSERT_NE(harness_.provider, nullptr);
  }
  void TearDown() override {
    if (harness_.provider == nullptr) return;
    if (harness_.set_fault) harness_.set_fault(EngineFault::none);
    EXPECT_TRUE(harness_.provider->close(soon()));
  }
  CacheProvider& provider() { return *harness_.provider; }
  const ProviderCapabilities& can() { return provider().capabilities(); }

  Result<void> put(std::string_view key, std::string_view value, const PutOptions& options = {}) {
    return provider().put(CacheKey(key), {"", value}, options, soon());
  }
  // The value, "<miss>", or the kind of the error in angle brackets.
  static std::string text(const GetResult& got) {
    if (!got) return "<" + std::string(kind_name(got.error().code)) + ">";
    return got->has_value() ? (*got)->str() : "<miss>";
  }
  std::string get(std::string_view key) { return text(provider().get(CacheKey(key), soon())); }
  static std::string kind(const auto& result) {
    return result.has_value() ? "ok" : std::string(kind_name(result.error().code));
  }
  static std::vector<CacheKey> keys_of(size_t count, std::string_view stem = "file:contract:acc:") {
    std::vector<CacheKey> keys;
    keys.reserve(count);
    for (size_t i = 0; i < count; ++i) keys.emplace_back(std::string(stem) + std::to_string(i));
    return keys;
  }

  ProviderHarness harness_;
};

class ProviderContract : public ProviderTestBase, public ::testing::WithParamInterface<ProviderCase> {
 protected:
  void SetUp() override { start(GetParam()); }
};

class ProviderValues : public ProviderContract {};
class ProviderBatches : public ProviderContract {};
class ProviderAbilitiesContract : public ProviderContract {};
class ProviderLoad : public ProviderContract {};
class CaseB04 : public ProviderContract {};
// The cached stack over it: also for providers that store nothing.
class ProviderUnderTheCache : public ProviderContract {};
// An engine that fails: calls, results and the way back.
class ProviderFaults : public ProviderTestBase, public ::testing::WithParamInterface<FaultCase> {
 protected:
  void SetUp() override { start(GetParam().provider); }
};

inline std::string case_name(const ::testing::TestParamInfo<ProviderCase>& info) { return info.param.name; }
inline std::string fault_case_name(const ::testing::TestParamInfo<FaultCase>& info) {
  return info.param.provider.name + "_" + std::string(fault_name(info.param.fault));
}

}  // namespace ragfs::contract

// Every suite for one provider. At namespace scope of ragfs::contract, in one source file.
#define RAGFS_PROVIDER_CONTRACT(Name, the_case)                                                      \
  INSTANTIATE_TEST_SUITE_P(Name, ProviderValues, ::testing::Values(the_case), case_name);            \
  INSTANTIATE_TEST_SUITE_P(Name, ProviderBatches, ::testing::Values(the_case), case_name);           \
  INSTANTIATE_TEST_SUITE_P(Name, ProviderAbilitiesContract, ::testing::Values(the_case), case_name); \
  INSTANTIATE_TEST_SUITE_P(Name, ProviderLoad, ::testing::Values(the_case), case_name);              \
  INSTANTIATE_TEST_SUITE_P(Name, CaseB04, ::testing::Values(the_case), case_name);                   \
  INSTANTIATE_TEST_SUITE_P(Name, ProviderUnderTheCache, ::testing::Values(the_case), case_name);     \
  INSTANTIATE_TEST_SUITE_P(Name, ProviderFaults, ::testing::ValuesIn(fault_cases(the_case)), fault_case_name)
