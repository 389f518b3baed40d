// Deaths: which generations of which hashes died while somebody is about to make copies of them findable.
//
// For: writers and recovery, which list copies (in a meta file, in the index) that may be removed at the same moment.
// They open a Window before they look at what is alive; from then on every death that concerns the window is kept
// until it closes, and admit() lets a copy into the index only if it is alive, as one step with note(). So a removal
// either meets the copy in the index or is met by admit().
// Bounded: with too many deaths in one window everything in doubt counts as dead. Not for: what died before a window
// was opened (the tombstone log, and the caller's own queue, know that).
// Thread-safety: all methods may be called from any thread; no system call under its lock.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <list>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "ragfs/base/sync.h"

namespace ragfs {

class Deaths {
 public:
  static constexpr size_t kMostKept = size_t{1} << 22;
  using HashSet = std::unordered_set<uint64_t>;

  class Window {
   public:
    // Concerned with these hashes alone, whose lowest generation is `oldest_generation`.
    Window(Deaths& deaths, HashSet hashes, uint64_t oldest_generation) : deaths_(deaths) {
      const MutexLock lock(deaths_.mutex_);
      at_ = deaths_.open_.insert(deaths_.open_.end(), {std::move(hashes), oldest_generation, false});
    }
    // Concerned with every hash.
    explicit Window(Deaths& deaths) : deaths_(deaths) {
      const MutexLock lock(deaths_.mutex_);
      at_ = deaths_.open_.insert(deaths_.open_.end(), {{}, 0, true});
    }
    ~Window() {
      const MutexLock lock(deaths_.mutex_);
      deaths_.open_.erase(at_);
      if (!deaths_.open_.empty()) return;
      deaths_.dead_.clear();
      deaths_.overflowed_ = false;
    }
    Window(const Window&) = delete;
    Window& operator=(const Window&) = delete;

   private:
    friend class Deaths;
    struct Open {
      HashSet hashes;
      uint64_t oldest_generation = 0;
      bool all = false;
    };
    Deaths& deaths_;
    std::list<Open>::iterator at_;
  };

  // Copies of `hash` up to this generation are dead; true if a window is concerned. Called before they are taken out
  // of the index.
  bool note(uint64_t hash, uint64_t generation) {
    const MutexLock lock(mutex_);
    const auto concerned = [&](const Window::Open& open) { return open.all || open.hashes.contains(hash); };
    if (std::none_of(open_.begin(), open_.end(), concerned)) return false;
    if (dead_.size() >= kMostKept && !dead_.contains(hash)) {
      overflowed_ = true;
      return true;
    }
    uint64_t& dead = dead_[hash];
    dead = std::max(dead, generation);
    return true;
  }

  bool is_dead(uint64_t hash, uint64_t generation) {
    const MutexLock lock(mutex_);
    return is_dead_locked(hash, generation);
  }

  // Runs `insert`, which puts the copy into the index, unless the copy is dead; whether it answered true.
  template <typename Insert>
  bool admit(uint64_t hash, uint64_t generation, Insert insert) {
    const MutexLock lock(mutex_);
    return !is_dead_locked(hash, generation) && insert();
  }

  // Of the copies that writers are at work on; UINT64_MAX when there are none. 0 while recovery runs.
  uint64_t oldest_generation() const {
    const MutexLock lock(mutex_);
    uint64_t oldest = UINT64_MAX;
    for (const Window::Open& open : open_) oldest = std::min(oldest, open.oldest_generation);
    return oldest;
  }

 private:
  bool is_dead_locked(uint64_t hash, uint64_t generation) RAGFS_REQUIRES(mutex_) {
    if (overflowed_) return true;
    const auto found = dead_.find(hash);
    return found != dead_.end() && found->second >= generation;
  }

  mutable Mutex mutex_;
  std::list<Window::Open> open_ RAGFS_GUARDED_BY(mutex_);
  std::unordered_map<uint64_t, uint64_t> dead_ RAGFS_GUARDED_BY(mutex_);  // hash -> highest dead generation
  bool overflowed_ RAGFS_GUARDED_BY(mutex_) = false;
};

}  // namespace ragfs
