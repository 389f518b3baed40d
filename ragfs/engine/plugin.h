// Plugin: an engine plug-in that is loaded into this process, and the one engine that was made from it.
//
// The library is never unloaded: SDKs leave threads behind. A name of a plug-in's own is not searched in the program
// first (RTLD_DEEPBIND), because SDKs bring other versions of libraries that the program may have too.
// Thread-safety: all methods but close() may be called from any thread; nothing may be called after close().
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ragfs/base/context.h"
#include "ragfs/base/error.h"
#include "ragfs/engine/ragfs_engine_v1.h"
#include "ragfs/engine/wire.h"

namespace ragfs::engine {

// An answer by which an engine shows that it, and not what it was asked for, is in trouble.
inline bool engine_failed(int32_t status) {
  return status == RAGFS_ENGINE_UNAVAILABLE || status == RAGFS_ENGINE_TIMEOUT || status == RAGFS_ENGINE_INTERNAL;
}

class Plugin {
 public:
  // `options`: "name=value" each. Errors: config (no such file, no plug-in, another version, wrong options),
  // unavailable and timeout (the engine cannot be reached: trying again may help).
  static Result<std::unique_ptr<Plugin>> open(const std::string& file, const std::vector<std::string>& options);
  ~Plugin() = default;  // an engine that was not closed goes on until the process ends
  Plugin(const Plugin&) = delete;
  Plugin& operator=(const Plugin&) = delete;

  const ragfs_engine_v1& table() const { return *table_; }
  ragfs_engine_v1_handle* handle() const { return handle_; }
  const ragfs_engine_v1_abilities& abilities() const { return abilities_; }

  // get, put, erase or put_if_absent_tx; of more than max_batch_keys items as several calls (never of the last). Each
  // item has a status afterwards: TIMEOUT where the deadline had come before its call. True when the engine failed for
  // one of them, so that its incarnation may be another.
  bool call(Op op, std::span<ragfs_engine_v1_item> items, Deadline deadline) const;
  // A ragfs_engine_v1_status.
  int32_t health(Deadline deadline) const;
  // Not empty; another one when acknowledged writes may be gone.
  std::string incarnation() const;
  // Of the calling thread's last failure; "" = nothing to say.
  std::string last_error() const;
  // At most 64 sentences.
  std::vector<std::string> warnings() const;
  // Ends the engine on a thread of its own, which is given up at the deadline. No call may be inside. Errors: timeout.
  Result<void> close(Deadline deadline);

 private:
  Plugin(const ragfs_engine_v1* table, ragfs_engine_v1_handle* handle);

  const ragfs_engine_v1* const table_;
  ragfs_engine_v1_handle* const handle_;
  ragfs_engine_v1_abilities abilities_{};
};

}  // namespace ragfs::engine
