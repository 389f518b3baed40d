// load_config(): a configuration file becomes a Config.
//
// Two formats: our YAML, where an unknown key is an error, and OpenViking's ov.conf (a file whose first character is
// '{'), where keys outside the sections that RAGFS uses are none of our business. Errors name file and line, field,
// value and what is allowed; all of them are reported at once, a line each. Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ragfs/base/error.h"
#include "ragfs/config/config.h"

namespace ragfs {

// Whether a file without mounts is an error: not for a program that mounts by itself.
enum class MountsNeeded : uint8_t { yes, no };

// Errors: config.
Result<Config> load_config(const std::string& file, MountsNeeded mounts = MountsNeeded::yes);
// The same for text that was read already; `file` is for messages and for relative paths.
Result<Config> parse_config(std::string_view text, const std::string& file, MountsNeeded mounts = MountsNeeded::yes);

}  // namespace ragfs
