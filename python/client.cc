// Start and end of a client, its mounts, and how a caller's path finds its mount.
#include "python/client.h"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "python/lock_names.h"
#include "python/plugins.h"
#include "ragfs/cache/cached_file_system.h"
#include "ragfs/fs/names.h"
#include "ragfs/fs/stats_file_system.h"
#include "ragfs/fs/utf8.h"

namespace ragfs::python {
namespace {

constexpr const char* kGuardFile = "/backend_meta.json";
constexpr int64_t kCloseTimeout_ms = 2'000;

std::atomic<uint64_t>& fork_generation() {
  static std::atomic<uint64_t> generation{0};
  [[maybe_unused]] static const int registered =
      pthread_atfork(nullptr, nullptr, [] { fork_generation().fetch_add(1); });
  return generation;
}

int64_t expire_ms(const Options& options) { return static_cast<int64_t>(options.lock_expire_secs * 1000); }

bool is_blank(char32_t code) {
  return (code >= 0x09 && code <= 0x0d) || code == 0x20 || code == 0x85 || code == 0xa0 || code == 0x1680 ||
         (code >= 0x2000 && code <= 0x200a) || code == 0x2028 || code == 0x2029 || code == 0x202f || code == 0x205f ||
         code == 0x3000;
}

// Without Unicode blanks at both ends, as Rust's trim().
std::string_view trimmed(std::string_view text) {
  while (!text.empty()) {
    std::string_view rest = text;
    if (!is_blank(take_code_point(rest))) break;
    text = rest;
  }
  size_t end = 0;
  for (std::string_view rest = text; !rest.empty();) {
    const bool blank = is_blank(take_code_point(rest));
    if (!blank) end = text.size() - rest.size();
  }
  return text.substr(0, end);
}

bool has_dot_dot(std::string_view text) {
  for (size_t at = 0; at <= text.size();) {
    const size_t slash = std::min(text.find('/', at), text.size());
    if (text.substr(at, slash - at) == "..") return true;
    at = slash + 1;
  }
  return false;
}

std::string real_directory(const std::string& dir) {
  std::error_code error;
  const auto real = std::filesystem::canonical(dir, error);
  return error ? dir : real.string();
}

bool nested(const std::string& a, const std::string& b) {
  const auto below = [](const std::string& outer, const std::string& inner) {
    return inner.size() > outer.size() && inner.starts_with(outer) && (outer == "/" || inner[outer.size()] == '/');
  };
  return below(a, b) || below(b, a);
}

}  // namespace

Client::Client(Options options)
    : options_(std::move(options)),
      table_(std::make_shared<MountTable>()),
      lock_files_(options_.locks_shared ? std::make_unique<LockFiles>(table_, expire_ms(options_)) : nullptr),
      locks_(std::make_unique<LockBook>(expire_ms(options_), lock_files_.get())),
      generation_(fork_generation().load()) {}

Client::~Client() {
  if (fork_generation().load() == generation_) {
    close();
    return;
  }
  // The threads that these wait for are in the parent alone; the child leaves them as they are.
  (void)cache_.release();
  (void)locks_.release();
  (void)lock_files_.release();
  (void)std::make_unique<std::shared_ptr<MountTable>>(std::move(table_)).release();
  const MutexLock lock(mutex_);
  (void)std::make_unique<std::vector<Wrapped>>(std::move(wrapped_)).release();
}

Answer<std::unique_ptr<Client>> Client::open(Options options) {
  const auto not_built = [](const std::string& text) {
    return raise("RuntimeError",
                 "Failed to build RAGFS stack: configuration error: cache provider init failed: " + text);
  };
  std::unique_ptr<Client> client(new Client(std::move(options)));
  const Options& chosen = client->options_;
  if (!chosen.cache_on || chosen.config.cache.provider == "disabled") return client;
  if (chosen.config.cache.provider == "dynamic") {
    return not_built("provider libraries are not loaded by this build; name the provider embedded or redis");
  }
  std::vector<std::string> warnings;
  Config config = chosen.config;
  // Who shares lock files shares the tree: others write it, so each file is compared with the backend when it is read.
  config.cache.shared = config.cache.shared || chosen.locks_shared;
  auto cache = CacheLayer::open(config, {}, warnings);
  if (!cache) return not_built(cache.error().text());
  client->cache_ = std::move(*cache);
  client->cached_reads_ = true;
  return client;
}

void Client::close() {
  if (closed_.exchange(true)) return;
  cached_reads_ = false;
  if (cache_ == nullptr || fork_generation().load() != generation_) return;
  cache_->set_on(false);
  (void)cache_->close(Deadline::in_ms(kCloseTimeout_ms));
}

void Client::notice_fork() {
  if (cache_ == nullptr || fork_generation().load(std::memory_order_relaxed) == generation_) return;
  if (cached_reads_.exchange(false)) cache_->set_on(false);
}

Answer<void> Client::refuse(std::string_view text, Call call) const {
  const Mount* holder = nullptr;
  const std::vector<Mount> mounts = table_->mounts();
  for (const Mount& mount : mounts) {
    const std::string& path = mount.path.text();
    const bool within =
        path == "/" || (text.starts_with(path) && (text.size() == path.size() || text[path.size()] == '/'));
    if (within && (holder == nullptr || path.size() > holder->path.text().size())) holder = &mount;
  }
  if (holder == nullptr) {
    return raise("AGFSMountPointNotFoundError", fmt::format("mount point not found: {}", text));
  }
  const size_t cut = holder->path.text() == "/" ? 0 : holder->path.text().size();
  const char* what = call == Call::write      ? "open file"
                     : call == Call::make     ? "create file"
                     : call == Call::make_dir ? "create directory"
                     : call == Call::copy     ? "copy file"
                     : call == Call::rename   ? "rename"
                                              : nullptr;
  if (what == nullptr) return raise("AGFSNotFoundError", fmt::format("not found: {}", text.substr(cut)));
  const bool has_nul = text.find('\0') != std::string_view::npos;
  return raise("AGFSPluginError", fmt::format("plugin error: failed to {}: {}", what,
                                              has_nul ? "file name contained an unexpected NUL byte"
                                                      : "File name too long (os error 36)"));
}

Answer<void> Client::locate(std::string_view raw, Call call, Place& place) const {
  const bool writes = call != Call::read && call != Call::list && call != Call::stat && call != Call::other;
  const bool plain = PathView::is_normal(raw) && static_cast<unsigned char>(raw.back()) > 0x20 &&
                     static_cast<unsigned char>(raw.back()) < 0x80;
  if (plain) {
    place.path = PathView::from_normal(raw);
  } else {
    std::string text(trimmed(raw));
    if (has_dot_dot(text)) return raise("AGFSInvalidPathError", fmt::format("invalid path: {}", text));
    if (!text.starts_with('/')) text.insert(0, "/");
    if (text.size() > 1 && text.ends_with('/')) text.pop_back();
    auto parsed = Path::parse(text);
    if (!parsed) return refuse(text, call);
    place.owned = parsed->text();
    place.path = PathView::from_normal(place.owned);
    if (text.starts_with("//")) {
      auto root = table_->mount_of(PathView());
      if (!root) return raise("AGFSMountPointNotFoundError", fmt::format("mount point not found: {}", text));
      return raise("AGFSInvalidPathError", fmt::format("invalid path: {}", text));
    }
    auto mount = table_->mount_of(place.path);
    if (!mount) return raise("AGFSMountPointNotFoundError", fmt::format("mount point not found: {}", text));
    if (mount) {
      const std::string& at = mount->path.text();
      if (at != "/" && text.starts_with(at) && text.substr(at.size()).starts_with("//")) {
        return raise("AGFSInvalidPathError", fmt::format("invalid path: {}", text.substr(at.size())));
      }
    }
  }
  auto mount = table_->mount_of(place.path);
  if (!mount) return std::unexpected(raised(mount.error(), "", Call::other));
  place.mount = std::move(*mount);
  if (writes && is_lock_file_name(place.path.name())) return refuse_lock_file(place.within());
  return {};
}

Answer<void> Client::refuse_lock_file(PathView within) {
  return raise("AGFSInvalidOperationError",
               fmt::format("invalid operation: lock files are kept by RAGFS itself: {}", within.text()));
}

Answer<std::shared_ptr<FileSystem>> Client::wrap(const std::string& type, const Path& path,
                                                 const nlohmann::json& parameters,
                                                 std::shared_ptr<FileSystem> backend) {
  if (cache_ == nullptr || backend->traits().control) return backend;
  MountConfig config;
  config.path = path.text();
  config.type = type;
  const std::string root =
      type == "localfs" ? real_directory(parameters["local_dir"].get<std::string>()) : std::string();
  // Two mounts of directories that lie in each other would cache one file under two identities: neither is cached.
  bool cached = true;
  {
    const MutexLock lock(mutex_);
    for (const Wrapped& other : wrapped_) {
      if (root.empty() || other.root.empty() || !nested(root, other.root)) continue;
      cached = false;
      static_cast<CachedFileSystem&>(*other.file_system).set_enabled(false);
    }
  }
  config.cache = cached;
  std::vector<std::string> warnings;  // why it is not cached: what is refused then says so itself
  auto wrapped = cache_->wrap({&config, std::move(backend), IdentityPlace()}, path, cached, warnings);
  if (!wrapped) return std::unexpected(raised(wrapped.error(), type, Call::other));
  // It may have been mounted before, and its files changed since by another name.
  if (auto done = cached ? cache_->invalidate(path) : Result<void>{}; !done) {
    cache_->unwrap(wrapped->get());
    return std::unexpected(raised(done.error(), type, Call::other));
  }
  const MutexLock lock(mutex_);
  wrapped_.push_back({path, root, *wrapped});
  return std::move(*wrapped);
}

void Client::forget(const FileSystem* file_system) {
  if (cache_ == nullptr) return;
  std::shared_ptr<FileSystem> last;  // let go after the lock
  {
    const MutexLock lock(mutex_);
    const auto at =
        std::ranges::find_if(wrapped_, [&](const Wrapped& one) { return one.file_system.get() == file_system; });
    if (at == wrapped_.end()) return;
    last = std::move(at->file_system);
    wrapped_.erase(at);
  }
  cache_->unwrap(last.get());
}

Answer<void> Client::mount(const std::string& type, const std::string& path, const nlohmann::json& parameters) {
  const std::string_view text = trimmed(path);
  if (has_dot_dot(text)) return raise("AGFSInvalidPathError", fmt::format("invalid path: {}", text));
  const auto at = Path::parse(text);
  if (!at) return std::unexpected(raised(at.error(), type, Call::other));
  for (const Mount& other : table_->mounts()) {
    if (other.path == *at) {
      return raise("AGFSMountPointExistsError", fmt::format("mount point already exists: {}", at->text()));
    }
  }
  auto backend = open_plugin(type, parameters);
  if (!backend) return std::unexpected(raised(backend.error(), type, Call::other));
  if (!(*backend)->traits().control) {
    // What the original leaves at the root of each backend, to tell plain ones from encrypted ones.
    const auto guard = Path::parse(kGuardFile);
    auto made = (*backend)->create(Context(), *guard);
    if (!made && made.error().code != ErrorCode::already_exists) {
      return std::unexpected(raised(made.error(), type, Call::write));
    }
  }
  auto wrapped = wrap(type, *at, parameters, std::move(*backend));
  if (!wrapped) return std::unexpected(std::move(wrapped.error()));
  const FileSystem* const inner = wrapped->get();
  auto mounted = table_->mount(*at, std::make_shared<StatsFileSystem>(std::move(*wrapped)));
  if (mounted) return {};
  forget(inner);
  return std::unexpected(raised(mounted.error(), type, Call::other));
}

Answer<void> Client::unmount(const std::string& path) {
  const auto at = Path::parse(trimmed(path));
  if (!at) return std::unexpected(raised(at.error(), "", Call::other));
  auto removed = table_->unmount(*at);
  if (!removed) return std::unexpected(raised(removed.error(), "", Call::other));
  forget(&static_cast<StatsFileSystem&>(**removed).inner());
  return {};
}

std::vector<std::pair<std::string, std::string>> Client::mounts() const {
  std::vector<std::pair<std::string, std::string>> out;
  for (const Mount& mount : table_->mounts()) {
    out.emplace_back(mount.path.text(), mount.file_system->traits().type);
  }
  return out;
}

Answer<void> Client::make_lock_dir(const std::string& path, const Place& place, bool is_dir) {
  if (place.mount.file_system == nullptr || place.mount.file_system->traits().control) return {};
  if (place.path == place.mount.path) return {};
  // For a directory its own name is a parent of the lock file.
  const auto inner = Path::parse(is_dir ? directory_lock_path(path) : path);
  if (!inner) return {};
  auto made = table_->ensure_parent_dirs(Context(), *inner, kDefaultDirMode);
  if (made || made.error().code != ErrorCode::not_a_directory) return {};
  const std::string dir = path.substr(0, path.rfind('/'));
  return raise("AGFSInternalError",
               fmt::format("lock I/O error: failed to create lock dir: lock I/O error: failed to create lock dir '{}': "
                           "already exists: {}",
                           dir, place.within().parent().text()));
}

Answer<LockRequest> Client::lock_request(std::string_view path, bool tree, bool for_taking) {
  std::string text(trimmed(path));
  while (text.size() > 1 && text.ends_with('/')) text.pop_back();
  if (!text.starts_with('/')) return raise("ValueError", "pathlock request.path must be an absolute path");
  Place place;
  if (auto located = locate(text, Call::other, place);
      !located && located.error().type != "AGFSMountPointNotFoundError") {
    return std::unexpected(located.error());
  }
  bool is_dir = tree;
  if (place.mount.file_system != nullptr) {
    const auto info = place.mount.file_system->stat(Context(), place.within());
    is_dir = info ? info->is_dir() : tree;
  }
  const std::string own(place.path.text());
  if (for_taking) {
    if (auto made = make_lock_dir(own, place, is_dir); !made) return std::unexpected(std::move(made.error()));
  }
  if (is_dir) return LockRequest{own, tree, directory_lock_path(own)};
  // The original joins the root and the name with one slash more.
  const bool at_root = own.rfind('/') == 0 && !options_.locks_shared;
  return LockRequest{own, tree, (at_root ? "/" : "") + sidecar_lock_path(own)};
}

Answer<std::vector<MountStats>> Client::stats(const std::optional<std::string>& path) const {
  std::vector<Mount> wanted;
  if (path) {
    Place place;
    if (auto located = locate(*path, Call::other, place); !located) return std::unexpected(located.error());
    wanted.push_back(std::move(place.mount));
  } else {
    wanted = table_->mounts();
  }
  std::vector<MountStats> out;
  for (const Mount& mount : wanted) {
    const auto& counted = static_cast<const StatsFileSystem&>(*mount.file_system);
    out.push_back({mount.path.text(), mount.file_system->traits().type, counted.stats().snapshot()});
  }
  return out;
}

CacheReport Client::cache_report() const { return cache_ == nullptr ? CacheReport() : cache_->report(); }

Answer<void> Client::invalidate(std::string_view path) {
  Place place;
  if (auto located = locate(path, Call::other, place); !located) return located;
  if (cache_ == nullptr) return {};
  auto done = cache_->invalidate(place.path);
  if (!done) return std::unexpected(raised(done.error(), place.plugin(), Call::other));
  return {};
}

}  // namespace ragfs::python
