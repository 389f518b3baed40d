// CooldownTable: lets a key through once in so many milliseconds.
//
// A fixed table of words by the key's hash; two keys that share a word may let each other through early, never keep
// each other out for longer than one cooldown. For: triggers, where once too often costs a look-up. Not for: limits
// that must hold. Thread-safety: all methods may be called from any thread; no lock is taken.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace ragfs {

class CooldownTable {
 public:
  explicit CooldownTable(int64_t cooldown_ms) : cooldown_ms_(static_cast<uint32_t>(cooldown_ms)) {}

  // True when `key` was not let through in the last cooldown; it then was now. Of several callers at once, one.
  bool enter(uint64_t key, int64_t now_ms) noexcept {
    std::atomic<uint64_t>& word = words_[key % kWords];
    const auto tag = static_cast<uint32_t>(key >> 32) | 1;  // 0 is an empty word
    const auto now = static_cast<uint32_t>(now_ms);
    uint64_t seen = word.load(std::memory_order_relaxed);
    const bool same = static_cast<uint32_t>(seen >> 32) == tag;
    if (same && now - static_cast<uint32_t>(seen) < cooldown_ms_) return false;
    return word.compare_exchange_strong(seen, (uint64_t{tag} << 32) | now, std::memory_order_relaxed);
  }

 private:
  static constexpr size_t kWords = 8192;
  const uint32_t cooldown_ms_;
  std::array<std::atomic<uint64_t>, kWords> words_{};  // {tag of the key : 32 | milliseconds : 32}
};

}  // namespace ragfs
