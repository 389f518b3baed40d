#include "ragfs/cache/read_ahead.h"

#include <algorithm>
#include <utility>

#include "ragfs/base/pause_point.h"

namespace ragfs {
namespace {

constexpr std::string_view kAbstract = ".abstract.md";
constexpr std::string_view kOverview = ".overview.md";
constexpr int64_t kUnreadForMs = 600'000;  // what nobody asked for in this time was read for nothing
constexpr uint64_t kHot = 2;               // reads that make a key worth reading ahead
constexpr int64_t kSweepEveryMs = 60'000;

std::optional<Path> below(PathView directory, std::string_view name) {
  Result<Path> path = Path::join(directory, name);
  return path ? std::optional(*std::move(path)) : std::nullopt;
}

bool is_readable_file(const FileInfo& entry) { return entry.kind == FileKind::file && !entry.aliased; }

// Where `name` stands in `text` as a word of its own; npos when it does not.
size_t find_name(std::string_view text, std::string_view name) {
  const auto is_part = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  };
  for (size_t at = text.find(name); at != std::string_view::npos; at = text.find(name, at + 1)) {
    const size_t end = at + name.size();
    if ((at == 0 || !is_part(text[at - 1])) && (end == text.size() || !is_part(text[end]))) return at;
  }
  return std::string_view::npos;
}

}  // namespace

CachedFileSystem::ReadAhead::ReadAhead(CachedFileSystem& fs, PrefetchLane& lane)
    : fs_(fs), lane_(lane), sees_occasions_(lane.config().enabled), cooldown_(lane.config().cooldown_ms) {}

CachedFileSystem::ReadAhead::~ReadAhead() {
  (void)stop(Deadline::never());
  lane_.forget(fs_.counters_);
}

bool CachedFileSystem::ReadAhead::stop(Deadline deadline) { return lane_.stop(fs_.counters_, deadline); }

bool CachedFileSystem::ReadAhead::provider_answers() const {
  const BreakerState state = fs_.domain_->provider().state();
  return !fs_.domain_->apart() && (state == BreakerState::closed || state == BreakerState::probing);
}

bool CachedFileSystem::ReadAhead::may_read(PathView path, ObjectKind kind) const {
  const CacheOp op = kind == ObjectKind::listing ? CacheOp::list : CacheOp::read;
  return fs_.serves(path) && fs_.policy_.cache_policy(path, op, Context()).may_prefetch;
}

bool CachedFileSystem::ReadAhead::begins(Occasion occasion, PathView path) {
  if (!sees_occasions_ || gives_way() || !provider_answers()) return false;
  if (!cooldown_.enter(hash64(path.text(), static_cast<uint64_t>(occasion) << 8), now_ms())) {
    count(CacheCounter::prefetch_cooldown);
    return false;
  }
  count(CacheCounter::prefetch_triggered);
  return true;
}

void CachedFileSystem::ReadAhead::submit(PrefetchPriority priority, std::function<void()> task) {
  lane_.submit(fs_.counters_, priority, std::move(task));
}

// --- what readers tell ---

void CachedFileSystem::ReadAhead::note_use(PathView path, PrefetchLedger::Taken taken, bool single) {
  count(CacheCounter::prefetch_hit);
  if (taken == PrefetchLedger::Taken::marked && single) follow(path);
}

void CachedFileSystem::ReadAhead::seen_miss(PathView path, bool single) {
  // It was read ahead and is not there any more: changed or pushed out before anyone asked.
  seen_loss(path, ObjectKind::file);
  if (!single || !sees_occasions_ || gives_way()) return;
  seen_sequence(path);
  enter_scope(path);
}

void CachedFileSystem::ReadAhead::seen_listing_hit(PathView path) {
  if (ledger_.take(id_of(path, ObjectKind::listing)) != PrefetchLedger::Taken::no) count(CacheCounter::prefetch_hit);
}

void CachedFileSystem::ReadAhead::seen_listing(PathView path, const std::vector<FileInfo>& entries) {
  if (!sees_occasions_ || gives_way()) return;
  enter_scope(path);
  const auto is_directory = [](const FileInfo& entry) { return entry.kind == FileKind::directory && !entry.aliased; };
  if (std::ranges::none_of(entries, is_directory) || !may_read(path, ObjectKind::listing)) return;
  if (!begins(Occasion::listing, path)) return;
  std::vector<Item> at_once;
  std::vector<Item> later;
  const size_t most = lane_.config().max_objects * kCandidatesPerObject;
  for (const FileInfo& entry : entries) {
    if (!is_directory(entry)) continue;
    if (at_once.size() >= most) break;
    const std::optional<Path> child = below(path, entry.name);
    if (!child) continue;
    if (auto abstract = below(*child, kAbstract)) at_once.push_back({*std::move(abstract)});
    if (later.size() + 2 > most) continue;
    if (auto overview = below(*child, kOverview)) later.push_back({*std::move(overview)});
    later.push_back({*child, ObjectKind::listing});
  }
  submit(PrefetchPriority::high, [this, items = std::move(at_once)] { read_items(items); });
  submit(PrefetchPriority::low, [this, items = std::move(later)] { read_items(items); });
}

