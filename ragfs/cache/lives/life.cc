#include "ragfs/cache/lives/life.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <random>

#include "ragfs/base/pause_point.h"
#include "ragfs/base/random.h"
#include "ragfs/cache/rules.h"
#include "ragfs/cache/settler.h"

namespace ragfs {
namespace {

constexpr size_t kMostAttempts = 4096;  // remembered, to know a late write of one's own
constexpr int64_t kClockSlackNs = 1'000'000'000;
constexpr uint64_t kApart = 2;

uint64_t random_odd() { return random_u64() | 1; }

std::string name_of_process() {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host[0] = '\0';
  return fmt::format("pid {} on {}", ::getpid(), host.data());
}

Result<void> in_range(std::string_view field, int64_t value, int64_t least) {
  if (value >= least) return {};
  return fail(ErrorCode::config, fmt::format("{}: {} is not allowed; it must be at least {}", field, value, least));
}

}  // namespace

std::string_view stage_name(LifeStage stage) {
  switch (stage) {
    case LifeStage::apart: return "apart";
    case LifeStage::joined: return "joined";
    case LifeStage::left: return "left";
    case LifeStage::closed: return "closed";
  }
  return "closed";
}

Result<void> LifeConfig::validate() const {
  if (name_space.empty()) return fail(ErrorCode::config, "namespace: must not be empty");
  if (auto ok = in_range("pointer_check_ms", pointer_check_ms, 10); !ok) return ok;
  if (auto ok = in_range("call_timeout_ms", call_timeout_ms, 1); !ok) return ok;
  if (auto ok = in_range("retry_ms", retry_ms, 1); !ok) return ok;
  return in_range("attempts_at_start", attempts_at_start, 1);
}

class Life::Turn {
 public:
  explicit Turn(Life& life) : life_(life) {
    MutexLock lock(life_.mutex_);
    while (life_.turn_taken_) life_.changed_.wait_until(life_.mutex_, Deadline::never());
    life_.turn_taken_ = true;
  }
  ~Turn() {
    MutexLock lock(life_.mutex_);
    life_.turn_taken_ = false;
    life_.changed_.notify_all();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  Life& life_;
};

Life::Life(LifeConfig config, std::shared_ptr<CacheProvider> provider, PosixFiles& files, const Clock& clock)
    : config_(std::move(config)),
      provider_(std::move(provider)),
      clock_(clock),
      directory_(config_.state_dir, files),
      witness_(directory_),
      keys_(config_.name_space),
      pointer_key_(epoch_pointer_key(keys_.encoded_namespace())),
      writer_(name_of_process()),
      began_ns_(clock.wall_ns()),
      fork_guard_(std::make_unique<ForkGuard>([this] { let_go_in_child(); })) {}

Life::~Life() {
  fork_guard_.reset();
  if (in_child_.load()) {
    if (thread_.joinable()) thread_.detach();
    for (auto& [identity, lock] : locks_) lock.forget();
    return;
  }
  stop_thread();
  give_locks_back();
}

void Life::stop_thread() {
  if (in_child_.load()) return;
  {
    MutexLock lock(mutex_);
    stop_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void Life::let_go_in_child() noexcept {
  in_child_.store(true);
  // The lock belongs to the open file, which parent and child share: the child's copy would keep it held.
  for (std::atomic<int>& fd : lock_fds_) {
    if (fd.load() > 0) ::close(fd.exchange(0));
  }
}

void Life::give_locks_back() {
  for (std::atomic<int>& fd : lock_fds_) fd.store(0);
  std::map<uint64_t, IdentityLock> locks;
  {
    MutexLock lock(mutex_);
    locks.swap(locks_);
  }
  for (auto& [identity, lock] : locks) lock.give_back(directory_);
}

// --- the protocol's single steps, each under a turn ---

Result<void> Life::move_witness(uint64_t life) {
  auto moved = witness_.move_to(life, writer_);
  // After an error it may name either life; only a later success makes it certain again.
  witness_moved_ = moved.has_value();
  return moved;
}

std::optional<EpochPointer> Life::read_pointer(bool& asked) {
  const GetResult got = provider_->get(pointer_key_, call_deadline());
  asked = got.has_value();
  if (!got) {
    say_why(fmt::format("the provider does not answer: {}", got.error().text()));
    return std::nullopt;
  }
  return got->has_value() ? decode_epoch_pointer((*got)->view()) : std::nullopt;
}

bool Life::is_warm(const EpochPointer& pointer, const CleanMarker& marker, const std::string& incarnation) const {
  if (pointer.life != old_witness_ && rule_enabled(Rule::kWitness)) return false;
  const bool of_that_life = marker.life == pointer.life && marker.state.epoch == pointer.epoch;
  if (!of_that_life && rule_enabled(Rule::kMarkerNamedByLife)) return false;
  if (marker.incarnation != incarnation && rule_enabled(Rule::kMarkerIncarnation)) return false;
  // What would have expired by now cannot be told under a clock that has stepped back.
  return clock_.wall_ns() >= marker.state.closed_at_ns - kClockSlackNs || !rule_enabled(Rule::kClockNotBack);
}

std::optional<CleanMarker> Life::find_marker(const std::optional<EpochPointer>& pointer,
                                             const std::string& incarnation) {
  if (!pointer) return std::nullopt;
  const GetResult got = provider_->get(clean_marker_key(keys_.encoded_namespace(), pointer->life), call_deadline());
  if (!got || !got->has_value()) return std::nullopt;
  std::optional<CleanMarker> marker = decode_clean_marker((*got)->view());
  if (!marker || !is_warm(*pointer, *marker, incarnation)) return std::nullopt;
  return marker;
}

Result<void> Life::claim(uint64_t epoch, const std::string& incarnation) {
  const bool again = !attempted_.empty() && !rule_enabled(Rule::kFreshPointerLife);
  const uint64_t life = again ? attempted_.back() : random_odd();
  attempted_.push_back(life);
  if (attempted_.size() > kMostAttempts) attempted_.pop_front();
  claimed_life_ = 0;
  const auto failed = [&](const Error& error) -> Result<void> {
    MutexLock lock(mutex_);
    ++report_.claims_failed;
    return std::unexpected(error);
  };
  const bool first = rule_enabled(Rule::kWitnessOrder);
  if (directory_.configured() && first) {
    if (auto moved = move_witness(life); !moved) return failed(moved.error());
  }
  RAGFS_PAUSE_POINT("life.before_pointer");
  const std::string text = encode_epoch_pointer({life, epoch, clock_.wall_ns(), writer_});
  const Result<void> put = provider_->put(pointer_key_, {text, {}}, {.preferred = true}, call_deadline());
  RAGFS_PAUSE_POINT("life.after_pointer");
  if (!put) return failed(put.error());
  if (provider_->incarnation() != incarnation) {
    return failed({ErrorCode::unavailable, "the provider was replaced while its pointer was written"});
  }
  if (directory_.configured() && !first) (void)move_witness(life);
  confirmed_.push_back(life);
  if (confirmed_.size() > kMostAttempts) confirmed_.pop_front();
  claimed_life_ = life;
  claimed_epoch_ = epoch;
  incarnation_ = incarnation;
  MutexLock lock(mutex_);
  ++report_.claims;
  report_.why.clear();
  return {};
}

// --- start ---

DomainStart Life::start(bool provider_answers) {
  const Turn turn(*this);
  DomainStart start;
  start.keeper = this;
  start.incarnation = incarnation_ = provider_->incarnation();
  if (off() || (keeps_pointer() && !provider_answers)) {
    if (!off()) say_why("the provider did not answer at the start");
    start.epoch = kApart;
    return start;
  }
  if (keeps_pointer()) return join_at_start();
  start.epoch = random_odd();
  set_stage(LifeStage::joined);
  return start;
}

DomainStart Life::join_at_start() {
  DomainStart start;
  start.keeper = this;
  start.epoch = kApart;
  if (const Result<std::optional<uint64_t>> named = witness_.read()) old_witness_ = named->value_or(old_witness_);
  std::optional<CleanMarker> marker;
  bool read = false;
  for (int attempt = 0; attempt < config_.attempts_at_start; ++attempt) {
    if (!read) {
      const std::optional<EpochPointer> pointer = read_pointer(read);
      if (!read) continue;
      seen_at_start_ = pointer ? pointer->life : 0;
      incarnation_ = provider_->incarnation();  // of the connection that answered; a look before it may have had none
      marker = find_marker(pointer, incarnation_);
      RAGFS_PAUSE_POINT("life.marker_read");
    }
    const std::string incarnation = provider_->incarnation();
    if (incarnation != incarnation_) marker.reset();  // it spoke of another state of the provider
    const uint64_t epoch = marker ? marker->state.epoch : random_odd();
    if (auto claimed = claim(epoch, incarnation); !claimed) {
      say_why(claimed.error().text());
      continue;
    }
    start.epoch = epoch;
    start.incarnation = incarnation;
    if (marker) start.resumed = marker->state;
    // It has served its time; were it lost before, the start would have been cold.
    if (marker) (void)provider_->erase(clean_marker_key(keys_.encoded_namespace(), marker->life), call_deadline());
    MutexLock lock(mutex_);
    report_.stage = LifeStage::joined;
    report_.warm = marker.has_value();
    return start;
  }
  return start;
}

void Life::attach(CoherenceDomain& domain) {
  domain_ = &domain;
  if (keeps_pointer()) thread_ = std::jthread([this] { run(); });
}

// --- the thread ---

void Life::run() {
  std::minstd_rand random(std::random_device{}());
  int64_t retry_ms = config_.retry_ms;
  while (true) {
    {
      MutexLock lock(mutex_);
      const bool apart = report_.stage == LifeStage::apart;
      if (!apart) retry_ms = config_.retry_ms;
      const int64_t wait_ms = apart ? retry_ms : config_.pointer_check_ms;
      const Deadline until =
          Deadline::in_ms(std::uniform_int_distribution<int64_t>(wait_ms - wait_ms / 4, wait_ms)(random));
      while (!stop_ && !woken_ && changed_.wait_until(mutex_, until)) {
      }
      if (stop_) return;
      if (woken_) retry_ms = config_.retry_ms;
      woken_ = false;
    }
    tend();
    retry_ms = std::min(retry_ms * 2, std::max(config_.pointer_check_ms, config_.retry_ms));
  }
}

void Life::tend() {
  const Turn turn(*this);
  LifeStage stage = LifeStage::closed;
  {
    MutexLock lock(mutex_);
    if (!stop_) stage = report_.stage;
  }
  if (!keeps_pointer()) return;
  if (stage == LifeStage::apart) join();
  if (stage == LifeStage::joined) look_at_pointer();
}

// Always a new epoch: what happened while nothing was told to the provider is not known there.
void Life::join() {
  const uint64_t leaves = domain_->leaves();
  bool asked = false;
  const std::optional<EpochPointer> pointer = read_pointer(asked);
  if (!asked) return;
  if (pointer && is_foreign(*pointer)) return leave(*pointer);
  const std::string incarnation = provider_->incarnation();
  uint64_t epoch = random_odd();
  if (!rule_enabled(Rule::kColdJoin)) {
    if (const auto marker = find_marker(pointer, incarnation)) epoch = marker->state.epoch;
  }
  if (auto claimed = claim(epoch, incarnation); !claimed) return say_why(claimed.error().text());
  RAGFS_PAUSE_POINT("life.before_begin_epoch");
  if (!domain_->begin_epoch(epoch, leaves, incarnation)) return;
  RAGFS_PAUSE_POINT("life.after_begin_epoch");
  MutexLock lock(mutex_);
  // Left again already: next_epoch(), which found this life apart still, waits for another join.
  report_.stage = domain_->apart() ? LifeStage::apart : LifeStage::joined;
  changed_.notify_all();
}

bool Life::is_foreign(const EpochPointer& pointer) const {
  if (!rule_enabled(Rule::kForeignPointer)) return false;
  {
    MutexLock lock(mutex_);
    if (report_.claims == 0) return false;  // whoever was here before this life
  }
  if (pointer.life == seen_at_start_ || std::ranges::count(attempted_, pointer.life) > 0) return false;
  // A provider that was set back shows what was before this life began.
  return pointer.written_at_ns >= began_ns_;
}

// A late write of an attempt that had failed shows nothing of the sort.
bool Life::is_set_back(const EpochPointer& pointer) const {
  return std::ranges::count(attempted_, pointer.life) == 0 || std::ranges::count(confirmed_, pointer.life) > 0;
}

void Life::look_at_pointer() {
  bool asked = false;
  const std::optional<EpochPointer> pointer = read_pointer(asked);
  if (!asked) return;
  if (provider_->incarnation() != incarnation_ && rule_enabled(Rule::kEpochOnIncarnation)) {
    domain_->new_epoch();
    return join();
  }
  if (pointer && pointer->life == claimed_life_) return;
  if (pointer && is_foreign(*pointer)) return leave(*pointer);
  if (pointer && is_set_back(*pointer)) {
    domain_->new_epoch();
    return join();
  }
  // Evicted, or a late write of this process's own: the epoch is as good as before.
  {
    MutexLock lock(mutex_);
    ++report_.rewritten;
  }
  if (auto claimed = claim(claimed_epoch_, incarnation_); !claimed) say_why(claimed.error().text());
}

void Life::leave(const EpochPointer& pointer) {
  domain_->leave_epoch();
  claimed_life_ = 0;
  set_stage(LifeStage::left);
  say_why(
      fmt::format("{} writes namespace {} as well: this process goes on without the cache; stop the other one, then "
                  "`ragfs cache rejoin`",
                  pointer.writer, config_.name_space));
}

// --- what the domain and the operator ask for ---

uint64_t Life::next_epoch() {
  MutexLock lock(mutex_);
  if (report_.stage == LifeStage::joined && (!config_.outlives || config_.shared)) return random_odd();
  if (report_.stage == LifeStage::joined) report_.stage = LifeStage::apart;
  woken_ = true;
  changed_.notify_all();
  return 0;
}

void Life::provider_returned() {
  MutexLock lock(mutex_);
  if (report_.stage != LifeStage::joined) return;  // apart, the thread asks often enough
  woken_ = true;
  changed_.notify_all();
}

std::string Life::why_not(LifeStage stage) const {
  if (refused_.load()) return "another process has these files and their cache; ask its server";
  return fmt::format("the cache is {}", off() ? "off" : stage_name(stage));
}

Result<void> Life::new_epoch(Deadline deadline) {
  const LifeStage stage = report().stage;
  if (stage == LifeStage::closed || stage == LifeStage::left || domain_ == nullptr || off()) {
    return fail(ErrorCode::unavailable, fmt::format("no new epoch: {}", why_not(stage)));
  }
  domain_->new_epoch();
  return wait_until_joined(deadline);
}

Result<void> Life::rejoin(Deadline deadline) {
  {
    const Turn turn(*this);
    if (const LifeStage stage = report().stage; stage == LifeStage::closed || off()) {
      return fail(ErrorCode::unavailable, fmt::format("the cache cannot be joined again: {}", why_not(stage)));
    }
    bool asked = false;
    const std::optional<EpochPointer> pointer = read_pointer(asked);
    if (pointer) seen_at_start_ = pointer->life;
    MutexLock lock(mutex_);
    if (report_.stage == LifeStage::left) report_.stage = LifeStage::apart;
    woken_ = true;
    changed_.notify_all();
  }
  return wait_until_joined(deadline);
}

Result<void> Life::wait_until_joined(Deadline deadline) {
  MutexLock lock(mutex_);
  while (report_.stage == LifeStage::apart && changed_.wait_until(mutex_, deadline)) {
  }
  if (report_.stage == LifeStage::joined) return {};
  if (report_.stage == LifeStage::apart) return fail(ErrorCode::timeout, "the cache is not joined yet: " + report_.why);
  return fail(ErrorCode::unavailable, report_.why.empty() ? "the cache is closed" : report_.why);
}

namespace {

std::unexpected<Error> held_by(std::string_view holder) {
  return fail(ErrorCode::read_only, fmt::format("{} holds these files with a cache of its own: use its server, or set "
                                                "`shared: true` in both",
                                                holder));
}

}  // namespace

Result<void> Life::take_lock(uint64_t identity_hash, LockKind kind) {
  Result<IdentityLock> got = lock_identity(directory_, identity_hash, kind, writer_);
  if (!got) return std::unexpected(std::move(got.error()));
  const auto place = std::ranges::find(lock_fds_, 0, [](const std::atomic<int>& fd) { return fd.load(); });
  if (place == lock_fds_.end()) {
    return fail(ErrorCode::would_block, fmt::format("{} backends are locked by this process already", kMostLocks));
  }
  place->store(got->fd());
  MutexLock lock(mutex_);
  locks_.emplace(identity_hash, *std::move(got));
  return {};
}

Result<LockKind> Life::hold(uint64_t identity_hash, LockKind wish) {
  if (config_.shared) wish = LockKind::shared;
  if (!directory_.configured() || !rule_enabled(Rule::kIdentityLock)) return wish;
  const Turn turn(*this);
  {
    MutexLock lock(mutex_);
    const auto held = locks_.find(identity_hash);
    if (held != locks_.end()) return held->second.kind();
  }
  std::string holder;
  for (const LockKind kind : {LockKind::exclusive, LockKind::shared}) {
    if (kind == LockKind::exclusive && wish == LockKind::shared) continue;
    const Result<void> got = take_lock(identity_hash, kind);
    if (got) return kind;
    if (got.error().code != ErrorCode::lock_conflict) return std::unexpected(got.error());
    holder = got.error().message;
  }
  if (domain_ == nullptr) refused_.store(true);
  return held_by(holder);
}

Result<void> Life::lock_for_mutations(uint64_t identity_hash) {
  {
    MutexLock lock(mutex_);
    if (!directory_.configured() || locks_.contains(identity_hash)) return {};
  }
  const Result<void> got = take_lock(identity_hash, LockKind::shared);
  if (got) return {};
  if (got.error().code == ErrorCode::lock_conflict) return held_by(got.error().message);
  // Where no directory can be made, nobody else has a lock in it.
  const Result<bool> exists = directory_.exists();
  if (exists && !*exists) return {};
  return std::unexpected(got.error());
}

Result<void> Life::admit(const BackendDomain& backend) {
  if (backend.use.process_local) return {};
  const Turn turn(*this);
  if (auto locked = lock_for_mutations(backend.identity_hash); !locked) return locked;
  if (witness_moved_ || !directory_.configured()) return {};
  if (off() && !rule_enabled(Rule::kWitnessCacheOff)) return {};
  if (claimed_life_ == 0 && !rule_enabled(Rule::kWitnessOrder)) return {};
  if (off() || !config_.outlives) {
    // A namespace that never had a life to be remembered needs no witness against one.
    const Result<std::optional<uint64_t>> named = witness_.read();
    if (!named) return std::unexpected(named.error());
    if (!named->has_value()) return {};
  }
  RAGFS_PAUSE_POINT("life.before_admission");
  return move_witness(random_odd());
}

// --- the end ---

Result<bool> Life::close(Deadline deadline) {
  if (in_child_.load()) return false;
  bool joined = false;
  {
    MutexLock lock(mutex_);
    if (report_.stage == LifeStage::closed) return false;
    joined = report_.stage == LifeStage::joined;
  }
  stop_thread();
  if (domain_ == nullptr) return false;
  {
    const Turn turn(*this);
    // Together: whoever is admitted from here on has moved the witness away from the life that the marker will name.
    if (rule_enabled(Rule::kMarkerPromise)) witness_moved_ = false;
    domain_->gate().close();
  }
  domain_->fills().stop();
  RAGFS_PAUSE_POINT("close.stopped");
  const bool quiet = !rule_enabled(Rule::kCloseDrains) ||
                     (domain_->fills().wait_until_none(deadline) && domain_->gate().wait_until_empty(deadline) &&
                      domain_->settler().drain(deadline));
  RAGFS_PAUSE_POINT("close.drained");
  const Turn turn(*this);
  Result<bool> written = false;
  if (joined && quiet) written = write_marker(deadline);
  domain_->leave_epoch();
  set_stage(LifeStage::closed);
  // Who was admitted since the gate was closed asks for the lock once more, and moves the witness: others may have come
  // and gone by then. While a mutation runs the locks are kept, until this life is destroyed.
  if (rule_enabled(Rule::kMarkerPromise)) witness_moved_ = false;
  domain_->gate().close();
  if (domain_->gate().wait_until_empty(Deadline::in_ms(0))) give_locks_back();
  return written;
}

Result<bool> Life::write_marker(Deadline deadline) {
  const bool kept = keeps_pointer() && directory_.configured();
  if (!kept || claimed_life_ == 0 || provider_->incarnation() != incarnation_) return false;
  std::optional<DomainState> state = domain_->state();
  if (!state || state->epoch != claimed_epoch_) return false;
  const std::optional<std::string> text = encode_clean_marker({claimed_life_, incarnation_, *std::move(state)});
  if (!text) return false;
  RAGFS_PAUSE_POINT("close.before_marker");
  const Deadline until = Deadline::earlier(deadline, call_deadline());
  const CacheKey key = clean_marker_key(keys_.encoded_namespace(), claimed_life_);
  const Result<void> put = provider_->put(key, {*text, {}}, {.preferred = true}, until);
  RAGFS_PAUSE_POINT("close.after_marker");
  if (!put) return std::unexpected(put.error());
  return true;
}

// --- reporting ---

void Life::say_why(std::string why) {
  MutexLock lock(mutex_);
  report_.why = std::move(why);
}

void Life::set_stage(LifeStage stage) {
  MutexLock lock(mutex_);
  report_.stage = stage;
  changed_.notify_all();
}

LifeReport Life::report() const {
  MutexLock lock(mutex_);
  return report_;
}

uint64_t Life::life() {
  const Turn turn(*this);
  return claimed_life_;
}

}  // namespace ragfs
