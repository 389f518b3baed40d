#include "ragfs/fs/utf8.h"

#include <cstddef>

namespace ragfs {
namespace {

constexpr char32_t kReplacement = 0xFFFD;

struct Sequence {
  char32_t code = 0;
  size_t length = 0;  // bytes read: of the whole sequence, or of its longest valid beginning
  bool valid = false;
};

// The sequence at the front of `text` (table 3-7 of the Unicode standard).
Sequence read_sequence(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return {lead, 1, true};
  size_t length = 0;
  unsigned char low = 0x80;
  unsigned char high = 0xBF;
  if (lead >= 0xC2 && lead <= 0xDF) {
    length = 2;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    length = 3;
    if (lead == 0xE0) low = 0xA0;
    if (lead == 0xED) high = 0x9F;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    length = 4;
    if (lead == 0xF0) low = 0x90;
    if (lead == 0xF4) high = 0x8F;
  } else {
    return {0, 1, false};
  }
  char32_t code = lead & (0xFFU >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    if (i >= text.size()) return {0, i, false};
    const auto next = static_cast<unsigned char>(text[i]);
    if (next < low || next > high) return {0, i, false};
    low = 0x80;
    high = 0xBF;
    code = (code << 6) | (next & 0x3FU);
  }
  return {code, length, true};
}

}  // namespace

char32_t take_code_point(std::string_view& text) {
  const Sequence sequence = read_sequence(text);
  const auto first = static_cast<unsigned char>(text[0]);
  text.remove_prefix(sequence.valid ? sequence.length : 1);
  return sequence.valid ? sequence.code : kMaxCodePoint + 1 + first;
}

void append_utf8(std::string& out, char32_t code) {
  const auto tail = [&](int shift) { out += static_cast<char>(0x80 | ((code >> shift) & 0x3F)); };
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xC0 | (code >> 6));
    tail(0);
  } else if (code < 0x10000) {
    out += static_cast<char>(0xE0 | (code >> 12));
    tail(6);
    tail(0);
  } else {
    out += static_cast<char>(0xF0 | (code >> 18));
    tail(12);
    tail(6);
    tail(0);
  }
}

bool is_valid_utf8(std::string_view text) {
  while (!text.empty()) {
    const Sequence sequence = read_sequence(text);
    if (!sequence.valid) return false;
    text.remove_prefix(sequence.length);
  }
  return true;
}

std::string lossy_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 8);
  while (!text.empty()) {
    const Sequence sequence = read_sequence(text);
    if (sequence.valid) {
      out += text.substr(0, sequence.length);
    } else {
      append_utf8(out, kReplacement);
    }
    text.remove_prefix(sequence.length);
  }
  return out;
}

void Utf16Decoder::feed(std::string_view bytes, std::string& out) {
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (!has_half_) {
      half_ = byte;
      has_half_ = true;
      continue;
    }
    has_half_ = false;
    unit(static_cast<char16_t>(big_endian_ ? half_ << 8 | byte : byte << 8 | half_), out);
  }
}

void Utf16Decoder::unit(char16_t value, std::string& out) {
  const bool is_low = value >= 0xDC00 && value <= 0xDFFF;
  if (high_surrogate_ != 0) {
    const char32_t high = high_surrogate_;
    high_surrogate_ = 0;
    if (is_low) {
      append_utf8(out, 0x10000 + ((high - 0xD800) << 10) + (value - 0xDC00U));
      return;
    }
    append_utf8(out, kReplacement);
  }
  if (value >= 0xD800 && value <= 0xDBFF) {
    high_surrogate_ = value;
  } else {
    append_utf8(out, is_low ? kReplacement : value);
  }
}

void Utf16Decoder::finish(std::string& out) {
  if (has_half_ || high_surrogate_ != 0) append_utf8(out, kReplacement);
  has_half_ = false;
  high_surrogate_ = 0;
}

}  // namespace ragfs
