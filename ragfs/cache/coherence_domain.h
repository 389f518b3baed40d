// CoherenceDomain: what all cached mounts of one namespace in one process share, and the read side of the protocol.
//
// Property: no read that starts after a mutation returned gives older bytes, and reads of one path never go back.
//
// How a read decides (docs/design.md 3.3). (1) observe the records over the path; (2) get the object; (3) it is a hit
// only if it is an intact envelope of this very path, of the epoch that is current *now*, not expired, nothing that
// covers the path was running at (1), and its stamp is not below a record seen at (1). Records are looked up before the
// get: one that was settled and dropped in between was dropped only after the provider had confirmed the erase, so the
// get cannot see what it refused. When only a shared bucket refuses, the exact records are looked up and the get is
// made again. So a deletion that failed, or that a slow fill undid, is refused by its stamp: correctness inside the
// process never depends on a provider call having succeeded.
//
// A fill (3.4) registers, takes the clock as its stamp and the epoch, reads the backend, and stores only if nothing
// newer was recorded; the race between that check and the put is closed by (3). Mutations are in mutation.h; letting
// records go and retrying erases is in settler.h.
//
// Epochs (3.6). Real ones are odd. Between leave_epoch() and begin_epoch() the domain is apart: its epoch is an even
// number that no object carries, nothing is asked of the provider, and reads and mutations go on against the backends.
// Which epoch comes next is the keeper's business (epoch_keeper.h); without one it is the next random number.
// Thread-safety: all methods may be called from any thread.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ragfs/base/clock.h"
#include "ragfs/base/sync.h"
#include "ragfs/cache/cache_counters.h"
#include "ragfs/cache/domain_state.h"
#include "ragfs/cache/envelope.h"
#include "ragfs/cache/epoch_keeper.h"
#include "ragfs/cache/fill_registry.h"
#include "ragfs/cache/fork_guard.h"
#include "ragfs/cache/guarded_provider.h"
#include "ragfs/cache/hot_keys.h"
#include "ragfs/cache/inflight.h"
#include "ragfs/cache/key_space.h"
#include "ragfs/cache/listing_codec.h"
#include "ragfs/cache/mutation_gate.h"
#include "ragfs/cache/mutation_table.h"
#include "ragfs/cache/near_tier.h"
#include "ragfs/cache/negative_cache.h"
#include "ragfs/cache/nested_roots.h"
#include "ragfs/cache/prefetch_lane.h"
#include "ragfs/cache/read_lane.h"
#include "ragfs/fs/file_system.h"
#include "ragfs/fs/path_lock_table.h"

namespace ragfs {

class Settler;

enum class FailureMode : uint8_t {
  bypass,  // a mutation whose cache update failed succeeds; the record refuses what is stale
  strict,  // it is answered with cache_not_updated; with the breaker open it is refused before the backend
};
enum class VerifyDram : uint8_t { off, sample, always };

struct CoherenceConfig {
  std::string name_space = "openviking";
  FailureMode failure_mode = FailureMode::bypass;
  int64_t default_ttl_ms = 0;                   // logical expiry of objects; 0 = none
  bool verify_inherited = true;                 // objects of earlier epochs: checked with the version, else discarded
  VerifyDram verify_dram = VerifyDram::sample;  // checksum of in-process hits; sample = 1 of 1,024
  int64_t mutation_lock_timeout_ms = 30'000;    // for calls without a deadline
  size_t max_fills = 4096;                      // running at once; beyond, reads do not fill
  size_t max_direct_reads = 256;                // backend reads at once that could join no flight
  size_t batch_width = 8;                       // backend reads of one batch at once
  size_t max_negative_entries = 65'536;
  size_t max_pending = 65'536;  // erases waiting for a retry or for older fills
  int64_t retry_first_ms = 50;  // pause before a failed erase is made again; doubles with jitter
  int64_t retry_most_ms = 5'000;
  int64_t sweep_interval_ms = 30'000;  // an enumerating provider is swept of what records cover; 0 = only when many
  size_t sweep_records = 4'096;        // subtree records that make a sweep due at once
  MutationTableLimits table;
  InflightLimits inflight;
  GuardConfig guard;
  PrefetchConfig prefetch;
  bool hot_keys = true;        // note which objects are read most
  bool warm_on_start = false;  // read the hottest keys of the last run early

