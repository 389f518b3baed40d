// JsonWriter: builds one JSON document as text, in the order it is told.
//
// For: the --json output of every command. Names of files may be any bytes: name() writes a field that is always valid
// JSON, and beside it the exact bytes in base64 when they are not UTF-8. Not for: reading JSON.
// Thread-safety: not synchronised.
#pragma once

#include <fmt/format.h>

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

#include "ragfs/cli/text.h"

namespace ragfs::cli {

class JsonWriter {
 public:
  JsonWriter& begin_object() { return open('{'); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_array() { return open('['); }
  JsonWriter& end_array() { return close(']'); }
  // The key of the next value; inside an object only.
  JsonWriter& key(std::string_view key) {
    separate();
    text_ += json_quoted(key);
    text_ += ':';
    fresh_ = true;
    return *this;
  }

  JsonWriter& value(std::string_view text) { return raw(json_quoted(utf8_lossy(text))); }
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(bool truth) { return raw(truth ? "true" : "false"); }
  JsonWriter& value(std::integral auto number) { return raw(fmt::format("{}", number)); }
  JsonWriter& value(double number) { return raw(fmt::format("{}", number)); }

  JsonWriter& field(std::string_view name, const auto& content) { return key(name).value(content); }
  // "KEY": text, and "KEY_b64" when the bytes are not UTF-8.
  JsonWriter& name(std::string_view key_name, std::string_view bytes) {
    field(key_name, bytes);
    if (!is_utf8(bytes)) field(fmt::format("{}_b64", key_name), base64(bytes));
    return *this;
  }
  // Text that is JSON already.
  JsonWriter& raw(std::string_view json) {
    separate();
    text_ += json;
    fresh_ = false;
    return *this;
  }

  const std::string& text() const { return text_; }

 private:
  JsonWriter& open(char bracket) {
    separate();
    text_ += bracket;
    fresh_ = true;
    return *this;
  }
  JsonWriter& close(char bracket) {
    text_ += bracket;
    fresh_ = false;
    return *this;
  }
  void separate() {
    if (!fresh_) text_ += ',';
    fresh_ = false;
  }

  std::string text_;
  bool fresh_ = true;  // nothing stands before the next value that a comma must part it from
};

}  // namespace ragfs::cli
