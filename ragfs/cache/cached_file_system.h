// CachedFileSystem: one mount's backend with the cache in front of it.
//
// It decides how a file system is cached: which answers come from the provider, which fill it, and what every mutation
// affects. It forwards the whole interface, so a backend's own fast grep or copy is not lost, and it never changes an
// answer: what differs with the cache on is only how long it takes. Coherence itself is in CoherenceDomain (reads) and
// Mutation (writes). Not for control file systems (queuefs, serverinfofs): those are never wrapped.
//
// A mount with the cache switched off is wrapped all the same: its mutations must be recorded, because another mount of
// the same data, or this one later, may have it on.
// Thread-safety: all methods may be called from any thread.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "ragfs/base/latency_histogram.h"
#include "ragfs/cache/coherence_domain.h"
#include "ragfs/cache/filled_keys.h"
#include "ragfs/cache/mutation.h"
#include "ragfs/cache/policy.h"
#include "ragfs/cache/verify_report.h"
#include "ragfs/cache/warm_report.h"
#include "ragfs/fs/exception_barrier.h"
#include "ragfs/fs/file_system.h"

namespace ragfs {

struct CachedMountConfig {
  std::string mount_path = "/";       // where the backend is mounted: what policy prefixes are resolved against
  std::string identity;               // that keys and records are made with; "" = the backend's own
  std::string identity_prefix = "/";  // where the backend's root lies inside it (nested mounts of one tree)
  bool enabled = true;
  IdentityUse use;             // of the backend's identity, when this is its first mount
  int64_t revalidate_ms = 0;   // objects older than this are compared with the backend's version; 0 = never
  bool cached_walks = true;    // tree and glob walk over cached listings; false: the backend's own
  bool cached_grep = false;    // grep as well, and reads the files through the cache
  uint32_t verify_one_in = 0;  // hits of files compared with the backend's bytes: 1 in so many; 0 = none
  CachePolicyConfig policy;
  SlowCalls slow_calls;  // of the backend; paths are relative to the mount

  // Errors: config, naming field, value and what is allowed.
  Result<void> validate() const;
};

class CachedFileSystem final : public FileSystem {
 public:
  // `config` must be valid.
  CachedFileSystem(std::shared_ptr<FileSystem> backend, std::shared_ptr<CoherenceDomain> domain,
                   const CachedMountConfig& config);
  ~CachedFileSystem() override;

  const FileSystemTraits& traits() const override { return backend_->traits(); }

  Result<void> create(const Context& ctx, PathView path) override;
  Result<void> mkdir(const Context& ctx, PathView path, uint32_t mode) override;
  Result<void> ensure_parent_dirs(const Context& ctx, PathView path, uint32_t mode) override;
  Result<void> remove(const Context& ctx, PathView path) override;
  Result<void> remove_all(const Context& ctx, PathView path) override;
  Result<Bytes> read(const Context& ctx, PathView path, uint64_t offset, uint64_t size) override;
  std::optional<Bytes> read_at_once(const Context& ctx, PathView path) override;
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
  std::optional<FileInfo> stat_at_once(const Context& ctx, PathView path) override;
  Result<bool> exists(const Context& ctx, PathView path) override;
  std::vector<Result<Bytes>> read_many(const Context& ctx, std::span<const PathView> paths) override;
  std::vector<Result<FileInfo>> stat_many(const Context& ctx, std::span<const PathView> paths) override;
  std::vector<Result<std::vector<FileInfo>>> read_dir_many(const Context& ctx,
                                                           std::span<const PathView> paths) override;
  std::vector<Result<WriteResult>> write_many(const Context& ctx, std::span<const WriteItem> items) override;
  Result<std::string> version(const Context& ctx, PathView path) override;
  Result<Path> resolve(const Context& ctx, PathView path) override;
  Result<void> rename(const Context& ctx, PathView from, PathView to) override;
  Result<void> replace(const Context& ctx, PathView from, PathView to) override;
  Result<WriteResult> copy(const Context& ctx, PathView from, PathView to) override;
  Result<std::vector<TreeEntry>> tree(const Context& ctx, PathView path, const TreeOptions& options) override;
  Result<GlobPage> glob(const Context& ctx, PathView path, std::string_view pattern,
                        const GlobOptions& options) override;
  Result<void> grep(const Context& ctx, PathView path, const GrepOptions& options, const GrepSink& sink) override;