  // Errors: config, naming field, value and what is allowed.
  Result<void> validate() const;
};

// How a backend identity is used. What its first mount says counts.
struct IdentityUse {
  bool verify_earlier_lives = false;  // `warm: verify`: objects of earlier lives are inherited, in a warm start too
  bool shared = false;                // others write it as well: every object is checked on every read
  bool process_local = false;         // no other process can reach it: no lock, no witness
};

// What a backend identity needs inside the domain. Mounts of one identity share it.
struct BackendDomain {
  BackendDomain(uint64_t identity_hash_in, uint64_t root_id_in, uint64_t term_in, uint64_t write_term_in,
                IdentityUse use_in)
      : identity_hash(identity_hash_in), root_id(root_id_in), term(term_in), write_term(write_term_in), use(use_in) {}
  const uint64_t identity_hash;  // stable: part of keys and envelopes
  const uint64_t root_id;        // seeded: where path trails begin
  // Objects are valid when they carry the epoch XOR `term`, and are written with the epoch XOR `write_term`. The two
  // differ when every object has to be checked.
  const uint64_t term;
  const uint64_t write_term;
  const IdentityUse use;
  std::atomic<uint64_t> admitted{0};  // MutationGate's generation that let it through
  std::atomic<bool> cached{false};    // a mount had the cache on from its start: the clean marker lists it
  PathLockTable mutation_locks;
  NestedRoots nested;
  HotKeys hot;
};

// Where a domain begins.
struct DomainStart {
  EpochKeeper* keeper = nullptr;        // must outlive the domain's last call
  std::optional<uint64_t> epoch;        // absent = random; an even number = apart
  std::optional<DomainState> resumed;   // of a warm start, whose epoch it is
  std::string incarnation;              // of the provider, of which the epoch knows
  std::shared_ptr<CacheProvider> near;  // memory of this process in front of a remote provider; nullptr = none
};

// The last fill, and the last near copy, that had begun at some moment.
struct Horizon {
  uint64_t fills = 0;
  uint64_t copies = 0;
};

// A path of one backend, with what a look-up needs. The view must outlive it. Belongs to one call: the ids of its
// ancestors are computed when they are first asked for (most hits do without).
class CachePath {
 public:
  CachePath(const BackendDomain& backend_in, PathView path_in) : backend(&backend_in), path(path_in) {}
  const PathTrail& trail() const {
    if (!trail_) trail_.emplace(backend->root_id, path);
    return *trail_;
  }
  const BackendDomain* backend;
  PathView path;  // in the backend's identity

 private:
  mutable std::optional<PathTrail> trail_;
};

struct CacheHit {
  Bytes object;  // keeps the views of `envelope` alive
  DecodedEnvelope envelope;
  Bytes payload() && { return std::move(object).slice(object.size() - envelope.payload.size()); }
};

using SharedListing = std::shared_ptr<const std::vector<FileInfo>>;

class CoherenceDomain {
 public:
  // A fill that runs. Ends when destroyed.
  class Fill {
   public:
    Fill(Fill&& other) noexcept;
    Fill(const Fill&) = delete;
    Fill& operator=(const Fill&) = delete;
    Fill& operator=(Fill&&) = delete;
    ~Fill();
    uint64_t start() const { return fill_.start; }
    uint64_t epoch() const { return epoch_; }
    // On now_ns()'s clock, before the backend read: what is stored is as old as that, however slow the read was.
    int64_t began_ns() const { return began_ns_; }

   private:
    friend class CoherenceDomain;
    Fill(CoherenceDomain* domain, FillRegistry::Fill fill, uint64_t epoch, int64_t began_ns)
        : domain_(domain), fill_(fill), epoch_(epoch), began_ns_(began_ns) {}
    CoherenceDomain* domain_;
    FillRegistry::Fill fill_;
    uint64_t epoch_;
    int64_t began_ns_;
  };

