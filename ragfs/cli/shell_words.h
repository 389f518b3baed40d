// split_words(): a line of `ragfs shell` as words. Thread-safety: pure function.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ragfs/base/error.h"

namespace ragfs::cli {

// Blanks part words; '...' keeps all as it is; "..." and a word outside quotes know \ before any character; '#' at the
// start of a word begins a comment. Errors: invalid_argument for a quote that does not end.
Result<std::vector<std::string>> split_words(std::string_view line);

}  // namespace ragfs::cli
