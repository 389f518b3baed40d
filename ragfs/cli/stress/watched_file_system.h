// WatchedFileSystem: a backend that tells the oracle each change, and that fails on command.
//
// It stands under the cache. Changes are applied one at a time, so their order is known; after each, everything that it
// may have changed is looked at in the backend itself and told to the oracle. Faults: calls that are slow, that fail
// without effect, that fail after all of the effect, that remove half of a tree, and mutations that time out and land
// later (within late_apply_bound_ms) or never.
// Not for: backends that something else changes too.
// Thread-safety: all methods may be called from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "ragfs/base/sync.h"
#include "ragfs/cli/stress/oracle.h"
#include "ragfs/cli/stress/random.h"
#include "ragfs/fs/file_system.h"

namespace ragfs::stress {

// Chances per million calls.
struct BackendFaults {
  uint32_t read_error = 0;     // io, from a read, stat or listing
  uint32_t fail_before = 0;    // a mutation fails with io and did nothing
  uint32_t fail_after = 0;     // a mutation fails with io and did everything (a recursive one: half)
  uint32_t time_out_lost = 0;  // a mutation times out and never lands
  uint32_t time_out_late = 0;  // a mutation times out and lands later
  uint32_t slow = 0;           // a call waits before and after its effect
  int64_t slow_most_us = 300;
  bool late_by_hand = false;         // late calls land by land_now() alone
  int64_t late_most_ms = 4;          // longest time until a late call lands
  int64_t late_apply_bound_ms = 60;  // what the traits promise; far above late_most_ms

  bool any_late() const { return time_out_late > 0 || time_out_lost > 0 || late_by_hand; }
  bool any() const { return any_late() || read_error > 0 || fail_before > 0 || fail_after > 0; }
};

class WatchedFileSystem final : public FileSystem {
 public:
  // What becomes of a mutation.
  enum class Fate : uint8_t { none, fail_before, fail_after, time_out_lost, time_out_late };

  WatchedFileSystem(std::shared_ptr<FileSystem> backend, Oracle& oracle, const BackendFaults& faults, uint64_t seed);
  ~WatchedFileSystem() override;

  // Changes behind the cache and without faults: the state before the run.
  FileSystem& backend() { return *backend_; }
  // Looks at every tracked path.
  void observe_all();
  // Waits until no late call is left, and takes no new ones.
  void stop_late_calls();
  // Faults on or off, for the quiet part at the end of a run.
  void set_faults(bool on) { faulty_.store(on); }
  // The next mutation has this fate, whatever the chances. For tests that need one certain fault.
  void force_next(Fate fate) { forced_.store(fate); }
  // Lands the calls that wait for it; how many.
  size_t land_now();
  uint64_t landed_late() const { return landed_.load(); }

  const FileSystemTraits& traits() const override { return traits_; }
  Result<void> create(const Context& ctx, PathView path) override;
  Result<void> mkdir(const Context& ctx, PathView path, uint32_t mode) override;
  Result<void> ensure_parent_dirs(const Context& ctx, PathView path, uint32_t mode) override;
  Result<void> remove(const Context& ctx, PathView path) override;
  Result<void> remove_all(const Context& ctx, PathView path) override;
  Result<Bytes> read(const Context& ctx, PathView path, uint64_t offset, uint64_t size) override;
  Result<FileContent> read_file(const Context& ctx, PathView path) override;
  Result<WriteResult> write(const Context& ctx, PathView path, std::string_view data, uint64_t offset,
                            WriteFlag flag) override;
  Result<bool> compare_and_write(const Context& ctx, PathView path, std::string_view expected,
                                 std::string_view replacement) override;
  Result<bool> compare_and_remove(const Context& ctx, PathView path, std::string_view expected) override;
  Result<void> truncate(const Context& ctx, PathView path, uint64_t size) override;
  Result<void> touch(const Context& ctx, PathView path) override;
  Result<void> chmod(const Context& ctx, PathView path, uint32_t mode) override;
  Result<std::vector<FileInfo>> read_dir(const Context& ctx, PathView path) override;
  Result<std::vector<FileInfo>> read_internal_dir(const Context& ctx, PathView path) override;
  Result<FileInfo> stat(const Context& ctx, PathView path) override;
  Result<bool> exists(const Context& ctx, PathView path) override;
  Result<std::string> version(const Context& ctx, PathView path) override;
  Result<Path> resolve(const Context& ctx, PathView path) override;
  Result<void> rename(const Context& ctx, PathView from, PathView to) override;
  Result<void> replace(const Context& ctx, PathView from, PathView to) override;
  Result<WriteResult> copy(const Context& ctx, PathView from, PathView to) override;
  Result<std::vector<TreeEntry>> tree(const Context& ctx, PathView path, const TreeOptions& options) override;
  Result<GlobPage> glob(const Context& ctx, PathView path, std::string_view pattern,
                        const GlobOptions& options) override;
  Result<void> grep(const Context& ctx, PathView path, const GrepOptions& options, const GrepSink& sink) override;

 private:
  // What a change may have touched, besides the ancestors: a path, or all below it.
  struct Touched {
    Path path;
    bool subtree = false;
  };
  struct LateCall {
    int64_t due_ns = 0;
    int64_t last_ns = 0;  // past it the call never lands: the promise of the traits
    std::function<void()> apply;
  };

  uint32_t draw();
  Fate draw_fate();
  bool chance(uint32_t per_million) { return faulty_.load() && per_million > 0 && draw() < per_million; }
  void wait_a_little();
  // Runs `change` as one step and tells the oracle.
  void apply(const std::vector<Touched>& touched, const std::function<void()>& change);
  void observe(size_t index, uint64_t from, uint64_t to);
  // One mutation with its faults. `half`, when given, is what a failed recursive call did.
  template <typename T>
  Result<T> mutate(const Context& ctx, std::vector<Touched> touched,
                   const std::function<Result<T>(const Context&)>& change, const std::function<void()>& half = {});
  template <typename T>
  Result<T> ask(const std::function<Result<T>()>& question);
  void queue_late(std::function<void()> apply);
  void land_late_calls();

  const std::shared_ptr<FileSystem> backend_;
  Oracle& oracle_;
  const BackendFaults faults_;
  FileSystemTraits traits_;
  const Context quiet_;  // for the oracle's own looks
  std::atomic<uint64_t> draws_;
  std::atomic<bool> faulty_{true};
  std::atomic<Fate> forced_{Fate::none};
  std::atomic<uint64_t> landed_{0};

  Mutex late_mutex_;
  CondVar late_changed_;
  std::deque<LateCall> late_ RAGFS_GUARDED_BY(late_mutex_);
  bool landing_ RAGFS_GUARDED_BY(late_mutex_) = false;
  bool stop_ RAGFS_GUARDED_BY(late_mutex_) = false;
  std::jthread lander_;  // last: it uses all of the above
};

}  // namespace ragfs::stress
