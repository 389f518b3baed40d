#include "ragfs/cache/hot_keys.h"

#include <algorithm>
#include <limits>

#include "ragfs/base/hash.h"

namespace ragfs {
namespace {

bool hotter(const HotKey& a, const HotKey& b) { return a.reads != b.reads ? a.reads > b.reads : a.path < b.path; }

std::vector<HotKey> hottest(std::vector<HotKey> keys, size_t most) {
  std::ranges::sort(keys, hotter);
  if (keys.size() > most) keys.resize(most);
  return keys;
}

}  // namespace

HotKeys::HotKeys() : sketch_(std::make_unique<std::array<Row, kRows>>()) {}

uint64_t HotKeys::add(uint64_t hash, uint64_t reads) {
  constexpr uint64_t kMost = std::numeric_limits<uint32_t>::max();
  uint64_t estimate = kMost;
  for (size_t row = 0; row < kRows; ++row) {
    uint32_t& counter = (*sketch_)[row][mix64(hash + row) % kColumns];
    counter = static_cast<uint32_t>(std::min(counter + reads, kMost));
    estimate = std::min<uint64_t>(estimate, counter);
  }
  return estimate;
}

void HotKeys::fade() {
  since_fade_ = 0;
  for (Row& row : *sketch_) {
    for (uint32_t& counter : row) counter /= 2;
  }
  for (auto& [name, scope] : scopes_) {
    scope.reads /= 2;
    for (HotKey& key : scope.hot) key.reads /= 2;
    std::erase_if(scope.hot, [](const HotKey& key) { return key.reads == 0; });
  }
  std::erase_if(scopes_, [](const auto& scope) { return scope.second.hot.empty(); });
}

HotKeys::Scope& HotKeys::scope_of(PathView path) {
  std::string name(path.text().substr(0, scope_length(path)));
  const auto found = scopes_.find(name);
  if (found != scopes_.end()) return found->second;
  if (scopes_.size() >= kScopes) {
    scopes_.erase(std::ranges::min_element(scopes_, {}, [](const auto& scope) { return scope.second.reads; }));
  }
  return scopes_[std::move(name)];
}

void HotKeys::note(PathView path, ObjectKind kind, uint64_t reads) {
  const uint64_t hash = hash64(path.text(), static_cast<uint64_t>(kind));
  if (noted_.load(std::memory_order_relaxed) < kAll) noted_.fetch_add(1, std::memory_order_relaxed);
  MutexLock lock(mutex_);
  since_fade_ += reads;
  if (since_fade_ >= kFadeEvery) fade();
  const uint64_t estimate = add(hash, reads);
  Scope& scope = scope_of(path);
  scope.reads += reads;
  const auto known =
      std::ranges::find_if(scope.hot, [&](const HotKey& key) { return key.kind == kind && key.path == path.text(); });
  if (known != scope.hot.end()) {
    known->reads = estimate;
    return;
  }
  if (scope.hot.size() < kPerScope) {
    scope.hot.push_back({std::string(path.text()), kind, estimate});
    return;
  }
  const auto coldest = std::ranges::min_element(scope.hot, {}, &HotKey::reads);
  if (coldest->reads < estimate) *coldest = {std::string(path.text()), kind, estimate};
}

std::vector<HotKey> HotKeys::top(PathView path, size_t most) const {
  std::vector<HotKey> keys;
  {
    MutexLock lock(mutex_);
    for (const auto& [name, scope] : scopes_) {
      for (const HotKey& key : scope.hot) {
        if (PathView::from_normal(key.path).is_within(path)) keys.push_back(key);
      }
    }
  }
  return hottest(std::move(keys), most);
}

std::vector<HotKey> HotKeys::of_scope(PathView path, size_t most) const {
  std::vector<HotKey> keys;
  {
    MutexLock lock(mutex_);
    const auto found = scopes_.find(std::string(path.text().substr(0, scope_length(path))));
    if (found != scopes_.end()) keys = found->second.hot;
  }
  return hottest(std::move(keys), most);
}

size_t HotKeys::scopes() const {
  MutexLock lock(mutex_);
  return scopes_.size();
}

}  // namespace ragfs
