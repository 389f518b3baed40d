// Text for people: names made safe for a terminal, sizes, times, modes, counts.
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ragfs/fs/file_system.h"

namespace ragfs::cli {

// Bytes that could steer a terminal or are not UTF-8 (control characters, C1 controls, marks that reorder text) as
// \xNN; a backslash as \\ when anything was escaped, so that the result stays unambiguous.
std::string printable(std::string_view name);

bool is_utf8(std::string_view text);
// Bytes that are not UTF-8 replaced by U+FFFD, for fields of JSON that have a base64 twin.
std::string utf8_lossy(std::string_view text);
std::string base64(std::string_view bytes);
// Text in the quotes of JSON.
std::string json_quoted(std::string_view text);

// "1.5 MiB", "312 B".
std::string human_bytes(uint64_t bytes);
// "1,234,567".
std::string grouped(uint64_t count);
// "1 file", "2 files".
std::string counted(uint64_t count, std::string_view one, std::string_view many);
// "320 us", "1.53 s".
std::string human_duration_ns(int64_t ns);
// "2026-01-31 23:59" in the machine's time zone; "2026-01-31T23:59:59.123456789Z".
std::string local_time(int64_t ns);
std::string rfc3339(int64_t ns);
// "drwxr-xr-x".
std::string mode_text(const FileInfo& info);
std::string_view kind_text(FileKind kind);  // "file", "directory", "other"

}  // namespace ragfs::cli
