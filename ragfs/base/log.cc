#include "ragfs/base/log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "ragfs/base/clock.h"

namespace ragfs {
namespace {

constexpr std::string_view kNames[] = {"debug", "info", "warn", "error", "off"};
constexpr int64_t kNsPerSecond = 1'000'000'000;

void append_printable(std::string& out, std::string_view text) {
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
}

std::string timestamp() {
  const int64_t now_ns = Clock::system().wall_ns();
  const time_t seconds = now_ns / kNsPerSecond;
  struct tm parts = {};
  ::gmtime_r(&seconds, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec, now_ns % kNsPerSecond / 1'000'000);
}

}  // namespace

LogLevel log_level_of(std::string_view name) {
  const auto* const found = std::ranges::find(kNames, name);
  return found == std::end(kNames) ? LogLevel::info : static_cast<LogLevel>(found - std::begin(kNames));
}

Result<std::shared_ptr<Log>> Log::open(const std::string& file, LogLevel level) {
  if (file.empty()) return std::unique_ptr<Log>(new Log(STDERR_FILENO, false, level));
  const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (fd < 0) return std::unexpected(error_from_errno(errno, file));
  return std::unique_ptr<Log>(new Log(fd, true, level));
}

Log::~Log() {
  if (owned_) ::close(fd_);
}

void Log::write(LogLevel level, std::string_view line) noexcept {
  if (level < level_ || level == LogLevel::off) return;
  try {
    std::string text =
        owned_ ? fmt::format("{} {} ", timestamp(), kNames[static_cast<size_t>(level)]) : std::string("ragfs: ");
    append_printable(text, line);
    text += '\n';
    // A log that cannot be written must not stop the work.
    while (::write(fd_, text.data(), text.size()) < 0 && errno == EINTR) {
    }
  } catch (...) {
    left_out_.fetch_add(1);
  }
}

void Log::write_some(LogLevel level, std::string_view line) noexcept {
  const int64_t now = Clock::system().monotonic_ns() / kNsPerSecond + 1;
  int64_t seen = second_.load();
  if (seen != now && second_.compare_exchange_strong(seen, now)) in_second_.store(0);
  if (in_second_.fetch_add(1) >= kMostPerSecond) {
    left_out_.fetch_add(1);
    return;
  }
  if (const uint64_t left_out = left_out_.exchange(0); left_out != 0) {
    write(level, fmt::format("action=log_lines_left_out count={}", left_out));
  }
  write(level, line);
}

}  // namespace ragfs
