// TestingFileSystem: a small file system in memory for the unit tests of this folder and of those above it.
//
// Follows the rules of FileSystem plainly; a test may look at the calls it got and make any of them fail or wait.
// Not for: users (backends/mem is for them), or speed: one mutex guards everything.
// Thread-safety: all methods may be called from any thread. Hooks run without the mutex.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ragfs/base/sync.h"
#include "ragfs/fs/file_system.h"

namespace ragfs {

class TestingFileSystem : public FileSystem {
 public:
  // Hears every call before it runs: its name and path. An error becomes the call's result.
  using Hook = std::function<std::optional<Error>(std::string_view operation, PathView path)>;

  explicit TestingFileSystem(std::string identity = "testing") {
    traits_.type = "testingfs";
    traits_.identity = std::move(identity);
    nodes_["/"] = {true, {}, 0};
  }

  void set_hook(Hook hook) {
    const MutexLock lock(mutex_);
    hook_ = std::move(hook);
  }
  std::vector<std::string> calls() const {
    const MutexLock lock(mutex_);
    return calls_;
  }
  void forget_calls() {
    const MutexLock lock(mutex_);
    calls_.clear();
  }
  // Makes a file and its parents, unseen by hooks.
  void put(std::string_view path, std::string_view data) {
    const MutexLock lock(mutex_);
    const Path normal = *Path::parse(path);
    for (PathView dir = normal.view().parent(); !dir.is_root(); dir = dir.parent()) nodes_[text(dir)].is_dir = true;
    nodes_[normal.text()] = {false, std::string(data), ++time_};
  }

  const FileSystemTraits& traits() const override { return traits_; }

