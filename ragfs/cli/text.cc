#include "ragfs/cli/text.h"

#include <fmt/format.h>

#include <ctime>

namespace ragfs::cli {
namespace {

// The length of the UTF-8 sequence at `at` and its code point; 0 when the bytes there are not UTF-8.
size_t decode_utf8(std::string_view text, size_t at, uint32_t& code) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(at);
  if (first < 0x80) return code = first, 1;
  const size_t length = first >= 0xC2 && first < 0xE0 ? 2 : first >= 0xE0 && first < 0xF0 ? 3 : 4;
  if (first < 0xC2 || first > 0xF4 || at + length > text.size()) return 0;
  code = first & (0xFFu >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xC0) != 0x80) return 0;
    code = (code << 6) | (byte(at + i) & 0x3Fu);
  }
  const bool too_long = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
  if (too_long || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) return 0;
  return length;
}

bool steers_terminal(uint32_t code) {
  return code < 0x20 || (code >= 0x7F && code < 0xA0) || (code >= 0x200B && code <= 0x200F) ||
         (code >= 0x2028 && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069) || code == 0xFEFF;
}

struct tm split_time(int64_t ns, bool local, int64_t& rest_ns) {
  constexpr int64_t kSecond = 1'000'000'000;
  rest_ns = ((ns % kSecond) + kSecond) % kSecond;
  const time_t seconds = (ns - rest_ns) / kSecond;
  struct tm parts{};
  if (local) {
    ::localtime_r(&seconds, &parts);
  } else {
    ::gmtime_r(&seconds, &parts);
  }
  return parts;
}

}  // namespace

std::string printable(std::string_view name) {
  bool clean = true;
  std::string out;
  for (size_t at = 0; at < name.size();) {
    uint32_t code = 0;
    const size_t length = decode_utf8(name, at, code);
    if (length == 0 || steers_terminal(code)) {
      clean = false;
      for (size_t i = 0; i < (length == 0 ? 1 : length); ++i) {
        out += fmt::format("\\x{:02x}", static_cast<unsigned char>(name[at + i]));
      }
    } else {
      out += code == '\\' ? std::string_view("\\\\") : name.substr(at, length);
    }
    at += length == 0 ? 1 : length;
  }
  return clean ? std::string(name) : out;
}

bool is_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    uint32_t code = 0;
    const size_t length = decode_utf8(text, at, code);
    if (length == 0) return false;
    at += length;
  }
  return true;
}

std::string utf8_lossy(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    uint32_t code = 0;
    const size_t length = decode_utf8(text, at, code);
    out += length == 0 ? std::string_view("\xEF\xBF\xBD") : text.substr(at, length);
    at += length == 0 ? 1 : length;
  }
  return out;
}

std::string base64(std::string_view bytes) {
  static constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t at = 0; at < bytes.size(); at += 3) {
    const size_t left = bytes.size() - at;
    uint32_t group = static_cast<unsigned char>(bytes[at]) << 16;
    if (left > 1) group |= static_cast<unsigned char>(bytes[at + 1]) << 8;
    if (left > 2) group |= static_cast<unsigned char>(bytes[at + 2]);
    out += kDigits[group >> 18];
    out += kDigits[(group >> 12) & 63];
    out += left > 1 ? kDigits[(group >> 6) & 63] : '=';
    out += left > 2 ? kDigits[group & 63] : '=';
  }
  return out;
}

std::string json_quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    switch (c) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\n': out += "\\n"; break;
      case '\r': out += "\\r"; break;
      case '\t': out += "\\t"; break;
      default:
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
          out += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
        } else {
          out += c;
        }
    }
  }
  return out += '"';
}

std::string human_bytes(uint64_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  static constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  while (value >= 1023.95 && unit < 5) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string grouped(uint64_t count) {
  std::string digits = fmt::format("{}", count);
  for (size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, ",");
  return digits;
}

std::string counted(uint64_t count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", grouped(count), count == 1 ? one : many);
}

std::string human_duration_ns(int64_t ns) {
  const auto value = static_cast<double>(ns);
  if (ns < 1'000) return fmt::format("{} ns", ns);
  if (ns < 1'000'000) return fmt::format("{:.3g} us", value / 1e3);
  if (ns < 1'000'000'000) return fmt::format("{:.3g} ms", value / 1e6);
  return fmt::format("{:.2f} s", value / 1e9);
}

std::string local_time(int64_t ns) {
  int64_t rest_ns = 0;
  const struct tm parts = split_time(ns, true, rest_ns);
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday,
                     parts.tm_hour, parts.tm_min);
}

std::string rfc3339(int64_t ns) {
  int64_t rest_ns = 0;
  const struct tm parts = split_time(ns, false, rest_ns);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:09}Z", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec, rest_ns);
}

std::string mode_text(const FileInfo& info) {
  std::string out = info.kind == FileKind::directory ? "d" : info.kind == FileKind::other ? "?" : "-";
  for (int shift = 6; shift >= 0; shift -= 3) {
    const uint32_t bits = info.mode >> shift;
    out += (bits & 4) != 0 ? 'r' : '-';
    out += (bits & 2) != 0 ? 'w' : '-';
    out += (bits & 1) != 0 ? 'x' : '-';
  }
  return out;
}

std::string_view kind_text(FileKind kind) {
  switch (kind) {
    case FileKind::file: return "file";
    case FileKind::directory: return "directory";
    case FileKind::other: return "other";
  }
  return "other";
}

}  // namespace ragfs::cli
