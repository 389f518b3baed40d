#include "ragfs/fs/line_search.h"

#include <re2/re2.h>
#include <string.h>

#include <algorithm>
#include <cstring>

namespace ragfs {
namespace {

constexpr size_t kBinaryProbeBytes = size_t{64} << 10;
constexpr size_t kMaxPatternBytes = size_t{64} << 10;
constexpr int64_t kMaxRegexBytes = int64_t{32} << 20;

// The pattern itself when it is plain text. Bytes that are no UTF-8 are searched as U+FFFD, which is not in the file.
std::string literal_of(std::string_view pattern, bool case_insensitive) {
  const bool plain = !case_insensitive && pattern.find_first_of("\\.+*?()|[]{}^$\n") == std::string_view::npos &&
                     pattern.find("\xEF\xBF\xBD") == std::string_view::npos;
  return std::string(plain ? pattern : std::string_view{});
}

}  // namespace

LinePattern::LinePattern(std::unique_ptr<re2::RE2> regex, std::string literal)
    : regex_(std::move(regex)), literal_(std::move(literal)) {}
LinePattern::LinePattern(LinePattern&&) noexcept = default;
LinePattern& LinePattern::operator=(LinePattern&&) noexcept = default;
LinePattern::~LinePattern() = default;

Result<LinePattern> LinePattern::compile(std::string_view pattern, bool case_insensitive) {
  if (pattern.size() > kMaxPatternBytes) {
    return fail(ErrorCode::invalid_operation, "Invalid regex pattern: longer than 64 KiB");
  }
  re2::RE2::Options options;
  options.set_case_sensitive(!case_insensitive);
  options.set_log_errors(false);
  options.set_max_mem(kMaxRegexBytes);
  auto regex = std::make_unique<re2::RE2>(re2::StringPiece(pattern.data(), pattern.size()), options);
  if (!regex->ok()) return fail(ErrorCode::invalid_operation, "Invalid regex pattern: " + regex->error());
  return LinePattern(std::move(regex), literal_of(pattern, case_insensitive));
}

bool LinePattern::matches(std::string_view line) const {
  return re2::RE2::PartialMatch(re2::StringPiece(line.data(), line.size()), *regex_);
}

LineSearch::LineSearch(const LinePattern& pattern, const LineSearchOptions& options, std::string label, uint64_t most,
                       const GrepSink& sink)
    : pattern_(pattern), options_(options), label_(std::move(label)), most_(most), sink_(sink) {
  options_.before_context = std::min(options_.before_context, kMaxContextLines);
  options_.after_context = std::min(options_.after_context, kMaxContextLines);
}

// Looks at the beginning of the file, which is in the first piece. False: nothing to search.
bool LineSearch::begin(std::string_view& bytes) {
  begun_ = true;
  if (options_.decode_bom) {
    const bool little = bytes.starts_with("\xFF\xFE");
    if (little || bytes.starts_with("\xFE\xFF")) {
      decoder_ = std::make_unique<Utf16Decoder>(!little);
      bytes.remove_prefix(2);
      return true;
    }
    if (bytes.starts_with("\xEF\xBB\xBF")) bytes.remove_prefix(3);
  }
  const size_t probed = std::min(bytes.size(), kBinaryProbeBytes);
  return !options_.skip_binary || probed == 0 || std::memchr(bytes.data(), '\0', probed) == nullptr;
}

bool LineSearch::feed(std::string_view bytes) {
  if (ended_) return false;
  if (!begun_ && !begin(bytes)) {
    ended_ = true;
    return false;
  }
  if (decoder_ == nullptr) return feed_text(bytes);
  decoded_.clear();
  decoder_->feed(bytes, decoded_);
  return feed_text(decoded_);
}

bool LineSearch::feed_text(std::string_view text) {
  if (options_.skip_binary && decoder_ == nullptr) {
    const size_t nul = text.find('\0');
    binary_ = nul != std::string_view::npos;
    text = text.substr(0, nul);
  }
  while (!text.empty() && !ended_) {
    skip_lines(text);
    const size_t newline = text.find('\n');
    const std::string_view piece = text.substr(0, newline);
    const size_t room = kMaxLineBytes - partial_.size();
    if (newline == std::string_view::npos) {
      partial_ += piece.substr(0, room);
      break;
    }
    text.remove_prefix(newline + 1);
    if (partial_.empty()) {
      line(piece.substr(0, room));
    } else {
      partial_ += piece.substr(0, room);
      line(partial_);
      partial_.clear();
    }
    ended_ = !wanted();
  }
  ended_ = ended_ || binary_;
  return !ended_;
}

// One look at all of the text costs less than a look at each line, and most files hold no match.
void LineSearch::skip_lines(std::string_view& text) {
  const std::string_view literal = pattern_.literal();
  if (literal.empty() || !partial_.empty() || !pending_.empty() || options_.before_context > 0) return;
  const void* at = ::memmem(text.data(), text.size(), literal.data(), literal.size());
  const size_t candidate =
      at == nullptr ? text.size() : static_cast<size_t>(static_cast<const char*>(at) - text.data());
  const size_t newline = text.substr(0, candidate).rfind('\n');
  if (newline == std::string_view::npos) return;
  line_number_ += static_cast<uint64_t>(std::ranges::count(text.substr(0, newline + 1), '\n'));
  text.remove_prefix(newline + 1);
}

void LineSearch::finish() {
  if (decoder_ != nullptr && !ended_) {
    decoded_.clear();
    decoder_->finish(decoded_);
    feed_text(decoded_);
  }
  // The line that a NUL cuts is not text.
  if (!ended_ && !partial_.empty()) line(partial_);
  partial_.clear();
  ended_ = true;
  if (!stopped_) give_complete(true);
}

// Handles one line without its '\n'.
void LineSearch::line(std::string_view raw) {
  ++line_number_;
  if (raw.ends_with('\r')) raw.remove_suffix(1);
  std::string replaced;
  if (!is_valid_utf8(raw)) {
    replaced = lossy_utf8(raw);
    raw = replaced;
  }
  for (GrepMatch& match : pending_) {
    if (match.after.size() < options_.after_context) match.after.push_back({line_number_, std::string(raw)});
  }
  if (found_ < most_ && pattern_.matches(raw)) {
    ++found_;
    pending_.push_back({label_, line_number_, std::string(raw), {before_.begin(), before_.end()}, {}});
  }
  if (options_.before_context > 0) {
    if (before_.size() == options_.before_context) before_.pop_front();
    before_.push_back({line_number_, std::string(raw)});
  }
  give_complete(false);
}

// Gives the matches that have all their lines, or all of them.
void LineSearch::give_complete(bool all) {
  while (!pending_.empty() && (all || pending_.front().after.size() == options_.after_context)) {
    GrepMatch match = std::move(pending_.front());
    pending_.pop_front();
    if (sink_(std::move(match))) continue;
    stopped_ = true;
    pending_.clear();
  }
}

}  // namespace ragfs
