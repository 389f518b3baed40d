// Many paths in one call: what is cached comes with one get_many, the rest from the backend side by side (ReadLane).
//
// The rules are those of the single calls, path by path; only how the provider and the backend are asked differs.
#include <deque>
#include <map>
#include <utility>

#include "ragfs/cache/cached_file_system.h"
#include "ragfs/cache/cached_target.h"
#include "ragfs/cache/read_ahead.h"

namespace ragfs {

// The paths of one call, what was found of them, and which are still to be asked for.
class CachedFileSystem::Batch {
 public:
  Batch(CachedFileSystem& fs, const Context& ctx) : fs_(fs), ctx_(ctx) {}

  // An object to be looked up; its number.
  size_t want(PathView path, ObjectKind kind) {
    const Target& target = targets_.emplace_back(fs_, path);
    wanted_.push_back({&target.at, kind});
    return wanted_.size() - 1;
  }
  void look_up() { found_ = fs_.domain_->lookup_many(wanted_, ctx_.deadline); }

  const Target& target(size_t number) const { return targets_[number]; }
  // Object `number`, if it is there and may be served without asking the backend.
  const CacheHit* ready(size_t number) const {
    const CoherenceDomain::Found& found = found_[number];
    return found.hit && fs_.admits_unasked(found) && !fs_.moved() ? &*found.hit : nullptr;
  }
  bool may_be_ready_after_asking(size_t number) const { return !fs_.admits_unasked(found_[number]); }
  // The same, asking. At most once for a number.
  std::optional<CacheHit> ask(const Context& ctx, size_t number) {
    CoherenceDomain::Found& found = found_[number];
    return fs_.admit(ctx, targets_[number], std::move(found.hit), std::move(found.suspect));
  }

  void leave_for_backend(size_t index) { left_.push_back(index); }
  // Calls `one(ctx, index)` for each that was left, with a context of its own.
  void ask_backend(const std::function<void(const Context&, size_t)>& one) {
    fs_.domain_->lane().for_each(left_.size(), [&](size_t i) { one(ctx_.for_piece(), left_[i]); });
  }

