// What the dispatcher answers from memory, without a worker.
#include "ragfs/server/dispatcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "ragfs/base/pause_point.h"
#include "ragfs/server/dispatcher_fixture.h"
#include "ragfs/server/reply.h"

namespace ragfs::server {
namespace {

class AtOnce : public DispatcherFixture {
 protected:
  AtOnce() : DispatcherFixture("/m") {}

  void write(std::string_view path, std::string_view data) {
    ASSERT_TRUE(instance_->fs().write(Context(), *Path::parse(path), data, 0, WriteFlag::create));
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(instance_->fs().read(Context(), *Path::parse(path), 0, 0));
  }
  std::optional<HttpResponse> at_once(const std::string& target, const std::string& range = "") {
    request_ = HttpRequest();
    request_.method = "GET";
    request_.target = target;
    request_.headers = {{"host", "localhost"}};
    if (!range.empty()) request_.headers.emplace_back("range", range);
    admission_ = dispatcher_->admit(request_);
    if (admission_.refusal) return std::move(admission_.refusal);
    return dispatcher_->handle_at_once(admission_, request_);
  }
  HttpResponse later() { return dispatcher_->handle(admission_, request_); }

  HttpRequest request_;
  Admission admission_;
};

TEST_F(AtOnce, AHitIsTheSameAnswer) {
  write("/m/a", "0123456789");
  for (const auto& [query, range] : std::vector<std::pair<std::string, std::string>>{{"", ""},
                                                                                     {"&offset=3", ""},
                                                                                     {"&size=4", ""},
                                                                                     {"&offset=3&size=4", ""},
                                                                                     {"&size=0", ""},
                                                                                     {"&size=-1", ""},
                                                                                     {"&offset=10", ""},
                                                                                     {"&offset=99", ""},
                                                                                     {"", "bytes=2-4"},
                                                                                     {"", "bytes=-3"},
                                                                                     {"", "bytes=7-"},
                                                                                     {"", "bytes=10-"},
                                                                                     {"", "bytes=0-1,3-4"},
                                                                                     {"&size=3", "bytes=0-1"}}) {
    const auto quick = at_once("/api/v1/files?path=/m/a" + query, range);
    ASSERT_TRUE(quick) << query << range;
    const HttpResponse slow = later();
    EXPECT_EQ(quick->status, slow.status) << query << range;
    EXPECT_EQ(quick->body, slow.body) << query << range;
    EXPECT_EQ(quick->content_type, slow.content_type) << query << range;
    EXPECT_EQ(quick->headers, slow.headers) << query << range;
    EXPECT_FALSE(quick->source);
  }
}

TEST_F(AtOnce, NothingThatMayHaveToWait) {
  write("/m/a", "0123456789");
  EXPECT_FALSE(at_once("/api/v1/files?path=/m/a&stream=true"));
  EXPECT_FALSE(at_once("/api/v1/files?path=/m/none"));
  EXPECT_FALSE(at_once("/api/v1/files?path=/m"));
  EXPECT_FALSE(at_once("/api/v1/files?path=/m/a&offset=x")) << "and nothing that is wrong";
  EXPECT_FALSE(at_once("/api/v1/stat?path=/m/a"));
}

TEST_F(AtOnce, NeedsNoWorker) {
  write("/m/a", "0123456789");
  std::atomic<bool> go{false};
  ASSERT_TRUE(services_->pool.submit([&] { go.wait(false); }));  // the only worker
  const auto quick = at_once("/api/v1/files?path=/m/a");
  ASSERT_TRUE(quick);
  EXPECT_EQ(quick->body.view(), "0123456789");
  go = true;
  go.notify_all();
  services_->pool.stop();
}

TEST_F(AtOnce, TheBodyIsWhereItLiesInTheCache) {
  write("/m/a", std::string(4096, 'x'));
  const auto first = at_once("/api/v1/files?path=/m/a");
  const auto second = at_once("/api/v1/files?path=/m/a");
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->body.data(), second->body.data());
}

TEST_F(AtOnce, RightsAreLookedAtFirst) {
  write("/m/a", "secret");
  auto tokens = TokenSet::parse("reader-token-0123456789 root=/other\n");
  ASSERT_TRUE(tokens);
  const Dispatcher guarded(*services_, std::move(*tokens), true);
  HttpRequest request;
  request.method = "GET";
  request.target = "/api/v1/files?path=/m/a";
  EXPECT_TRUE(guarded.admit(request).refusal) << "no token";
  request.headers = {{"authorization", "Bearer reader-token-0123456789"}};
  const Admission admission = guarded.admit(request);
  ASSERT_FALSE(admission.refusal);
  EXPECT_FALSE(guarded.handle_at_once(admission, request)) << "outside its root";
  EXPECT_EQ(guarded.handle(admission, request).status, 403U);
}

// Writers of one path that the backend holds up: health is answered where the connection is, with other paths as ever.
class CaseA20Health : public AtOnce {};
// Contention on one session made all requests hang while the health answer stayed 200.
TEST_F(CaseA20Health, TwoHundredBlockedWritersOfOnePathLeaveHealthAndOtherPathsAlone) {
  write("/m/cool", "data");
  auto armed = PausePoints::arm("mutation.before_backend");
  std::vector<std::jthread> writers;
  std::atomic<int> ended{0};
  for (int i = 0; i < 200; ++i) {
    writers.emplace_back([&] {
      Context ctx;
      ctx.deadline = Deadline::in_ms(20'000);
      ctx.disable_auto_pathlock = true;  // they wait for the backend's lock, not to be told of a conflict
      (void)instance_->fs().write(ctx, *Path::parse("/m/hot"), "new", 0, WriteFlag::create);
      ++ended;
    });
  }
  ASSERT_TRUE(armed->wait_for_arrival());
  const auto health = at_once("/health");
  EXPECT_EQ(health ? health->status : later().status, 200U);
  const auto quick = at_once("/api/v1/files?path=/m/cool");
  EXPECT_EQ(quick ? quick->status : later().status, 200U);
  EXPECT_TRUE(instance_->fs().write(Context(), *Path::parse("/m/other"), "x", 0, WriteFlag::create));
  armed->release();
  writers.clear();
  EXPECT_EQ(ended.load(), 200);
  PausePoints::clear();
}

}  // namespace
}  // namespace ragfs::server
