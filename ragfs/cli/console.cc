#include "ragfs/cli/console.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "ragfs/cli/json_writer.h"
#include "ragfs/cli/text.h"

namespace ragfs::cli {
namespace {

constexpr size_t kBufferBytes = 64 * 1024;

// All of `text`; the errno of a write that failed, 0 when all was written.
int write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n >= 0) {
      text.remove_prefix(static_cast<size_t>(n));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      struct pollfd wait{fd, POLLOUT, 0};
      ::poll(&wait, 1, 1000);
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

bool is_terminal(int fd) {
  if (::isatty(fd) == 0) return false;
  const char* term = std::getenv("TERM");
  return term == nullptr || std::strcmp(term, "dumb") != 0;
}

std::string_view code_of(Style style) {
  switch (style) {
    case Style::plain: return "";
    case Style::directory: return "\x1b[1;34m";
    case Style::other: return "\x1b[36m";
    case Style::good: return "\x1b[32m";
    case Style::bad: return "\x1b[1;31m";
    case Style::warn: return "\x1b[33m";
    case Style::dim: return "\x1b[2m";
    case Style::match: return "\x1b[35m";
  }
  return "";
}

}  // namespace

Console::Console(int out_fd, int err_fd)
    : out_fd_(out_fd), err_fd_(err_fd), out_terminal_(is_terminal(out_fd)), err_terminal_(is_terminal(err_fd)) {}

Console::~Console() { flush(); }

bool Console::colored(bool terminal) const {
  const char* no_color = std::getenv("NO_COLOR");
  return terminal && !json_ && !color_forbidden_ && (no_color == nullptr || *no_color == '\0');
}

void Console::out(std::string_view text) {
  if (out_errno_ != 0) return;
  if (text.size() >= kBufferBytes) {
    flush();
    if (out_errno_ == 0) out_errno_ = write_all(out_fd_, text);
    return;
  }
  buffer_ += text;
  if (buffer_.size() >= kBufferBytes) flush();
}

void Console::flush() {
  if (buffer_.empty()) return;
  if (out_errno_ == 0) out_errno_ = write_all(out_fd_, buffer_);
  buffer_.clear();
}

void Console::err(std::string_view text) {
  flush();  // so that the two streams keep their order on a terminal
  // A closed standard error leaves nobody to tell.
  write_all(err_fd_, text);
}

std::string Console::name(std::string_view bytes) const {
  return out_terminal_ ? printable(bytes) : std::string(bytes);
}

std::string Console::styled(Style style, std::string_view text) const {
  if (style == Style::plain || !colored(out_terminal_)) return std::string(text);
  return fmt::format("{}{}\x1b[0m", code_of(style), text);
}

ExitCode Console::report(std::string_view command, const Error& error) {
  const ExitCode code = exit_code_of(error.code);
  const std::string_view hint = hint_for(error.code);
  if (json_) {
    JsonWriter json;
    json.begin_object().key("error").begin_object();
    json.field("command", command).field("kind", kind_name(error.code)).name("message", error.message);
    if (!hint.empty()) json.field("hint", hint);
    json.field("exit_code", static_cast<int>(code)).end_object().end_object();
    err(json.text() + "\n");
    return code;
  }
  const bool color = colored(err_terminal_);
  // Several problems of a configuration come a line each.
  const bool says_all = error.code == ErrorCode::config || error.code == ErrorCode::invalid_argument;
  const std::string what = says_all ? error.message : error.text();
  std::string text;
  for (size_t from = 0; from <= what.size();) {
    const size_t end = std::min(what.find('\n', from), what.size());
    text += fmt::format("{}ragfs: {}{}: {}\n", color ? code_of(Style::bad) : "", command, color ? "\x1b[0m" : "",
                        printable(std::string_view(what).substr(from, end - from)));
    from = end + 1;
  }
  if (!hint.empty()) text += fmt::format("  {}\n", hint);
  err(text);
  return code;
}

ExitCode Console::report(std::string_view command, ErrorCode code, std::string message) {
  return report(command, Error{code, std::move(message), 0});
}

void Console::warn(std::string_view command, std::string_view what) {
  err(fmt::format("ragfs: {}: warning: {}\n", command, printable(what)));
}

ExitCode Console::finish(ExitCode code) {
  flush();
  if (out_errno_ == 0 || out_errno_ == EPIPE) return code;
  const int error = out_errno_;
  out_errno_ = EPIPE;  // said once
  report("output", Error{ErrorCode::io, fmt::format("standard output: {}", std::strerror(error)), error});
  return code == ExitCode::ok ? ExitCode::io : code;
}

}  // namespace ragfs::cli