  // Turns serving and filling on or off for this mount. Mutations are recorded either way.
  void set_enabled(bool enabled) { enabled_.store(enabled && !domain_->in_child()); }
  bool enabled() const { return enabled_.load(std::memory_order_relaxed); }
  // Makes every cached object at and below `path` refused, as a mutation from outside would.
  Result<void> invalidate(const Context& ctx, PathView path);
  // Compares what is cached at and below `path` with the backend, adds to `report`, and refuses what is wrong. Errors:
  // not_found, timeout (what was done until then is in the report), those of invalidate().
  Result<void> verify(const Context& ctx, PathView path, VerifyReport& report);

  // The objects at and below `path` that were read most, hottest first; paths of this mount.
  std::vector<HotKey> hot_keys(PathView path, size_t most) const;
  // Reads those of them that are not cached, side by side, and adds to `report`. Errors: timeout (what was done until
  // then is in the report and in the cache).
  Result<void> warm(const Context& ctx, PathView path, WarmReport& report);
  // The same by the threads that read ahead, when there are some.
  void warm_in_background();

  // Nothing is read ahead for this mount from here on; waits for what is being read. False when that still runs at the
  // deadline.
  bool stop_prefetch(Deadline deadline);

  CoherenceDomain& domain() { return *domain_; }
  const FileSystem& backend() const { return *backend_; }
  uint64_t count(CacheCounter counter) const { return counters_.read(counter); }
  // Of whole files and listings that a miss took from the backend.
  LatencySnapshot backend_reads() const { return backend_reads_.snapshot(); }
  LatencySnapshot backend_listings() const { return backend_listings_.snapshot(); }

 private:
  // A path of the call in the backend's identity (with the prefix of a nested mount in front).
  class Target;
  // What is read before anyone asks (read_ahead.h).
  class ReadAhead;

  bool serves(PathView path) const { return enabled() && cacheable_identity_ && !moved() && !policy_.bypasses(path); }
  // This mount's root is no longer where its keys say (nested_roots.h). Asked before a call and again after each step
  // that the answer depends on.
  bool moved() const { return nested_ != nullptr && nested_->moved(); }

  // Reads (cached_reads.cc).
  // `single`: asked for by itself; what a batch or a walk asks for is no occasion to read ahead.
  void count_hit(PathView path, const Bytes& payload, bool single = true);
  void note_hot(PathView path, ObjectKind kind) {
    const uint64_t reads = notes_hot_ ? identity_->hot.sample() : 0;
    if (reads != 0) [[unlikely]]
      note_reads(path, kind, reads);
  }
  void note_reads(PathView path, ObjectKind kind, uint64_t reads);
  void count_miss(PathView path, bool single = true);
  // A directory's entries, as read_dir() gives them. Walks come here: they are no occasion to read ahead.
  Result<std::vector<FileInfo>> entries_of(const Context& ctx, PathView path);
  std::optional<CacheHit> find(const Context& ctx, const Target& target, ObjectKind kind);
  // As find() of a file, when its bytes are all that is wanted.
  std::optional<Bytes> find_payload(const Context& ctx, const Target& target);
  // The part of it that never waits.
  std::optional<Bytes> payload_at_once(const Target& target);
  // An object found without waiting may be served: this mount is where it was, and nothing is to be asked before.
  bool serves_unasked(int64_t filled_at_ns) const;
  // The second half of find(): what was looked up, if this mount may serve it.
  std::optional<CacheHit> admit(const Context& ctx, const Target& target, std::optional<CacheHit> hit,
                                std::optional<CacheHit> suspect);
  // False when admit() has to ask the backend.
  bool admits_unasked(const CoherenceDomain::Found& found) const;
  std::optional<CacheHit> revalidate(const Context& ctx, const Target& target, CacheHit hit);
  template <typename T>
  Result<T> read_past(const Context& ctx, PathView path, const std::function<Result<T>()>& read);
  Result<FileContent> read_through(const Context& ctx, const Target& target);
  Result<FileContent> lead_file(const Context& ctx, const Target& target, const CoherenceDomain::Fill* fill,
                                const std::function<void(const Result<FileContent>&)>& publish);
  Result<SharedListing> list(const Context& ctx, PathView path);
  Result<SharedListing> list_through(const Context& ctx, const Target& target);
  Result<SharedListing> lead_listing(const Context& ctx, const Target& target, const CoherenceDomain::Fill* fill,
                                     const std::function<void(const Result<SharedListing>&)>& publish);
  template <typename T>
  Result<T> coalesce(
      const Context& ctx, const Target& target, ObjectKind kind, InflightTable<T>& flights,
      const std::function<Result<T>(const CoherenceDomain::Fill*, const std::function<void(const Result<T>&)>&)>& read);
  // What the cache can say about `path` without the backend: an entry, "not there", or nothing.
  enum class Known : uint8_t { unknown, present, absent };
  Known stat_from_cache(const Context& ctx, PathView path, FileInfo& info);
  // The same with `find_object(target, kind)` for find().
  template <typename Find>
  Known stat_from_cache(const Context& ctx, PathView path, const Find& find_object, FileInfo& info);

