// The text of openapi.json, made part of the program by the build (cmake/RagfsEmbed.cmake).
// Thread-safety: a constant.
#pragma once

#include <string_view>

namespace ragfs::server {

std::string_view openapi_json();

}  // namespace ragfs::server
