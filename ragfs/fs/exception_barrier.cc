#include "ragfs/fs/exception_barrier.h"

#include <fmt/format.h>

#include <exception>

#include "ragfs/base/clock.h"

namespace ragfs {
namespace {

template <typename Call>
auto caught(PathView path, const Call& call) -> decltype(call()) {
  try {
    return call();
  } catch (const std::exception& thrown) {
    return fail(ErrorCode::internal, fmt::format("{}: the backend threw: {}", path.text(), thrown.what()));
  } catch (...) {
    return fail(ErrorCode::internal, fmt::format("{}: the backend threw", path.text()));
  }
}

// The same for an answer a path.
template <typename Item, typename Call>
auto caught_all(std::span<const Item> items, const Call& call) -> decltype(call()) {
  using Answers = decltype(call());
  std::string why;
  try {
    return call();
  } catch (const std::exception& thrown) {
    why = fmt::format("the backend threw: {}", thrown.what());
  } catch (...) {
    why = "the backend threw";
  }
  return Answers(items.size(), typename Answers::value_type(fail(ErrorCode::internal, std::move(why))));
}

}  // namespace

template <typename Call>
auto ExceptionBarrier::guard(std::string_view operation, PathView path, const Call& call) -> decltype(call()) {
  if (slow_.threshold_ns == 0) return caught(path, call);
  const int64_t start_ns = Clock::system().monotonic_ns();
  auto result = caught(path, call);
  const int64_t took_ns = Clock::system().monotonic_ns() - start_ns;
  if (took_ns >= slow_.threshold_ns) slow_.told(operation, path, took_ns, result ? nullptr : &result.error());
  return result;
}

std::vector<Result<Bytes>> ExceptionBarrier::read_many(const Context& ctx, std::span<const PathView> paths) {
  return caught_all(paths, [&] { return inner_->read_many(ctx, paths); });
}

std::vector<Result<FileInfo>> ExceptionBarrier::stat_many(const Context& ctx, std::span<const PathView> paths) {
  return caught_all(paths, [&] { return inner_->stat_many(ctx, paths); });
}

std::vector<Result<std::vector<FileInfo>>> ExceptionBarrier::read_dir_many(const Context& ctx,
                                                                           std::span<const PathView> paths) {
  return caught_all(paths, [&] { return inner_->read_dir_many(ctx, paths); });
}

std::vector<Result<WriteResult>> ExceptionBarrier::write_many(const Context& ctx, std::span<const WriteItem> items) {
  return caught_all(items, [&] { return inner_->write_many(ctx, items); });
}

Result<void> ExceptionBarrier::create(const Context& ctx, PathView path) {
  return guard("create", path, [&] { return inner_->create(ctx, path); });
}

Result<void> ExceptionBarrier::mkdir(const Context& ctx, PathView path, uint32_t mode) {
  return guard("mkdir", path, [&] { return inner_->mkdir(ctx, path, mode); });
}

Result<void> ExceptionBarrier::ensure_parent_dirs(const Context& ctx, PathView path, uint32_t mode) {
  return guard("ensure_parent_dirs", path, [&] { return inner_->ensure_parent_dirs(ctx, path, mode); });
}

Result<void> ExceptionBarrier::remove(const Context& ctx, PathView path) {
  return guard("remove", path, [&] { return inner_->remove(ctx, path); });
}

Result<void> ExceptionBarrier::remove_all(const Context& ctx, PathView path) {
  return guard("remove_all", path, [&] { return inner_->remove_all(ctx, path); });
}

Result<Bytes> ExceptionBarrier::read(const Context& ctx, PathView path, uint64_t offset, uint64_t size) {
  return guard("read", path, [&] { return inner_->read(ctx, path, offset, size); });
}

Result<FileContent> ExceptionBarrier::read_file(const Context& ctx, PathView path) {
  return guard("read_file", path, [&] { return inner_->read_file(ctx, path); });
}

Result<WriteResult> ExceptionBarrier::write(const Context& ctx, PathView path, std::string_view data, uint64_t offset,
                                            WriteFlag flag) {
  return guard("write", path, [&] { return inner_->write(ctx, path, data, offset, flag); });
}

Result<bool> ExceptionBarrier::compare_and_write(const Context& ctx, PathView path, std::string_view expected,
                                                 std::string_view replacement) {
  return guard("compare_and_write", path, [&] { return inner_->compare_and_write(ctx, path, expected, replacement); });
}

Result<bool> ExceptionBarrier::compare_and_remove(const Context& ctx, PathView path, std::string_view expected) {
  return guard("compare_and_remove", path, [&] { return inner_->compare_and_remove(ctx, path, expected); });
}

Result<void> ExceptionBarrier::truncate(const Context& ctx, PathView path, uint64_t size) {
  return guard("truncate", path, [&] { return inner_->truncate(ctx, path, size); });
}

Result<void> ExceptionBarrier::touch(const Context& ctx, PathView path) {
  return guard("touch", path, [&] { return inner_->touch(ctx, path); });
}

Result<void> ExceptionBarrier::chmod(const Context& ctx, PathView path, uint32_t mode) {
  return guard("chmod", path, [&] { return inner_->chmod(ctx, path, mode); });
}

Result<std::vector<FileInfo>> ExceptionBarrier::read_dir(const Context& ctx, PathView path) {
  return guard("read_dir", path, [&] { return inner_->read_dir(ctx, path); });
}

Result<std::vector<FileInfo>> ExceptionBarrier::read_internal_dir(const Context& ctx, PathView path) {
  return guard("read_internal_dir", path, [&] { return inner_->read_internal_dir(ctx, path); });
}

Result<FileInfo> ExceptionBarrier::stat(const Context& ctx, PathView path) {
  return guard("stat", path, [&] { return inner_->stat(ctx, path); });
}

Result<bool> ExceptionBarrier::exists(const Context& ctx, PathView path) {
  return guard("exists", path, [&] { return inner_->exists(ctx, path); });
}

Result<std::string> ExceptionBarrier::version(const Context& ctx, PathView path) {
  return guard("version", path, [&] { return inner_->version(ctx, path); });
}

Result<Path> ExceptionBarrier::resolve(const Context& ctx, PathView path) {
  return guard("resolve", path, [&] { return inner_->resolve(ctx, path); });
}

Result<void> ExceptionBarrier::rename(const Context& ctx, PathView from, PathView to) {
  return guard("rename", from, [&] { return inner_->rename(ctx, from, to); });
}

Result<void> ExceptionBarrier::replace(const Context& ctx, PathView from, PathView to) {
  return guard("replace", from, [&] { return inner_->replace(ctx, from, to); });
}

Result<WriteResult> ExceptionBarrier::copy(const Context& ctx, PathView from, PathView to) {
  return guard("copy", from, [&] { return inner_->copy(ctx, from, to); });
}

Result<std::vector<TreeEntry>> ExceptionBarrier::tree(const Context& ctx, PathView path, const TreeOptions& options) {
  return guard("tree", path, [&] { return inner_->tree(ctx, path, options); });
}

Result<GlobPage> ExceptionBarrier::glob(const Context& ctx, PathView path, std::string_view pattern,
                                        const GlobOptions& options) {
  return guard("glob", path, [&] { return inner_->glob(ctx, path, pattern, options); });
}

Result<void> ExceptionBarrier::grep(const Context& ctx, PathView path, const GrepOptions& options,
                                    const GrepSink& sink) {
  return guard("grep", path, [&] { return inner_->grep(ctx, path, options, sink); });
}

}  // namespace ragfs