  // True for one hit in verify_one_in of this thread. Where others change the backend a difference means nothing.
  bool is_sampled() const;
  // A hit of `path` is compared with the backend; false, and refused from now on, when it is wrong (cached_verify.cc).
  bool verify_hit(const Context& ctx, PathView path);

  // What the parts of stat_from_cache() say, once the objects are there.
  static FileInfo info_of_object(PathView path, const EnvelopeInfo& found);
  Known info_from_listing(PathView path, const CacheHit& listing, FileInfo& info) const;

  // Reading what nobody waits for (cached_warm.cc). What it read: its bytes, and whether this call was the one that
  // read them for the cache.
  struct Filled {
    uint64_t bytes = 0;
    bool led = false;
  };
  Result<Filled> fill(const Context& ctx, const Target& target, ObjectKind kind);
  // Where a path of the backend's identity is in this mount; nothing when it is not.
  std::optional<PathView> in_mount(const std::string& identity_path) const;

  // Batches (cached_batches.cc).
  class Batch;
  // What a grep over the cache reads: a file that may be cached as a whole, of others the part alone.
  Result<Bytes> read_for_grep(const Context& ctx, PathView path, uint64_t offset, uint64_t size);

  // False when the object is wrong (cached_verify.cc).
  bool verify_object(const Context& ctx, PathView path, ObjectKind kind, VerifyReport& report);

  // Mutations (cached_mutations.cc).
  // After a mutation that went through a symlink: what it changed has another name, whose objects are refused from now
  // on.
  void refuse_aliases_of(const Context& ctx, PathView path);
  Result<void> both_sides(const Context& ctx, PathView from, Result<void> moved);
  MutationPlan plan() const { return MutationPlan(*domain_, identity_, backend_->traits()); }
  // What is affected cannot be told: everything of the identity.
  MutationPlan plan_everything() const;
  template <typename T>
  Result<T> carry_out(const Context& ctx, PathView path, Mutation& mutation,
                      const std::function<Result<T>()>& operation,
                      const std::function<std::optional<NewValue>(const T&)>& new_value);
  template <typename T>
  Result<T> mutate(const Context& ctx, PathView path, MutationPlan plan, const std::function<Result<T>()>& operation,
                   const std::function<std::optional<NewValue>(const T&)>& new_value = {},
                   const std::function<void(MutationPlan&)>& complete = {});
  Result<void> mutate_void(const Context& ctx, PathView path, MutationPlan plan,
                           const std::function<Result<void>()>& operation,
                           const std::function<void(MutationPlan&)>& complete = {});
  // What a whole-file write of `data` leaves to be stored.
  std::optional<NewValue> value_of(const Context& ctx, const Target& target, std::string_view data,
                                   const WriteResult& written) const;
  Result<void> mutate_file(const Context& ctx, PathView path, const std::function<Result<void>()>& operation);
  Result<void> mutate_path(const Context& ctx, PathView path, const std::function<Result<void>()>& operation);
  // Adds the ancestors of `path` to the plan, unless its parent is known to exist.
  void plan_missing_ancestors(const Context& ctx, PathView path, const Target& target, MutationPlan& plan) const;

  const std::shared_ptr<FileSystem> backend_;
  const std::shared_ptr<CoherenceDomain> domain_;
  const std::shared_ptr<BackendDomain> identity_;
  const std::string prefix_;                  // "" when the backend's root is its identity's root
  const std::shared_ptr<NestedRoot> nested_;  // nullptr then
  const bool cacheable_identity_;
  const int64_t revalidate_ns_;
  const uint32_t verify_one_in_;
  const bool cached_walks_;
  const bool cached_grep_;
  const MountPolicy policy_;
  const bool notes_hot_;
  const std::unique_ptr<FilledKeys> filled_;  // nullptr: every write is admitted
  std::atomic<bool> enabled_;
  std::atomic<bool> owes_sample_{false};  // one was due where nothing may wait
  CacheCounters counters_;
  LatencyHistogram backend_reads_;
  LatencyHistogram backend_listings_;
  const std::unique_ptr<ReadAhead> ahead_;  // nullptr: nothing is read ahead
  const ForkGuard fork_guard_;
};

}  // namespace ragfs
