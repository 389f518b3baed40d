// check_json(): is this text strict JSON? YAML readers accept more, and what OpenViking refuses we refuse as well.
// Thread-safety: pure function.
#pragma once

#include <string_view>

#include "ragfs/base/error.h"

namespace ragfs {

// Errors: config, "FILE:LINE:COLUMN: not valid JSON: ...".
Result<void> check_json(std::string_view text, std::string_view file);

}  // namespace ragfs
