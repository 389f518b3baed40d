// Console: standard output and error of one command.
//
// Knows what a terminal is: colours and escaped names only there (NO_COLOR and --no-color win), plain bytes elsewhere.
// A reader that went away (`| head`) ends output silently; any other failed write is an error of the command, so that a
// full disk behind `>` is seen. Not for: reading. Thread-safety: not synchronised; one command at a time.
#pragma once

#include <string>
#include <string_view>

#include "ragfs/base/error.h"
#include "ragfs/cli/exit_code.h"

namespace ragfs::cli {

enum class Style : uint8_t { plain, directory, other, good, bad, warn, dim, match };

class Console {
 public:
  Console(int out_fd, int err_fd);
  ~Console();
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  void set_json(bool json) { json_ = json; }
  void forbid_color() { color_forbidden_ = true; }

  bool json() const { return json_; }
  bool out_is_terminal() const { return out_terminal_; }
  bool err_is_terminal() const { return err_terminal_; }

  // Buffered. Text after a failed write is dropped.
  void out(std::string_view text);
  void line(std::string_view text) {
    out(text);
    out("\n");
  }
  void err(std::string_view text);
  // True when nobody reads standard output any more: long work may stop.
  bool out_closed() const { return out_errno_ != 0; }

  // A file name for standard output: escaped on a terminal, its own bytes elsewhere.
  std::string name(std::string_view bytes) const;
  // `text` in a colour of standard output, when it has one.
  std::string styled(Style style, std::string_view text) const;

  // "ragfs: COMMAND: what", and the hint on a line of its own. The exit code that belongs to it.
  ExitCode report(std::string_view command, const Error& error);
  ExitCode report(std::string_view command, ErrorCode code, std::string message);
  void warn(std::string_view command, std::string_view what);

  // Writes what is buffered. `code`, or ExitCode::io when standard output failed for another reason than a closed pipe.
  ExitCode finish(ExitCode code);

 private:
  void flush();
  bool colored(bool terminal) const;

  const int out_fd_;
  const int err_fd_;
  const bool out_terminal_;
  const bool err_terminal_;
  bool json_ = false;
  bool color_forbidden_ = false;
  int out_errno_ = 0;
  std::string buffer_;
};

}  // namespace ragfs::cli