void CachedFileSystem::ReadAhead::seen_overview(PathView path, const Bytes& payload) {
  const PathView directory = path.parent();
  if (!may_read(directory, ObjectKind::listing) || !begins(Occasion::overview, directory)) return;
  submit(PrefetchPriority::normal, [this, at = Path(directory), text = payload] { read_below_overview(at, text); });
}

void CachedFileSystem::ReadAhead::seen_sequence(PathView path) {
  if (path.is_root() || path.name().starts_with('.')) return;
  const PathView directory = path.parent();
  std::string before = sequences_.note(id_of(directory, ObjectKind::listing), path.name());
  if (before.empty() || !may_read(path, ObjectKind::file) || !begins(Occasion::sequence, path)) return;
  submit(PrefetchPriority::high, [this, at = Path(directory), before = std::move(before),
                                  name = std::string(path.name())] { read_sequence(at, before, name); });
}

void CachedFileSystem::ReadAhead::follow(PathView path) {
  if (!may_read(path, ObjectKind::file) || !begins(Occasion::sequence, path)) return;
  submit(PrefetchPriority::high,
         [this, at = Path(path.parent()), name = std::string(path.name())] { read_sequence(at, "", name); });
}

// Every miss asks: what costs most comes last.
void CachedFileSystem::ReadAhead::enter_scope(PathView path) {
  if (!sees_occasions_ || !fs_.notes_hot_ || !may_read(path, ObjectKind::file) || !provider_answers()) return;
  const Target target(fs_, path);
  const std::string_view scope = target.identity_path().text().substr(0, scope_length(target.identity_path()));
  if (!cooldown_.enter(hash64(scope, static_cast<uint64_t>(Occasion::scope) << 8), now_ms())) return;
  std::vector<HotKey> hot = fs_.identity_->hot.of_scope(PathView::from_normal(scope), lane_.config().max_objects);
  std::erase_if(hot, [](const HotKey& key) { return key.reads < kHot; });
  if (hot.empty()) return;
  count(CacheCounter::prefetch_triggered);
  submit(PrefetchPriority::normal, [this, keys = std::move(hot)] { read_items(items_of(keys)); });
}

std::vector<CachedFileSystem::ReadAhead::Item> CachedFileSystem::ReadAhead::items_of(
    const std::vector<HotKey>& keys) const {
  std::vector<Item> items;
  for (const HotKey& key : keys) {
    if (const std::optional<PathView> path = fs_.in_mount(key.path)) items.push_back({Path(*path), key.kind});
  }
  return items;
}

void CachedFileSystem::ReadAhead::warm(const std::vector<HotKey>& keys) {
  std::vector<Item> all = items_of(keys);
  const size_t at_once = lane_.config().max_objects;
  for (size_t from = 0; from < all.size(); from += at_once) {
    const size_t to = std::min(all.size(), from + at_once);
    std::vector<Item> some(std::make_move_iterator(all.begin() + static_cast<ptrdiff_t>(from)),
                           std::make_move_iterator(all.begin() + static_cast<ptrdiff_t>(to)));
    submit(PrefetchPriority::warm, [this, items = std::move(some)] { read_items(items); });
  }
}

// --- what tasks do ---

SharedListing CachedFileSystem::ReadAhead::listing_of(const Path& directory) {
  if (!may_read(directory, ObjectKind::listing)) return nullptr;
  const Target target(fs_, directory);
  if (const auto hit = fs_.domain_->lookup(target.at, ObjectKind::listing, Deadline::never())) {
    if (const auto view = ListingView::parse(hit->envelope.payload, false)) {
      return std::make_shared<const std::vector<FileInfo>>(view->entries());
    }
  }
  if (!lane_.goes_on(fs_.counters_)) return nullptr;
  const Context ctx;
  if (!read_item(ctx, {directory, ObjectKind::listing}, target)) return nullptr;
  const auto hit = fs_.domain_->lookup(target.at, ObjectKind::listing, Deadline::never());
  const auto view = hit ? ListingView::parse(hit->envelope.payload, false) : std::nullopt;
  return view ? std::make_shared<const std::vector<FileInfo>>(view->entries()) : nullptr;
}

