#include "ragfs/fs/stats_file_system.h"

#include <utility>

#include "ragfs/base/clock.h"

namespace ragfs {
namespace {

int64_t now_ns() { return Clock::system().monotonic_ns(); }

// The timing of one call. What Context::sampled_start_ns says on entry:
//   0         nobody outside samples this call: this layer decides, and sets its start if it does;
//   positive  the start of the call, read by a layer outside;
//   negative  the end (negated) of an earlier inner call that the outer one made, as a copy does.
// An inner layer leaves its end behind, negated, and the outer one takes it for its own: two clock reads for both.
// Operations that are all timed wait for locks on the way in, so each layer reads its own start and end.
class Timing {
 public:
  Timing(const Context& ctx, Operation operation, bool wanted) : ctx_(ctx), shared_(is_sampled(operation)) {
    if (!shared_) {
      start_ns_ = now_ns();
      return;
    }
    const int64_t given_ns = ctx.sampled_start_ns;
    is_inner_ = given_ns != 0;
    if (given_ns > 0) {
      start_ns_ = given_ns;
    } else if (is_inner_ || wanted) {
      start_ns_ = now_ns();
      ctx.sampled_start_ns = start_ns_;
    }
  }

  void record(OperationStats& stats, Operation operation) const {
    if (start_ns_ == 0) return;
    const bool inner_ended = shared_ && !is_inner_ && ctx_.sampled_start_ns < 0;
    const int64_t end_ns = inner_ended ? -ctx_.sampled_start_ns : now_ns();
    stats.took(operation, end_ns - start_ns_);
    if (shared_) ctx_.sampled_start_ns = is_inner_ ? -end_ns : 0;
  }

