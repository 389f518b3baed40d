#include "python/lock_files.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "ragfs/base/clock.h"
#include "ragfs/fs/stats_file_system.h"

namespace ragfs::python {
namespace {

constexpr int64_t kNsPerMs = 1'000'000;
// How long the original may have made a lock file and not written it yet.
constexpr int64_t kEmptyIsYoung_ms = 2'000;

Context lock_context() {
  Context ctx;
  ctx.bypass_cache = true;
  ctx.disable_auto_pathlock = true;
  return ctx;
}

std::string parent_of(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == 0 ? "/" : std::string(path.substr(0, slash));
}

std::string joined(const std::string& dir, std::string_view name) {
  return dir == "/" ? fmt::format("/{}", name) : fmt::format("{}/{}", dir, name);
}

// A path of the tree with the file system that holds it. Lock files are no operations of the user, so they pass the
// statistics by.
struct Holder {
  Mount mount;
  Path path;
  FileSystem& fs() const { return static_cast<StatsFileSystem&>(*mount.file_system).inner(); }
  PathView within() const { return path.view().relative_to(mount.path); }
};

Result<Holder> holder_of(const MountTable& table, std::string_view text) {
  auto path = Path::parse(text);
  if (!path) return std::unexpected(std::move(path.error()));
  auto mount = table.mount_of(*path);
  if (!mount) return std::unexpected(std::move(mount.error()));
  return Holder{std::move(*mount), std::move(*path)};
}

bool is_absent(const Error& error) {
  return error.code == ErrorCode::not_found || error.code == ErrorCode::mount_point_not_found ||
         error.code == ErrorCode::not_a_directory;
}

}  // namespace

std::string lock_token_text(const LockToken& token) {
  return fmt::format("{}:{}:{}", token.owner, token.time_ns, token.tree ? 'T' : 'E');
}

Result<LockToken> parse_lock_token(std::string_view text) {
  const auto wrong = [&](std::string_view why) {
    return fail(ErrorCode::internal, fmt::format("invalid lock token: {}: {}", why, text));
  };
  const size_t kind = text.rfind(':');
  if (kind == std::string_view::npos) return wrong("missing ':' in token");
  const size_t time = text.substr(0, kind).rfind(':');
  if (time == std::string_view::npos) return wrong("missing ':' in token");
  const std::string_view letter = text.substr(kind + 1);
  if (letter != "E" && letter != "T") return wrong("unknown kind");
  LockToken token;
  token.owner = text.substr(0, time);
  token.tree = letter == "T";
  const std::string_view digits = text.substr(time + 1, kind - time - 1);
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), token.time_ns);
  if (parsed.ec != std::errc() || parsed.ptr != digits.data() + digits.size()) return wrong("no time");
  return token;
}

LockFiles::Place LockFiles::place_of(const LockRequest& request) const {
  if (!request.lock_path.empty()) return {request.path, request.lock_path, request.tree};
  // An exact lock of a directory lies beside it: inside, it would keep the directory from being empty.
  bool inside = false;
  if (request.tree) {
    const auto holder = holder_of(*table_, request.path);
    const auto info = holder ? holder->fs().stat(lock_context(), holder->within()) : fail(ErrorCode::not_found, {});
    inside = (info && info->is_dir()) || request.path == "/";
  }
  return {request.path, inside ? directory_lock_path(request.path) : sidecar_lock_path(request.path), request.tree};
}