// `before` empty: the sequence is known to go on.
void CachedFileSystem::ReadAhead::read_sequence(const Path& directory, const std::string& before,
                                                const std::string& name) {
  const SharedListing listing = listing_of(directory);
  if (listing == nullptr) return;
  std::vector<const FileInfo*> files;
  for (const FileInfo& entry : *listing) {
    if (is_readable_file(entry) && !entry.name.starts_with('.')) files.push_back(&entry);
  }
  const auto at = std::ranges::find_if(files, [&](const FileInfo* file) { return file->name == name; });
  if (at == files.end()) return;
  if (!before.empty() && (at == files.begin() || (*std::prev(at))->name != before)) return;
  std::vector<Item> items;
  for (auto next = std::next(at); next != files.end() && items.size() < lane_.config().max_objects; ++next) {
    if ((*next)->size > fs_.policy_.config().max_file_size_bytes) continue;
    if (auto path = below(directory, (*next)->name)) items.push_back({*std::move(path)});
  }
  if (!items.empty()) items[items.size() / 2].marked = true;
  read_items(items);
}

void CachedFileSystem::ReadAhead::read_below_overview(const Path& directory, const Bytes& overview) {
  const SharedListing listing = listing_of(directory);
  if (listing == nullptr) return;
  // By where the overview names them. An overview that names nothing says nothing about what comes next.
  std::vector<std::pair<size_t, Item>> named;
  for (const FileInfo& entry : *listing) {
    const bool is_file = is_readable_file(entry) && entry.size <= fs_.policy_.config().max_file_size_bytes;
    if (entry.name.starts_with('.') || (!is_file && entry.kind != FileKind::directory)) continue;
    const size_t at = find_name(overview.view(), entry.name);
    std::optional<Path> path = at == std::string_view::npos ? std::nullopt : below(directory, entry.name);
    if (path && !is_file) path = below(*path, kOverview);
    if (path) named.emplace_back(at, Item{*std::move(path)});
  }
  std::ranges::stable_sort(named, {}, &std::pair<size_t, Item>::first);
  std::vector<Item> items;
  for (auto& [at, item] : named) items.push_back(std::move(item));
  read_items(items);
}

void CachedFileSystem::ReadAhead::read_items(const std::vector<Item>& items) {
  forget_old();
  if (!provider_answers()) return count(CacheCounter::prefetch_dropped);
  const size_t most = lane_.config().max_objects;
  std::deque<Target> targets;
  std::vector<const Item*> asked;
  std::vector<CoherenceDomain::Wanted> wanted;
  for (const Item& item : items) {
    if (asked.size() >= most * kCandidatesPerObject) break;
    if (!may_read(item.path, item.kind)) continue;
    asked.push_back(&item);
    wanted.push_back({&targets.emplace_back(fs_, item.path).at, item.kind});
  }
  if (wanted.empty()) return;
  const Context ctx;
  const auto found = fs_.domain_->lookup_many(wanted, ctx.deadline, CoherenceDomain::NearCopies::yes);
  RAGFS_PAUSE_POINT("prefetch.looked_up");
  size_t read = 0;
  for (size_t i = 0; i < asked.size(); ++i) {
    if (found[i].hit || found[i].suspect) {
      // Into this process's memory: a reader would have had to wait for it.
      if (found[i].copied) note_filled(*asked[i], found[i].hit->envelope.payload.size());
      continue;
    }
    if (read >= most) break;
    if (!lane_.goes_on(fs_.counters_)) return;
    if (!may_read(asked[i]->path, asked[i]->kind)) continue;
    if (asked[i]->kind == ObjectKind::file && fs_.domain_->known_absent(targets[i].at)) continue;
    ++read;
    (void)read_item(ctx, *asked[i], targets[i]);
  }
}

bool CachedFileSystem::ReadAhead::read_item(const Context& ctx, const Item& item, const Target& target) {
  RAGFS_PAUSE_POINT("prefetch.before_read");
  const Result<Filled> filled = fs_.fill(ctx, target, item.kind);
  if (!filled) {
    if (filled.error().code != ErrorCode::not_found) count(CacheCounter::prefetch_failed);
    return false;
  }
  if (!filled->led) return true;  // a reader reads it right now
  lane_.spend(filled->bytes);
  note_filled(item, filled->bytes);
  return true;
}

void CachedFileSystem::ReadAhead::note_filled(const Item& item, uint64_t bytes) {
  const uint64_t most =
      item.kind == ObjectKind::file ? fs_.policy_.config().max_file_size_bytes : fs_.policy_.config().max_listing_bytes;
  if (bytes > most) return;  // too large to be kept
  count(CacheCounter::prefetch_filled);
  const size_t unread = ledger_.add(id_of(item.path, item.kind), item.marked, now_ms());
  if (unread > 0) count(CacheCounter::prefetch_waste, unread);
}

void CachedFileSystem::ReadAhead::forget_old() {
  const int64_t now = now_ms();
  int64_t swept = swept_ms_.load(std::memory_order_relaxed);
  if (now - swept < kSweepEveryMs || !swept_ms_.compare_exchange_strong(swept, now)) return;
  const size_t unread = ledger_.forget_before(now - kUnreadForMs);
  if (unread > 0) count(CacheCounter::prefetch_waste, unread);
}

}  // namespace ragfs
