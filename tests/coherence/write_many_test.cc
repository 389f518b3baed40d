// write_many and write_context: one mutation of several files, over providers that fail in the middle of it.
#include <string>
#include <vector>

#include "ragfs/fs/agent_context.h"
#include "tests/coherence/hooked_fixture.h"

namespace ragfs {
namespace {

using Op = ScriptedProvider::Op;
using Action = ScriptedProvider::Action;

class WriteContext : public HookedFixture {
 protected:
  void SetUp() override {
    HookedFixture::SetUp();
    put_in_backend("/acct/d/content.md", "old content");
    put_in_backend("/acct/d/.abstract.md", "old abstract");
    put_in_backend("/acct/d/.overview.md", "old overview");
    for (const char* path : kPaths) (void)read(path);  // cached
    (void)list("/acct/d");
    provider->reset_counters();
    hooked->forget_calls();
  }
  void without_atomic_put() {
    ProviderCapabilities capabilities = ScriptedProvider::all_capabilities();
    capabilities.atomic_put = 0;
    provider->set_capabilities(capabilities);
    open_over({}, {});
    for (const char* path : kPaths) (void)read(path);
    (void)list("/acct/d");
    provider->reset_counters();
    hooked->forget_calls();
  }
  Result<std::vector<WrittenFile>> write_all() {
    return write_context(*cached, ctx, path_of("/acct/d"),
                         {.content = "new content", .abstract = "new abstract", .overview = "new overview"});
  }
  void expect_all_written(const Result<std::vector<WrittenFile>>& written) {
    ASSERT_TRUE(written) << written.error().text();
    for (const WrittenFile& file : *written) EXPECT_TRUE(file.result) << file.path.text();
  }
  // Every way to ask gives what the backend holds.
  void expect_as_backend(std::string_view when) {
    for (const char* path : kPaths) {
      SCOPED_TRACE(std::string(when) + ": " + path);
      EXPECT_EQ(read(path), read_backend(path));
      const auto info = cached->stat(ctx, path_of(path));
      const auto truth = backend->stat(ctx, path_of(path));
      ASSERT_TRUE(info && truth);
      EXPECT_EQ(info->size, truth->size);
    }
    const auto entries = cached->read_dir(ctx, path_of("/acct/d"));
    ASSERT_TRUE(entries);
    for (const FileInfo& entry : *entries) {
      EXPECT_EQ(entry.size, backend->stat(ctx, path_of("/acct/d/" + entry.name))->size) << when << ": " << entry.name;
    }
  }
  std::string listing_key() {
    const Path at = path_of("/acct/d");
    const auto identity = domain->backend(backend->traits().identity);
    return std::string(domain->key(CachePath(*identity, at), ObjectKind::listing).text());
  }

