#include "ragfs/backends/mem/mem_node.h"

#include <fmt/format.h>

namespace ragfs {
namespace {

constexpr uint64_t kNodeBytes = sizeof(MemNode) + 64;  // and the map's own node

// Calls `step` for each component; stops when it returns false.
template <typename Step>
void for_each_component(PathView path, Step step) {
  std::string_view rest = path.text().substr(1);
  while (!rest.empty()) {
    const size_t slash = std::min(rest.find('/'), rest.size());
    if (!step(rest.substr(0, slash))) return;
    rest.remove_prefix(std::min(slash + 1, rest.size()));
  }
}

}  // namespace

FileInfo MemNode::info(std::string_view name) const {
  return {.name = std::string(name),
          .size = content.size(),
          .mode = mode,
          .mtime_ns = mtime_ns,
          .kind = is_dir ? FileKind::directory : FileKind::file};
}

FileMeta MemNode::meta() const {
  return {.size = content.size(),
          .mode = mode,
          .mtime_ns = mtime_ns,
          .version = fmt::format("{}", version),
          .cacheable = true};
}

MemNode* MemNode::child(std::string_view name) const {
  const auto found = children.find(name);
  return found == children.end() ? nullptr : found->second.get();
}

uint64_t mem_node_cost(std::string_view name) { return kNodeBytes + name.size(); }

MemUsage mem_usage(std::string_view name, const MemNode& node) {
  MemUsage sum{.entries = 1, .bytes = mem_node_cost(name) + node.content.size()};
  for (const auto& [child_name, child] : node.children) {
    const MemUsage below = mem_usage(child_name, *child);
    sum.entries += below.entries;
    sum.bytes += below.bytes;
  }
  return sum;
}

MemNode* mem_find(MemNode& root, PathView path) {
  MemNode* node = &root;
  for_each_component(path, [&node](std::string_view name) {
    node = node->child(name);
    return node != nullptr;
  });
  return node;
}

Result<MemNode*> mem_find_parent(MemNode& root, PathView path) {
  const PathView parent = path.parent();
  MemNode* node = &root;
  bool below_file = false;
  for_each_component(parent, [&](std::string_view name) {
    below_file = !node->is_dir;
    node = node->child(name);
    return node != nullptr;
  });
  if (node == nullptr) {
    return fail(below_file ? ErrorCode::not_a_directory : ErrorCode::not_found, std::string(parent.text()));
  }
  if (!node->is_dir) return fail(ErrorCode::not_a_directory, std::string(parent.text()));
  return node;
}

}  // namespace ragfs
