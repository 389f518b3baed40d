// The reading half of CachedFileSystem: hits, misses, merged reads, stat from what is cached.
#include <algorithm>
#include <utility>

#include "ragfs/base/pause_point.h"
#include "ragfs/cache/cached_file_system.h"
#include "ragfs/cache/cached_target.h"
#include "ragfs/cache/read_ahead.h"
#include "ragfs/cache/rules.h"

namespace ragfs {
namespace {

// A file that changed so shortly before its bytes were read may have changed once more within the same tick of its
// timestamps: an equal version proves nothing then ("racy git").
constexpr int64_t kRacyNs = 2'000'000'000;

FileMeta meta_of(const EnvelopeInfo& info) {
  FileMeta meta;
  meta.size = info.size;
  meta.mode = info.mode;
  meta.mtime_ns = info.mtime_ns;
  meta.version = std::string(info.version);
  return meta;
}

}  // namespace

void CachedFileSystem::count_hit(PathView path, const Bytes& payload, bool single) {
  counters_.add(CacheCounter::file_hit);
  counters_.add(CacheCounter::bytes_from_cache, payload.size());
  note_hot(path, ObjectKind::file);
  if (ahead_) [[unlikely]]
    ahead_->seen_hit(path, payload, single);
}

void CachedFileSystem::count_miss(PathView path, bool single) {
  counters_.add(CacheCounter::file_miss);
  if (ahead_) [[unlikely]]
    ahead_->seen_miss(path, single);
  note_hot(path, ObjectKind::file);
}

std::optional<CacheHit> CachedFileSystem::find(const Context& ctx, const Target& target, ObjectKind kind) {
  std::optional<CacheHit> suspect;
  std::optional<CacheHit> hit = domain_->lookup(target.at, kind, ctx.deadline, &suspect);
  return admit(ctx, target, std::move(hit), std::move(suspect));
}

std::optional<CacheHit> CachedFileSystem::admit(const Context& ctx, const Target& target, std::optional<CacheHit> hit,
                                                std::optional<CacheHit> suspect) {
  if (moved()) return std::nullopt;
  if (!hit && suspect) {
    return rule_enabled(Rule::kRevalidate) ? revalidate(ctx, target, *std::move(suspect)) : suspect;
  }
  if (!hit || revalidate_ns_ == 0) return hit;
  if (domain_->age_ns(hit->envelope.info.filled_at_ns) < revalidate_ns_) return hit;
  return rule_enabled(Rule::kRevalidate) ? revalidate(ctx, target, *std::move(hit)) : hit;
}

bool CachedFileSystem::admits_unasked(const CoherenceDomain::Found& found) const {
  if (!found.hit) return !found.suspect;
  return revalidate_ns_ == 0 || domain_->age_ns(found.hit->envelope.info.filled_at_ns) < revalidate_ns_;
}

std::optional<Bytes> CachedFileSystem::find_payload(const Context& ctx, const Target& target) {
  if (std::optional<Bytes> payload = payload_at_once(target)) return payload;
  std::optional<CacheHit> hit = find(ctx, target, ObjectKind::file);
  if (!hit) return std::nullopt;
  return std::move(*hit).payload();
}

std::optional<Bytes> CachedFileSystem::payload_at_once(const Target& target) {
  int64_t filled_at_ns = 0;
  std::optional<Bytes> payload = domain_->payload_at_once(target.at, ObjectKind::file, filled_at_ns);
  if (payload && !serves_unasked(filled_at_ns)) payload.reset();
  return payload;
}

bool CachedFileSystem::serves_unasked(int64_t filled_at_ns) const {
  return !moved() && (revalidate_ns_ == 0 || domain_->age_ns(filled_at_ns) < revalidate_ns_);
}

// A re-stamping is a fill: its start is taken before the version is read.
std::optional<CacheHit> CachedFileSystem::revalidate(const Context& ctx, const Target& target, CacheHit hit) {
  const EnvelopeInfo& info = hit.envelope.info;
  if (info.kind != ObjectKind::file && !rule_enabled(Rule::kInheritedListings)) return hit;
  if (info.kind != ObjectKind::file || info.version.empty()) return std::nullopt;
  std::optional<CoherenceDomain::Fill> fill;
  const auto begin = [&] {
    if (std::optional<CoherenceDomain::Fill> begun = domain_->begin_fill()) fill.emplace(*std::move(begun));
  };
  if (rule_enabled(Rule::kRestampIsFill)) begin();
  if (moved()) return std::nullopt;
  ctx.via_symlink = false;
  const Result<std::string> version = backend_->version(ctx, target.path);
  RAGFS_PAUSE_POINT("revalidate.version_read");
  if (!rule_enabled(Rule::kRestampIsFill)) begin();
  const bool racy = info.filled_at_ns - info.mtime_ns < kRacyNs && rule_enabled(Rule::kRacyTimestamp);
  if (racy || ctx.via_symlink || !version || *version != info.version) {
    domain_->counters().add(CacheCounter::revalidate_failed);
    return std::nullopt;
  }
  domain_->counters().add(CacheCounter::revalidated);
  // A shared backend's objects are checked again by the next read, so there is nothing to remember.
  if (!fill || identity_->use.shared) return hit;
  domain_->store(target.at, ObjectKind::file, *fill, meta_of(info), hit.envelope.payload,
                 {.preferred = policy_.cache_policy(target.path, CacheOp::read, ctx).preferred}, ctx.deadline);
  return hit;
}

template <typename T>
Result<T> CachedFileSystem::coalesce(
    const Context& ctx, const Target& target, ObjectKind kind, InflightTable<T>& flights,
    const std::function<Result<T>(const CoherenceDomain::Fill*, const std::function<void(const Result<T>&)>&)>& read) {
  const auto nobody = [](const Result<T>&) {};
  // Before anything else: what this reader must not be older than.
  const Observation seen = domain_->observe_for(target.at, kind, 0);
  std::optional<CoherenceDomain::Fill> fill = domain_->begin_fill();
  if (moved()) fill.reset();
  // Of a shared backend a flight may be older than a mutation that this process knows nothing of.
  const bool joins = !ctx.bypass_cache && !identity_->use.shared && fill &&
                     !(seen.running() && rule_enabled(Rule::kNoJoinWhileRunning));
  if (joins) {
    auto entry = flights.enter(domain_->key(target.at, kind), seen.newest(), fill->start(), fill->epoch());
    if (entry.role == InflightTable<T>::Role::leader) {
      RAGFS_PAUSE_POINT("flight.leads");
      return read(&*fill, [&](const Result<T>& result) { entry.lead->publish(result); });
    }
    if (entry.role == InflightTable<T>::Role::follower) {
      fill.reset();  // nothing will be filled: older records need not wait for this reader
      Result<T> followed = flights.follow(*entry.flight, ctx.deadline);
      if (!moved()) return followed;
    }
  }
  Result<CoherenceDomain::DirectRead> place = domain_->enter_direct_read(ctx.deadline);
  if (!place) return std::unexpected(std::move(place.error()));
  return read(fill ? &*fill : nullptr, nobody);
}

// For read_ahead.cc as well.
template Result<FileContent> CachedFileSystem::coalesce<FileContent>(
    const Context&, const Target&, ObjectKind, InflightTable<FileContent>&,
    const std::function<Result<FileContent>(const CoherenceDomain::Fill*,
                                            const std::function<void(const Result<FileContent>&)>&)>&);
template Result<SharedListing> CachedFileSystem::coalesce<SharedListing>(
    const Context&, const Target&, ObjectKind, InflightTable<SharedListing>&,
    const std::function<Result<SharedListing>(const CoherenceDomain::Fill*,
                                              const std::function<void(const Result<SharedListing>&)>&)>&);

Result<FileContent> CachedFileSystem::lead_file(const Context& ctx, const Target& target,
                                                const CoherenceDomain::Fill* fill,
                                                const std::function<void(const Result<FileContent>&)>& publish) {
  RAGFS_PAUSE_POINT("fill.before_backend_read");
  ctx.via_symlink = false;
  Result<FileContent> content = [&] {
    const LatencyTimer timer(&backend_reads_);
    return backend_->read_file(ctx, target.path);
  }();
  RAGFS_PAUSE_POINT("fill.after_backend_read");
  if (content && !rule_enabled(Rule::kVersionBeforeBytes)) {
    content->meta.version = backend_->version(ctx, target.path).value_or("");
  }
  publish(content);
  if (fill == nullptr) return content;
  const CacheDecision policy = policy_.cache_policy(target.path, CacheOp::read, ctx);
  if (!content) {
    // Reached through a link, the path may come into being without a mutation of it.
    if (ctx.via_symlink) return content;
    const bool absent = content.error().code == ErrorCode::not_found || !rule_enabled(Rule::kNegativeTrueNotFound);
    if (absent && !identity_->use.shared && policy.negative_ttl_ms > 0) {
      domain_->remember_absent(target.at, *fill, policy.negative_ttl_ms);
    }
    return content;
  }
  counters_.add(CacheCounter::bytes_from_backend, content->data.size());
  if (policy.may_fill && content->meta.cacheable && content->data.size() <= policy.max_bytes) {
    domain_->store(target.at, ObjectKind::file, *fill, content->meta, content->data.view(),
                   {.preferred = policy.preferred}, ctx.deadline);
    if (filled_) filled_->add(domain_->key(target.at, ObjectKind::file).hash());
  }
  return content;
}

Result<FileContent> CachedFileSystem::read_through(const Context& ctx, const Target& target) {
  return coalesce<FileContent>(
      ctx, target, ObjectKind::file, domain_->file_flights(),
      [&](const CoherenceDomain::Fill* fill, const auto& publish) { return lead_file(ctx, target, fill, publish); });
}

// A path that is not cached: at most its absence is remembered. The absence of an uncached path ends as that of any
// other does, by records, epoch and time.
template <typename T>
Result<T> CachedFileSystem::read_past(const Context& ctx, PathView path, const std::function<Result<T>()>& read) {
  counters_.add(CacheCounter::bypass);
  const bool asks = policy_.has_negative_only() && enabled() && cacheable_identity_ && !moved();
  if (!asks || identity_->use.shared) return read();
  const CacheDecision policy = policy_.cache_policy(path, CacheOp::read, ctx);
  if (policy.negative_ttl_ms == 0) return read();
  const Target target(*this, path);
  if (policy.may_hit && domain_->known_absent(target.at) && !moved()) {
    counters_.add(CacheCounter::negative_hit);
    return fail(ErrorCode::not_found, std::string(path.text()));
  }
  const std::optional<CoherenceDomain::Fill> fill = domain_->begin_fill();
  ctx.via_symlink = false;
  Result<T> result = read();
  const bool absent = !result && result.error().code == ErrorCode::not_found;
  if (fill && absent && !ctx.via_symlink && !moved())
    domain_->remember_absent(target.at, *fill, policy.negative_ttl_ms);
  return result;
}

Result<Bytes> CachedFileSystem::read(const Context& ctx, PathView path, uint64_t offset, uint64_t size) {
  if (!serves(path)) return read_past<Bytes>(ctx, path, [&] { return backend_->read(ctx, path, offset, size); });
  const Target target(*this, path);
  if (ctx.bypass_cache) {
    counters_.add(CacheCounter::bypass);
  } else {
    std::optional<Bytes> payload = find_payload(ctx, target);
    if (payload && verify_one_in_ != 0) [[unlikely]] {
      if ((owes_sample_.exchange(false) || is_sampled()) && !verify_hit(ctx, path)) payload.reset();
    }
    if (payload) {
      if (offset != 0 || size != 0) payload = std::move(*payload).slice(offset, size == 0 ? SIZE_MAX : size);
      count_hit(path, *payload);
      return *std::move(payload);
    }
    if (domain_->known_absent(target.at) && !moved()) {
      counters_.add(CacheCounter::negative_hit);
      return fail(ErrorCode::not_found, std::string(path.text()));
    }
    count_miss(path);
  }
  if (offset != 0 || size != 0) return backend_->read(ctx, path, offset, size);
  Result<FileContent> content = read_through(ctx, target);
  if (!content) return std::unexpected(std::move(content.error()));
  return std::move(content->data);
}

std::optional<Bytes> CachedFileSystem::read_at_once(const Context& ctx, PathView path) {
  if (ctx.bypass_cache || !serves(path)) return std::nullopt;
  const Target target(*this, path);
  std::optional<Bytes> payload = payload_at_once(target);
  if (payload && verify_one_in_ != 0 && is_sampled()) [[unlikely]] {
    owes_sample_.store(true);  // the backend cannot be asked here: the caller reads in the other way
    return std::nullopt;
  }
  if (payload) count_hit(path, *payload);
  return payload;
}

Result<FileContent> CachedFileSystem::read_file(const Context& ctx, PathView path) {
  if (!serves(path)) return read_past<FileContent>(ctx, path, [&] { return backend_->read_file(ctx, path); });
  const Target target(*this, path);
  if (!ctx.bypass_cache) {
    if (std::optional<CacheHit> hit = find(ctx, target, ObjectKind::file)) {
      FileMeta meta = meta_of(hit->envelope.info);
      FileContent content{std::move(*hit).payload(), std::move(meta)};
      count_hit(path, content.data);
      return content;
    }
    count_miss(path);
  }
  return read_through(ctx, target);
}

Result<SharedListing> CachedFileSystem::lead_listing(const Context& ctx, const Target& target,
                                                     const CoherenceDomain::Fill* fill,
                                                     const std::function<void(const Result<SharedListing>&)>& publish) {
  RAGFS_PAUSE_POINT("fill.before_backend_list");
  ctx.via_symlink = false;
  Result<std::vector<FileInfo>> entries = [&] {
    const LatencyTimer timer(&backend_listings_);
    return backend_->read_dir(ctx, target.path);
  }();
  const bool through_link = ctx.via_symlink;
  RAGFS_PAUSE_POINT("fill.after_backend_list");
  if (!entries) {
    Result<SharedListing> failed = std::unexpected(std::move(entries.error()));
    publish(failed);
    return failed;
  }
  // RAGFS's own lock files never show, so taking and releasing a lock leaves cached listings right.
  std::erase_if(*entries, [](const FileInfo& entry) { return is_internal_lock_name(entry.name); });
  sort_entries(*entries);
  const bool aliased =
      through_link || std::ranges::any_of(*entries, [](const FileInfo& entry) { return entry.aliased; });
  Result<SharedListing> listing = std::make_shared<const std::vector<FileInfo>>(*std::move(entries));
  publish(listing);
  if (fill == nullptr || aliased) return listing;
  const CacheDecision policy = policy_.cache_policy(target.path, CacheOp::list, ctx);
  const std::string packed = pack_listing(**listing);
  if (policy.may_fill && packed.size() <= policy.max_bytes) {
    domain_->store(target.at, ObjectKind::listing, *fill, FileMeta{}, packed, {.preferred = policy.preferred},
                   ctx.deadline);
  }
  return listing;
}

Result<SharedListing> CachedFileSystem::list_through(const Context& ctx, const Target& target) {
  return coalesce<SharedListing>(
      ctx, target, ObjectKind::listing, domain_->listing_flights(),
      [&](const CoherenceDomain::Fill* fill, const auto& publish) { return lead_listing(ctx, target, fill, publish); });
}

Result<SharedListing> CachedFileSystem::list(const Context& ctx, PathView path) {
  const Target target(*this, path);
  if (ctx.bypass_cache) {
    counters_.add(CacheCounter::bypass);
    return list_through(ctx, target);
  }
  note_hot(path, ObjectKind::listing);
  if (std::optional<CacheHit> hit = find(ctx, target, ObjectKind::listing)) {
    if (const auto view = ListingView::parse(hit->envelope.payload, false)) {
      counters_.add(CacheCounter::directory_hit);
      if (ahead_) ahead_->seen_listing_hit(path);
      return std::make_shared<const std::vector<FileInfo>>(view->entries());
    }
  }
  counters_.add(CacheCounter::directory_miss);
  if (ahead_) ahead_->seen_listing_miss(path);
  return list_through(ctx, target);
}

Result<std::vector<FileInfo>> CachedFileSystem::read_dir(const Context& ctx, PathView path) {
  Result<std::vector<FileInfo>> entries = entries_of(ctx, path);
  if (ahead_ && entries && !ctx.bypass_cache) ahead_->seen_listing(path, *entries);
  return entries;
}

Result<std::vector<FileInfo>> CachedFileSystem::entries_of(const Context& ctx, PathView path) {
  if (!serves(path)) {
    counters_.add(CacheCounter::bypass);
    Result<std::vector<FileInfo>> entries = backend_->read_dir(ctx, path);
    if (entries) std::erase_if(*entries, [](const FileInfo& entry) { return is_internal_lock_name(entry.name); });
    return entries;
  }
  Result<SharedListing> listing = list(ctx, path);
  if (!listing) return std::unexpected(std::move(listing.error()));
  return **listing;
}

template <typename Find>
CachedFileSystem::Known CachedFileSystem::stat_from_cache(const Context& ctx, PathView path, const Find& find_object,
                                                          FileInfo& info) {
  if (path.is_root() || ctx.bypass_cache || !serves(path)) return Known::unknown;
  const Target target(*this, path);
  if (const std::optional<CacheHit> hit = find_object(target, ObjectKind::file)) {
    info = info_of_object(path, hit->envelope.info);
    return Known::present;
  }
  if (!serves(path.parent())) return Known::unknown;
  const Target parent(*this, path.parent());
  const bool judged = rule_enabled(Rule::kStatListingRecord);
  const std::optional<CacheHit> listing = judged
                                              ? find_object(parent, ObjectKind::listing)
                                              : domain_->lookup_unjudged(parent.at, ObjectKind::listing, ctx.deadline);
  return listing ? info_from_listing(path, *listing, info) : Known::unknown;
}

FileInfo CachedFileSystem::info_of_object(PathView path, const EnvelopeInfo& found) {
  return FileInfo{.name = std::string(path.name()),
                  .size = found.size,
                  .mode = found.mode,
                  .mtime_ns = found.mtime_ns,
                  .kind = FileKind::file};
}

CachedFileSystem::Known CachedFileSystem::info_from_listing(PathView path, const CacheHit& listing,
                                                            FileInfo& info) const {
  const std::optional<ListingView> view = ListingView::parse(listing.envelope.payload, false);
  if (!view) return Known::unknown;
  if (std::optional<FileInfo> entry = view->find(path.name())) {
    const bool plain = entry->kind != FileKind::other || !rule_enabled(Rule::kStatPlainEntries);
    if (!plain) return Known::unknown;
    info = *std::move(entry);
    return Known::present;
  }
  const bool proves = backend_->traits().listings_prove_absence && view->size() > 0;
  return proves ? Known::absent : Known::unknown;
}

CachedFileSystem::Known CachedFileSystem::stat_from_cache(const Context& ctx, PathView path, FileInfo& info) {
  const auto find_object = [&](const Target& target, ObjectKind kind) { return find(ctx, target, kind); };
  return stat_from_cache(ctx, path, find_object, info);
}

std::optional<FileInfo> CachedFileSystem::stat_at_once(const Context& ctx, PathView path) {
  const auto find_object = [&](const Target& target, ObjectKind kind) {
    std::optional<CacheHit> hit = domain_->lookup_at_once(target.at, kind);
    if (hit && !serves_unasked(hit->envelope.info.filled_at_ns)) hit.reset();
    return hit;
  };
  FileInfo info;
  if (stat_from_cache(ctx, path, find_object, info) != Known::present) return std::nullopt;
  counters_.add(CacheCounter::stat_hit);
  return info;
}

Result<FileInfo> CachedFileSystem::stat(const Context& ctx, PathView path) {
  FileInfo info;
  const Known known = stat_from_cache(ctx, path, info);
  if (known == Known::unknown) {
    counters_.add(CacheCounter::stat_miss);
    return backend_->stat(ctx, path);
  }
  counters_.add(CacheCounter::stat_hit);
  if (known == Known::absent) return fail(ErrorCode::not_found, std::string(path.text()));
  return info;
}

Result<bool> CachedFileSystem::exists(const Context& ctx, PathView path) {
  FileInfo info;
  const Known known = stat_from_cache(ctx, path, info);
  counters_.add(known == Known::unknown ? CacheCounter::stat_miss : CacheCounter::stat_hit);
  if (known == Known::unknown) return backend_->exists(ctx, path);
  return known == Known::present;
}

}  // namespace ragfs
