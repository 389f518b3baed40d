#include "ragfs/server/access_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>

#include "ragfs/base/clock.h"
#include "ragfs/server/reply.h"

namespace ragfs::server {

Result<std::unique_ptr<AccessLog>> AccessLog::open(const std::string& file) {
  if (file.empty()) return std::unique_ptr<AccessLog>(new AccessLog(-1, false));
  if (file == "-") return std::unique_ptr<AccessLog>(new AccessLog(STDERR_FILENO, false));
  const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
  if (fd < 0) return std::unexpected(error_from_errno(errno, "server.access_log: " + file));
  return std::unique_ptr<AccessLog>(new AccessLog(fd, true));
}

AccessLog::~AccessLog() {
  flush();
  if (owned_) ::close(fd_);
}

void AccessLog::add(const AccessEntry& entry) {
  if (!enabled()) return;
  Json json;
  json["time"] = rfc3339(Clock::system().wall_ns());
  json["remote"] = entry.remote;
  if (entry.caller != 0) json["token"] = entry.caller;
  if (!entry.account.empty()) json["account"] = entry.account;
  json["method"] = entry.method;
  json["route"] = entry.route;
  if (!entry.path.empty()) json["path"] = entry.path;
  json["status"] = entry.status;
  json["bytes_in"] = entry.bytes_in;
  json["bytes_out"] = entry.bytes_out;
  json["ms"] = static_cast<double>(entry.took_ns / 1000) / 1000.0;
  if (!entry.complete) json["complete"] = false;
  std::string line = dump(json) + "\n";
  const MutexLock lock(mutex_);
  if (buffer_.size() + line.size() > kMaxBuffered_bytes) {
    lost_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  buffer_ += line;
}

void AccessLog::flush() {
  std::string lines;
  {
    const MutexLock lock(mutex_);
    lines.swap(buffer_);
  }
  for (size_t at = 0; at < lines.size();) {
    const ssize_t n = ::write(fd_, lines.data() + at, lines.size() - at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      lost_.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    at += static_cast<size_t>(n);
  }
}

}  // namespace ragfs::server
