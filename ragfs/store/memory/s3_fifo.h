// S3Fifo: which entry of a shard to evict next.
//
// S3-FIFO (Yang, Zhang, Qiu, Yue, Rashmi: "FIFO queues are all you need for cache eviction", SOSP 2023): new entries
// join a small queue (a tenth of the bytes). One that was hit at least twice when it reaches the end moves to the main
// queue; any other is evicted and remembered as a ghost, and joins the main queue directly if it comes back. The main
// queue gives each entry another round for every hit (up to 3). A scan therefore passes through the small queue and
// leaves the working set alone; a hit changes one byte of the entry and no queue.
//
// Ours besides: preferred entries always move to the main queue and start there with all rounds; entries pinned by
// readers are passed over (evicting them would free nothing); one call looks at a bounded number of entries, and then
// takes the best of them; an eviction among one owner's entries sends those of others round unchanged.
//
// Thread-safety: none; belongs to a shard's lock.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ragfs/store/memory/entry.h"
#include "ragfs/store/memory/ghost_table.h"
#include "ragfs/store/memory/owner_share.h"

namespace ragfs {

class S3Fifo {
 public:
  // A new entry: into the small queue, or the main one if it was evicted lately.
  void insert(Entry* entry);
  // `entry` takes the place of `old_entry` in the order of its queue and inherits its hits: the same object, moved.
  void replace(Entry* old_entry, Entry* entry) noexcept;
  // A new value of an object: leaves its queue, and the new entry joins the same one as the newest, with its hits.
  void renew(Entry* old_entry, Entry* entry) noexcept;
  void remove(Entry* entry) noexcept;
  // Takes the next entry to evict out of its queue; nullptr when a bounded look found none: then the queues have moved
  // on, and more calls find one, unless everything is pinned. With `at_any_rate` the least used unpinned entry of those
  // looked at goes. `now_ms` is in the tier's time: expired entries go first wherever they are met.
  Entry* evict(uint64_t now_ms, bool at_any_rate, const EvictionScope& scope = {});

  size_t size() const noexcept { return small_.count + main_.count; }
  uint64_t bytes() const noexcept { return small_.bytes + main_.bytes; }
  size_t ghost_memory_bytes() const noexcept { return ghosts_.memory_bytes(); }

 private:
  struct Queue {
    Entry* newest = nullptr;
    Entry* oldest = nullptr;
    size_t count = 0;
    uint64_t bytes = 0;
    void push(Entry* entry) noexcept;
    void remove(Entry* entry) noexcept;
  };
  Queue& queue_of(const Entry* entry) noexcept { return entry->in_main() ? main_ : small_; }
  void move_to_main(Entry* entry, uint8_t frequency) noexcept;
  // The small queue, while it has more than its part; the other one once none of the scope's was found in half a look.
  bool takes_small(const EvictionScope& scope, int passed_in_small, int passed_in_main) const noexcept;
  // Evicts the entry (true), or moves it to the head of the main queue.
  bool evict_from_small(Entry* entry, uint64_t now_ms);
  bool evict_from_main(Entry* entry, uint64_t now_ms);

  Queue small_;
  Queue main_;
  GhostTable ghosts_;
};

}  // namespace ragfs