 private:
  CachedFileSystem& fs_;
  const Context& ctx_;
  std::deque<Target> targets_;  // stay where they are
  std::vector<CoherenceDomain::Wanted> wanted_;
  std::vector<CoherenceDomain::Found> found_;
  std::vector<size_t> left_;
};

namespace {
constexpr size_t kNotLookedUp = SIZE_MAX;
}

std::vector<Result<Bytes>> CachedFileSystem::read_many(const Context& ctx, std::span<const PathView> paths) {
  std::vector<Result<Bytes>> answers(paths.size());
  std::vector<size_t> numbers(paths.size(), kNotLookedUp);
  Batch batch(*this, ctx);
  for (size_t i = 0; i < paths.size(); ++i) {
    if (ctx.bypass_cache || !serves(paths[i])) {
      batch.leave_for_backend(i);
    } else if (std::optional<Bytes> payload = payload_at_once(Target(*this, paths[i]))) {
      answers[i] = *std::move(payload);
      count_hit(paths[i], *answers[i], false);
    } else {
      numbers[i] = batch.want(paths[i], ObjectKind::file);
    }
  }
  batch.look_up();
  for (size_t i = 0; i < paths.size(); ++i) {
    if (numbers[i] == kNotLookedUp) continue;
    if (const CacheHit* const hit = batch.ready(numbers[i])) {
      answers[i] = CacheHit(*hit).payload();
      count_hit(paths[i], *answers[i], false);
    } else if (domain_->known_absent(batch.target(numbers[i]).at) && !moved()) {
      counters_.add(CacheCounter::negative_hit);
      answers[i] = fail(ErrorCode::not_found, std::string(paths[i].text()));
    } else {
      batch.leave_for_backend(i);
    }
  }
  batch.ask_backend([&](const Context& own, size_t i) {
    if (numbers[i] == kNotLookedUp) {
      answers[i] = read(own, paths[i], 0, 0);  // not cached, or not to be taken from the cache
      return;
    }
    const size_t number = numbers[i];
    if (batch.may_be_ready_after_asking(number)) {
      if (std::optional<CacheHit> hit = batch.ask(own, number)) {
        answers[i] = std::move(*hit).payload();
        count_hit(paths[i], *answers[i], false);
        return;
      }
    }
    count_miss(paths[i], false);
    Result<FileContent> content = read_through(own, batch.target(number));
    if (content) {
      answers[i] = std::move(content->data);
    } else {
      answers[i] = std::unexpected(std::move(content.error()));
    }
  });
  return answers;
}

std::vector<Result<FileInfo>> CachedFileSystem::stat_many(const Context& ctx, std::span<const PathView> paths) {
  std::vector<Result<FileInfo>> answers(paths.size());
  std::vector<size_t> files(paths.size(), kNotLookedUp);
  std::vector<size_t> listings(paths.size(), kNotLookedUp);
  std::map<std::string_view, size_t> listing_of;  // each directory is looked up once
  Batch batch(*this, ctx);
  for (size_t i = 0; i < paths.size(); ++i) {
    const PathView path = paths[i];
    if (path.is_root() || ctx.bypass_cache || !serves(path)) {
      batch.leave_for_backend(i);
      continue;
    }
    if (std::optional<FileInfo> info = stat_at_once(ctx, path)) {
      answers[i] = *std::move(info);
      continue;
    }
    files[i] = batch.want(path, ObjectKind::file);
    const PathView parent = path.parent();
    if (!serves(parent)) continue;
    const auto [known, is_new] = listing_of.try_emplace(parent.text(), 0);
    if (is_new) known->second = batch.want(parent, ObjectKind::listing);
    listings[i] = known->second;
  }
  batch.look_up();
  const auto from_listing = [&](size_t i, Result<FileInfo>& answer) {
    const CacheHit* const listing = listings[i] == kNotLookedUp ? nullptr : batch.ready(listings[i]);
    FileInfo info;
    const Known known = listing == nullptr ? Known::unknown : info_from_listing(paths[i], *listing, info);
    if (known == Known::unknown) return false;
    if (known == Known::present) {
      answer = std::move(info);
    } else {
      answer = fail(ErrorCode::not_found, std::string(paths[i].text()));
    }
    return true;
  };
  for (size_t i = 0; i < paths.size(); ++i) {
    if (files[i] == kNotLookedUp) continue;
    const CacheHit* const file = batch.ready(files[i]);
    if (file != nullptr) answers[i] = info_of_object(paths[i], file->envelope.info);
    if (file == nullptr && (batch.may_be_ready_after_asking(files[i]) || !from_listing(i, answers[i]))) {
      batch.leave_for_backend(i);
    } else {
      counters_.add(CacheCounter::stat_hit);
    }
  }
  batch.ask_backend([&](const Context& own, size_t i) {
    if (files[i] != kNotLookedUp && batch.may_be_ready_after_asking(files[i])) {
      const std::optional<CacheHit> file = batch.ask(own, files[i]);
      if (file) answers[i] = info_of_object(paths[i], file->envelope.info);
      if (file || from_listing(i, answers[i])) {
        counters_.add(CacheCounter::stat_hit);
        return;
      }
    }
    counters_.add(CacheCounter::stat_miss);
    answers[i] = backend_->stat(own, paths[i]);
  });
  return answers;
}

std::vector<Result<std::vector<FileInfo>>> CachedFileSystem::read_dir_many(const Context& ctx,
                                                                           std::span<const PathView> paths) {
  std::vector<Result<std::vector<FileInfo>>> answers(paths.size());
  std::vector<size_t> numbers(paths.size(), kNotLookedUp);
  Batch batch(*this, ctx);
  const auto unpacked = [&](const CacheHit& hit, size_t i) {
    const auto view = ListingView::parse(hit.envelope.payload, false);
    if (!view) return false;
    counters_.add(CacheCounter::directory_hit);
    if (ahead_) ahead_->seen_listing_hit(paths[i]);
    answers[i] = view->entries();
    return true;
  };
  for (size_t i = 0; i < paths.size(); ++i) {
    if (ctx.bypass_cache || !serves(paths[i])) {
      batch.leave_for_backend(i);
      continue;
    }
    const std::optional<CacheHit> hit = domain_->lookup_at_once(Target(*this, paths[i]).at, ObjectKind::listing);
    const bool ready = hit && serves_unasked(hit->envelope.info.filled_at_ns) && unpacked(*hit, i);
    if (!ready) numbers[i] = batch.want(paths[i], ObjectKind::listing);
  }
  batch.look_up();
  for (size_t i = 0; i < paths.size(); ++i) {
    if (numbers[i] == kNotLookedUp) continue;
    const CacheHit* const hit = batch.ready(numbers[i]);
    if (hit == nullptr || !unpacked(*hit, i)) batch.leave_for_backend(i);
  }
  batch.ask_backend([&](const Context& own, size_t i) {
    if (numbers[i] == kNotLookedUp) {
      answers[i] = read_dir(own, paths[i]);
      return;
    }
    counters_.add(CacheCounter::directory_miss);
    if (ahead_) ahead_->seen_listing_miss(paths[i]);
    const Result<SharedListing> listing = list_through(own, batch.target(numbers[i]));
    if (listing) {
      answers[i] = **listing;
    } else {
      answers[i] = std::unexpected(listing.error());
    }
  });
  return answers;
}

}  // namespace ragfs
