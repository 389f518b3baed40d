#include "ragfs/providers/redis/resp_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>

namespace ragfs::redis {
namespace {

constexpr size_t kBufferBytes = 32 << 10;
// Smaller strings are copied out of the buffer: that is cheaper than receiving them alone.
constexpr size_t kLargeBytes = 12 << 10;
constexpr size_t kLineEnd = 2;         // "\r\n"
constexpr size_t kVerbatimPrefix = 4;  // "txt:"
constexpr size_t kFirstReserve = 1024;

std::optional<int64_t> number_in(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

Bytes without_prefix(Bytes bytes, bool verbatim) { return verbatim ? std::move(bytes).slice(kVerbatimPrefix) : bytes; }

}  // namespace

RespParser::RespParser(RespLimits limits)
    : limits_(limits), buffer_(std::make_unique_for_overwrite<char[]>(kBufferBytes)), capacity_(kBufferBytes) {}

std::unexpected<Error> RespParser::broken(std::string_view why) {
  broken_ = true;
  return fail(ErrorCode::invalid_data, fmt::format("the answer is not RESP: {}", why));
}

std::span<char> RespParser::space() {
  if (large_) return {large_->buffer.data() + large_->filled, large_->size + kLineEnd - large_->filled};
  if (begin_ == end_) begin_ = end_ = 0;
  // Room for the longest thing that is not received on its own.
  const size_t wanted = std::max(limits_.max_line_bytes, kLargeBytes + 64);
  if (capacity_ - end_ < wanted && begin_ > 0) {
    std::memmove(buffer_.get(), buffer_.get() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  if (capacity_ == end_) {
    auto larger = std::make_unique_for_overwrite<char[]>(capacity_ * 2);
    std::memcpy(larger.get(), buffer_.get(), end_);
    buffer_ = std::move(larger);
    capacity_ *= 2;
  }
  return {buffer_.get() + end_, capacity_ - end_};
}

void RespParser::commit(size_t count) {
  if (large_) {
    large_->filled += count;
  } else {
    end_ += count;
  }
}

Result<std::optional<RespValue>> RespParser::next() {
  if (broken_) return broken("it was broken before");
  for (;;) {
    RespValue value;
    const Result<Step> step = large_ ? finish_large(value) : read_element(value);
    if (!step) return std::unexpected(step.error());
    if (*step == Step::need_bytes) return std::nullopt;
    if (*step == Step::opened) continue;
    if (!place(value)) continue;
    elements_ = 0;
    reply_bytes_ = 0;
    return std::optional<RespValue>(std::move(value));
  }
}

bool RespParser::place(RespValue& value) {
  while (!open_.empty()) {
    Open& top = open_.back();
    if (!top.attribute) top.value.items.push_back(std::move(value));
    if (--top.missing > 0) return false;
    const bool dropped = top.attribute;
    value = std::move(top.value);
    open_.pop_back();
    if (dropped) return false;  // what it describes comes next
  }
  return true;
}

Result<RespParser::Step> RespParser::read_element(RespValue& value) {
  const std::string_view bytes = unread();
  const size_t at = bytes.substr(0, limits_.max_line_bytes).find('\n');
  if (at == std::string_view::npos) {
    if (bytes.size() >= limits_.max_line_bytes) return broken("a line is too long");
    return Step::need_bytes;
  }
  if (at < kLineEnd || bytes[at - 1] != '\r') return broken("a line does not end in CR LF");
  const std::string_view line = bytes.substr(1, at - kLineEnd);
  const char kind = bytes[0];
  const size_t header_size = at + 1;
  if (kind == '$' || kind == '=' || kind == '!') return read_bulk(bytes.substr(0, at - 1), header_size, value);
  // `line` stays valid: nothing is received before it has been looked at.
  begin_ += header_size;
  if (++elements_ > limits_.max_elements) return broken("it has too many elements");
  switch (kind) {
    case '+': value.type = RespType::status; break;
    case '-': value.type = RespType::error; break;
    case ',':
    case '(': value.type = RespType::text; break;
    case '_': return Step::value;
    case ':': {
      const auto number = number_in(line);
      if (!number) return broken("an integer is none");
      value.type = RespType::integer;
      value.integer = *number;
      return Step::value;
    }
    case '#':
      if (line != "t" && line != "f") return broken("a boolean is none");
      value.type = RespType::integer;
      value.integer = line == "t" ? 1 : 0;
      return Step::value;
    case '*':
    case '~':
    case '%':
    case '>':
    case '|': return open_aggregate(kind, line, value);
    default: return broken(fmt::format("a reply begins with byte {:#04x}", static_cast<unsigned char>(kind)));
  }
  value.text = Bytes::copy(line);
  return Step::value;
}

Result<RespParser::Step> RespParser::read_bulk(std::string_view line, size_t header_size, RespValue& value) {
  const auto size = number_in(line.substr(1));
  const bool verbatim = line[0] == '=';
  if (!size || *size < -1 || *size > static_cast<int64_t>(limits_.max_bulk_bytes)) {
    return broken("a string has an impossible length");
  }
  if (*size == -1) {
    begin_ += header_size;
    if (++elements_ > limits_.max_elements) return broken("it has too many elements");
    return Step::value;
  }
  const size_t length = static_cast<size_t>(*size);
  if (verbatim && length < kVerbatimPrefix) return broken("a verbatim string without its kind");
  if (reply_bytes_ + length > limits_.max_reply_bytes) return broken("it is too large");
  value.type = line[0] == '!' ? RespType::error : RespType::text;
  const std::string_view body = unread().substr(header_size);
  if (body.size() < length + kLineEnd && length < kLargeBytes) return Step::need_bytes;
  if (++elements_ > limits_.max_elements) return broken("it has too many elements");
  reply_bytes_ += length;
  if (body.size() >= length + kLineEnd) {
    if (body.substr(length, kLineEnd) != "\r\n") return broken("a string is longer than it says");
    value.text = without_prefix(Bytes::copy(body.substr(0, length)), verbatim);
    begin_ += header_size + length + kLineEnd;
    return Step::value;
  }
  large_.emplace(LargeBulk{ByteBuffer(length + kLineEnd), length, body.size(), value.type, verbatim});
  std::memcpy(large_->buffer.data(), body.data(), body.size());
  begin_ = end_ = 0;
  return Step::need_bytes;
}

Result<RespParser::Step> RespParser::finish_large(RespValue& value) {
  if (large_->filled < large_->size + kLineEnd) return Step::need_bytes;
  if (std::memcmp(large_->buffer.data() + large_->size, "\r\n", kLineEnd) != 0) {
    return broken("a string is longer than it says");
  }
  value.type = large_->type;
  value.text = without_prefix(std::move(large_->buffer).take(large_->size), large_->verbatim);
  large_.reset();
  return Step::value;
}

Result<RespParser::Step> RespParser::open_aggregate(char kind, std::string_view line, RespValue& value) {
  const auto count = number_in(line);
  const bool pairs = kind == '%' || kind == '|';
  if (!count || *count < -1 || (*count == -1 && kind != '*')) return broken("an array has an impossible length");
  if (*count == -1) return Step::value;  // RESP2's null array
  if (*count > static_cast<int64_t>(limits_.max_elements)) return broken("it has too many elements");
  if (open_.size() >= limits_.max_depth) return broken("it is nested too deeply");
  const size_t missing = static_cast<size_t>(*count) * (pairs ? 2 : 1);
  if (elements_ + missing > limits_.max_elements) return broken("it has too many elements");
  value.type = kind == '>' ? RespType::push : RespType::array;
  if (missing == 0) return kind == '|' ? Step::opened : Step::value;
  value.items.reserve(std::min(missing, kFirstReserve));
  open_.push_back({std::move(value), missing, kind == '|'});
  return Step::opened;
}

}  // namespace ragfs::redis
