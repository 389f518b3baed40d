// Bug reports of OpenViking's file system (group A) that the cached stack must not have.
#include <gtest/gtest.h>

#include <thread>

#include "tests/cases/stack_fixture.h"

namespace ragfs {
namespace {

class CaseA01 : public CachedStack {};
// Bypass prefixes were matched against the mount-relative path, so the queue was cached and its size was 0 for ever.
TEST_P(CaseA01, PrefixesAreMatchedAgainstTheAbsolutePath) {
  CachedMountConfig mount;
  mount.mount_path = "/local";
  mount.policy.bypass_prefixes = {"/queue", "/local/tmp"};
  open_stack({}, mount);
  put_in_backend("/tmp/size.md", "0");
  put_in_backend("/queue/size.md", "0");  // absolute: /local/queue/size.md, which no prefix covers
  EXPECT_EQ(read("/tmp/size.md"), "0");
  EXPECT_EQ(read("/queue/size.md"), "0");
  put_in_backend("/tmp/size.md", "1");
  EXPECT_EQ(read("/tmp/size.md"), "1");
  EXPECT_EQ(list("/tmp"), "size.md");
  ASSERT_TRUE(write("/tmp/size.md", "2"));
  EXPECT_EQ(read("/tmp/size.md"), "2");
  for (const std::string& key : provider->keys()) {
    const std::string object = *provider->peek(key);
    const auto decoded = decode_envelope(object, true);
    ASSERT_TRUE(decoded);
    EXPECT_FALSE(decoded->info.path.starts_with("/tmp")) << decoded->info.path;
  }
  EXPECT_EQ(provider->keys().size(), 1U);
}
INSTANTIATE_TEST_SUITE_P(Stacks, CaseA01, scripted_stacks(), stack_name);

class CaseA02 : public CachedStack {};
// A copy inside one mount used the raw backend, and the cached target stayed old. The same for every fast path.
TEST_P(CaseA02, EveryFastPathRefreshesItsCachedTarget) {
  put_in_backend("/l/a", "new bytes");
  put_in_backend("/l/b", "old");
  put_in_backend("/l/c", "old");
  expect_read("/l/b", "old");
  expect_read("/l/c", "old");
  EXPECT_EQ(list("/l"), "a b c");
  ASSERT_TRUE(cached->copy(ctx, path_of("/l/a"), path_of("/l/b")));
  expect_read("/l/b", "new bytes");
  EXPECT_EQ(stat_size("/l/b"), "9");
  EXPECT_EQ(*cached->stat(ctx, path_of("/l/b")), *backend->stat(ctx, path_of("/l/b")));
  const auto entries = cached->read_dir(ctx, path_of("/l"));
  ASSERT_TRUE(entries);
  for (const FileInfo& entry : *entries) {
    const Path path = *Path::join(path_of("/l"), entry.name);
    EXPECT_EQ(entry, *backend->stat(ctx, path)) << entry.name;
  }
  ASSERT_TRUE(cached->replace(ctx, path_of("/l/b"), path_of("/l/c")));
  expect_read("/l/c", "new bytes");
  expect_read("/l/b", "ERROR not_found");
  EXPECT_EQ(list("/l"), "a c");
}
INSTANTIATE_TEST_SUITE_P(Stacks, CaseA02, all_stacks(), stack_name);

class CaseA04 : public CachedStack {
 protected:
  // The backend's remove_all takes some of the files away and then fails, as a store with refused keys does.
  void refuse_one_of(const std::vector<std::string>& removed) {
    hooked->set_before([this, removed](std::string_view operation, PathView) -> std::optional<Error> {
      if (operation != "remove_all") return std::nullopt;
      for (const std::string& path : removed) EXPECT_TRUE(hooked->remove(ctx, path_of(path)));
      return Error{ErrorCode::permission_denied, "/t/b"};
    });
  }
};
TEST_P(CaseA04, AHalfDoneRemovalLeavesNoOldEntries) {
  for (const char* spelling : {"/t", "/t/", "/"}) {
    open_stack({}, {});
    for (const char* path : {"/t/a", "/t/b", "/t/c", "/tt/a"}) put_in_backend(path, path);
    for (const char* path : {"/t/a", "/t/b", "/t/c", "/tt/a"}) EXPECT_EQ(read(path), path);
    EXPECT_EQ(list("/t"), "a b c");
    refuse_one_of({"/t/a", "/t/c"});
    const auto removed = cached->remove_all(ctx, path_of(spelling));
    ASSERT_FALSE(removed);
    EXPECT_EQ(removed.error().code, ErrorCode::permission_denied);
    EXPECT_EQ(removed.error().message, "/t/b") << "the error names what was refused";
    hooked->set_before({});
    expect_read("/t/a", "ERROR not_found");
    expect_read("/t/b", "/t/b");
    expect_read("/t/c", "ERROR not_found");
    EXPECT_EQ(list("/t"), "b");
    const uint64_t before = hits();
    EXPECT_EQ(read("/tt/a"), "/tt/a");
    if (std::string_view(spelling) != "/") {
      EXPECT_EQ(hits(), before + 1) << "the sibling's entry is untouched";
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Stacks, CaseA04, all_stacks(), stack_name);

class CaseA05 : public CachedStack {};
// A poller re-armed the entry's time with every hit and never saw another replica's change.
TEST_P(CaseA05, PollingDoesNotLengthenAnEntrysLife) {
  CoherenceConfig config;
  config.default_ttl_ms = 60'000;
  open_stack(config, {}, clock);
  put_in_backend("/f", "old");
  EXPECT_EQ(read("/f"), "old");
  EXPECT_EQ(list("/"), "f");
  put_in_backend("/f", "rewritten elsewhere");
  for (int polls = 0; polls < 2; ++polls) {
    EXPECT_EQ(stat_size("/f"), "3");
    EXPECT_EQ(read("/f"), "old");
    clock.advance_ms(30'000);
  }
  EXPECT_EQ(stat_size("/f"), "19");
  EXPECT_EQ(read("/f"), "rewritten elsewhere");
}
INSTANTIATE_TEST_SUITE_P(Stacks, CaseA05, all_stacks(), stack_name);

class CaseA10Cached : public CachedStack {};
TEST_P(CaseA10Cached, AFailingAppendIsAnErrorAndLosesNothing) {
  ASSERT_TRUE(write("/f", "old"));
  EXPECT_EQ(read("/f"), "old");
  for (const ErrorCode code : {ErrorCode::timeout, ErrorCode::io, ErrorCode::network}) {
    fail_operation("write", code);
    EXPECT_EQ(kind_of(cached->write(ctx, path_of("/f"), "+", 0, WriteFlag::append)), kind_name(code));
    hooked->set_before({});
    expect_read("/f", "old");
  }
  // The append itself never reads the cache: it is right even when the cache holds something else.
  put_in_backend("/f", "changed behind");
  ASSERT_TRUE(cached->write(ctx, path_of("/f"), "+", 0, WriteFlag::append));
  expect_read("/f", "changed behind+");
}
INSTANTIATE_TEST_SUITE_P(Stacks, CaseA10Cached, all_stacks(), stack_name);

class CaseA17Cached : public CachedStack {};
TEST_P(CaseA17Cached, WritersBelowOneNewDirectoryAllSucceed) {
  std::vector<std::jthread> threads;
  for (int i = 0; i < 32; ++i) {
    threads.emplace_back([this, i] {
      const Context own;  // a context is of one call at a time
      const Path path = path_of("/new/deep/path/f" + std::to_string(i));
      EXPECT_TRUE(cached->ensure_parent_dirs(own, path, kDefaultDirMode));
      EXPECT_TRUE(cached->write(own, path, "x", 0, WriteFlag::create));
      (void)cached->read_dir(own, path_of("/new/deep/path"));
    });
  }
  threads.clear();
  const auto entries = cached->read_dir(ctx, path_of("/new/deep/path"));
  ASSERT_TRUE(entries);
  EXPECT_EQ(entries->size(), 32U);
  EXPECT_EQ(list("/"), "new");
}
INSTANTIATE_TEST_SUITE_P(Stacks, CaseA17Cached, all_stacks(), stack_name);

class CaseA23Cached : public CachedStack {};
TEST_P(CaseA23Cached, BytesComeBackThroughTheCacheAsTheyWere) {
  using namespace std::string_literals;
  const std::string contents[] = {"\xff\x00\x80\x61"s,        ""s, "\x00"s, "a"s, "\xed\xa0\x80"s,
                                  std::string(70'000, '\xfe')};
  for (const std::string& content : contents) {
    ASSERT_TRUE(write("/f", content));
    expect_read("/f", content);
    EXPECT_EQ(read_backend("/f"), content);
  }
  EXPECT_GT(hits(), 0U);
}
INSTANTIATE_TEST_SUITE_P(Stacks, CaseA23Cached, all_stacks(), stack_name);

class CaseA26Cached : public CacheFixture {};
// Namespaces `a` and `a:b` over one provider, same backend identity, same paths: no key is the other's.
TEST_F(CaseA26Cached, NamespacesDoNotCross) {
  CoherenceConfig a;
  a.name_space = "a";
  open(a, {});
  CoherenceConfig ab;
  ab.name_space = "a:b";
  auto other_domain = std::make_shared<CoherenceDomain>(ab, provider);
  CachedFileSystem other(backend, other_domain, {});
  put_in_backend("/b/f", "one");
  EXPECT_EQ(read("/b/f"), "one");
  EXPECT_EQ(text_of(other.read(ctx, path_of("/b/f"), 0, 0)), "one");
  const std::vector<std::string> keys = provider->keys();
  ASSERT_EQ(keys.size(), 2U);
  ASSERT_TRUE(other.invalidate(ctx, path_of("/")));
  ASSERT_TRUE(other_domain->settler().sweep());
  const uint64_t before = hits();
  EXPECT_EQ(read("/b/f"), "one");
  EXPECT_EQ(hits(), before + 1) << "clearing one namespace left the other's entry";
}

class CaseA29 : public CachedStack {};
TEST_P(CaseA29, AReadThatBreaksOffLeavesNothingInTheCache) {
  put_in_backend("/f", std::string(10'000, 'x'));
  hooked->set_after([](std::string_view operation, PathView path) -> std::optional<Error> {
    if (operation != "read_file") return std::nullopt;
    return Error{ErrorCode::timeout, std::string(path.text())};  // half a body, then nothing more
  });
  EXPECT_EQ(read("/f"), "ERROR timeout");
  hooked->set_after({});
  EXPECT_EQ(hits(), 0U);
  expect_read("/f", std::string(10'000, 'x'));
}
INSTANTIATE_TEST_SUITE_P(Stacks, CaseA29, all_stacks(), stack_name);

class CaseA32Cached : public CachedStack {};
TEST_P(CaseA32Cached, SpellingsOfOneLetterAreTwoKeys) {
  const std::string nfc = "/\xc3\xa9";
  const std::string nfd = "/e\xcc\x81";
  const std::string raw = "/\xff";
  for (const std::string& path : {nfc, nfd, raw}) ASSERT_TRUE(write(path, path));
  for (const std::string& path : {nfc, nfd, raw}) expect_read(path, path);
  ASSERT_TRUE(cached->remove(ctx, path_of(nfc)));
  expect_read(nfc, "ERROR not_found");
  expect_read(nfd, nfd);
  expect_read(raw, raw);
  EXPECT_EQ(cached->read_dir(ctx, path_of("/"))->size(), 2U);
}
INSTANTIATE_TEST_SUITE_P(Stacks, CaseA32Cached, all_stacks(), stack_name);

class CaseA38 : public CacheFixture {};
// Start without the provider, then it comes, then it goes: the tree works all the time and the cache joins by itself.
TEST_F(CaseA38, TheCacheJoinsAndLeavesByItself) {
  CoherenceConfig config;
  config.guard.first_pause_ms = 1;
  config.guard.max_pause_ms = 2;
  provider->set_down(true);
  open_over(config, {});
  ASSERT_TRUE(write("/f", "one"));
  EXPECT_EQ(read("/f"), "one");
  EXPECT_EQ(list("/"), "f");
  provider->set_down(false);
  const Deadline until = Deadline::in_ms(10'000);
  while (hits() == 0 && !until.expired()) EXPECT_EQ(read("/f"), "one");
  EXPECT_GT(hits(), 0U);
  provider->set_down(true);
  ASSERT_TRUE(write("/f", "two"));
  EXPECT_EQ(read("/f"), "two");
  EXPECT_EQ(read("/absent"), "ERROR not_found");
  EXPECT_EQ(list("/"), "f");
}

class CaseA40Cached : public CachedStack {};
TEST_P(CaseA40Cached, ACopyIntoARemovedTreeIsRightAboutWhatIsThere) {
  put_in_backend("/source", "x");
  ASSERT_TRUE(mkdir("/t"));
  auto armed = PausePoints::arm("mutation.before_backend");
  std::jthread copier([this] { (void)cached->copy(ctx, path_of("/source"), path_of("/t/f")); });
  ASSERT_TRUE(armed->wait_for_arrival());
  Context hurried;
  hurried.deadline = Deadline::in_ms(50);
  (void)cached->remove_all(hurried, path_of("/t"));
  armed->release();
  copier.join();
  ASSERT_TRUE(cached->remove_all(ctx, path_of("/t")));
  expect_read("/t/f", "ERROR not_found");
  EXPECT_EQ(list("/t"), "ERROR not_found");
  EXPECT_EQ(list("/"), "source");
}
INSTANTIATE_TEST_SUITE_P(Stacks, CaseA40Cached, all_stacks(), stack_name);

class CaseA41Cached : public CachedStack {};
TEST_P(CaseA41Cached, FilesOfZeroToFourBytesThroughTheEnvelope) {
  for (size_t size = 0; size <= 4; ++size) {
    const std::string content(size, '\x07');
    ASSERT_TRUE(write("/f", content));
    expect_read("/f", content);
    domain->new_epoch();
    expect_read("/f", content);  // filled this time
    EXPECT_EQ(stat_size("/f"), std::to_string(size));
  }
}
INSTANTIATE_TEST_SUITE_P(Stacks, CaseA41Cached, all_stacks(), stack_name);

}  // namespace
}  // namespace ragfs