  Result<void> create(const Context& ctx, PathView path) override {
    if (auto error = enter("create", path)) return std::unexpected(*error);
    const Result<WriteResult> made = put_file(path, "", 0, WriteFlag::create_new);
    static_cast<void>(ctx);
    return made ? Result<void>{} : std::unexpected(made.error());
  }
  Result<void> mkdir(const Context&, PathView path, uint32_t) override {
    if (auto error = enter("mkdir", path)) return std::unexpected(*error);
    const MutexLock lock(mutex_);
    if (nodes_.contains(path.text())) return fail(ErrorCode::already_exists, text(path));
    if (auto error = parent_fault(path)) return std::unexpected(*error);
    nodes_[text(path)] = {true, {}, ++time_};
    return {};
  }
  Result<void> remove(const Context&, PathView path) override {
    if (auto error = enter("remove", path)) return std::unexpected(*error);
    const MutexLock lock(mutex_);
    if (path.is_root()) return fail(ErrorCode::invalid_operation, "/");
    if (!nodes_.contains(path.text())) return fail(ErrorCode::not_found, text(path));
    if (has_children(path)) return fail(ErrorCode::directory_not_empty, text(path));
    nodes_.erase(text(path));
    return {};
  }
  Result<void> remove_all(const Context&, PathView path) override {
    if (auto error = enter("remove_all", path)) return std::unexpected(*error);
    const MutexLock lock(mutex_);
    if (!nodes_.contains(path.text())) return fail(ErrorCode::not_found, text(path));
    std::erase_if(nodes_, [&](const auto& node) {
      return node.first != "/" && PathView::from_normal(node.first).is_within(path);
    });
    return {};
  }
  Result<Bytes> read(const Context&, PathView path, uint64_t offset, uint64_t size) override {
    if (auto error = enter("read", path)) return std::unexpected(*error);
    const MutexLock lock(mutex_);
    if (auto error = file_fault(path)) return std::unexpected(*error);
    const std::string_view data = nodes_.find(path.text())->second.data;
    if (offset >= data.size()) return Bytes();
    return Bytes::copy(data.substr(offset, size == 0 ? std::string_view::npos : size));
  }
  Result<FileContent> read_file(const Context&, PathView path) override {
    if (auto error = enter("read_file", path)) return std::unexpected(*error);
    const MutexLock lock(mutex_);
    if (auto error = file_fault(path)) return std::unexpected(*error);
    const Node& node = nodes_.find(path.text())->second;
    return FileContent{Bytes::copy(node.data), meta(node)};
  }
  Result<WriteResult> write(const Context&, PathView path, std::string_view data, uint64_t offset,
                            WriteFlag flag) override {
    if (auto error = enter("write", path)) return std::unexpected(*error);
    return put_file(path, data, offset, flag);
  }
  Result<void> truncate(const Context&, PathView path, uint64_t size) override {
    if (auto error = enter("truncate", path)) return std::unexpected(*error);
    const MutexLock lock(mutex_);
    if (auto error = file_fault(path)) return std::unexpected(*error);
    nodes_[text(path)].data.resize(size);
    return {};
  }
  Result<void> touch(const Context&, PathView path) override {
    if (auto error = enter("touch", path)) return std::unexpected(*error);
    const MutexLock lock(mutex_);
    if (auto error = parent_fault(path)) return std::unexpected(*error);
    nodes_[text(path)].mtime_ns = ++time_;
    return {};
  }
  Result<void> chmod(const Context&, PathView path, uint32_t) override {
    if (auto error = enter("chmod", path)) return std::unexpected(*error);
    const MutexLock lock(mutex_);
    if (!nodes_.contains(path.text())) return fail(ErrorCode::not_found, text(path));
    return {};
  }
  Result<std::vector<FileInfo>> read_dir(const Context&, PathView path) override {
    if (auto error = enter("read_dir", path)) return std::unexpected(*error);
    const MutexLock lock(mutex_);
    const auto found = nodes_.find(path.text());
    if (found == nodes_.end()) return fail(ErrorCode::not_found, text(path));
    if (!found->second.is_dir) return fail(ErrorCode::not_a_directory, text(path));
    std::vector<FileInfo> entries;
    for (const auto& [name, node] : nodes_) {
      const PathView child = PathView::from_normal(name);
      if (!child.is_root() && child.parent() == path) entries.push_back(info(child, node));
    }
    return entries;
  }
  Result<FileInfo> stat(const Context&, PathView path) override {
    if (auto error = enter("stat", path)) return std::unexpected(*error);
    const MutexLock lock(mutex_);
    const auto found = nodes_.find(path.text());
    if (found == nodes_.end()) return fail(ErrorCode::not_found, text(path));
    return info(path, found->second);
  }
  Result<void> rename(const Context&, PathView from, PathView to) override {
    if (auto error = enter("rename", from)) return std::unexpected(*error);
    const MutexLock lock(mutex_);
    if (!nodes_.contains(from.text())) return fail(ErrorCode::not_found, text(from));
    if (from == to) return {};
    if (to.is_within(from)) return fail(ErrorCode::invalid_operation, text(to));
    if (auto error = rename_fault(from, to)) return std::unexpected(*error);
    std::map<std::string, Node, std::less<>> moved;
    std::erase_if(nodes_, [&](auto& node) {
      const PathView path = PathView::from_normal(node.first);
      if (!path.is_within(from)) return false;
      const std::string rest = path == from ? "" : text(path.relative_to(from));
      moved[text(to) + rest] = std::move(node.second);
      return true;
    });
    for (auto& [name, node] : moved) nodes_[name] = std::move(node);
    return {};
  }

 private:
  struct Node {
    bool is_dir = false;
    std::string data;
    int64_t mtime_ns = 0;
  };

  static std::string text(PathView path) { return std::string(path.text()); }

  std::optional<Error> enter(std::string_view operation, PathView path) {
    Hook hook;
    {
      const MutexLock lock(mutex_);
      calls_.push_back(std::string(operation) + " " + text(path));
      hook = hook_;
    }
    return hook ? hook(operation, path) : std::nullopt;
  }

