// Session: what the commands of one run share: the console, the global options and the Instance, opened at first use.
// Thread-safety: not synchronised; one command at a time.
#pragma once

#include <memory>
#include <string>

#include "ragfs/base/context.h"
#include "ragfs/base/error.h"
#include "ragfs/base/path.h"
#include "ragfs/cli/console.h"
#include "ragfs/config/config.h"
#include "ragfs/config/instance.h"

namespace ragfs::cli {

struct GlobalOptions {
  std::string config_file;
  std::string root;
  bool json = false;
  bool no_color = false;
  double timeout_s = 0;  // 0 = none
  bool bypass_cache = false;
};

class Session {
 public:
  // `program` is how the user called it, for what the program suggests to type.
  explicit Session(Console& console, std::string program = "ragfs") : console_(console), program_(std::move(program)) {}
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  Console& console() { return console_; }
  GlobalOptions& options() { return options_; }
  // "ragfs --root DIR": what a command line that sees the same tree begins with.
  std::string command_start() const;

  // True inside `ragfs shell`: commands share the Instance and its cache.
  bool in_shell() const { return in_shell_; }
  void set_in_shell() { in_shell_ = true; }

  // Where the configuration comes from, for messages: a file, or the directory of --root.
  std::string source() const;
  // By --root, --config, $RAGFS_CONFIG or ./ragfs.yaml. Errors: config; invalid_argument
  // when there is none, saying what to do.
  Result<Config> load() const;
  // Errors: those of load() and Instance::open().
  Result<Instance*> instance();

  // For one command: the deadline begins now.
  Context context() const;

 private:
  std::string file() const;  // of the configuration; "" = none
  Console& console_;
  const std::string program_;
  GlobalOptions options_;
  bool in_shell_ = false;
  std::unique_ptr<Instance> instance_;
};

}  // namespace ragfs::cli