Result<std::optional<LockConflict>> LockFiles::look_at(const std::string& file, const std::string& owner,
                                                       bool trees_only) {
  const auto holder = holder_of(*table_, file);
  if (!holder) return std::optional<LockConflict>();
  const Context ctx = lock_context();
  // Nobody holds what is not there; what could not be looked at may be held.
  const auto unheld = [](const Error& error) -> Result<std::optional<LockConflict>> {
    if (is_absent(error)) return std::optional<LockConflict>();
    return fail(ErrorCode::internal, "lock I/O error: " + error.text());
  };
  const auto changed_at = [&]() -> Result<int64_t> {
    const auto info = holder->fs().stat(ctx, holder->within());
    if (!info) return std::unexpected(info.error());
    return info->mtime_ns;
  };
  const auto content = holder->fs().read(ctx, holder->within(), 0, 0);
  if (!content) return unheld(content.error());
  const std::string text(content->view());
  const int64_t now_ns = Clock::system().wall_ns();
  LockConflict conflict{file, "", true};
  int64_t too_old_ns = now_ns - expire_ms_ * kNsPerMs;
  int64_t time_ns = 0;
  if (text.empty()) {
    const auto changed_ns = changed_at();
    if (!changed_ns) return unheld(changed_ns.error());
    time_ns = *changed_ns;
    too_old_ns = now_ns - kEmptyIsYoung_ms * kNsPerMs;
  } else {
    const auto token = parse_lock_token(text);
    if (token && (token->owner == owner || (trees_only && !token->tree))) return std::optional<LockConflict>();
    if (token) {
      conflict.owner = token->owner;
      conflict.tree = token->tree;
      time_ns = token->time_ns;
    }
    // What is no token, or comes from a clock ahead of ours, is as old as its file: a living holder renews that too.
    if (!token || time_ns > now_ns) {
      const auto changed_ns = changed_at();
      if (!changed_ns) return unheld(changed_ns.error());
      time_ns = *changed_ns;
    }
    if (!token && time_ns >= too_old_ns) return std::unexpected(token.error());
  }
  if (time_ns >= too_old_ns) return std::optional(std::move(conflict));
  const auto removed = holder->fs().compare_and_remove(ctx, holder->within(), text);
  // Somebody has changed it meanwhile: it lives.
  if (!removed || !*removed) return std::optional(std::move(conflict));
  const MutexLock lock(mutex_);
  ++stale_removed_;
  return std::optional<LockConflict>();
}

Result<std::optional<LockConflict>> LockFiles::look_below(const std::string& dir, const std::string& owner) {
  std::vector<std::string> dirs{dir};
  while (!dirs.empty()) {
    const std::string at = std::move(dirs.back());
    dirs.pop_back();
    const auto holder = holder_of(*table_, at);
    if (!holder) continue;
    const auto entries = holder->fs().read_internal_dir(lock_context(), holder->within());
    if (!entries) {
      if (is_absent(entries.error())) continue;
      return fail(ErrorCode::internal, "lock I/O error: " + entries.error().text());
    }
    for (const FileInfo& entry : *entries) {
      if (entry.is_dir()) {
        dirs.push_back(joined(at, entry.name));
      } else if (is_lock_file_name(entry.name)) {
        auto found = look_at(joined(at, entry.name), owner, false);
        if (!found || *found) return found;
      }
    }
  }
  return std::optional<LockConflict>();
}

Result<std::optional<LockConflict>> LockFiles::look(const Place& place, const std::string& owner) {
  const std::string& path = place.request_path;
  for (const std::string& own : {directory_lock_path(path), sidecar_lock_path(path)}) {
    auto found = look_at(own, owner, false);
    if (!found || *found) return found;
  }
  for (std::string above = path; above != "/";) {
    above = parent_of(above);
    auto found = look_at(directory_lock_path(above), owner, true);
    if (!found || *found) return found;
  }
  if (place.tree) return look_below(path, owner);
  return std::optional<LockConflict>();
}

std::optional<LockToken> LockFiles::join(const Place& place, const std::string& owner) {
  const MutexLock lock(mutex_);
  const auto at = held_.find(place.file);
  if (at == held_.end() || at->second.token.owner != owner) return std::nullopt;
  ++at->second.count;
  return at->second.token;
}

Result<std::optional<LockConflict>> LockFiles::create(const Place& place, const std::string& owner) {
  const Context ctx = lock_context();
  const auto holder = holder_of(*table_, place.file);
  if (!holder) return std::unexpected(holder.error());
  LockToken token{owner, Clock::system().wall_ns(), place.tree};
  if (const auto before = join(place, owner)) {
    if (!place.tree || before->tree) return std::optional<LockConflict>();
    const auto widened =
        holder->fs().compare_and_write(ctx, holder->within(), lock_token_text(*before), lock_token_text(token));
    if (widened && *widened) {
      const MutexLock lock(mutex_);
      held_[place.file].token = token;  // what is held is what the file says: else nobody could remove it
      return std::optional<LockConflict>();
    }
    drop(place.file, owner);
    if (!widened) return fail(ErrorCode::internal, "lock I/O error: " + widened.error().text());
    return std::optional(LockConflict{place.file, owner, false});  // refresh() was writing it: look again
  }
  const auto write = [&] {
    return holder->fs().write(ctx, holder->within(), lock_token_text(token), 0, WriteFlag::create_new);
  };
  auto written = write();
  if (!written && written.error().code == ErrorCode::not_found) {
    auto made = table_->ensure_parent_dirs(ctx, holder->path, kDefaultDirMode);
    if (!made) return fail(made.error().code, "lock I/O error: " + made.error().message);
    written = write();
  }
  if (written) {
    const MutexLock lock(mutex_);
    held_[place.file] = {token, 1, {}, ::getpid()};
    return std::optional<LockConflict>();
  }
  if (written.error().code == ErrorCode::already_exists) return std::optional(LockConflict{place.file, "", place.tree});
  return fail(ErrorCode::internal, "lock I/O error: " + written.error().text());
}

