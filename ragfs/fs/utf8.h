// UTF-8 and UTF-16 text as the walking code needs it: code points of names, lossy text of contents.
//
// For: glob, grep and the order of names, which meet bytes that need not be valid UTF-8. Not for: paths as such (they
// are bytes and stay as they are).
// Thread-safety: pure functions; a Utf16Decoder belongs to one thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ragfs {

inline constexpr char32_t kMaxCodePoint = 0x10FFFF;

// Takes the first code point off `text`, which must not be empty. A byte that belongs to no valid sequence comes alone,
// as kMaxCodePoint + 1 + the byte, so that different names stay different.
char32_t take_code_point(std::string_view& text);

void append_utf8(std::string& out, char32_t code);

bool is_valid_utf8(std::string_view text);

// `text` with U+FFFD for what is not UTF-8, one for each longest broken prefix of a sequence (as the Unicode standard
// recommends and Rust does).
std::string lossy_utf8(std::string_view text);

// Turns UTF-16 into UTF-8, fed in pieces of any length. What is not UTF-16 becomes U+FFFD.
class Utf16Decoder {
 public:
  explicit Utf16Decoder(bool big_endian) : big_endian_(big_endian) {}
  // Appends what `bytes` completes to `out`.
  void feed(std::string_view bytes, std::string& out);
  // Appends U+FFFD for an unfinished unit or pair.
  void finish(std::string& out);

 private:
  void unit(char16_t value, std::string& out);

  bool big_endian_;
  bool has_half_ = false;
  unsigned char half_ = 0;
  char16_t high_surrogate_ = 0;
};

}  // namespace ragfs
