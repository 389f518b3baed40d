// LineSearch: finds the matching lines of one file, fed in pieces, with context lines.
//
// For: grep. Memory is bounded by the longest line kept, the context asked for and one piece, whatever the file's size.
// Not for: searching several files at once.
// Thread-safety: belongs to one thread. A LinePattern is immutable and may be shared.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "ragfs/base/error.h"
#include "ragfs/fs/file_system.h"
#include "ragfs/fs/utf8.h"

namespace re2 {
class RE2;
}

namespace ragfs {

// Of a longer line only the beginning is searched and shown.
inline constexpr size_t kMaxLineBytes = size_t{16} << 20;
inline constexpr uint64_t kMaxContextLines = 1000;

class LinePattern {
 public:
  // Errors: invalid_operation `Invalid regex pattern: ...`.
  static Result<LinePattern> compile(std::string_view pattern, bool case_insensitive);
  LinePattern(LinePattern&&) noexcept;
  LinePattern& operator=(LinePattern&&) noexcept;
  ~LinePattern();
  // `line` must be valid UTF-8.
  bool matches(std::string_view line) const;
  // What every matching line holds as it stands in the file; "" = unknown.
  std::string_view literal() const { return literal_; }

 private:
  LinePattern(std::unique_ptr<re2::RE2> regex, std::string literal);
  std::unique_ptr<re2::RE2> regex_;
  std::string literal_;
};

struct LineSearchOptions {
  uint64_t before_context = 0;  // lines, at most kMaxContextLines
  uint64_t after_context = 0;   // lines, at most kMaxContextLines
  bool skip_binary = false;     // a file whose first 64 KiB hold a NUL gives nothing; a later NUL ends the search
  bool decode_bom = false;      // UTF-16 with a byte order mark is decoded, a UTF-8 mark is dropped
};

class LineSearch {
 public:
  // `sink` receives the matches in the order of their lines; false stops. At most `most` matches are given.
  LineSearch(const LinePattern& pattern, const LineSearchOptions& options, std::string label, uint64_t most,
             const GrepSink& sink);

  // Searches what `bytes` completes. False when nothing further is wanted of this file.
  bool feed(std::string_view bytes);
  // The file ends here.
  void finish();

  uint64_t found() const { return found_; }
  // The sink asked to stop.
  bool stopped() const { return stopped_; }

 private:
  bool begin(std::string_view& bytes);
  bool feed_text(std::string_view text);
  // Passes by the lines that cannot match.
  void skip_lines(std::string_view& text);
  void line(std::string_view raw);
  void give_complete(bool all);
  bool wanted() const { return !stopped_ && (found_ < most_ || !pending_.empty()); }

  const LinePattern& pattern_;
  LineSearchOptions options_;
  const std::string label_;
  const uint64_t most_;
  const GrepSink& sink_;

  bool begun_ = false;
  bool binary_ = false;  // a NUL was met
  bool ended_ = false;   // no further line is searched
  bool stopped_ = false;
  std::unique_ptr<Utf16Decoder> decoder_;
  std::string decoded_;
  std::string partial_;  // of a line that goes on in the next piece
  uint64_t line_number_ = 0;
  uint64_t found_ = 0;
  std::deque<GrepLine> before_;
  std::deque<GrepMatch> pending_;  // matches that wait for lines after them
};

}  // namespace ragfs