  // `config` must be valid.
  CoherenceDomain(CoherenceConfig config, std::shared_ptr<CacheProvider> provider, const Clock& clock = Clock::system(),
                  const DomainStart& start = {});
  // Ends the background thread. All calls must have returned.
  ~CoherenceDomain();
  CoherenceDomain(const CoherenceDomain&) = delete;
  CoherenceDomain& operator=(const CoherenceDomain&) = delete;

  // The shared state of a backend identity; made at the first call. Identities are never forgotten in a life: their
  // objects may still be in the provider.
  std::shared_ptr<BackendDomain> backend(std::string_view identity, IdentityUse use = {});
  // By the hash that envelopes carry; nullptr for identities that this process has not met.
  std::shared_ptr<BackendDomain> backend_by_hash(uint64_t identity_hash) const;
  // All that were met.
  std::vector<std::shared_ptr<BackendDomain>> backends() const;

  CacheKey key(const CachePath& at, ObjectKind kind) const {
    return keys_.key(kind, at.backend->identity_hash, at.path);
  }

  // True for the keys of this domain's namespace.
  bool owns(std::string_view key) const { return keys_.owns(key); }
  // Erases the cached objects of an account, and their bytes, from the provider and the near tier; how many copies.
  // Errors: not_supported, timeout, those of the provider.
  Result<uint64_t> purge_account(std::string_view account, Deadline deadline);

  // What the records say about `at` now.
  Observation observe(const CachePath& at, ObjectKind kind) const;
  // As observe(), but when the buckets' bound is above `stamp` or running, the exact records decide.
  Observation observe_for(const CachePath& at, ObjectKind kind, uint64_t stamp) const;

  // The object of `at` if it may be served. `now_ns` of its age: see age_ns().
  // `suspect`, where given, is set to an intact file object that is refused for its epoch alone, if there is one.
  std::optional<CacheHit> lookup(const CachePath& at, ObjectKind kind, Deadline deadline,
                                 std::optional<CacheHit>* suspect = nullptr) {
    return lookup(at, kind, key(at, kind), deadline, suspect);
  }
  // As lookup() for each of `wanted`, with one get_many of the provider for all; a second one for those that only a
  // shared bucket of records refused.
  struct Wanted {
    const CachePath* at;
    ObjectKind kind;
  };
  struct Found {
    std::optional<CacheHit> hit;
    std::optional<CacheHit> suspect;  // as in lookup()
    bool copied = false;              // it is in the near tier now, and was not before
  };
  // Whether what the provider has is copied into the near tier. A batch is read once; what is read ahead is not.
  enum class NearCopies : uint8_t { no, yes };
  std::vector<Found> lookup_many(std::span<const Wanted> wanted, Deadline deadline, NearCopies copies = NearCopies::no);
  // The same where the object is in this process's memory and nothing has to be looked up to judge it: never waits.
  // What it does not find, lookup() may.
  std::optional<CacheHit> lookup_at_once(const CachePath& at, ObjectKind kind);
  // Whatever object of this epoch there is, unjudged: for a test that takes kStatListingRecord out.
  std::optional<CacheHit> lookup_unjudged(const CachePath& at, ObjectKind kind, Deadline deadline);
  // Its payload alone, for what a hit is made of most of the time. `filled_at_ns` is set on a hit.
  std::optional<Bytes> payload_at_once(const CachePath& at, ObjectKind kind, int64_t& filled_at_ns);
  // Nanoseconds since the object was filled, on this life's clock. The greatest value when it claims to be filled later
  // than now: the wall clock has stepped back since, so how old it is cannot be known.
  int64_t age_ns(int64_t filled_at_ns) const;

  // Begins a fill; nothing when the bound on running fills is reached (the read then goes on without filling).
  std::optional<Fill> begin_fill();
  // Stores what a backend read gave, unless a mutation came between. The caller has checked policy and size.
  void store(const CachePath& at, ObjectKind kind, const Fill& fill, const FileMeta& meta, std::string_view payload,
             const PutOptions& options, Deadline deadline);