Result<std::optional<LockConflict>> LockFiles::take(const std::vector<LockRequest>& requests,
                                                    const std::string& owner) {
  std::vector<Place> places;
  for (const LockRequest& request : requests) places.push_back(place_of(request));
  for (const Place& place : places) {
    auto found = look(place, owner);
    if (!found || *found) return found;
  }
  size_t made = 0;
  Result<std::optional<LockConflict>> found;
  for (; made < places.size(); ++made) {
    found = create(places[made], owner);
    if (!found || *found) break;
  }
  for (size_t i = 0; made == places.size() && i < places.size(); ++i) {
    found = look(places[i], owner);
    if (!found || *found) break;
  }
  if (found && !*found) return found;
  for (size_t i = 0; i < made; ++i) drop(places[i].file, owner);
  return found;
}

void LockFiles::drop(const std::string& file, const std::string& owner) {
  Held held;
  {
    const MutexLock lock(mutex_);
    const auto at = held_.find(file);
    if (at == held_.end() || at->second.token.owner != owner || --at->second.count > 0) return;
    held = std::move(at->second);
    held_.erase(at);
  }
  if (held.pid != ::getpid()) return;
  const auto holder = holder_of(*table_, held.now_at.empty() ? file : held.now_at);
  if (!holder) return;
  // What cannot be removed now expires.
  (void)holder->fs().compare_and_remove(lock_context(), holder->within(), lock_token_text(held.token));
}

void LockFiles::give_back(const std::vector<LockRequest>& requests, const std::string& owner) {
  for (const LockRequest& request : requests) {
    if (!request.lock_path.empty()) {
      drop(request.lock_path, owner);
      continue;
    }
    // Which of the two it was is not looked up again: the directory may be gone.
    drop(directory_lock_path(request.path), owner);
    drop(sidecar_lock_path(request.path), owner);
  }
}

void LockFiles::moved(PathView from, PathView to) {
  const MutexLock lock(mutex_);
  for (auto& [file, held] : held_) {
    const std::string& now = held.now_at.empty() ? file : held.now_at;
    if (!now.starts_with(from.text()) || now.size() <= from.text().size() || now[from.text().size()] != '/') continue;
    held.now_at = fmt::format("{}{}", to.text(), now.substr(from.text().size()));
  }
}

bool LockFiles::holds_all_of(PathView dir) {
  const std::string text(dir.text());
  const auto holder = holder_of(*table_, text);
  if (!holder) return false;
  const auto entries = holder->fs().read_internal_dir(lock_context(), holder->within());
  if (!entries) return false;
  const MutexLock lock(mutex_);
  return std::ranges::all_of(
      *entries, [&](const FileInfo& entry) RAGFS_REQUIRES(mutex_) { return held_.contains(joined(text, entry.name)); });
}

Result<bool> LockFiles::is_locked(const std::string& path) {
  auto found = look({path, {}, false}, {});
  if (!found) return std::unexpected(std::move(found.error()));
  return found->has_value();
}

void LockFiles::refresh() {
  std::vector<std::pair<std::string, LockToken>> all;
  {
    const MutexLock lock(mutex_);
    for (const auto& [file, held] : held_) {
      if (held.pid == ::getpid()) all.emplace_back(held.now_at.empty() ? file : held.now_at, held.token);
    }
  }
  const Context ctx = lock_context();
  for (const auto& [file, token] : all) {
    const auto holder = holder_of(*table_, file);
    if (!holder) continue;
    LockToken renewed = token;
    renewed.time_ns = Clock::system().wall_ns();
    const std::string text = lock_token_text(renewed);
    const auto done = holder->fs().compare_and_write(ctx, holder->within(), lock_token_text(token), text);
    if (!done || !*done) continue;
    bool given_back = true;
    {
      const MutexLock lock(mutex_);
      for (auto& [name, held] : held_) {
        const std::string& now = held.now_at.empty() ? name : held.now_at;
        if (now != file || held.token.owner != token.owner) continue;
        held.token.time_ns = renewed.time_ns;
        given_back = false;
      }
    }
    // It was given back while it was written again.
    if (given_back) (void)holder->fs().compare_and_remove(ctx, holder->within(), text);
  }
}

uint64_t LockFiles::stale_removed() const {
  const MutexLock lock(mutex_);
  return stale_removed_;
}

}  // namespace ragfs::python