 private:
  const Context& ctx_;
  const bool shared_;
  bool is_inner_ = false;
  int64_t start_ns_ = 0;  // 0 = not timed
};

}  // namespace

StatsFileSystem::StatsFileSystem(std::shared_ptr<FileSystem> inner) : inner_(std::move(inner)) {}

template <typename Call>
auto StatsFileSystem::measure(const Context& ctx, Operation operation, const Call& call) {
  const Timing timing(ctx, operation, stats_.begin(operation));
  auto result = call();
  timing.record(stats_, operation);
  if (!result) stats_.failed(operation, result.error().code);
  return result;
}

template <typename T>
std::vector<Result<T>> StatsFileSystem::count_all(Operation operation, std::vector<Result<T>> answers) {
  stats_.add(operation, answers.size());
  for (const Result<T>& answer : answers) {
    if (!answer) stats_.failed(operation, answer.error().code);
  }
  return answers;
}

std::vector<Result<Bytes>> StatsFileSystem::read_many(const Context& ctx, std::span<const PathView> paths) {
  return count_all(Operation::read, inner_->read_many(ctx, paths));
}

std::vector<Result<FileInfo>> StatsFileSystem::stat_many(const Context& ctx, std::span<const PathView> paths) {
  return count_all(Operation::stat, inner_->stat_many(ctx, paths));
}

std::vector<Result<std::vector<FileInfo>>> StatsFileSystem::read_dir_many(const Context& ctx,
                                                                          std::span<const PathView> paths) {
  return count_all(Operation::read_dir, inner_->read_dir_many(ctx, paths));
}

std::vector<Result<WriteResult>> StatsFileSystem::write_many(const Context& ctx, std::span<const WriteItem> items) {
  return count_all(Operation::write, inner_->write_many(ctx, items));
}

Result<void> StatsFileSystem::create(const Context& ctx, PathView path) {
  return measure(ctx, Operation::create, [&] { return inner_->create(ctx, path); });
}

Result<void> StatsFileSystem::mkdir(const Context& ctx, PathView path, uint32_t mode) {
  return measure(ctx, Operation::mkdir, [&] { return inner_->mkdir(ctx, path, mode); });
}

Result<void> StatsFileSystem::ensure_parent_dirs(const Context& ctx, PathView path, uint32_t mode) {
  return measure(ctx, Operation::ensure_parent_dirs, [&] { return inner_->ensure_parent_dirs(ctx, path, mode); });
}

Result<void> StatsFileSystem::remove(const Context& ctx, PathView path) {
  return measure(ctx, Operation::remove, [&] { return inner_->remove(ctx, path); });
}

Result<void> StatsFileSystem::remove_all(const Context& ctx, PathView path) {
  return measure(ctx, Operation::remove_all, [&] { return inner_->remove_all(ctx, path); });
}

Result<Bytes> StatsFileSystem::read(const Context& ctx, PathView path, uint64_t offset, uint64_t size) {
  return measure(ctx, Operation::read, [&] { return inner_->read(ctx, path, offset, size); });
}

// What is answered at once is counted and never timed: a latency of its own kind would spoil the others' figures.
std::optional<FileInfo> StatsFileSystem::stat_at_once(const Context& ctx, PathView path) {
  std::optional<FileInfo> info = inner_->stat_at_once(ctx, path);
  if (info) stats_.begin(Operation::stat);
  return info;
}

std::optional<Bytes> StatsFileSystem::read_at_once(const Context& ctx, PathView path) {
  std::optional<Bytes> whole = inner_->read_at_once(ctx, path);
  if (whole) stats_.begin(Operation::read);
  return whole;
}

Result<FileContent> StatsFileSystem::read_file(const Context& ctx, PathView path) {
  return measure(ctx, Operation::read, [&] { return inner_->read_file(ctx, path); });
}

Result<WriteResult> StatsFileSystem::write(const Context& ctx, PathView path, std::string_view data, uint64_t offset,
                                           WriteFlag flag) {
  return measure(ctx, Operation::write, [&] { return inner_->write(ctx, path, data, offset, flag); });
}

Result<bool> StatsFileSystem::compare_and_write(const Context& ctx, PathView path, std::string_view expected,
                                                std::string_view replacement) {
  return measure(ctx, Operation::compare_and_write,
                 [&] { return inner_->compare_and_write(ctx, path, expected, replacement); });
}

Result<bool> StatsFileSystem::compare_and_remove(const Context& ctx, PathView path, std::string_view expected) {
  return measure(ctx, Operation::compare_and_remove, [&] { return inner_->compare_and_remove(ctx, path, expected); });
}

Result<void> StatsFileSystem::truncate(const Context& ctx, PathView path, uint64_t size) {
  return measure(ctx, Operation::truncate, [&] { return inner_->truncate(ctx, path, size); });
}

Result<void> StatsFileSystem::touch(const Context& ctx, PathView path) {
  return measure(ctx, Operation::touch, [&] { return inner_->touch(ctx, path); });
}

Result<void> StatsFileSystem::chmod(const Context& ctx, PathView path, uint32_t mode) {
  return measure(ctx, Operation::chmod, [&] { return inner_->chmod(ctx, path, mode); });
}

Result<std::vector<FileInfo>> StatsFileSystem::read_dir(const Context& ctx, PathView path) {
  return measure(ctx, Operation::read_dir, [&] { return inner_->read_dir(ctx, path); });
}

Result<std::vector<FileInfo>> StatsFileSystem::read_internal_dir(const Context& ctx, PathView path) {
  return measure(ctx, Operation::read_internal_dir, [&] { return inner_->read_internal_dir(ctx, path); });
}

Result<FileInfo> StatsFileSystem::stat(const Context& ctx, PathView path) {
  return measure(ctx, Operation::stat, [&] { return inner_->stat(ctx, path); });
}

Result<bool> StatsFileSystem::exists(const Context& ctx, PathView path) {
  return measure(ctx, Operation::exists, [&] { return inner_->exists(ctx, path); });
}

Result<std::string> StatsFileSystem::version(const Context& ctx, PathView path) {
  return measure(ctx, Operation::version, [&] { return inner_->version(ctx, path); });
}

Result<Path> StatsFileSystem::resolve(const Context& ctx, PathView path) {
  return measure(ctx, Operation::resolve, [&] { return inner_->resolve(ctx, path); });
}

Result<void> StatsFileSystem::rename(const Context& ctx, PathView from, PathView to) {
  return measure(ctx, Operation::rename, [&] { return inner_->rename(ctx, from, to); });
}

Result<void> StatsFileSystem::replace(const Context& ctx, PathView from, PathView to) {
  return measure(ctx, Operation::replace, [&] { return inner_->replace(ctx, from, to); });
}

Result<WriteResult> StatsFileSystem::copy(const Context& ctx, PathView from, PathView to) {
  return measure(ctx, Operation::copy, [&] { return inner_->copy(ctx, from, to); });
}

Result<std::vector<TreeEntry>> StatsFileSystem::tree(const Context& ctx, PathView path, const TreeOptions& options) {
  return measure(ctx, Operation::tree, [&] { return inner_->tree(ctx, path, options); });
}

Result<GlobPage> StatsFileSystem::glob(const Context& ctx, PathView path, std::string_view pattern,
                                       const GlobOptions& options) {
  return measure(ctx, Operation::glob, [&] { return inner_->glob(ctx, path, pattern, options); });
}

Result<void> StatsFileSystem::grep(const Context& ctx, PathView path, const GrepOptions& options,
                                   const GrepSink& sink) {
  return measure(ctx, Operation::grep, [&] { return inner_->grep(ctx, path, options, sink); });
}

}  // namespace ragfs