  // Into the near tier, if there is one: of a fill that is registered, or of a mutation that holds its lock.
  void keep_near(const BackendDomain& backend, const CacheKey& key, const ValueParts& value, const PutOptions& options);
  // True when `at` is remembered as absent.
  bool known_absent(const CachePath& at);
  void remember_absent(const CachePath& at, const Fill& fill, int64_t ttl_ms);

  // A put of `record`'s key, of an object of `epoch`, has an unknown outcome: it may land at any later time (3.5).
  void mark_unknown_put(const RecordPath& record, ObjectKind kind, uint64_t epoch);

  // Refuses every object written until now. With a keeper the domain may be apart for a while.
  void new_epoch();
  uint64_t epoch() const { return epoch_.load(std::memory_order_acquire); }
  static bool is_real_epoch(uint64_t epoch) { return (epoch & 1) != 0; }
  bool apart() const { return !is_real_epoch(epoch()); }

  // From here on no object is served or stored.
  void leave_epoch();
  // How often it was left.
  uint64_t leaves() const { return leaves_.load(std::memory_order_seq_cst); }
  // The next epoch, odd, for a provider of that incarnation. False, and nothing done, when the epoch was left once more
  // since `leaves` was read.
  bool begin_epoch(uint64_t epoch, uint64_t leaves, const std::string& incarnation);
  // What the next life must know to go on with this epoch; nothing while something runs, or when it is too much.
  std::optional<DomainState> state() const;
  MutationGate& gate() { return gate_; }
  // A child of fork() is not its parent: true there for all that existed before.
  bool in_child() const { return in_child_.load(std::memory_order_relaxed); }

  // Nanoseconds since 1970 on a clock that only grows inside this life (the wall clock at start + monotonic time).
  int64_t now_ns() const { return wall_offset_ns_ + clock_.monotonic_ns(); }

  const CoherenceConfig& config() const { return config_; }
  const Clock& clock() const { return clock_; }
  MutationTable& table() { return table_; }
  FillRegistry& fills() { return fills_; }
  GuardedProvider& provider() { return provider_; }
  // Copies of the provider's objects into the near tier that are under way. They are fills that put into this process
  // alone: what they put back needs no second erase of the provider.
  FillRegistry& copies() { return copies_; }
  // nullptr = none.
  NearTier* near() { return near_.get(); }
  const NearTier* near() const { return near_.get(); }
  Horizon horizon() const { return {fills_.last_issued(), copies_.last_issued()}; }
  InflightTable<FileContent>& file_flights() { return file_flights_; }
  InflightTable<SharedListing>& listing_flights() { return listing_flights_; }
  NegativeCache& negatives() { return negatives_; }
  Settler& settler() { return *settler_; }
  ReadLane& lane() { return lane_; }
  // nullptr: nothing is read ahead, at the start neither.
  PrefetchLane* prefetch_lane() { return prefetch_.get(); }
  CacheCounters& counters() { return counters_; }
  const CacheCounters& counters() const { return counters_; }
  int64_t expiry_ns(int64_t filled_at_ns) const;

  // A place for a backend read that could join no flight. Errors: timeout.
  class DirectRead;
  Result<DirectRead> enter_direct_read(Deadline deadline);

