#include "ragfs/cli/stress/oracle.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ragfs/base/hash.h"

namespace ragfs::stress {
namespace {

constexpr uint64_t kAbsent = 1;
constexpr uint64_t kIsDirectory = 2;
constexpr uint64_t kNotDirectory = 3;
constexpr size_t kListingTextBytes = 1500;
constexpr size_t kVersionsBeforePruning = 16;

// "Not there" has two names: a path below a file does not exist either.
std::optional<PathState> of_error(const Error& error) {
  switch (error.code) {
    case ErrorCode::not_found: return PathState::absent();
    case ErrorCode::is_a_directory: return PathState{kIsDirectory, true, "a directory"};
    case ErrorCode::not_a_directory: return PathState{kNotDirectory, true, "not a directory"};
    default: return std::nullopt;
  }
}

uint64_t digest_of(const FileInfo& info, uint64_t seed) {
  const std::array<uint64_t, 4> fields{info.size, info.mode, static_cast<uint64_t>(info.mtime_ns),
                                       static_cast<uint64_t>(info.kind)};
  return hash64({reinterpret_cast<const char*>(fields.data()), sizeof fields}, hash64(info.name, seed));
}

std::string text_of(const FileInfo& info) {
  return fmt::format("{} size={} mode={:o} mtime={}", info.is_dir() ? "directory" : "file", info.size, info.mode,
                     info.mtime_ns);
}

}  // namespace

PathState PathState::absent() { return {kAbsent, false, "not there"}; }

std::optional<PathState> PathState::of_content(const Result<Bytes>& content) {
  if (!content) return of_error(content.error());
  return PathState{hash64(content->view(), 7), true, std::string(content->view().substr(0, Oracle::kTextBytes))};
}

std::optional<PathState> PathState::of_entry(const Result<FileInfo>& entry) {
  if (!entry) return of_error(entry.error());
  FileInfo nameless = *entry;
  nameless.name.clear();
  return PathState{digest_of(nameless, 8), true, text_of(*entry)};
}

std::optional<PathState> PathState::of_listing(const Result<std::vector<FileInfo>>& entries, bool with_text) {
  if (!entries) return of_error(entries.error());
  // Listings are in no order: the sum of the entries' digests does not depend on one.
  PathState state{9, true, {}};
  for (const FileInfo& info : *entries) state.digest += digest_of(info, 9);
  if (!with_text) return state;
  std::vector<FileInfo> sorted = *entries;
  sort_entries(sorted);
  for (const FileInfo& info : sorted) {
    state.text += fmt::format("\n        {} {}", info.name, text_of(info));
    if (state.text.size() > kListingTextBytes) {
      state.text += "\n        ...";
      break;
    }
  }
  return state;
}

std::string Violation::text() const {
  constexpr std::array<std::string_view, kAspectCount> kNames{"bytes", "entry", "listing"};
  std::string text = fmt::format("{}: {} of {} by {} in [{}, {}] saw: {}\n  the backend held:", kind,
                                 kNames[static_cast<size_t>(aspect)], path, operation, start, end, seen);
  constexpr size_t kShown = 12;
  const size_t first = versions.size() > kShown ? versions.size() - kShown : 0;
  for (size_t i = first; i < versions.size(); ++i) {
    const Version& version = versions[i];
    const std::string to = version.to == UINT64_MAX ? "now" : std::to_string(version.to);
    text += fmt::format("\n    [{}, {}] {}", version.from, to, version.state.text);
  }
  return text;
}

size_t Oracle::add(PathView path) {
  const auto known = index_.find(std::string(path.text()));
  if (known != index_.end()) return known->second;
  const size_t parent_index = path.is_root() ? 0 : add(path.parent());
  const size_t index = entities_.size();
  auto entity = std::make_unique<Entity>();
  entity->path = Path(path);
  entity->parent = parent_index;
  entity->end = index + 1;
  entities_.push_back(std::move(entity));
  index_.emplace(std::string(path.text()), index);
  for (size_t at = index; at != 0;) {
    at = entities_[at]->parent;
    entities_[at]->end = index + 1;
  }
  return index;
}

size_t Oracle::find(std::string_view path) const {
  const auto found = index_.find(std::string(path));
  return found == index_.end() ? kNotTracked : found->second;
}

uint64_t Oracle::oldest_running_start() const {
  uint64_t oldest = now();
  for (const std::atomic<uint64_t>& start : starts_) {
    const uint64_t at = start.load(std::memory_order_seq_cst);
    if (at != 0) oldest = std::min(oldest, at);
  }
  return oldest;
}

void Oracle::changed(size_t index, Aspect aspect, PathState state, uint64_t from, uint64_t to) {
  Entity& entity = *entities_[index];
  MutexLock lock(entity.mutex);
  std::deque<Version>& history = entity.history[static_cast<size_t>(aspect)];
  if (!history.empty()) {
    if (history.back().state.digest == state.digest) return;
    history.back().to = to;
  }
  history.push_back({from, UINT64_MAX, std::move(state)});
  if (history.size() <= kVersionsBeforePruning) return;
  const uint64_t oldest = oldest_running_start();
  while (history.size() > kVersionsBeforePruning / 2 && history.front().to <= oldest) history.pop_front();
}

uint64_t Oracle::begin_read(size_t reader) {
  // Announced before it is taken: what is pruned meanwhile ended before this value too.
  starts_[reader].store(now(), std::memory_order_seq_cst);
  return now();
}

void Oracle::end_read(size_t reader) { starts_[reader].store(0, std::memory_order_seq_cst); }

template <typename Match>
bool Oracle::held(size_t index, Aspect aspect, const Match& match, uint64_t start, uint64_t end) const {
  const Entity& entity = *entities_[index];
  MutexLock lock(entity.mutex);
  return std::ranges::any_of(entity.history[static_cast<size_t>(aspect)], [&](const Version& version) {
    return version.from <= end && version.to > start && match(version.state);
  });
}

template <typename Match>
std::optional<Violation> Oracle::judge_by(size_t index, Aspect aspect, const Match& match, std::string_view seen,
                                          uint64_t start, uint64_t end) const {
  if (held(index, aspect, match, start, end)) return std::nullopt;
  MutexLock no_change_is_half_told(changes_);
  if (held(index, aspect, match, start, end)) return std::nullopt;
  const Entity& entity = *entities_[index];
  MutexLock lock(entity.mutex);
  const std::deque<Version>& history = entity.history[static_cast<size_t>(aspect)];
  bool before = false;
  bool after = false;
  for (const Version& version : history) {
    if (!match(version.state)) continue;
    before = before || version.to <= start;
    after = after || version.from > end;
  }
  Violation violation;
  violation.path = entity.path.text();
  violation.aspect = aspect;
  violation.start = start;
  violation.end = end;
  violation.seen = seen;
  violation.kind = before ? "stale" : after ? "from the future" : "never there, or long ago";
  violation.versions.assign(history.begin(), history.end());
  return violation;
}

std::optional<Violation> Oracle::judge(size_t index, Aspect aspect, const PathState& seen, uint64_t start,
                                       uint64_t end) const {
  return judge_by(
      index, aspect, [&](const PathState& state) { return state.digest == seen.digest; }, seen.text, start, end);
}

std::optional<Violation> Oracle::judge_presence(size_t index, bool present, uint64_t start, uint64_t end) const {
  return judge_by(
      index, Aspect::entry, [&](const PathState& state) { return state.present == present; },
      present ? "there" : "not there", start, end);
}

std::optional<Violation> Oracle::judge_range(size_t index, std::string_view range, size_t offset, size_t size,
                                             uint64_t start, uint64_t end) const {
  const auto holds = [&](const PathState& state) {
    if (!state.present || state.digest == kIsDirectory || state.digest == kNotDirectory) return false;
    const std::string_view text = state.text;
    return range == (offset < text.size() ? text.substr(offset, size) : std::string_view{});
  };
  return judge_by(index, Aspect::content, holds, range, start, end);
}

bool Oracle::was_no_directory(size_t index, uint64_t start, uint64_t end) const {
  const auto no_directory = [](const PathState& state) {
    return state.digest == kAbsent || state.digest == kNotDirectory;
  };
  if (held(index, Aspect::listing, no_directory, start, end)) return true;
  MutexLock no_change_is_half_told(changes_);
  return held(index, Aspect::listing, no_directory, start, end);
}

}  // namespace ragfs::stress
