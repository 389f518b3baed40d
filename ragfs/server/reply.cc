#include "ragfs/server/reply.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <ctime>
#include <nlohmann/json.hpp>

#include "ragfs/fs/utf8.h"

namespace ragfs::server {
namespace {

std::string base64(std::string_view bytes) {
  std::string out(4 * ((bytes.size() + 2) / 3) + 1, '\0');
  const int size =
      EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                      reinterpret_cast<const unsigned char*>(bytes.data()), static_cast<int>(bytes.size()));
  out.resize(static_cast<size_t>(size));
  return out;
}

}  // namespace

std::string dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

HttpResponse json_reply(const Json& json, unsigned status) {
  HttpResponse response;
  response.status = status;
  response.body = Bytes::from_string(dump(json) + "\n");
  return response;
}

HttpResponse message_reply(std::string_view message, unsigned status) {
  return json_reply(Json{{"message", message}}, status);
}

HttpResponse error_reply(unsigned status, std::string_view kind, std::string_view text) {
  HttpResponse response = json_reply(Json{{"error", text}, {"kind", kind}}, status);
  if (status == 401) response.headers.emplace_back("WWW-Authenticate", "Bearer realm=\"ragfs\"");
  if (status == 503) response.headers.emplace_back("Retry-After", "1");
  return response;
}

HttpResponse error_reply(const Error& error) {
  return error_reply(status_of(error.code), kind_name(error.code), error.text());
}

unsigned status_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::not_found:
    case ErrorCode::mount_point_not_found: return 404;
    case ErrorCode::permission_denied:
    case ErrorCode::read_only: return 403;
    case ErrorCode::invalid_path:
    case ErrorCode::invalid_argument:
    case ErrorCode::invalid_operation:
    case ErrorCode::not_a_directory:
    case ErrorCode::is_a_directory:
    case ErrorCode::config: return 400;
    case ErrorCode::already_exists:
    case ErrorCode::mount_point_exists:
    case ErrorCode::directory_not_empty:
    case ErrorCode::lock_conflict: return 409;
    case ErrorCode::stale_handle: return 410;
    case ErrorCode::too_large: return 413;
    case ErrorCode::not_supported: return 501;
    case ErrorCode::would_block:
    case ErrorCode::unavailable:
    case ErrorCode::cancelled: return 503;
    case ErrorCode::timeout: return 504;
    case ErrorCode::full: return 507;
    default: return 500;
  }
}

void add_name(Json& object, const std::string& key, std::string_view bytes) {
  object[key] = bytes;
  if (!is_valid_utf8(bytes)) object[key + "_b64"] = base64(bytes);
}

Json file_json(const FileInfo& info) {
  Json json;
  add_name(json, "name", info.name);
  json["size"] = info.size;
  json["mode"] = info.mode & 07777;
  json["modTime"] = rfc3339(info.mtime_ns);
  json["isDir"] = info.is_dir();
  const char* type = info.is_dir() ? "directory" : info.kind == FileKind::file ? "file" : "other";
  json["meta"] = {{"Name", ""}, {"Type", type}, {"Content", Json::object()}};
  return json;
}

std::string rfc3339(int64_t ns) {
  int64_t seconds = ns / 1'000'000'000;
  int64_t rest = ns % 1'000'000'000;
  if (rest < 0) {
    rest += 1'000'000'000;
    seconds -= 1;
  }
  const std::time_t at = seconds;
  std::tm utc{};
  if (gmtime_r(&at, &utc) == nullptr) return "1970-01-01T00:00:00Z";
  std::string text = fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday,
                                 utc.tm_hour, utc.tm_min, utc.tm_sec);
  if (rest != 0) text += fmt::format(".{:09}", rest);
  return text + "Z";
}

}  // namespace ragfs::server