  static constexpr const char* kPaths[] = {"/acct/d/content.md", "/acct/d/.abstract.md", "/acct/d/.overview.md"};
};

TEST_F(WriteContext, AllValuesAreStoredByOneAtomicPut) {
  expect_all_written(write_all());
  EXPECT_EQ(provider->calls(Op::put_atomic), 1U);
  EXPECT_EQ(provider->calls(Op::put_many), 0U);
  EXPECT_EQ(provider->calls(Op::put), 0U);
  EXPECT_EQ(provider->key_calls(Op::erase, listing_key()), 1U) << "the listing is erased once for all three";
  EXPECT_EQ(read(kPaths[1]), "new abstract");
  EXPECT_EQ(hooked->calls("read_file"), 0U) << "what was written is cached";
  expect_as_backend("after");
}

TEST_F(WriteContext, WithoutAtomicPutTheyGoInOneBatch) {
  without_atomic_put();
  expect_all_written(write_all());
  EXPECT_EQ(provider->calls(Op::put_atomic), 0U);
  EXPECT_EQ(provider->calls(Op::put_many), 1U);
  EXPECT_EQ(provider->key_calls(Op::erase, listing_key()), 1U);
  EXPECT_EQ(read(kPaths[2]), "new overview");
  EXPECT_EQ(hooked->calls("read_file"), 0U);
  expect_as_backend("after");
}

TEST_F(WriteContext, MoreThanAnAtomicPutTakesGoInABatch) {
  std::vector<Path> paths;
  for (int i = 0; i < 9; ++i) paths.push_back(path_of("/acct/d/" + std::to_string(i)));
  std::vector<WriteItem> items;
  for (const Path& path : paths) items.push_back({path, "value"});
  for (const auto& written : cached->write_many(ctx, items)) EXPECT_TRUE(written);
  EXPECT_EQ(provider->calls(Op::put_atomic), 0U);
  EXPECT_EQ(provider->calls(Op::put_many), 1U);
  for (const Path& path : paths) EXPECT_EQ(read(path.text()), "value");
  EXPECT_EQ(hooked->calls("read_file"), 0U);
}

TEST_F(WriteContext, ASecondPutThatFailsLeavesNothingStale) {
  for (const Action action : {Action::fail, Action::lose, Action::land_late}) {
    for (const ErrorCode code : {ErrorCode::timeout, ErrorCode::unavailable, ErrorCode::full, ErrorCode::too_large}) {
      SCOPED_TRACE(std::string(kind_name(code)) + " action " + std::to_string(static_cast<int>(action)));
      SetUp();
      without_atomic_put();
      const auto rule = provider->add_rule({.op = Op::put, .action = action, .code = code, .skip = 1, .times = 1});
      expect_all_written(write_all());
      EXPECT_EQ(provider->fired(rule), 1U);
      expect_as_backend("after");
      (void)provider->land_all();
      expect_as_backend("after the late put landed");
      ASSERT_TRUE(write(kPaths[1], "newer"));
      (void)provider->land_all();
      expect_as_backend("after another write");
    }
  }
}

TEST_F(WriteContext, AnAtomicPutThatFailsLeavesNothingStale) {
  for (const Action action : {Action::fail, Action::lose, Action::land_late}) {
    SCOPED_TRACE(static_cast<int>(action));
    SetUp();
    provider->add_rule({.op = Op::put_atomic, .action = action, .times = 1});
    expect_all_written(write_all());
    expect_as_backend("after");
    ASSERT_TRUE(write(kPaths[0], "newer"));
    (void)provider->land_all();
    expect_as_backend("after the late put landed");
  }
}

TEST_F(WriteContext, StrictModeTellsOfAPutThatFailed) {
  CoherenceConfig strict;
  strict.failure_mode = FailureMode::strict;
  open_over(strict, {});
  provider->add_rule({.op = Op::put_atomic, .action = Action::lose, .times = 1});
  const auto written = write_all();
  ASSERT_TRUE(written);
  for (const WrittenFile& file : *written) EXPECT_EQ(kind_of(file.result), "cache_not_updated");
  expect_as_backend("after");
}

TEST_F(WriteContext, ABackendThatFailsInTheMiddleIsReportedAndLeavesNothingStale) {
  for (const ErrorCode code : {ErrorCode::io, ErrorCode::timeout}) {
    for (const bool took_effect : {false, true}) {
      SCOPED_TRACE(std::string(kind_name(code)) + (took_effect ? " after" : " before"));
      SetUp();
      const auto hook = [code](std::string_view operation, PathView path) {
        const bool fails = operation == "write" && path.name() == ".abstract.md";
        return fails ? std::optional(Error{code, "broken"}) : std::nullopt;
      };
      if (took_effect) {
        hooked->set_after(hook);
      } else {
        hooked->set_before(hook);
      }
      const auto written = write_all();
      ASSERT_TRUE(written);
      EXPECT_TRUE((*written)[0].result);
      EXPECT_EQ(kind_of((*written)[1].result), kind_name(code));
      EXPECT_TRUE((*written)[2].result);
      hooked->set_before({});
      hooked->set_after({});
      EXPECT_EQ(read_backend(kPaths[0]), "new content");
      EXPECT_EQ(read_backend(kPaths[1]), took_effect ? "new abstract" : "old abstract");
      expect_as_backend("after");
    }
  }
}

TEST_F(WriteContext, AReaderDuringItSeesWhatItWouldSeeWithoutACache) {
  auto armed = PausePoints::arm("mutation.after_backend");
  std::thread writer([&] { expect_all_written(write_all()); });
  ASSERT_TRUE(armed->wait_for_arrival());
  expect_as_backend("during");
  armed.reset();
  writer.join();
  expect_as_backend("after");
}

TEST_F(WriteContext, AFillFromBeforeItIsNotKept) {
  const Context bypass{.bypass_cache = true};
  auto armed = PausePoints::arm("fill.after_backend_read");
  std::thread reader([&] { (void)cached->read(bypass, path_of(kPaths[1]), 0, 0); });
  ASSERT_TRUE(armed->wait_for_arrival());
  expect_all_written(write_all());
  armed.reset();
  reader.join();
  expect_as_backend("after the slow fill");
}

TEST_F(WriteContext, ANewDirectoryAppearsInListingsAtOnce) {
  EXPECT_EQ(list("/acct"), "d");
  const auto written = write_context(*cached, ctx, path_of("/acct/new"), {.content = "1", .abstract = "2"});
  expect_all_written(written);
  EXPECT_EQ(list("/acct"), "d new");
  EXPECT_EQ(list("/acct/new"), ".abstract.md content.md");
}

}  // namespace
}  // namespace ragfs
