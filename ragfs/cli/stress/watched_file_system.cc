#include "ragfs/cli/stress/watched_file_system.h"

#include <optional>
#include <utility>

namespace ragfs::stress {
namespace {

constexpr size_t kMostLateCalls = 256;
constexpr int64_t kNsPerMs = 1'000'000;

}  // namespace

WatchedFileSystem::WatchedFileSystem(std::shared_ptr<FileSystem> backend, Oracle& oracle, const BackendFaults& faults,
                                     uint64_t seed)
    : backend_(std::move(backend)), oracle_(oracle), faults_(faults), traits_(backend_->traits()), draws_(seed) {
  if (faults_.any_late()) traits_.late_apply_bound_ms = faults_.late_apply_bound_ms;
  lander_ = std::jthread([this] { land_late_calls(); });
}

WatchedFileSystem::~WatchedFileSystem() {
  {
    MutexLock lock(late_mutex_);
    stop_ = true;
    late_changed_.notify_all();
  }
  lander_.join();
}

uint32_t WatchedFileSystem::draw() {
  return static_cast<uint32_t>(Random(draws_.fetch_add(1, std::memory_order_relaxed)).below(1'000'000));
}

void WatchedFileSystem::wait_a_little() {
  if (!chance(faults_.slow)) return;
  const int64_t us = static_cast<int64_t>(draw()) % faults_.slow_most_us;
  Mutex mutex;
  CondVar never;
  const Deadline until = Deadline::in_ns(us * 1'000);
  MutexLock lock(mutex);
  while (never.wait_until(mutex, until)) {
  }
}

void WatchedFileSystem::observe(size_t index, uint64_t from, uint64_t to) {
  const Path& path = oracle_.path(index);
  const Result<FileInfo> info = backend_->stat(quiet_, path);
  const bool is_dir = info && info->is_dir();
  const Result<Bytes> content = !info    ? std::unexpected(info.error())
                                : is_dir ? fail(ErrorCode::is_a_directory, "")
                                         : backend_->read(quiet_, path, 0, 0);
  const Result<std::vector<FileInfo>> listing = !info     ? std::unexpected(info.error())
                                                : !is_dir ? fail(ErrorCode::not_a_directory, "")
                                                          : backend_->read_dir(quiet_, path);
  if (auto state = PathState::of_content(content)) oracle_.changed(index, Aspect::content, *std::move(state), from, to);
  if (auto state = PathState::of_entry(info)) oracle_.changed(index, Aspect::entry, *std::move(state), from, to);
  if (auto state = PathState::of_listing(listing, false)) {
    if (is_dir) state->text = std::to_string(listing->size()) + " entries";
    oracle_.changed(index, Aspect::listing, *std::move(state), from, to);
  }
}

void WatchedFileSystem::apply(const std::vector<Touched>& touched, const std::function<void()>& change) {
  MutexLock lock(oracle_.changes());
  const uint64_t from = oracle_.advance();
  change();
  const uint64_t to = oracle_.advance();
  for (const Touched& one : touched) {
    size_t index = oracle_.find(one.path.text());
    if (index == Oracle::kNotTracked) continue;
    const size_t end = one.subtree ? oracle_.subtree_end(index) : index + 1;
    for (size_t at = index; at < end; ++at) observe(at, from, to);
    while (index != 0) {
      index = oracle_.parent(index);
      observe(index, from, to);
    }
  }
}

void WatchedFileSystem::observe_all() {
  apply({{Path(), true}}, [] {});
}

WatchedFileSystem::Fate WatchedFileSystem::draw_fate() {
  const Fate forced = forced_.exchange(Fate::none);
  if (forced != Fate::none) return forced;
  if (chance(faults_.fail_before)) return Fate::fail_before;
  if (chance(faults_.time_out_lost)) return Fate::time_out_lost;
  if (chance(faults_.time_out_late)) return Fate::time_out_late;
  return chance(faults_.fail_after) ? Fate::fail_after : Fate::none;
}

template <typename T>
Result<T> WatchedFileSystem::mutate(const Context& ctx, std::vector<Touched> touched,
                                    const std::function<Result<T>(const Context&)>& change,
                                    const std::function<void()>& half) {
  wait_a_little();
  const Fate fate = draw_fate();
  if (fate == Fate::fail_before) return fail(ErrorCode::io, "injected: nothing was done");
  if (fate == Fate::time_out_lost) return fail(ErrorCode::timeout, "injected: lost");
  if (fate == Fate::time_out_late) {
    queue_late([this, ctx, touched = std::move(touched), change] { apply(touched, [&] { (void)change(ctx); }); });
    return fail(ErrorCode::timeout, "injected: lands later");
  }
  const bool fails = fate == Fate::fail_after;
  std::optional<Result<T>> result;
  apply(touched, [&] {
    if (fails && half) {
      half();
    } else {
      result = change(ctx);
    }
  });
  wait_a_little();
  if (fails) return fail(ErrorCode::io, "injected: something was done");
  return *std::move(result);
}

template <typename T>
Result<T> WatchedFileSystem::ask(const std::function<Result<T>()>& question) {
  wait_a_little();
  if (chance(faults_.read_error)) return fail(ErrorCode::io, "injected: unreadable");
  Result<T> answer = question();
  wait_a_little();
  return answer;
}

void WatchedFileSystem::queue_late(std::function<void()> apply) {
  const int64_t now_ns = Clock::system().monotonic_ns();
  const int64_t wait_ms = 1 + static_cast<int64_t>(draw()) % faults_.late_most_ms;
  MutexLock lock(late_mutex_);
  if (faults_.late_by_hand) {
    late_.push_back({INT64_MAX, INT64_MAX, std::move(apply)});
    return;
  }
  if (late_.size() >= kMostLateCalls || stop_) return;  // it is lost then
  late_.push_back({now_ns + wait_ms * kNsPerMs, now_ns + faults_.late_apply_bound_ms * kNsPerMs / 2, std::move(apply)});
  late_changed_.notify_all();
}

void WatchedFileSystem::land_late_calls() {
  while (true) {
    std::function<void()> due;
    {
      MutexLock lock(late_mutex_);
      landing_ = false;
      late_changed_.notify_all();
      if (stop_) return;
      const int64_t now_ns = Clock::system().monotonic_ns();
      std::erase_if(late_, [&](const LateCall& call) { return call.last_ns < now_ns; });
      int64_t next_ns = now_ns + 1'000 * kNsPerMs;
      for (auto call = late_.begin(); call != late_.end(); ++call) {
        if (call->due_ns <= now_ns) {
          due = std::move(call->apply);
          late_.erase(call);
          break;
        }
        next_ns = std::min(next_ns, call->due_ns);
      }
      landing_ = static_cast<bool>(due);
      if (!due) late_changed_.wait_until(late_mutex_, Deadline::at_ns(next_ns));
    }
    if (!due) continue;
    due();
    landed_.fetch_add(1);
  }
}

size_t WatchedFileSystem::land_now() {
  std::deque<LateCall> calls;
  {
    MutexLock lock(late_mutex_);
    calls.swap(late_);
  }
  for (const LateCall& call : calls) call.apply();
  return calls.size();
}

void WatchedFileSystem::stop_late_calls() {
  MutexLock lock(late_mutex_);
  late_.clear();
  while (landing_) late_changed_.wait_until(late_mutex_, Deadline::in_ms(100));
}

// --- mutations. Closures own their arguments: they may run after the call has returned. ---

Result<void> WatchedFileSystem::create(const Context& ctx, PathView path) {
  const Path at(path);
  return mutate<void>(ctx, {{at}}, [this, at](const Context& c) { return backend_->create(c, at); });
}

Result<void> WatchedFileSystem::mkdir(const Context& ctx, PathView path, uint32_t mode) {
  const Path at(path);
  return mutate<void>(ctx, {{at}}, [this, at, mode](const Context& c) { return backend_->mkdir(c, at, mode); });
}

Result<void> WatchedFileSystem::ensure_parent_dirs(const Context& ctx, PathView path, uint32_t mode) {
  const Path at(path);
  return mutate<void>(ctx, {{at}},
                      [this, at, mode](const Context& c) { return backend_->ensure_parent_dirs(c, at, mode); });
}

Result<void> WatchedFileSystem::remove(const Context& ctx, PathView path) {
  const Path at(path);
  return mutate<void>(ctx, {{at}}, [this, at](const Context& c) { return backend_->remove(c, at); });
}

Result<void> WatchedFileSystem::remove_all(const Context& ctx, PathView path) {
  const Path at(path);
  const auto half = [this, ctx, at] {
    const Result<std::vector<FileInfo>> entries = backend_->read_dir(ctx, at);
    if (!entries) return;
    // One child: the backend shows each removal by itself, and the oracle hears of one step.
    if (entries->empty()) return;
    if (const Result<Path> child = Path::join(at, entries->front().name)) (void)backend_->remove_all(ctx, *child);
  };
  return mutate<void>(ctx, {{at, true}}, [this, at](const Context& c) { return backend_->remove_all(c, at); }, half);
}

Result<WriteResult> WatchedFileSystem::write(const Context& ctx, PathView path, std::string_view data, uint64_t offset,
                                             WriteFlag flag) {
  const Path at(path);
  return mutate<WriteResult>(ctx, {{at}}, [this, at, bytes = std::string(data), offset, flag](const Context& c) {
    return backend_->write(c, at, bytes, offset, flag);
  });
}

Result<bool> WatchedFileSystem::compare_and_write(const Context& ctx, PathView path, std::string_view expected,
                                                  std::string_view replacement) {
  const Path at(path);
  return mutate<bool>(ctx, {{at}},
                      [this, at, old = std::string(expected), next = std::string(replacement)](const Context& c) {
                        return backend_->compare_and_write(c, at, old, next);
                      });
}

Result<bool> WatchedFileSystem::compare_and_remove(const Context& ctx, PathView path, std::string_view expected) {
  const Path at(path);
  return mutate<bool>(ctx, {{at}}, [this, at, old = std::string(expected)](const Context& c) {
    return backend_->compare_and_remove(c, at, old);
  });
}

Result<void> WatchedFileSystem::truncate(const Context& ctx, PathView path, uint64_t size) {
  const Path at(path);
  return mutate<void>(ctx, {{at}}, [this, at, size](const Context& c) { return backend_->truncate(c, at, size); });
}

Result<void> WatchedFileSystem::touch(const Context& ctx, PathView path) {
  const Path at(path);
  return mutate<void>(ctx, {{at}}, [this, at](const Context& c) { return backend_->touch(c, at); });
}

Result<void> WatchedFileSystem::chmod(const Context& ctx, PathView path, uint32_t mode) {
  const Path at(path);
  return mutate<void>(ctx, {{at}}, [this, at, mode](const Context& c) { return backend_->chmod(c, at, mode); });
}

Result<void> WatchedFileSystem::rename(const Context& ctx, PathView from, PathView to) {
  const Path source(from);
  const Path target(to);
  return mutate<void>(ctx, {{source, true}, {target, true}},
                      [this, source, target](const Context& c) { return backend_->rename(c, source, target); });
}

Result<void> WatchedFileSystem::replace(const Context& ctx, PathView from, PathView to) {
  const Path source(from);
  const Path target(to);
  return mutate<void>(ctx, {{source}, {target}},
                      [this, source, target](const Context& c) { return backend_->replace(c, source, target); });
}

Result<WriteResult> WatchedFileSystem::copy(const Context& ctx, PathView from, PathView to) {
  const Path source(from);
  const Path target(to);
  return mutate<WriteResult>(ctx, {{target}},
                             [this, source, target](const Context& c) { return backend_->copy(c, source, target); });
}

// --- reads ---

Result<Bytes> WatchedFileSystem::read(const Context& ctx, PathView path, uint64_t offset, uint64_t size) {
  return ask<Bytes>([&] { return backend_->read(ctx, path, offset, size); });
}

Result<FileContent> WatchedFileSystem::read_file(const Context& ctx, PathView path) {
  return ask<FileContent>([&] { return backend_->read_file(ctx, path); });
}

Result<std::vector<FileInfo>> WatchedFileSystem::read_dir(const Context& ctx, PathView path) {
  return ask<std::vector<FileInfo>>([&] { return backend_->read_dir(ctx, path); });
}

Result<std::vector<FileInfo>> WatchedFileSystem::read_internal_dir(const Context& ctx, PathView path) {
  return ask<std::vector<FileInfo>>([&] { return backend_->read_internal_dir(ctx, path); });
}

Result<FileInfo> WatchedFileSystem::stat(const Context& ctx, PathView path) {
  return ask<FileInfo>([&] { return backend_->stat(ctx, path); });
}

Result<bool> WatchedFileSystem::exists(const Context& ctx, PathView path) {
  return ask<bool>([&] { return backend_->exists(ctx, path); });
}

Result<Path> WatchedFileSystem::resolve(const Context& ctx, PathView path) {
  return ask<Path>([&] { return backend_->resolve(ctx, path); });
}

Result<std::string> WatchedFileSystem::version(const Context& ctx, PathView path) {
  return ask<std::string>([&] { return backend_->version(ctx, path); });
}

Result<std::vector<TreeEntry>> WatchedFileSystem::tree(const Context& ctx, PathView path, const TreeOptions& options) {
  return ask<std::vector<TreeEntry>>([&] { return backend_->tree(ctx, path, options); });
}

Result<GlobPage> WatchedFileSystem::glob(const Context& ctx, PathView path, std::string_view pattern,
                                         const GlobOptions& options) {
  return ask<GlobPage>([&] { return backend_->glob(ctx, path, pattern, options); });
}

Result<void> WatchedFileSystem::grep(const Context& ctx, PathView path, const GrepOptions& options,
                                     const GrepSink& sink) {
  return ask<void>([&] { return backend_->grep(ctx, path, options, sink); });
}

}  // namespace ragfs::stress
