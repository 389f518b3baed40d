// Whatever a provider can or cannot do, the answers are the same.
#include <gtest/gtest.h>

#include <functional>

#include "tests/coherence/hooked_fixture.h"

namespace ragfs {
namespace {

struct Ability {
  const char* name;
  std::function<void(ProviderCapabilities&)> flip;
};
void PrintTo(const Ability& ability, std::ostream* out) { *out << ability.name; }

std::vector<Ability> abilities() {
  return {
      {"all", [](ProviderCapabilities&) {}},
      {"no_native_ttl", [](ProviderCapabilities& c) { c.native_ttl = false; }},
      {"no_batch_get", [](ProviderCapabilities& c) { c.batch_get = false; }},
      {"no_batch_put", [](ProviderCapabilities& c) { c.batch_put = false; }},
      {"no_atomic_put", [](ProviderCapabilities& c) { c.atomic_put = 0; }},
      {"partial_read", [](ProviderCapabilities& c) { c.partial_read = true; }},
      {"no_zero_copy", [](ProviderCapabilities& c) { c.zero_copy = false; }},
      {"may_resurrect", [](ProviderCapabilities& c) { c.may_resurrect = true; }},
      {"no_enumeration", [](ProviderCapabilities& c) { c.enumerates = false; }},
      {"small_values", [](ProviderCapabilities& c) { c.max_value_bytes = 160; }},
      {"one_key_a_batch", [](ProviderCapabilities& c) { c.max_batch_keys = 1; }},
      {"nothing", [](ProviderCapabilities& c) { c = ProviderCapabilities{}; }},
  };
}

class ProviderAbilities : public CacheFixture, public ::testing::WithParamInterface<Ability> {
 protected:
  void SetUp() override {
    CacheFixture::SetUp();
    ProviderCapabilities capabilities = ScriptedProvider::all_capabilities();
    GetParam().flip(capabilities);
    provider->set_capabilities(capabilities);
    CoherenceConfig config;
    config.default_ttl_ms = 3'600'000;
    open_over(config, {});
  }
  // Everything that can be asked, twice (cold and warm), compared with the backend.
  void agree(const std::string& when) {
    for (int pass = 0; pass < 2; ++pass) {
      for (const char* path : {"/", "/d", "/d/f", "/d/g", "/d/large", "/d/sub", "/d/sub/h", "/e/f", "/e/sub/h"}) {
        EXPECT_EQ(read(path), read_backend(path)) << when << " " << path;
        const auto mine = cached->stat(ctx, path_of(path));
        const auto truth = backend->stat(ctx, path_of(path));
        EXPECT_EQ(kind_of(mine), kind_of(truth)) << when << " " << path;
        if (mine && truth) {
          EXPECT_EQ(*mine, *truth) << when << " " << path;
        }
        auto entries = cached->read_dir(ctx, path_of(path));
        auto true_entries = backend->read_dir(ctx, path_of(path));
        EXPECT_EQ(kind_of(entries), kind_of(true_entries)) << when << " " << path;
        if (!entries || !true_entries) continue;
        sort_entries(*entries);
        sort_entries(*true_entries);
        EXPECT_EQ(*entries, *true_entries) << when << " " << path;
      }
    }
  }
};

TEST_P(ProviderAbilities, DoNotChangeAnAnswer) {
  put_in_backend("/d/f", "one");
  put_in_backend("/d/large", std::string(1'000, 'x'));
  put_in_backend("/d/sub/h", "below");
  agree("at first");
  ASSERT_TRUE(write("/d/f", "two"));
  agree("write");
  ASSERT_TRUE(write("/d/large", std::string(2'000, 'y')));
  agree("large write");
  ASSERT_TRUE(write("/d/large", "small now"));
  agree("small write over a large file");
  ASSERT_TRUE(cached->write(ctx, path_of("/d/f"), "+", 0, WriteFlag::append));
  agree("append");
  ASSERT_TRUE(cached->rename(ctx, path_of("/d/f"), path_of("/d/g")));
  agree("rename");
  ASSERT_TRUE(cached->rename(ctx, path_of("/d"), path_of("/e")));
  agree("rename of the directory");
  if (const auto swept = domain->settler().sweep(); !swept) {
    EXPECT_EQ(swept.error().code, ErrorCode::not_supported);
  }
  agree("sweep");
  ASSERT_TRUE(cached->remove_all(ctx, path_of("/e")));
  agree("remove_all");
  EXPECT_TRUE(domain->settler().drain(Deadline::in_ms(10'000)));
  agree("settled");
}

INSTANTIATE_TEST_SUITE_P(OneByOne, ProviderAbilities, ::testing::ValuesIn(abilities()),
                         [](const auto& info) { return std::string(info.param.name); });

class UnknownPutTest : public CacheFixture {};

TEST_F(UnknownPutTest, AWriteThatLandsAfterTheEraseIsNeverServed) {
  provider->add_rule({.op = scripted::Op::put, .action = scripted::Action::land_late, .times = 1});
  ASSERT_TRUE(write("/f", "first"));
  ASSERT_TRUE(cached->remove(ctx, path_of("/f")));
  EXPECT_TRUE(domain->settler().drain(Deadline::in_ms(10'000)));
  EXPECT_EQ(provider->land_all(), 1U);
  EXPECT_EQ(read("/f"), "ERROR not_found");
  ASSERT_TRUE(write("/f", "second"));
  EXPECT_EQ(read("/f"), "second");
}

TEST_F(UnknownPutTest, AFillThatLandsAfterTheEraseIsNeverServed) {
  put_in_backend("/f", "old");
  provider->add_rule({.op = scripted::Op::put, .action = scripted::Action::land_late, .times = 1});
  EXPECT_EQ(read("/f"), "old");
  ASSERT_TRUE(cached->write(ctx, path_of("/f"), "+new", 0, WriteFlag::append));
  EXPECT_TRUE(domain->settler().drain(Deadline::in_ms(10'000)));
  EXPECT_EQ(provider->land_all(), 1U);
  EXPECT_EQ(read("/f"), "old+new");
}

TEST_F(UnknownPutTest, UnderASubtreeMutationAMarkKeepsTheSubtreeRecord) {
  put_in_backend("/d/f", "old");
  provider->add_rule({.op = scripted::Op::put, .action = scripted::Action::land_late, .times = 1});
  EXPECT_EQ(read("/d/f"), "old");
  ASSERT_TRUE(cached->remove_all(ctx, path_of("/d")));
  ASSERT_TRUE(domain->settler().sweep());
  EXPECT_GE(domain->table().subtree_records(), 1U);
  EXPECT_EQ(provider->land_all(), 1U);
  EXPECT_EQ(read("/d/f"), "ERROR not_found");
}

TEST_F(UnknownPutTest, WithoutTheMarkTheLatePutIsServed) {
  RuleSwitch off(Rule::kUnknownPutMarks);
  put_in_backend("/f", "old");
  provider->add_rule({.op = scripted::Op::put, .action = scripted::Action::land_late, .times = 1});
  EXPECT_EQ(read("/f"), "old");
  ASSERT_TRUE(cached->remove(ctx, path_of("/f")));
  EXPECT_TRUE(domain->settler().drain(Deadline::in_ms(10'000)));
  EXPECT_EQ(provider->land_all(), 1U);
  EXPECT_EQ(read("/f"), "old") << "the rule is not what keeps this right any more";
}

}  // namespace
}  // namespace ragfs
