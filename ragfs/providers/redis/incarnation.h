// Incarnation: one opaque id over all servers that hold our objects, and who wants to know when it changes.
//
// Each server has a position (a primary's name; in a cluster a node). A position that shows another identity, or a slot
// that another node took over without its owner's word, is a change: acknowledged writes may be gone.
// Thread-safety: all methods may be called from any thread. The listener is called without a lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "ragfs/base/sync.h"
#include "ragfs/cache/incarnation_listener.h"
#include "ragfs/providers/redis/server_identity.h"

namespace ragfs::redis {

class Incarnation {
 public:
  // A new connection to `position` is about to be used. True when that is a change; the listener has been called then.
  bool observe(const std::string& position, const ServerIdentity& identity);
  // A change that no connection showed.
  void changed();
  // "" before anything was observed.
  std::string text() const;
  uint64_t changes() const { return changes_.load(); }
  // As CacheProvider::watch_incarnation().
  void watch(std::function<void()> listener) { listener_.watch(std::move(listener)); }

 private:
  void renew_locked() RAGFS_REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::map<std::string, std::string> identities_ RAGFS_GUARDED_BY(mutex_);
  std::string text_ RAGFS_GUARDED_BY(mutex_);
  uint64_t salt_ RAGFS_GUARDED_BY(mutex_) = 0;  // of changes that identities do not show
  IncarnationListener listener_;
  std::atomic<uint64_t> changes_{0};
};

}  // namespace ragfs::redis
