// Names with a meaning: internal files, hidden files, and the order of names.
//
// For: everything that lists, walks or filters entries, so that all of them agree. Not for: what a cache bypasses.
// Thread-safety: pure functions.
#pragma once

#include <compare>
#include <string_view>

namespace ragfs {

// Files that RAGFS keeps beside the user's: lock files and the metadata of multi-write. Never listed, never made by a
// user.
bool is_internal_name(std::string_view name);

// Starts with a dot. Walks drop hidden files unless asked, and always keep hidden directories.
inline bool is_hidden_name(std::string_view name) { return name.starts_with('.'); }

// The order of listings: by lower-case name (Unicode, as far as it is UTF-8), then by the bytes of the name.
std::strong_ordering compare_listing_names(std::string_view a, std::string_view b);

}  // namespace ragfs
