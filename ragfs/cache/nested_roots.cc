#include "ragfs/cache/nested_roots.h"

#include <string_view>

namespace ragfs {
namespace {

bool at_or_below(std::string_view path, PathView top) {
  if (top.is_root() || path == top.text()) return true;
  return path.size() > top.text().size() && path.starts_with(top.text()) && path[top.text().size()] == '/';
}

}  // namespace

std::shared_ptr<NestedRoot> NestedRoots::add(std::string prefix) {
  auto root = std::make_shared<NestedRoot>(std::move(prefix));
  const MutexLock lock(mutex_);
  std::erase_if(roots_, [](const std::weak_ptr<NestedRoot>& known) { return known.expired(); });
  roots_.push_back(root);
  any_.store(true);
  return root;
}

NestedRoots::Marked NestedRoots::mark(PathView path, bool below) {
  Marked marked;
  if (!any_.load(std::memory_order_relaxed)) return marked;
  const MutexLock lock(mutex_);
  for (const std::weak_ptr<NestedRoot>& known : roots_) {
    std::shared_ptr<NestedRoot> root = known.lock();
    if (root == nullptr) continue;
    const bool leaves = below ? at_or_below(root->prefix_, path) : root->prefix_ == path.text();
    if (leaves && !root->moved_.exchange(true)) marked.push_back(std::move(root));
  }
  return marked;
}

void NestedRoots::come_back(const Marked& marked) {
  for (const std::shared_ptr<NestedRoot>& root : marked) root->moved_.store(false);
}

}  // namespace ragfs
