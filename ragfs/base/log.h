// Log: lines for the operator, to standard error or a file.
//
// A line is one write, so that lines of several threads and processes do not mix. Control characters in it are shown
// as \\xNN: a file's name cannot forge a line. Not for: requests (access_log.h) or anything on the way of a hit.
// Thread-safety: all methods may be called from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "ragfs/base/error.h"

namespace ragfs {

enum class LogLevel : uint8_t { debug, info, warn, error, off };
// "debug", "info", ...; anything else is info.
LogLevel log_level_of(std::string_view name);

class Log {
 public:
  // `file`: "" = standard error; else it is appended to, and made for its owner alone. Errors: those of opening it.
  static Result<std::shared_ptr<Log>> open(const std::string& file, LogLevel level);
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  void write(LogLevel level, std::string_view line) noexcept;
  // As write(), but at most kMostPerSecond of them in a second; the others are counted, and told with the next one.
  void write_some(LogLevel level, std::string_view line) noexcept;
  static constexpr uint32_t kMostPerSecond = 20;

 private:
  Log(int fd, bool owned, LogLevel level) : fd_(fd), owned_(owned), level_(level) {}

  const int fd_;
  const bool owned_;
  const LogLevel level_;
  std::atomic<int64_t> second_{0};
  std::atomic<uint32_t> in_second_{0};
  std::atomic<uint64_t> left_out_{0};
};

}  // namespace ragfs
