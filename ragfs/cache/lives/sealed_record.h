// SealedRecord: the frame around the small things that lives leave for each other: magic, version, length, checksum.
//
// For: epoch pointer, clean marker and witness (docs/formats.md, "Records of lives"). A frame that is damaged, of
// another kind or of another version reads as nothing: whoever finds nothing starts a new epoch.
// Not for: cache objects (envelope.h). Thread-safety: pure functions over values; a reader or writer belongs to one
// thread.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

namespace ragfs {

// The frame with `body` inside. `magic` names the kind; `body` is at most 4 GiB - 1.
std::string seal_record(uint32_t magic, uint8_t version, std::string_view body);
// The body of an intact frame of that magic and version. Points into `text`.
std::optional<std::string_view> open_record(uint32_t magic, uint8_t version, std::string_view text);

// Writes fixed-width little-endian numbers and short texts one after the other.
class FieldWriter {
 public:
  template <typename T>
  void number(T value) {
    static_assert(std::is_integral_v<T>);
    text_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  // At most 65,535 bytes; more is cut.
  void text(std::string_view value) {
    const std::string_view cut = value.substr(0, UINT16_MAX);
    number(static_cast<uint16_t>(cut.size()));
    text_.append(cut);
  }
  size_t size() const { return text_.size(); }
  std::string take() && { return std::move(text_); }

 private:
  std::string text_;
};

// Reads what a FieldWriter wrote. After a read past the end every further answer is 0 or empty and ok() is false.
class FieldReader {
 public:
  explicit FieldReader(std::string_view text) : rest_(text) {}
  template <typename T>
  T number() {
    static_assert(std::is_integral_v<T>);
    T value = 0;
    if (rest_.size() < sizeof value) {
      fail();
      return 0;
    }
    std::memcpy(&value, rest_.data(), sizeof value);
    rest_.remove_prefix(sizeof value);
    return value;
  }
  std::string_view text() {
    const auto size = number<uint16_t>();
    if (rest_.size() < size) {
      fail();
      return {};
    }
    const std::string_view value = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return value;
  }
  bool ok() const { return ok_; }
  // All was read and nothing is left over.
  bool done() const { return ok_ && rest_.empty(); }
  size_t left() const { return rest_.size(); }

 private:
  void fail() {
    ok_ = false;
    rest_ = {};
  }
  std::string_view rest_;
  bool ok_ = true;
};

}  // namespace ragfs
