#include "ragfs/cache/coherence_domain.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ragfs/base/pause_point.h"
#include "ragfs/base/random.h"
#include "ragfs/cache/rules.h"
#include "ragfs/cache/running_copy.h"
#include "ragfs/cache/settler.h"

namespace ragfs {
namespace {

constexpr int64_t kNsPerMs = 1'000'000;
constexpr uint32_t kVerifyOneIn = 1024;
// An object that claims to be filled later than now by more than this was written under a wall clock that has since
// stepped back; how old it is cannot be known, so it counts as expired.
constexpr int64_t kClockStepSlackNs = 1'000'000'000;

constexpr uint64_t kFirstApart = 2;

// The marks' ends moved by `by_ns`, from one clock to another.
DomainState on_this_clock(DomainState state, int64_t by_ns) {
  for (std::vector<RecordSnapshot>* records : {&state.paths, &state.subtrees}) {
    for (RecordSnapshot& record : *records) {
      const bool ends = record.marked_until_ns != 0 && record.marked_until_ns != INT64_MAX;
      if (ends) record.marked_until_ns = std::max<int64_t>(record.marked_until_ns + by_ns, 1);
    }
  }
  return state;
}

Result<void> in_range(std::string_view field, int64_t value, int64_t least, int64_t most) {
  if (value >= least && value <= most) return {};
  return fail(ErrorCode::config, fmt::format("{}: {} is not allowed; it must be {} to {}", field, value, least, most));
}

}  // namespace

Result<void> CoherenceConfig::validate() const {
  constexpr int64_t kDayMs = 86'400'000;
  if (name_space.empty()) return fail(ErrorCode::config, "namespace: must not be empty");
  if (auto ok = in_range("default_ttl_ms", default_ttl_ms, 0, 3650 * kDayMs); !ok) return ok;
  if (auto ok = in_range("mutation_lock_timeout_ms", mutation_lock_timeout_ms, 1, kDayMs); !ok) return ok;
  if (auto ok = in_range("retry_first_ms", retry_first_ms, 1, kDayMs); !ok) return ok;
  if (auto ok = in_range("retry_most_ms", retry_most_ms, retry_first_ms, kDayMs); !ok) return ok;
  if (auto ok = in_range("sweep_interval_ms", sweep_interval_ms, 0, kDayMs); !ok) return ok;
  if (auto ok = in_range("max_direct_reads", static_cast<int64_t>(max_direct_reads), 1, 1 << 20); !ok) return ok;
  if (auto ok = in_range("batch_width", static_cast<int64_t>(batch_width), 1, 256); !ok) return ok;
  if (auto ok = in_range("inflight.leader_timeout_ms", inflight.leader_timeout_ms, 1, kDayMs); !ok) return ok;
  if (auto ok = in_range("inflight.follower_timeout_ms", inflight.follower_timeout_ms, 1, kDayMs); !ok) return ok;
  if (auto ok = prefetch.validate(); !ok) return ok;
  return guard.validate();
}

CoherenceDomain::Fill::Fill(Fill&& other) noexcept
    : domain_(std::exchange(other.domain_, nullptr)),
      fill_(other.fill_),
      epoch_(other.epoch_),
      began_ns_(other.began_ns_) {}

CoherenceDomain::Fill::~Fill() {
  if (domain_ == nullptr) return;
  domain_->fills_.end(fill_);
  domain_->settler_->fill_ended();
}

CoherenceDomain::CoherenceDomain(CoherenceConfig config, std::shared_ptr<CacheProvider> provider, const Clock& clock,
                                 const DomainStart& start)
    : config_(std::move(config)),
      clock_(clock),
      wall_offset_ns_(clock.wall_ns() - clock.monotonic_ns()),
      keeper_(start.keeper),
      resumed_(start.resumed),
      seed_(resumed_ ? resumed_->seed : random_u64()),
      keys_(config_.name_space),
      provider_(std::move(provider), config_.guard),
      table_(config_.table),
      fills_(table_, config_.max_fills),
      copies_(table_, config_.max_fills),
      near_(start.near ? std::make_unique<NearTier>(start.near) : nullptr),
      file_flights_(config_.inflight),
      listing_flights_(config_.inflight),
      negatives_(clock, config_.max_negative_entries),
      lane_(config_.batch_width),
      epoch_(start.epoch.value_or(random_u64() | 1)),
      gate_(keeper_) {
  if (resumed_) table_.resume(on_this_clock(*resumed_, -wall_offset_ns_));
  const auto another_incarnation = [this] {
    if (rule_enabled(Rule::kEpochOnIncarnation)) new_epoch();
  };
  provider_.provider().watch_incarnation(another_incarnation);
  if (keeper_ != nullptr) {
    provider_.watch_incarnation(another_incarnation);
    provider_.watch_return([this] { keeper_->provider_returned(); });
    provider_.attach(start.incarnation);
  }
  if (apart()) {
    provider_.detach();
    if (near_) near_->shut();
  }
  settler_ = std::make_unique<Settler>(*this);
  if (config_.prefetch.enabled || config_.warm_on_start)
    prefetch_ = std::make_unique<PrefetchLane>(config_.prefetch, clock_);
  fork_guard_ = std::make_unique<ForkGuard>([this] { let_go_in_child(); });
}

CoherenceDomain::~CoherenceDomain() {
  fork_guard_.reset();
  if (!in_child()) provider_.provider().watch_incarnation({});
}

void CoherenceDomain::let_go_in_child() noexcept {
  if (!rule_enabled(Rule::kForkLeaves)) return;
  in_child_.store(true);
  leaves_.fetch_add(1);
  epoch_.store(kFirstApart);
  provider_.detach();
  if (near_) near_->shut();
  gate_.refuse_in_child();
  settler_->let_go_in_child();
  lane_.let_go_in_child();
  if (prefetch_) prefetch_->let_go_in_child();
}

std::shared_ptr<BackendDomain> CoherenceDomain::backend(std::string_view identity, IdentityUse use) {
  const uint64_t identity_hash = hash64(identity);
  MutexLock lock(backends_mutex_);
  std::shared_ptr<BackendDomain>& known = backends_[identity_hash];
  if (known) return known;
  // In a new epoch no object of earlier lives is valid anyway. In one that goes on, those of the identities that the
  // last life had cached all through are, unless they are to be checked; every other identity gets a term of its own.
  const bool verifies = use.verify_earlier_lives && rule_enabled(Rule::kWarmVerify);
  uint64_t term = resumed_ && (verifies || rule_enabled(Rule::kMarkerIdentities)) ? random_u64() | 1 : 0;
  if (resumed_ && !verifies) {
    for (const IdentityTerm& listed : resumed_->identities) {
      if (listed.identity_hash == identity_hash) term = listed.term;
    }
  }
  const uint64_t write_term = use.shared && rule_enabled(Rule::kSharedVerifies) ? random_u64() | 1 : term;
  known = std::make_shared<BackendDomain>(identity_hash, hash64(identity, seed_), term, write_term, use);
  return known;
}

std::shared_ptr<BackendDomain> CoherenceDomain::backend_by_hash(uint64_t identity_hash) const {
  MutexLock lock(backends_mutex_);
  const auto found = backends_.find(identity_hash);
  return found == backends_.end() ? nullptr : found->second;
}

std::vector<std::shared_ptr<BackendDomain>> CoherenceDomain::backends() const {
  std::vector<std::shared_ptr<BackendDomain>> all;
  MutexLock lock(backends_mutex_);
  for (const auto& [identity_hash, backend] : backends_) all.push_back(backend);
  return all;
}

Observation CoherenceDomain::observe(const CachePath& at, ObjectKind kind) const {
  return table_.observe(at.trail(), kind);
}

Observation CoherenceDomain::observe_for(const CachePath& at, ObjectKind kind, uint64_t stamp) const {
  const Observation seen = table_.observe(at.trail(), kind);
  if (seen.exact || (!seen.running() && seen.newest() <= stamp)) return seen;
  return table_.observe_exactly(at.trail(), kind);
}

bool CoherenceDomain::takes_verification(Source source) const {
  if (!in_memory(source) || config_.verify_dram == VerifyDram::always) return true;
  if (config_.verify_dram == VerifyDram::off) return false;
  thread_local uint32_t hits = 0;
  return ++hits % kVerifyOneIn == 0;
}

std::optional<DecodedEnvelope> CoherenceDomain::open_object(const Question& asked, const Bytes& object) {
  std::optional<DecodedEnvelope> decoded = decode_envelope(object.view(), takes_verification(asked.source));
  if (decoded && decoded->info.kind == asked.kind && decoded->info.identity_hash == asked.at.backend->identity_hash &&
      decoded->info.path == asked.at.path.text()) {
    return decoded;
  }
  drop_damaged(asked.key, asked.source, asked.deadline);
  return std::nullopt;
}

void CoherenceDomain::drop_damaged(const CacheKey& key, Source source, Deadline deadline) {
  counters_.add(CacheCounter::damaged);
  if (source == Source::near) return near_->erase(key);
  (void)provider_.erase(key, deadline);  // best effort: the object is refused either way
}

CoherenceDomain::Refused CoherenceDomain::refused_by_epoch_or_age(const CachePath& at, const EnvelopeInfo& info,
                                                                  uint64_t epoch_before) {
  const uint64_t current = rule_enabled(Rule::kEpochAfterGet) ? epoch() : epoch_before;
  const bool of_epoch = info.epoch != (current ^ at.backend->term) && rule_enabled(Rule::kEpochOnHit);
  if (of_epoch) counters_.add(CacheCounter::stale_epoch);
  if (info.expires_at_ns == 0 || (now_ns() < info.expires_at_ns && age_ns(info.filled_at_ns) != INT64_MAX)) {
    return of_epoch ? Refused::of_epoch : Refused::no;
  }
  if (!of_epoch) counters_.add(CacheCounter::expired);
  return Refused::expired;
}

namespace {

// What remains when a rule is taken out by a test is kept apart from the rule itself.
bool stamp_passes(const Observation& seen, uint64_t stamp) {
  if (seen.running()) return false;
  const bool own = stamp >= seen.own.value || !rule_enabled(Rule::kStampCheck);
  return own && stamp >= seen.above.value;
}

}  // namespace

void CoherenceDomain::count_refusal(const Observation& seen, uint64_t stamp) {
  if (seen.running()) {
    counters_.add(CacheCounter::running_refused);
  } else if (stamp < seen.above.value) {
    counters_.add(CacheCounter::stale_generation);
  } else {
    counters_.add(CacheCounter::stale_record);
  }
}

namespace {

bool may_be_verified(ObjectKind kind) { return kind == ObjectKind::file || !rule_enabled(Rule::kInheritedListings); }

}  // namespace

std::optional<CacheHit> CoherenceDomain::fetch(const Question& asked) {
  const uint64_t epoch_before = epoch();
  RAGFS_PAUSE_POINT("lookup.before_get");
  GetResult got =
      asked.source == Source::near ? GetResult(near_->get(asked.key)) : provider_.get(asked.key, asked.deadline);
  RAGFS_PAUSE_POINT("lookup.after_get");
  if (!got || !got->has_value()) return std::nullopt;
  return judge(asked, std::move(**got), epoch_before);
}

std::optional<CacheHit> CoherenceDomain::judge(const Question& asked, Bytes object, uint64_t epoch_before) {
  std::optional<DecodedEnvelope> opened = open_object(asked, object);
  if (!opened) return std::nullopt;
  const Refused refused = refused_by_epoch_or_age(asked.at, opened->info, epoch_before);
  if (refused == Refused::no) return CacheHit{std::move(object), *opened};
  if (asked.source == Source::near) near_->count(NearCounter::refused);
  const bool may_verify = config_.verify_inherited || asked.at.backend->use.shared;
  if (refused == Refused::of_epoch && asked.suspect != nullptr && may_verify && may_be_verified(asked.kind)) {
    *asked.suspect = CacheHit{std::move(object), *opened};
  }
  return std::nullopt;
}

namespace {

// As long as the tag stays the same, nothing that covers the object happens: the next hit may skip the records.
void leave_note(const CacheHit& hit, const Observation& seen) {
  std::atomic<uint64_t>* note = hit.object.note();
  if (note != nullptr && seen.tag != 0) note->store(seen.tag, std::memory_order_release);
}

}  // namespace

bool CoherenceDomain::passes(const Observation& seen, const CacheHit& hit) {
  if (!stamp_passes(seen, hit.envelope.info.stamp)) return false;
  leave_note(hit, seen);
  return true;
}

// The rules of lookup()'s first way in the same order (tag, get, envelope, epoch, expiry, note); whatever is not
// plainly a hit is left to lookup(). The envelope names kind, identity and path, so the key's hash finds it and its
// text is not needed. A test that takes a rule out never comes this way.
std::optional<EnvelopeGlance> CoherenceDomain::find_judged(const CachePath& at, ObjectKind kind, Bytes& object) {
  if (!all_rules_enabled() || (!near_ && !provider_.capabilities().by_hash)) return std::nullopt;
  const uint64_t key_hash = keys_.key_hash(kind, at.backend->identity_hash, at.path);
  uint64_t tag = 0;
  const bool no_records = table_.empty();
  if (!no_records) {
    near_ ? near_->prefetch(key_hash) : provider_.prefetch(key_hash);
    tag = table_.tag(at.backend->root_id, at.path, kind);
    if (tag == 0) return std::nullopt;
  }
  RAGFS_PAUSE_POINT("lookup.before_get");
  object = near_ ? near_->get_by_hash(key_hash) : provider_.get_by_hash(key_hash);
  RAGFS_PAUSE_POINT("lookup.after_get");
  const std::optional<EnvelopeGlance> seen =
      glance_at_envelope(object.view(), kind, at.backend->identity_hash, at.path.text());
  if (!seen || seen->epoch != (epoch() ^ at.backend->term) || seen->expires_at_ns != 0) return std::nullopt;
  if (!no_records && object.note()->load(std::memory_order_acquire) != tag) return std::nullopt;
  if (takes_verification(source_at_hand()) && !decode_envelope(object.view(), true)) {
    drop_damaged(key(at, kind), source_at_hand(), Deadline::in_ms(0));
    return std::nullopt;
  }
  if (near_) near_->count(NearCounter::hits);
  return seen;
}

std::optional<Bytes> CoherenceDomain::payload_at_once(const CachePath& at, ObjectKind kind, int64_t& filled_at_ns) {
  std::optional<Bytes> payload(std::in_place);
  const std::optional<EnvelopeGlance> seen = find_judged(at, kind, *payload);
  if (seen) {
    filled_at_ns = seen->filled_at_ns;
    *payload = std::move(*payload).slice(seen->payload_at);
  } else {
    payload.reset();
  }
  return payload;
}

std::optional<CacheHit> CoherenceDomain::lookup_at_once(const CachePath& at, ObjectKind kind) {
  Bytes object;
  if (!find_judged(at, kind, object)) return std::nullopt;
  const std::optional<DecodedEnvelope> decoded = decode_envelope(object.view(), false);
  if (!decoded) return std::nullopt;
  return CacheHit{std::move(object), *decoded};
}

std::optional<CacheHit> CoherenceDomain::lookup(const CachePath& at, ObjectKind kind, const CacheKey& object_key,
                                                Deadline deadline, std::optional<CacheHit>* suspect) {
  const Question asked{at, kind, object_key, deadline, Source::provider, suspect};
  // Every object of a shared backend is verified at every read, so that a copy of it would never be served.
  if (near_ && near_->is_open() && !at.backend->use.shared) return lookup_near_first(asked);
  provider_.prefetch(object_key.hash());
  return lookup_at(asked);
}

std::optional<CacheHit> CoherenceDomain::lookup_near_first(const Question& asked) {
  // A suspect is the provider's business: what is near is of this epoch or of no use.
  const Question near{asked.at, asked.kind, asked.key, asked.deadline, Source::near, nullptr};
  std::optional<CacheHit> hit = lookup_at(near);
  if (hit) {
    near_->count(NearCounter::hits);
    return hit;
  }
  RunningCopy copy(copies_, *settler_);
  if (rule_enabled(Rule::kNearRegisteredBeforeGet)) copy.begin();
  hit = lookup_at(asked);
  if (!hit) return hit;
  RAGFS_PAUSE_POINT("near.before_copy");
  if (!rule_enabled(Rule::kNearRegisteredBeforeGet)) copy.begin();
  if (!copy.runs()) return hit;
  copy_near(asked.key, asked.kind, *hit);
  return hit;
}

void CoherenceDomain::copy_near(const CacheKey& key, ObjectKind kind, const CacheHit& hit) {
  PutOptions options;
  options.preferred = kind == ObjectKind::listing;
  if (!rule_enabled(Rule::kExpiryNotRearmed)) return copy_rearmed(key, hit, options);
  // As it is: a copy lives no longer than what it was made of.
  const int64_t expires_at_ns = hit.envelope.info.expires_at_ns;
  if (expires_at_ns != 0) options.ttl_ms = std::max<int64_t>((expires_at_ns - now_ns()) / kNsPerMs, 1);
  near_->put(key, {.header = {}, .payload = hit.object.view()}, options, NearCounter::copies);
}

std::optional<CacheHit> CoherenceDomain::lookup_at(const Question& asked) {
  // First way, for most hits: no record exists, or none that covers the path changed since the object was judged.
  const bool no_records = table_.empty();
  if (rule_enabled(Rule::kRecordsBeforeGet) && (no_records || in_memory(asked.source))) {
    const uint64_t tag = no_records ? 0 : table_.tag(asked.at.backend->root_id, asked.at.path, asked.kind);
    if (no_records || tag != 0) {
      std::optional<CacheHit> hit = fetch(asked);
      if (!hit || no_records) return hit;
      const std::atomic<uint64_t>* note = hit->object.note();
      if (note != nullptr && note->load(std::memory_order_acquire) == tag) return hit;
    }
  }
  return lookup_by_records(asked);
}

std::optional<CacheHit> CoherenceDomain::lookup_by_records(const Question& asked) {
  if (!rule_enabled(Rule::kRecordsBeforeGet)) return lookup_get_first(asked);
  const CachePath& at = asked.at;
  // Second: the buckets. Third: they are shared, and refused; the exact records. Each with a get of its own: what an
  // earlier get returned may have been let go between the mutation and the look-up of its records.
  for (const bool exactly : {false, true}) {
    const Observation seen =
        exactly ? table_.observe_exactly(at.trail(), asked.kind) : table_.observe(at.trail(), asked.kind);
    std::optional<CacheHit> hit = fetch(asked);
    if (!hit) return std::nullopt;
    if (passes(seen, *hit)) return hit;
    if (!seen.exact) continue;
    count_refusal(seen, hit->envelope.info.stamp);
    if (asked.source == Source::near) near_->count(NearCounter::refused);
    return std::nullopt;
  }
  return std::nullopt;
}

int64_t CoherenceDomain::age_ns(int64_t filled_at_ns) const {
  const int64_t now = now_ns();
  const bool of_the_future = filled_at_ns > now + kClockStepSlackNs && rule_enabled(Rule::kFutureExpired);
  return of_the_future ? INT64_MAX : now - filled_at_ns;
}

std::optional<CoherenceDomain::Fill> CoherenceDomain::begin_fill() {
  // Before the registration: whoever finds this fill registered knows that it began no later. And the epoch before the
  // start value: a fill of a new epoch then starts at or above every record that went with the old one.
  const int64_t began_ns = now_ns();
  const uint64_t current = epoch();
  const std::optional<FillRegistry::Fill> fill = fills_.begin();
  if (!fill) return std::nullopt;
  return Fill(this, *fill, current, began_ns);
}

int64_t CoherenceDomain::expiry_ns(int64_t filled_at_ns) const {
  return config_.default_ttl_ms == 0 ? 0 : filled_at_ns + config_.default_ttl_ms * kNsPerMs;
}

void CoherenceDomain::store(const CachePath& at, ObjectKind kind, const Fill& fill, const FileMeta& meta,
                            std::string_view payload, const PutOptions& options, Deadline deadline) {
  if (!is_real_epoch(fill.epoch())) return;  // it began while the domain was apart
  const Observation seen = observe_for(at, kind, fill.start());
  if ((seen.running() || seen.newest() > fill.start()) && rule_enabled(Rule::kFillCheck)) {
    counters_.add(CacheCounter::fill_refused);
    return;
  }
  RAGFS_PAUSE_POINT("fill.before_put");
  EnvelopeInfo info;
  info.kind = kind;
  info.identity_hash = at.backend->identity_hash;
  info.epoch = (rule_enabled(Rule::kFillEpochAtStart) ? fill.epoch() : epoch()) ^ at.backend->write_term;
  info.stamp = fill.start();
  info.filled_at_ns = rule_enabled(Rule::kFilledAtBeforeBackend) ? fill.began_ns() : now_ns();
  info.expires_at_ns = expiry_ns(info.filled_at_ns);
  info.scope_generation = seen.above.value;
  info.size = meta.size;
  info.mtime_ns = meta.mtime_ns;
  info.mode = meta.mode;
  info.path = at.path.text();
  info.version = meta.version;
  const std::string header = encode_envelope(info, payload);
  PutOptions put_options = options;
  put_options.ttl_ms = config_.default_ttl_ms;
  const CacheKey object_key = key(at, kind);
  keep_near(*at.backend, object_key, {header, payload}, put_options);
  const Result<void> stored = provider_.put(object_key, {header, payload}, put_options, deadline);
  if (stored) {
    counters_.add(CacheCounter::fill);
    return;
  }
  counters_.add(CacheCounter::fill_failed);
  if (outcome_unknown(stored.error())) {
    mark_unknown_put(RecordPath(at.backend->root_id, at.path), kind, fill.epoch());
  }
}

void CoherenceDomain::keep_near(const BackendDomain& backend, const CacheKey& key, const ValueParts& value,
                                const PutOptions& options) {
  if (near_ && !backend.use.shared) near_->put(key, value, options, NearCounter::puts);
}

void CoherenceDomain::mark_unknown_put(const RecordPath& record, ObjectKind kind, uint64_t epoch) {
  counters_.add(CacheCounter::unknown_put);
  if (!rule_enabled(Rule::kUnknownPutMarks)) return;
  // The late copy carries the envelope of this call, so it is refused by its own expiry at the latest then.
  const int64_t ttl_ns = config_.default_ttl_ms * kNsPerMs;
  const int64_t expired_ns = ttl_ns > 0 ? clock_.monotonic_ns() + ttl_ns : INT64_MAX;
  const int64_t until_ns = rule_enabled(Rule::kMarkUntilExpiry) ? expired_ns : clock_.monotonic_ns();
  table_.mark(record, kind, until_ns, epoch);
  if (table_.overflowed()) new_epoch();
}

bool CoherenceDomain::known_absent(const CachePath& at) {
  if (negatives_.size() == 0) return false;
  const Observation as_file = table_.observe_exactly(at.trail(), ObjectKind::file);
  const ObjectKind listing = ends_absence(ObjectKind::listing) ? ObjectKind::listing : ObjectKind::file;
  const Observation as_listing = table_.observe_exactly(at.trail(), listing);
  const std::optional<NegativeCache::Absence> absence = negatives_.find(at.trail().self());
  // Of another epoch: the records that would end it are gone.
  if (!absence) return false;
  if (absence->epoch != epoch() && rule_enabled(Rule::kNegativeEpoch)) return false;
  if (!rule_enabled(Rule::kNegativeRecord)) return true;
  if (as_file.running() || as_listing.running()) return false;
  return absence->start >= as_file.newest() && absence->start >= as_listing.newest();
}

void CoherenceDomain::remember_absent(const CachePath& at, const Fill& fill, int64_t ttl_ms) {
  const Observation as_file = observe_for(at, ObjectKind::file, fill.start());
  const Observation as_listing = observe_for(at, ObjectKind::listing, fill.start());
  if (as_file.running() || as_listing.running()) return;
  if (as_file.newest() > fill.start() || as_listing.newest() > fill.start()) return;
  RAGFS_PAUSE_POINT("negative.before_remember");
  negatives_.remember(at.trail().self(), {.start = fill.start(), .epoch = fill.epoch()}, ttl_ms);
}

void CoherenceDomain::new_epoch() {
  if (keeper_ != nullptr) {
    leave_epoch();
    const uint64_t left = leaves();
    const uint64_t next = keeper_->next_epoch();
    if (next != 0) (void)begin_epoch(next, left, provider_.incarnation());
    return;
  }
  counters_.add(CacheCounter::new_epoch);
  uint64_t next = random_u64() | 1;
  {
    MutexLock lock(epoch_mutex_);
    while (next == epoch()) next = random_u64() | 1;
    change_epoch(next);
  }
  // Nothing of what is near is of use any more; what a late copy brings is of no epoch that comes again.
  if (near_) near_->clear();
}

void CoherenceDomain::leave_epoch() {
  {
    MutexLock lock(epoch_mutex_);
    const uint64_t count = leaves_.fetch_add(1, std::memory_order_seq_cst) + 1;
    provider_.detach();
    if (near_) near_->shut();
    // Another even number each time: what was begun in one time apart is not of the next one.
    change_epoch(kFirstApart + 2 * count);
  }
  if (near_) near_->clear();
}

bool CoherenceDomain::begin_epoch(uint64_t epoch, uint64_t leaves, const std::string& incarnation) {
  MutexLock lock(epoch_mutex_);
  if (leaves_.load(std::memory_order_seq_cst) != leaves || in_child()) return false;
  counters_.add(CacheCounter::new_epoch);
  change_epoch(epoch);
  provider_.attach(incarnation);
  if (near_) near_->open();
  return true;
}

std::optional<DomainState> CoherenceDomain::state() const {
  DomainState state;
  state.epoch = epoch();
  state.seed = seed_;
  state.closed_at_ns = now_ns();
  constexpr size_t kMostRecords = 1 << 16;  // more than a marker holds
  if (apart() || !table_.save(state, kMostRecords)) return std::nullopt;
  MutexLock lock(backends_mutex_);
  for (const auto& [identity_hash, backend] : backends_) {
    if (backend->cached.load() && !backend->use.shared) state.identities.push_back({identity_hash, backend->term});
  }
  return on_this_clock(std::move(state), wall_offset_ns_);
}

void CoherenceDomain::change_epoch(uint64_t next) {
  // First the epoch, which refuses every object, then the records that are not needed any more: those from before it.
  // Fills and puts of the new epoch may be running already, and what refuses them must stay.
  const uint64_t through = table_.clock();
  epoch_.store(next, std::memory_order_seq_cst);
  RAGFS_PAUSE_POINT("epoch.before_reset");
  table_.reset(rule_enabled(Rule::kEpochDropsOlderOnly) ? through : UINT64_MAX, next);
  if (!rule_enabled(Rule::kClockKeptInLife)) table_.restart_clock();
  negatives_.clear();
}

Result<CoherenceDomain::DirectRead> CoherenceDomain::enter_direct_read(Deadline deadline) {
  const Deadline until = Deadline::earlier(deadline, Deadline::in_ms(config_.inflight.follower_timeout_ms));
  MutexLock lock(direct_mutex_);
  while (direct_reads_ >= config_.max_direct_reads) {
    if (!direct_free_.wait_until(direct_mutex_, until) && direct_reads_ >= config_.max_direct_reads) {
      counters_.add(CacheCounter::gate_timeout);
      return fail(ErrorCode::timeout, "too many reads wait for the backend");
    }
  }
  ++direct_reads_;
  counters_.add(CacheCounter::direct_read);
  return DirectRead(this);
}

void CoherenceDomain::leave_direct_read() {
  MutexLock lock(direct_mutex_);
  --direct_reads_;
  direct_free_.notify_one();
}

Result<uint64_t> CoherenceDomain::purge_account(std::string_view account, Deadline deadline) {
  const std::array<std::string, 2> prefixes = keys_.object_prefixes(account);
  Result<uint64_t> erased = provider_.erase_prefixes(prefixes, deadline);
  // Also when the provider failed: what is in this process goes in any case, and last, so that nothing is copied anew.
  if (near_ != nullptr) {
    near_->erase_if([&](std::string_view key, std::string_view) { return begins_with_any(key, prefixes); });
  }
  return erased;
}

}  // namespace ragfs
