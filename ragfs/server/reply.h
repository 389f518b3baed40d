// Answers of the API: JSON, errors with their status, files as JSON objects.
//
// Names of files may be any bytes: JSON carries them with U+FFFD for what is not UTF-8, and beside it the exact bytes
// in base64. Thread-safety: pure functions.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "ragfs/fs/file_system.h"
#include "ragfs/server/http_message.h"

namespace ragfs::server {

using Json = nlohmann::ordered_json;

HttpResponse json_reply(const Json& json, unsigned status = 200);
HttpResponse message_reply(std::string_view message, unsigned status = 200);
// {"error": text, "kind": "not_found"} with the status that belongs to the code.
HttpResponse error_reply(const Error& error);
HttpResponse error_reply(unsigned status, std::string_view kind, std::string_view text);
unsigned status_of(ErrorCode code);

// {"name", "size", "mode", "modTime", "isDir", "meta"}, as AGFS servers show a file.
Json file_json(const FileInfo& info);
// Adds `key`: text, and `key`_b64 when the bytes are not UTF-8.
void add_name(Json& object, const std::string& key, std::string_view bytes);
std::string dump(const Json& json);
// "2026-01-31T23:59:59.123456789Z".
std::string rfc3339(int64_t ns);

}  // namespace ragfs::server