 private:
  enum class Source : uint8_t { provider, near };
  // What a look-up asks for, and where.
  struct Question {
    const CachePath& at;
    ObjectKind kind;
    const CacheKey& key;
    Deadline deadline;
    Source source;
    std::optional<CacheHit>* suspect;  // nullptr = not wanted
  };
  // What comes from there was in this process's memory all the time since it was last verified.
  bool in_memory(Source source) const { return source == Source::near || provider_.capabilities().zero_copy; }
  // Where find_judged() looks.
  Source source_at_hand() const { return near_ ? Source::near : Source::provider; }
  // Whether the checksum of the object that this thread looks at now is to be checked.
  bool takes_verification(Source source) const;
  void drop_damaged(const CacheKey& key, Source source, Deadline deadline);
  // The envelope in `object` if it is intact and of this path; else the object is dropped.
  std::optional<DecodedEnvelope> open_object(const Question& asked, const Bytes& object);
  // of_epoch: only the epoch is against it.
  enum class Refused : uint8_t { no, of_epoch, expired };
  Refused refused_by_epoch_or_age(const CachePath& at, const EnvelopeInfo& info, uint64_t epoch_before);
  void count_refusal(const Observation& seen, uint64_t stamp);
  // `object`, just got, if it is intact, of this path and epoch, and not expired. Records are not asked.
  std::optional<CacheHit> judge(const Question& asked, Bytes object, uint64_t epoch_before);
  // The records that were seen before the get let it pass; that is noted with it.
  bool passes(const Observation& seen, const CacheHit& hit);
  // The object, judged.
  std::optional<CacheHit> fetch(const Question& asked);
  std::optional<CacheHit> lookup(const CachePath& at, ObjectKind kind, const CacheKey& key, Deadline deadline,
                                 std::optional<CacheHit>* suspect);
  void copy_near(const CacheKey& key, ObjectKind kind, const CacheHit& hit);
  // What lookup() does at one of the two places.
  std::optional<CacheHit> lookup_at(const Question& asked);
  // In the near tier, then in the provider, whose answer is kept near.
  std::optional<CacheHit> lookup_near_first(const Question& asked);
  // The second and third way of lookup_at(), which decide alone.
  std::optional<CacheHit> lookup_by_records(const Question& asked);
  // The first way of lookup_at() alone, without decoding the envelope: an object of this process that was judged
  // before. Nothing: not found this way; `object` may hold anything then.
  std::optional<EnvelopeGlance> find_judged(const CachePath& at, ObjectKind kind, Bytes& object);
  std::optional<CacheHit> lookup_get_first(const Question& asked);
  void copy_rearmed(const CacheKey& key, const CacheHit& hit, PutOptions options);
  void leave_direct_read();
  // Makes `next` the current epoch and drops the records that it does not need.
  void change_epoch(uint64_t next) RAGFS_REQUIRES(epoch_mutex_);
  void let_go_in_child() noexcept;

  const CoherenceConfig config_;
  const Clock& clock_;
  const int64_t wall_offset_ns_;
  EpochKeeper* const keeper_;
  const std::optional<DomainState> resumed_;  // its records are in the table
  const uint64_t seed_;
  KeySpace keys_;
  GuardedProvider provider_;
  MutationTable table_;
  FillRegistry fills_;
  FillRegistry copies_;
  const std::unique_ptr<NearTier> near_;
  InflightTable<FileContent> file_flights_;
  InflightTable<SharedListing> listing_flights_;
  NegativeCache negatives_;
  CacheCounters counters_;
  ReadLane lane_;
  std::atomic<uint64_t> epoch_;
  std::atomic<uint64_t> leaves_{0};
  std::atomic<bool> in_child_{false};
  MutationGate gate_;
  Mutex epoch_mutex_;  // one change of epoch at a time

  mutable Mutex backends_mutex_;
  std::map<uint64_t, std::shared_ptr<BackendDomain>> backends_ RAGFS_GUARDED_BY(backends_mutex_);

  Mutex direct_mutex_;
  CondVar direct_free_;
  size_t direct_reads_ RAGFS_GUARDED_BY(direct_mutex_) = 0;

  std::unique_ptr<Settler> settler_;
  std::unique_ptr<PrefetchLane> prefetch_;
  std::unique_ptr<ForkGuard> fork_guard_;
};

class CoherenceDomain::DirectRead {
 public:
  explicit DirectRead(CoherenceDomain* domain) : domain_(domain) {}
  DirectRead(DirectRead&& other) noexcept : domain_(std::exchange(other.domain_, nullptr)) {}
  DirectRead(const DirectRead&) = delete;
  DirectRead& operator=(const DirectRead&) = delete;
  DirectRead& operator=(DirectRead&&) = delete;
  ~DirectRead() {
    if (domain_ != nullptr) domain_->leave_direct_read();
  }

 private:
  CoherenceDomain* domain_;
};

}  // namespace ragfs
