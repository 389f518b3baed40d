// StripedSnapshot: an immutable value that many threads read on a hot path and that is replaced now and then.
//
// A reader pins the value by a hazard pointer in a cell of its own thread: two stores and two loads, no locked
// instruction, no system call, whatever other threads do. A value lives until it is replaced and the last pin on it is
// gone. Not for: values that change often (replacing one interrupts every running thread, asymmetric_barrier.h), or
// large numbers of snapshots (each holds 65 cache lines).
//
// How a pin is safe. pin: (1) v = current; (2) hazard = v; (3) current == v? else again. replace: (a) current = new;
// (b) heavy barrier; (c) the old value is retired; (d) heavy barrier; (e) what is retired and named by no hazard is
// destroyed. If (3) still saw v, then (3) came before (a), so by (b) every look at the hazards after (c) sees (2).
// unpin: (4) hazard = nothing; (5) is anything retired? then as (e). By (d), (5) sees (c) or (e) sees (4): the last pin
// or the replacement ends the value, whichever comes later.
// Thread-safety: all methods may be called from any thread. A Pin belongs to one thread, all of its life.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "ragfs/base/asymmetric_barrier.h"
#include "ragfs/base/sync.h"
#include "ragfs/base/thread_slot.h"

namespace ragfs {

template <typename T>
class StripedSnapshot {
  struct Node {
    explicit Node(std::shared_ptr<const T> shared) : value(std::move(shared)) {}
    const std::shared_ptr<const T> value;
    uint64_t counted = 0;  // pins without a hazard; guarded by mutex_
  };
  using Hazard = std::atomic<Node*>;

 public:
  // Keeps the value of one moment alive.
  class Pin {
   public:
    Pin(const Pin&) = delete;
    Pin& operator=(const Pin&) = delete;
    ~Pin() { owner_->unpin(node_, hazard_); }
    const T& operator*() const noexcept { return *node_->value; }
    const T* operator->() const noexcept { return node_->value.get(); }

   private:
    friend class StripedSnapshot;
    Pin(const StripedSnapshot* owner, Node* node, Hazard* hazard) noexcept
        : owner_(owner), node_(node), hazard_(hazard) {}
    const StripedSnapshot* const owner_;
    Node* const node_;
    Hazard* const hazard_;  // nullptr: counted in the node
  };

  explicit StripedSnapshot(std::shared_ptr<const T> value)
      : current_(std::make_unique<Node>(std::move(value)).release()) {}
  // No pin may be left.
  ~StripedSnapshot() { std::unique_ptr<Node>{current_.load(std::memory_order_acquire)}; }
  StripedSnapshot(const StripedSnapshot&) = delete;
  StripedSnapshot& operator=(const StripedSnapshot&) = delete;

  Pin pin() const {
    const size_t slot = thread_slot();
    if (slot == kThreadSlots) return pin_counted();
    for (Hazard& hazard : cells_[slot].hazards) {
      if (hazard.load(std::memory_order_relaxed) != nullptr) continue;
      Node* node = current_.load(std::memory_order_acquire);
      while (true) {
        AsymmetricBarrier::store_before_loads(hazard, node);
        Node* const now = current_.load(std::memory_order_seq_cst);
        if (now == node) return Pin(this, node, &hazard);
        node = now;
      }
    }
    return pin_counted();
  }

  // After it returns, every new pin sees `value`. While it runs, threads may see the one or the other; callers that
  // must agree on the order of values replace under a lock of their own.
  void replace(std::shared_ptr<const T> value) {
    auto next = std::make_unique<Node>(std::move(value));
    std::unique_ptr<Node> old{current_.exchange(next.release(), std::memory_order_seq_cst)};
    AsymmetricBarrier::heavy();
    {
      MutexLock lock(mutex_);
      retired_.push_back(std::move(old));
      any_retired_.store(true, std::memory_order_seq_cst);
    }
    AsymmetricBarrier::heavy();
    destroy_unpinned();
  }

 private:
  static constexpr size_t kHazards = 4;  // calls inside calls of one thread; deeper ones are counted

  struct alignas(64) Cell {
    std::array<Hazard, kHazards> hazards{};
  };

  Pin pin_counted() const {
    MutexLock lock(mutex_);
    Node* const node = current_.load(std::memory_order_acquire);
    ++node->counted;
    return Pin(this, node, nullptr);
  }

  void unpin(Node* node, Hazard* hazard) const noexcept {
    if (hazard != nullptr) {
      AsymmetricBarrier::store_before_loads(*hazard, static_cast<Node*>(nullptr));
    } else {
      MutexLock lock(mutex_);
      --node->counted;
    }
    if (any_retired_.load(std::memory_order_seq_cst)) [[unlikely]]
      destroy_unpinned();
  }

  bool is_pinned(const Node* node) const RAGFS_REQUIRES(mutex_) {
    if (node->counted > 0) return true;
    for (const Cell& cell : cells_) {
      for (const Hazard& hazard : cell.hazards) {
        if (hazard.load(std::memory_order_seq_cst) == node) return true;
      }
    }
    return false;
  }

  void destroy_unpinned() const {
    std::vector<std::unique_ptr<Node>> dead;  // destroyed after the lock: a value's end may take its time
    MutexLock lock(mutex_);
    for (size_t i = 0; i < retired_.size();) {
      if (is_pinned(retired_[i].get())) {
        ++i;
        continue;
      }
      dead.push_back(std::move(retired_[i]));
      retired_.erase(retired_.begin() + static_cast<std::ptrdiff_t>(i));
    }
    any_retired_.store(!retired_.empty(), std::memory_order_seq_cst);
  }

  // Mutable: pinning changes nothing that a caller sees.
  std::atomic<Node*> current_;
  mutable std::atomic<bool> any_retired_{false};
  mutable std::array<Cell, kThreadSlots> cells_{};
  mutable Mutex mutex_;
  mutable std::vector<std::unique_ptr<Node>> retired_ RAGFS_GUARDED_BY(mutex_);
};

}  // namespace ragfs