  std::optional<Error> parent_fault(PathView path) const RAGFS_REQUIRES(mutex_) {
    const auto parent = nodes_.find(path.parent().text());
    if (parent == nodes_.end()) return Error{ErrorCode::not_found, text(path.parent())};
    if (!parent->second.is_dir) return Error{ErrorCode::not_a_directory, text(path.parent())};
    return std::nullopt;
  }
  std::optional<Error> file_fault(PathView path) const RAGFS_REQUIRES(mutex_) {
    const auto found = nodes_.find(path.text());
    if (found == nodes_.end()) return Error{ErrorCode::not_found, text(path)};
    if (found->second.is_dir) return Error{ErrorCode::is_a_directory, text(path)};
    return std::nullopt;
  }
  std::optional<Error> rename_fault(PathView from, PathView to) const RAGFS_REQUIRES(mutex_) {
    if (auto error = parent_fault(to)) return error;
    const auto target = nodes_.find(to.text());
    if (target == nodes_.end()) return std::nullopt;
    const bool from_dir = nodes_.find(from.text())->second.is_dir;
    if (from_dir && !target->second.is_dir) return Error{ErrorCode::not_a_directory, text(to)};
    if (!from_dir && target->second.is_dir) return Error{ErrorCode::is_a_directory, text(to)};
    if (from_dir && has_children(to)) return Error{ErrorCode::directory_not_empty, text(to)};
    return std::nullopt;
  }
  bool has_children(PathView path) const RAGFS_REQUIRES(mutex_) {
    for (const auto& [name, node] : nodes_) {
      const PathView child = PathView::from_normal(name);
      if (child != path && child.is_within(path)) return true;
    }
    return false;
  }
  Result<WriteResult> put_file(PathView path, std::string_view data, uint64_t offset, WriteFlag flag) {
    const MutexLock lock(mutex_);
    const auto found = nodes_.find(path.text());
    const bool there = found != nodes_.end();
    if (there && found->second.is_dir) return fail(ErrorCode::is_a_directory, text(path));
    if (there && flag == WriteFlag::create_new) return fail(ErrorCode::already_exists, text(path));
    const bool creates = flag == WriteFlag::create || flag == WriteFlag::create_new;
    if (!there && !creates) return fail(ErrorCode::not_found, text(path));
    if (auto error = parent_fault(path)) return std::unexpected(*error);
    Node& node = nodes_[text(path)];
    if (flag == WriteFlag::append) {
      node.data += data;
    } else if (flag == WriteFlag::none) {
      if (node.data.size() < offset + data.size()) node.data.resize(offset + data.size());
      node.data.replace(offset, data.size(), data);
    } else {
      node.data = data;
    }
    node.mtime_ns = ++time_;
    return WriteResult{data.size(), meta(node)};
  }
  static FileMeta meta(const Node& node) {
    FileMeta meta;
    meta.size = node.data.size();
    meta.mtime_ns = node.mtime_ns;
    meta.version = std::to_string(node.mtime_ns);
    return meta;
  }
  static FileInfo info(PathView path, const Node& node) {
    FileInfo info;
    info.name = path.is_root() ? "/" : std::string(path.name());
    info.size = node.data.size();
    info.mode = node.is_dir ? kDefaultDirMode : kDefaultFileMode;
    info.mtime_ns = node.mtime_ns;
    info.kind = node.is_dir ? FileKind::directory : FileKind::file;
    return info;
  }

  FileSystemTraits traits_;
  mutable Mutex mutex_;
  Hook hook_ RAGFS_GUARDED_BY(mutex_);
  std::vector<std::string> calls_ RAGFS_GUARDED_BY(mutex_);
  std::map<std::string, Node, std::less<>> nodes_ RAGFS_GUARDED_BY(mutex_);
  int64_t time_ RAGFS_GUARDED_BY(mutex_) = 0;
};

}  // namespace ragfs
