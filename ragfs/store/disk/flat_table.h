// FlatTable: hash -> small entry, in one array, by linear probing.
//
// For: the index of the disk tier, where a million entries of 40 bytes must not cost a
// hundred. Entry has `uint64_t hash` and `bool used`; one entry a hash. Erasing shifts back, so there are no graves.
// Not for: values with destructors. Thread-safety: none; belongs to its owner's lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "ragfs/base/hash.h"

namespace ragfs {

template <typename Entry>
class FlatTable {
 public:
  Entry* find(uint64_t hash) {
    if (slots_.empty()) return nullptr;
    for (size_t at = home(hash); slots_[at].used; at = next(at)) {
      if (slots_[at].hash == hash) return &slots_[at];
    }
    return nullptr;
  }
  // The entry of the hash, made (with nothing but `hash` and `used` set) where there is none. Valid until the next
  // call.
  std::pair<Entry*, bool> insert(uint64_t hash) {
    if (Entry* found = find(hash)) return {found, false};
    if ((count_ + 1) * 4 > slots_.size() * 3) grow();
    size_t at = home(hash);
    while (slots_[at].used) at = next(at);
    slots_[at] = Entry{};
    slots_[at].hash = hash;
    slots_[at].used = true;
    ++count_;
    return {&slots_[at], true};
  }
  void erase(Entry* entry) {
    size_t hole = static_cast<size_t>(entry - slots_.data());
    for (size_t at = next(hole); slots_[at].used; at = next(at)) {
      // An entry moves into the hole unless its home lies behind the hole.
      if (((at - home(slots_[at].hash)) & mask()) >= ((at - hole) & mask())) {
        slots_[hole] = slots_[at];
        hole = at;
      }
    }
    slots_[hole] = Entry{};
    --count_;
  }
  void clear() {
    slots_.clear();
    count_ = 0;
  }
  size_t size() const { return count_; }
  size_t memory_bytes() const { return slots_.capacity() * sizeof(Entry); }

 private:
  size_t mask() const { return slots_.size() - 1; }
  size_t home(uint64_t hash) const { return mix64(hash) & mask(); }
  size_t next(size_t at) const { return (at + 1) & mask(); }
  void grow() {
    std::vector<Entry> old = std::exchange(slots_, std::vector<Entry>(slots_.empty() ? 16 : slots_.size() * 2));
    for (const Entry& entry : old) {
      if (!entry.used) continue;
      size_t at = home(entry.hash);
      while (slots_[at].used) at = next(at);
      slots_[at] = entry;
    }
  }

  std::vector<Entry> slots_;
  size_t count_ = 0;
};

}  // namespace ragfs
