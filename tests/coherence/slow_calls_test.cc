// Calls of a backend that take long are told, each once, with the path and the error.
#include <gtest/gtest.h>

#include "tests/coherence/hooked_fixture.h"

namespace ragfs {
namespace {

class SlowCallsTest : public HookedFixture {
 protected:
  void open_with(int64_t threshold_ns) {
    CachedMountConfig mount;
    mount.slow_calls.threshold_ns = threshold_ns;
    mount.slow_calls.told = [this](std::string_view operation, PathView path, int64_t took_ns, const Error* error) {
      told.push_back(std::string(operation) + " " + std::string(path.text()) + " " +
                     (error ? std::string(kind_name(error->code)) : "ok"));
      EXPECT_GE(took_ns, 2'000'000);
    };
    open_hooked({}, mount);
    put_in_backend("/d/f", "data");
    hooked->set_before([](std::string_view operation, PathView) -> std::optional<Error> {
      // Busy, as a slow backend is.
      const Deadline busy = Deadline::in_ms(operation == "read_file" ? 3 : 0);
      while (!busy.expired()) {
      }
      return std::nullopt;
    });
  }
  std::vector<std::string> told;
};

TEST_F(SlowCallsTest, AMissBehindASlowBackendIsToldOnceAndHitsAreNot) {
  open_with(2'000'000);
  EXPECT_EQ(read("/d/f"), "data");
  for (int i = 0; i < 10; ++i) EXPECT_EQ(read("/d/f"), "data");
  EXPECT_EQ(read("/d/none"), "ERROR not_found");
  EXPECT_EQ(told, (std::vector<std::string>{"read_file /d/f ok", "read_file /d/none not_found"}));
}

TEST_F(SlowCallsTest, WithoutAThresholdNothingIsTold) {
  open_with(0);
  EXPECT_EQ(read("/d/f"), "data");
  EXPECT_TRUE(told.empty());
}

}  // namespace
}  // namespace ragfs
