#include "ragfs/backends/mem/mem_file_system.h"

#include <fmt/format.h>

#include "ragfs/base/random.h"

namespace ragfs {
namespace {

std::unexpected<Error> fail_at(ErrorCode code, PathView path) { return fail(code, std::string(path.text())); }

std::string random_identity() { return fmt::format("mem:{:016x}{:016x}", random_u64(), random_u64()); }

constexpr uint32_t kModeBits = 07777;

}  // namespace

Result<void> MemConfig::validate() const {
  if (capacity_bytes == 0) return fail(ErrorCode::config, "memfs capacity_bytes is 0; it must be at least 1");
  if (max_entries == 0) return fail(ErrorCode::config, "memfs max_entries is 0; it must be at least 1");
  return {};
}

Result<std::unique_ptr<MemFileSystem>> MemFileSystem::open(const MemConfig& config, const Clock& clock) {
  if (auto valid = config.validate(); !valid) return std::unexpected(std::move(valid.error()));
  return std::unique_ptr<MemFileSystem>(new MemFileSystem(config, clock));
}

MemFileSystem::MemFileSystem(const MemConfig& config, const Clock& clock)
    : config_(config), clock_(clock), root_(std::make_unique<MemNode>()) {
  traits_.type = "memfs";
  traits_.process_local = true;
  traits_.identity = random_identity();
  traits_.listings_prove_absence = true;
  traits_.directory_times = true;
  root_->is_dir = true;
  root_->mode = kDefaultDirMode;
  root_->mtime_ns = clock_.wall_ns();
}

MemFileSystem::~MemFileSystem() = default;

// --- steps under the lock ---

Result<MemNode*> MemFileSystem::find_file(PathView path) const {
  MemNode* node = mem_find(*root_, path);
  if (node == nullptr) return fail_at(ErrorCode::not_found, path);
  if (node->is_dir) return fail_at(ErrorCode::is_a_directory, path);
  return node;
}

Result<void> MemFileSystem::check_room(uint64_t old_bytes, uint64_t new_bytes, uint64_t new_entries,
                                       PathView path) const {
  const uint64_t used = used_bytes_.load(std::memory_order_relaxed);
  const bool bytes_fit = new_bytes <= old_bytes || (new_bytes - old_bytes <= config_.capacity_bytes &&
                                                    used <= config_.capacity_bytes - (new_bytes - old_bytes));
  if (!bytes_fit) {
    return fail(ErrorCode::full, fmt::format("{} (memfs holds {} of {} bytes, {} more asked)", path.text(), used,
                                             config_.capacity_bytes, new_bytes - old_bytes));
  }
  if (new_entries > 0 && used_entries_.load(std::memory_order_relaxed) + new_entries > config_.max_entries) {
    return fail(ErrorCode::full, fmt::format("{} (memfs holds {} entries, its max_entries)", path.text(),
                                             used_entries_.load(std::memory_order_relaxed)));
  }
  return {};
}

void MemFileSystem::touch_node(MemNode& node) {
  node.mtime_ns = clock_.wall_ns();
  node.version = ++last_version_;
}

void MemFileSystem::set_content(MemNode& node, MemContent content) {
  used_bytes_ += content.size();
  used_bytes_ -= node.content.size();
  node.content = std::move(content);
  touch_node(node);
}

Result<MemNode*> MemFileSystem::add_child(MemNode& parent, PathView path, bool is_dir, uint32_t mode) {
  const uint64_t cost = mem_node_cost(path.name());
  if (auto room = check_room(0, cost, 1, path); !room) return std::unexpected(std::move(room.error()));
  auto node = std::make_unique<MemNode>();
  node->is_dir = is_dir;
  node->mode = mode & kModeBits;
  touch_node(*node);
  parent.mtime_ns = node->mtime_ns;
  used_bytes_ += cost;
  used_entries_ += 1;
  return parent.children.emplace(std::string(path.name()), std::move(node)).first->second.get();
}

Result<MemNode*> MemFileSystem::find_or_add_file(PathView path) {
  if (path.is_root()) return fail_at(ErrorCode::is_a_directory, path);
  auto parent = mem_find_parent(*root_, path);
  if (!parent) return parent;
  if (MemNode* node = (*parent)->child(path.name()); node != nullptr) {
    if (node->is_dir) return fail_at(ErrorCode::is_a_directory, path);
    return node;
  }
  return add_child(**parent, path, false, kDefaultFileMode);
}

Result<void> MemFileSystem::add_parents(PathView path, uint32_t mode) {
  MemNode* node = root_.get();
  const std::string_view text = path.parent().text();
  for (size_t at = 1; at < text.size();) {
    const size_t end = std::min(text.find('/', at), text.size());
    const PathView here = PathView::from_normal(text.substr(0, end));
    MemNode* next = node->child(here.name());
    if (next == nullptr) {
      auto made = add_child(*node, here, true, mode);
      if (!made) return std::unexpected(std::move(made.error()));
      next = *made;
    }
    if (!next->is_dir) return fail_at(ErrorCode::not_a_directory, here);
    node = next;
    at = end + 1;
  }
  return {};
}

std::unique_ptr<MemNode> MemFileSystem::detach(PathView path) {
  MemNode* parent = mem_find(*root_, path.parent());
  const auto found = parent->children.find(path.name());
  std::unique_ptr<MemNode> node = std::move(found->second);
  parent->children.erase(found);
  parent->mtime_ns = clock_.wall_ns();
  return node;
}

void MemFileSystem::forget(std::string_view name, std::unique_ptr<MemNode> node) {
  if (node == nullptr) return;
  const MemUsage usage = mem_usage(name, *node);
  used_bytes_ -= usage.bytes;
  used_entries_ -= usage.entries;
}

Result<void> MemFileSystem::check_rename_target(PathView from, PathView to, const MemNode& source,
                                                const MemNode* target) const {
  if (target == nullptr) return {};
  if (from.is_within(to)) return fail_at(ErrorCode::directory_not_empty, to);
  if (source.is_dir && !target->is_dir) return fail_at(ErrorCode::not_a_directory, to);
  if (!source.is_dir && target->is_dir) return fail_at(ErrorCode::is_a_directory, to);
  if (!target->children.empty()) return fail_at(ErrorCode::directory_not_empty, to);
  return {};
}

std::unique_ptr<MemNode> MemFileSystem::move_node(PathView from, PathView to) {
  std::unique_ptr<MemNode> source = detach(from);
  used_bytes_ += mem_node_cost(to.name());
  used_bytes_ -= mem_node_cost(from.name());
  MemNode* parent = mem_find(*root_, to.parent());
  parent->mtime_ns = clock_.wall_ns();
  std::unique_ptr<MemNode>& place = parent->children[std::string(to.name())];
  std::swap(place, source);
  return source;
}

Result<void> MemFileSystem::write_part(PathView path, MemNode& node, std::string_view data, uint64_t start) {
  if (start > UINT64_MAX - data.size()) {
    return fail(ErrorCode::invalid_operation, fmt::format("{}: offset + size exceeds 64 bits", path.text()));
  }
  const uint64_t old_size = node.content.size();
  const uint64_t new_size = data.empty() ? old_size : std::max(old_size, start + data.size());
  if (auto room = check_room(old_size, new_size, 0, path); !room) return room;
  MemContent changed = node.content;
  if (!changed.write_at(start, data)) return fail(ErrorCode::full, fmt::format("{}: no memory", path.text()));
  set_content(node, std::move(changed));
  return {};
}

// --- the interface ---

Result<void> MemFileSystem::create(const Context& /*ctx*/, PathView path) {
  const WriterLock lock(lock_);
  if (path.is_root()) return fail_at(ErrorCode::already_exists, path);
  auto parent = mem_find_parent(*root_, path);
  if (!parent) return std::unexpected(std::move(parent.error()));
  if ((*parent)->child(path.name()) != nullptr) return fail_at(ErrorCode::already_exists, path);
  auto made = add_child(**parent, path, false, kDefaultFileMode);
  if (!made) return std::unexpected(std::move(made.error()));
  return {};
}

Result<void> MemFileSystem::mkdir(const Context& /*ctx*/, PathView path, uint32_t mode) {
  const WriterLock lock(lock_);
  if (path.is_root()) return fail_at(ErrorCode::already_exists, path);
  auto parent = mem_find_parent(*root_, path);
  if (!parent) return std::unexpected(std::move(parent.error()));
  if ((*parent)->child(path.name()) != nullptr) return fail_at(ErrorCode::already_exists, path);
  auto made = add_child(**parent, path, true, mode);
  if (!made) return std::unexpected(std::move(made.error()));
  return {};
}

Result<void> MemFileSystem::ensure_parent_dirs(const Context& /*ctx*/, PathView path, uint32_t mode) {
  const WriterLock lock(lock_);
  return add_parents(path, mode);
}

Result<void> MemFileSystem::remove(const Context& /*ctx*/, PathView path) {
  std::unique_ptr<MemNode> removed;
  {
    const WriterLock lock(lock_);
    MemNode* node = mem_find(*root_, path);
    if (node == nullptr) return fail_at(ErrorCode::not_found, path);
    if (!node->children.empty()) return fail_at(ErrorCode::directory_not_empty, path);
    if (path.is_root()) return fail(ErrorCode::invalid_operation, "the root cannot be removed");
    removed = detach(path);
  }
  forget(path.name(), std::move(removed));
  return {};
}

Result<void> MemFileSystem::remove_all(const Context& /*ctx*/, PathView path) {
  if (path.is_root()) {
    MemNode::Children removed;
    {
      const WriterLock lock(lock_);
      removed.swap(root_->children);
      root_->mtime_ns = clock_.wall_ns();
    }
    for (auto& [name, node] : removed) forget(name, std::move(node));
    return {};
  }
  std::unique_ptr<MemNode> removed;
  {
    const WriterLock lock(lock_);
    if (mem_find(*root_, path) == nullptr) return fail_at(ErrorCode::not_found, path);
    removed = detach(path);
  }
  forget(path.name(), std::move(removed));
  return {};
}

Result<Bytes> MemFileSystem::read(const Context& /*ctx*/, PathView path, uint64_t offset, uint64_t size) {
  const ReaderLock lock(lock_);
  auto node = find_file(path);
  if (!node) return std::unexpected(std::move(node.error()));
  return (*node)->content.read(offset, size);
}

Result<FileContent> MemFileSystem::read_file(const Context& /*ctx*/, PathView path) {
  const ReaderLock lock(lock_);
  auto node = find_file(path);
  if (!node) return std::unexpected(std::move(node.error()));
  return FileContent{.data = (*node)->content.read(0, 0), .meta = (*node)->meta()};
}

Result<WriteResult> MemFileSystem::write(const Context& /*ctx*/, PathView path, std::string_view data, uint64_t offset,
                                         WriteFlag flag) {
  const bool whole_file = flag != WriteFlag::append && flag != WriteFlag::none;
  if (whole_file && offset != 0) {
    return fail(ErrorCode::invalid_operation,
                fmt::format("{}: offset {} with a whole-file write", path.text(), offset));
  }
  if (data.size() > config_.capacity_bytes) {  // before the copy is made; the exact check follows under the lock
    return fail(ErrorCode::full, fmt::format("{}: {} bytes exceed memfs capacity_bytes", path.text(), data.size()));
  }
  MemContent whole;
  if (whole_file && !whole.assign(data)) return fail(ErrorCode::full, fmt::format("{}: no memory", path.text()));

  MemContent old;  // freed after the lock
  const WriterLock lock(lock_);
  if (flag == WriteFlag::create_new && mem_find(*root_, path) != nullptr) {
    return fail_at(ErrorCode::already_exists, path);
  }
  const bool may_create = flag == WriteFlag::create || flag == WriteFlag::create_new;
  MemNode* present = mem_find(*root_, path);
  if (whole_file) {
    const uint64_t old_bytes = present == nullptr ? 0 : present->content.size();
    const uint64_t name_bytes = present == nullptr ? mem_node_cost(path.name()) : 0;
    auto room = check_room(old_bytes, data.size() + name_bytes, 0, path);
    if (!room) return std::unexpected(std::move(room.error()));
  }
  auto node = may_create ? find_or_add_file(path) : find_file(path);
  if (!node) return std::unexpected(std::move(node.error()));
  old = (*node)->content;
  if (whole_file) {
    set_content(**node, std::move(whole));
  } else {
    const uint64_t start = flag == WriteFlag::append ? old.size() : offset;
    if (auto done = write_part(path, **node, data, start); !done) return std::unexpected(std::move(done.error()));
  }
  return WriteResult{.bytes = data.size(), .meta = (*node)->meta()};
}

Result<bool> MemFileSystem::compare_and_write(const Context& /*ctx*/, PathView path, std::string_view expected,
                                              std::string_view replacement) {
  MemContent whole;
  if (!whole.assign(replacement)) return fail(ErrorCode::full, fmt::format("{}: no memory", path.text()));
  const WriterLock lock(lock_);
  auto node = find_file(path);
  if (!node && node.error().code == ErrorCode::not_found) return false;
  if (!node) return std::unexpected(std::move(node.error()));
  if ((*node)->content.view() != expected) return false;
  auto room = check_room((*node)->content.size(), replacement.size(), 0, path);
  if (!room) return std::unexpected(std::move(room.error()));
  set_content(**node, std::move(whole));
  return true;
}

Result<bool> MemFileSystem::compare_and_remove(const Context& /*ctx*/, PathView path, std::string_view expected) {
  std::unique_ptr<MemNode> removed;
  {
    const WriterLock lock(lock_);
    auto node = find_file(path);
    if (!node && node.error().code == ErrorCode::not_found) return false;
    if (!node) return std::unexpected(std::move(node.error()));
    if ((*node)->content.view() != expected) return false;
    removed = detach(path);
  }
  forget(path.name(), std::move(removed));
  return true;
}

Result<void> MemFileSystem::truncate(const Context& /*ctx*/, PathView path, uint64_t size) {
  MemContent old;  // freed after the lock
  const WriterLock lock(lock_);
  auto node = find_file(path);
  if (!node) return std::unexpected(std::move(node.error()));
  old = (*node)->content;
  if (auto room = check_room(old.size(), size, 0, path); !room) return room;
  MemContent changed = old;
  if (!changed.resize(size)) return fail(ErrorCode::full, fmt::format("{}: no memory", path.text()));
  set_content(**node, std::move(changed));
  return {};
}

Result<void> MemFileSystem::touch(const Context& /*ctx*/, PathView path) {
  const WriterLock lock(lock_);
  auto node = find_or_add_file(path);
  if (!node) return std::unexpected(std::move(node.error()));
  touch_node(**node);
  return {};
}

Result<void> MemFileSystem::chmod(const Context& /*ctx*/, PathView path, uint32_t mode) {
  const WriterLock lock(lock_);
  MemNode* node = mem_find(*root_, path);
  if (node == nullptr) return fail_at(ErrorCode::not_found, path);
  node->mode = mode & kModeBits;
  node->version = ++last_version_;
  return {};
}

Result<std::vector<FileInfo>> MemFileSystem::read_dir(const Context& /*ctx*/, PathView path) {
  const ReaderLock lock(lock_);
  const MemNode* node = mem_find(*root_, path);
  if (node == nullptr) return fail_at(ErrorCode::not_found, path);
  if (!node->is_dir) return fail_at(ErrorCode::not_a_directory, path);
  std::vector<FileInfo> entries;
  entries.reserve(node->children.size());
  for (const auto& [name, child] : node->children) entries.push_back(child->info(name));
  return entries;
}

Result<FileInfo> MemFileSystem::stat(const Context& /*ctx*/, PathView path) {
  const ReaderLock lock(lock_);
  const MemNode* node = mem_find(*root_, path);
  if (node == nullptr) return fail_at(ErrorCode::not_found, path);
  return node->info(path.is_root() ? std::string_view("/") : path.name());
}

Result<bool> MemFileSystem::exists(const Context& /*ctx*/, PathView path) {
  const ReaderLock lock(lock_);
  return mem_find(*root_, path) != nullptr;
}

Result<std::string> MemFileSystem::version(const Context& /*ctx*/, PathView path) {
  const ReaderLock lock(lock_);
  auto node = find_file(path);
  if (!node) return std::unexpected(std::move(node.error()));
  return (*node)->meta().version;
}

Result<void> MemFileSystem::rename(const Context& /*ctx*/, PathView from, PathView to) {
  std::unique_ptr<MemNode> replaced;
  {
    const WriterLock lock(lock_);
    const MemNode* source = mem_find(*root_, from);
    if (source == nullptr) return fail_at(ErrorCode::not_found, from);
    if (from == to) return {};
    if (source->is_dir && to.is_within(from)) {
      return fail(ErrorCode::invalid_operation,
                  fmt::format("{} cannot be moved into itself ({})", from.text(), to.text()));
    }
    if (!to.is_root()) {
      if (auto parent = mem_find_parent(*root_, to); !parent) return std::unexpected(std::move(parent.error()));
    }
    auto allowed = check_rename_target(from, to, *source, mem_find(*root_, to));
    if (!allowed) return allowed;
    replaced = move_node(from, to);
  }
  forget(to.name(), std::move(replaced));
  return {};
}

Result<void> MemFileSystem::replace(const Context& /*ctx*/, PathView from, PathView to) {
  std::unique_ptr<MemNode> replaced;
  {
    const WriterLock lock(lock_);
    const MemNode* source = mem_find(*root_, from);
    if (source == nullptr) return fail_at(ErrorCode::not_found, from);
    if (source->is_dir) {
      return fail(ErrorCode::invalid_operation, fmt::format("{} is a directory; replace moves files", from.text()));
    }
    if (from == to) return {};
    if (to.is_root()) return fail_at(ErrorCode::is_a_directory, to);
    if (auto parent = mem_find_parent(*root_, to); !parent) return std::unexpected(std::move(parent.error()));
    const MemNode* target = mem_find(*root_, to);
    if (target != nullptr && target->is_dir) return fail_at(ErrorCode::is_a_directory, to);
    replaced = move_node(from, to);
  }
  forget(to.name(), std::move(replaced));
  return {};
}

Result<WriteResult> MemFileSystem::copy(const Context& /*ctx*/, PathView from, PathView to) {
  MemContent old;  // freed after the lock
  const WriterLock lock(lock_);
  auto source = find_file(from);
  if (!source) return std::unexpected(std::move(source.error()));
  const MemContent content = (*source)->content;
  const MemNode* present = mem_find(*root_, to);
  if (present != nullptr && present->is_dir) return fail_at(ErrorCode::is_a_directory, to);
  const uint64_t old_bytes = present == nullptr ? 0 : present->content.size();
  if (auto room = check_room(old_bytes, content.size(), 0, to); !room) return std::unexpected(std::move(room.error()));
  if (auto parents = add_parents(to, kDefaultDirMode); !parents) return std::unexpected(std::move(parents.error()));
  auto target = find_or_add_file(to);
  if (!target) return std::unexpected(std::move(target.error()));
  old = (*target)->content;
  if (from != to) set_content(**target, content);
  return WriteResult{.bytes = content.size(), .meta = (*target)->meta()};
}

}  // namespace ragfs
