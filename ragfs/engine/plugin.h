// Plugin: an engine plug-in that is loaded into this process, and the one engine that was made from it.
//
// The library is never unloaded: SDKs leave threads behind. A name of a plug-in's own is not searched in the program
// first (RTLD_DEEPBIND), because SDKs bring other versions of libraries that the program may have too.
// Thread-safety: all methods but close() may be called from any thread; nothing may be called after close().
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ragfs/base/context.h"
#include "ragfs/base/error.h"
#include "ragfs/engine/ragfs_engine_v1.h"

namespace ragfs::engine {

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

  std::string incarnation() const;
  std::string last_error() const;
  std::vector<std::string> warnings() const;
  // Ends the engine on a thread of its own, which is given up at the deadline. Errors: timeout.
  Result<void> close(Deadline deadline);

 private:
  Plugin(const ragfs_engine_v1* table, ragfs_engine_v1_handle* handle);

  const ragfs_engine_v1* const table_;
  ragfs_engine_v1_handle* const handle_;
  ragfs_engine_v1_abilities abilities_{};
};

}  // namespace ragfs::engine
