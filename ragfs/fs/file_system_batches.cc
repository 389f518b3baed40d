// What the calls for many paths do where a file system has no better way: one after the other.
#include <algorithm>

#include "ragfs/fs/file_system.h"

namespace ragfs {

std::vector<Result<Bytes>> FileSystem::read_many(const Context& ctx, std::span<const PathView> paths) {
  std::vector<Result<Bytes>> answers;
  answers.reserve(paths.size());
  for (const PathView path : paths) answers.push_back(read(ctx, path, 0, 0));
  return answers;
}

std::vector<Result<FileInfo>> FileSystem::stat_many(const Context& ctx, std::span<const PathView> paths) {
  std::vector<Result<FileInfo>> answers;
  answers.reserve(paths.size());
  for (const PathView path : paths) answers.push_back(stat(ctx, path));
  return answers;
}

std::vector<Result<std::vector<FileInfo>>> FileSystem::read_dir_many(const Context& ctx,
                                                                     std::span<const PathView> paths) {
  std::vector<Result<std::vector<FileInfo>>> answers;
  answers.reserve(paths.size());
  for (const PathView path : paths) answers.push_back(read_dir(ctx, path));
  return answers;
}

std::vector<Result<bool>> FileSystem::exists_many(const Context& ctx, std::span<const PathView> paths) {
  std::vector<Result<bool>> answers;
  answers.reserve(paths.size());
  for (Result<FileInfo>& info : stat_many(ctx, paths)) {
    // As in exists(): below a file there is nothing.
    const bool absent =
        !info && (info.error().code == ErrorCode::not_found || info.error().code == ErrorCode::not_a_directory);
    if (info || absent) {
      answers.emplace_back(info.has_value());
    } else {
      answers.push_back(std::unexpected(std::move(info.error())));
    }
  }
  return answers;
}

std::vector<Result<WriteResult>> FileSystem::write_many(const Context& ctx, std::span<const WriteItem> items) {
  if (auto distinct = check_distinct(items); !distinct) {
    return {items.size(), Result<WriteResult>(std::unexpected(distinct.error()))};
  }
  std::vector<Result<WriteResult>> answers;
  answers.reserve(items.size());
  for (const WriteItem& item : items) answers.push_back(write(ctx, item.path, item.data, 0, WriteFlag::create));
  return answers;
}

Result<void> check_distinct(std::span<const WriteItem> items) {
  std::vector<PathView> paths;
  paths.reserve(items.size());
  for (const WriteItem& item : items) paths.push_back(item.path);
  std::ranges::sort(paths);
  const auto twice = std::ranges::adjacent_find(paths);
  if (twice == paths.end()) return {};
  return fail(ErrorCode::invalid_operation, std::string(twice->text()) + " is to be written twice");
}

}  // namespace ragfs
