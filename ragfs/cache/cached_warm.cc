// What nobody waits for: reading single objects for the cache, the hottest keys, and warming with them.
#include <algorithm>
#include <atomic>
#include <deque>
#include <utility>

#include "ragfs/base/pause_point.h"
#include "ragfs/cache/cached_file_system.h"
#include "ragfs/cache/cached_target.h"
#include "ragfs/cache/read_ahead.h"

namespace ragfs {
namespace {

constexpr size_t kMostHotKeys = 4096;  // that one call warms with
constexpr size_t kAtOnce = 256;        // that one look-up asks for

}  // namespace

void CachedFileSystem::note_reads(PathView path, ObjectKind kind, uint64_t reads) {
  identity_->hot.note(Target(*this, path).identity_path(), kind, reads);
}

std::optional<PathView> CachedFileSystem::in_mount(const std::string& identity_path) const {
  const PathView path = PathView::from_normal(identity_path);
  if (prefix_.empty()) return path;
  const PathView prefix = PathView::from_normal(prefix_);
  return path.is_within(prefix) ? std::optional(path.relative_to(prefix)) : std::nullopt;
}

std::vector<HotKey> CachedFileSystem::hot_keys(PathView path, size_t most) const {
  std::vector<HotKey> keys = identity_->hot.top(Target(*this, path).identity_path(), most);
  for (HotKey& key : keys) {
    if (const std::optional<PathView> at = in_mount(key.path)) key.path = std::string(at->text());
  }
  return keys;
}

// A reader's miss without a reader.
Result<CachedFileSystem::Filled> CachedFileSystem::fill(const Context& ctx, const Target& target, ObjectKind kind) {
  Filled filled;
  if (kind == ObjectKind::file) {
    const auto lead = [&](const CoherenceDomain::Fill* fill, const auto& publish) {
      filled.led = fill != nullptr;
      return lead_file(ctx, target, fill, publish);
    };
    const Result<FileContent> content = coalesce<FileContent>(ctx, target, kind, domain_->file_flights(), lead);
    if (!content) return std::unexpected(content.error());
    filled.bytes = content->data.size();
    return filled;
  }
  const auto lead = [&](const CoherenceDomain::Fill* fill, const auto& publish) {
    filled.led = fill != nullptr;
    return lead_listing(ctx, target, fill, publish);
  };
  const Result<SharedListing> listing = coalesce<SharedListing>(ctx, target, kind, domain_->listing_flights(), lead);
  if (!listing) return std::unexpected(listing.error());
  filled.bytes = pack_listing(**listing).size();
  return filled;
}

Result<void> CachedFileSystem::warm(const Context& ctx, PathView path, WarmReport& report) {
  const std::vector<HotKey> keys = hot_keys(path, kMostHotKeys);
  for (size_t from = 0; from < keys.size(); from += kAtOnce) {
    if (ctx.deadline.expired()) return fail(ErrorCode::timeout, "warming the cache");
    std::deque<Target> targets;  // stay where they are
    std::vector<CoherenceDomain::Wanted> wanted;
    for (size_t i = from; i < std::min(keys.size(), from + kAtOnce); ++i) {
      const PathView at = PathView::from_normal(keys[i].path);
      if (serves(at)) wanted.push_back({&targets.emplace_back(*this, at).at, keys[i].kind});
    }
    const auto found = domain_->lookup_many(wanted, ctx.deadline, CoherenceDomain::NearCopies::yes);
    std::vector<size_t> absent;
    for (size_t i = 0; i < wanted.size(); ++i) {
      if (!found[i].hit && !found[i].suspect) absent.push_back(i);
    }
    std::atomic<uint64_t> read{0};
    std::atomic<uint64_t> bytes{0};
    std::atomic<uint64_t> gone{0};
    domain_->lane().for_each(absent.size(), [&](size_t i) {
      const Result<Filled> filled = fill(ctx.for_piece(), targets[absent[i]], wanted[absent[i]].kind);
      if (filled) {
        ++read;
        bytes += filled->bytes;
      } else if (filled.error().code == ErrorCode::not_found) {
        ++gone;
      }
    });
    report.keys += wanted.size();
    report.cached += wanted.size() - absent.size();
    report.read += read.load();
    report.bytes += bytes.load();
    report.gone += gone.load();
    report.failed += absent.size() - read.load() - gone.load();
  }
  return {};
}

void CachedFileSystem::warm_in_background() {
  if (ahead_) ahead_->warm(identity_->hot.top(PathView(), kMostHotKeys));
}

}  // namespace ragfs
