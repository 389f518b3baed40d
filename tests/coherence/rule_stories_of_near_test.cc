// Stories of the rules of the near tier (rule_stories.h), which rule_switch_test.cc tells.
#include "ragfs/providers/embedded/embedded_provider.h"
#include "tests/coherence/rule_stories.h"

namespace ragfs {

void RuleStories::begin_near(CoherenceConfig config, const Clock& clock) {
  begin();
  close_watched();
  ProviderCapabilities capabilities = ScriptedProvider::all_capabilities();
  capabilities.zero_copy = false;
  capabilities.enumerates = false;
  provider->set_capabilities(capabilities);
  near = EmbeddedProvider::create({}).value();
  open_watched_over(std::move(config), {}, 60'000, clock);
  near.reset();  // the domain's alone: the next story begins without
}

// The provider's copy is gone and the record with it; what is near would be served for ever.
bool RuleStories::near_erase(bool /*off*/) {
  begin_near();
  (void)read("/d/f");
  EXPECT_TRUE(append("/d/f", "+"));
  EXPECT_TRUE(domain->settler().drain(Deadline::in_ms(20'000)));
  return answers("/d/f");
}

// A fill that was checked before the mutation puts its copy between the erase and the question whether fills run.
bool RuleStories::local_erase_after_fills(bool /*off*/) {
  begin_near();
  auto put = PausePoints::arm("fill.before_put");
  std::jthread reader([&] { (void)read("/d/f"); });
  EXPECT_TRUE(put->wait_for_arrival());
  auto asks = PausePoints::arm("mutation.before_asking_fills");
  std::jthread writer([&] { EXPECT_TRUE(append("/d/f", "+")); });
  EXPECT_TRUE(asks->wait_for_arrival());
  put->release();
  reader.join();
  asks->release();
  writer.join();
  EXPECT_TRUE(domain->settler().drain(Deadline::in_ms(20'000)));
  return answers("/d/f");
}

// The provider's answer is on its way when a mutation comes and goes; then it is kept near.
bool RuleStories::near_registered_before_get(bool /*off*/) {
  begin_near();
  (void)read("/d/f");
  domain->near()->clear();
  auto copies = PausePoints::arm("near.before_copy");
  std::jthread reader([&] { (void)read("/d/f"); });
  EXPECT_TRUE(copies->wait_for_arrival());
  EXPECT_TRUE(append("/d/f", "+"));
  copies->release();
  reader.join();
  const bool wrong = answers("/d/f");
  EXPECT_TRUE(domain->settler().drain(Deadline::in_ms(20'000)));
  return wrong || answers("/d/f");
}

// A copy that is made shortly before the object's time is over.
bool RuleStories::expiry_not_rearmed(bool /*off*/) {
  ManualClock clock(1'000'000'000'000'000'000);
  CoherenceConfig config;
  config.default_ttl_ms = 10'000;
  begin_near(config, clock);
  (void)read("/d/f");
  domain->near()->clear();
  put_in_backend("/d/f", "changed behind");
  clock.advance_ms(9'000);
  EXPECT_EQ(read("/d/f"), "old") << "its time is not over yet, and now it is near";
  clock.advance_ms(2'000);
  const bool wrong = answers("/d/f");
  close_watched();  // before its clock
  return wrong;
}

}  // namespace ragfs
