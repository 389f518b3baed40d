// Files and directories: read, write, create, remove, list, stat, rename, chmod, truncate, touch.
#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include "ragfs/server/api.h"
#include "ragfs/server/arguments.h"
#include "ragfs/server/file_source.h"

namespace ragfs::server {
namespace {

constexpr uint64_t kWholeReadBytes = 1 << 20;  // what may be in memory as one piece for one answer
constexpr int64_t kMaxOffset = INT64_MAX;

// What is asked of a file: by the query (offset, size) or by a Range header.
struct Span {
  uint64_t offset = 0;
  std::optional<uint64_t> size;  // absent = to the end
  bool ranged = false;           // by a header: 206 and Content-Range
};

// "bytes=A-B", "bytes=A-", "bytes=-N": one range. Several, or anything else, is refused: answering many ranges of one
// file is a known way to make a server send without end. Errors: invalid_operation.
Result<Span> parse_range(std::string_view text, uint64_t file_size) {
  const auto refused = [&] { return fail(ErrorCode::invalid_operation, "one range of bytes inside the file"); };
  const auto number = [](std::string_view digits, uint64_t& value) {
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return error == std::errc() && end == digits.data() + digits.size();
  };
  constexpr std::string_view kUnit = "bytes=";
  const size_t dash = text.find('-');
  if (!text.starts_with(kUnit) || dash == std::string_view::npos) return refused();
  const std::string_view first_text = text.substr(kUnit.size(), dash - kUnit.size());
  const std::string_view last_text = text.substr(dash + 1);
  uint64_t first = 0;
  uint64_t last = file_size == 0 ? 0 : file_size - 1;
  if (first_text.empty()) {
    uint64_t suffix = 0;
    if (!number(last_text, suffix) || suffix == 0) return refused();
    first = file_size - std::min(suffix, file_size);
  } else {
    if (!number(first_text, first)) return refused();
    uint64_t given = last;
    if (!last_text.empty() && (!number(last_text, given) || given < first)) return refused();
    last = std::min(last, given);
  }
  if (first >= file_size) return refused();
  return Span{first, last - first + 1, true};
}

HttpResponse range_refused(uint64_t file_size, const Error& error) {
  HttpResponse response = error_reply(416, "invalid_operation", "only " + error.message + " can be asked for");
  response.headers.emplace_back("Content-Range", fmt::format("bytes */{}", file_size));
  return response;
}

HttpResponse bytes_reply(const Span& span, uint64_t sent, uint64_t file_size) {
  HttpResponse response;
  response.content_type = "application/octet-stream";
  response.headers.emplace_back("X-Content-Type-Options", "nosniff");
  if (span.ranged) {
    response.status = 206;
    response.headers.emplace_back("Content-Range",
                                  fmt::format("bytes {}-{}/{}", span.offset, span.offset + sent - 1, file_size));
  }
  return response;
}

HttpResponse send_file(Services& services, Call& call, const Path& path, const FileInfo& info, const Span& span,
                       bool chunked) {
  const uint64_t after_offset = info.size > span.offset ? info.size - span.offset : 0;
  const uint64_t wanted = span.size ? std::min(*span.size, after_offset) : after_offset;
  HttpResponse response = bytes_reply(span, wanted, info.size);
  // Files of backends that make their content when asked have no size to go by.
  const bool sized = info.kind == FileKind::file && info.size > 0;
  if (chunked || (sized && wanted > kWholeReadBytes)) {
    std::optional<uint64_t> left;
    if (sized || span.size) left = sized ? wanted : *span.size;
    response.source = std::make_unique<FileSource>(services.fs(), call.context, services.config.request_timeout_ms,
                                                   path, span.offset, left);
    if (!chunked) response.source_size = wanted;
    return response;
  }
  if (span.size == 0) return response;
  auto data = services.fs().read(call.context, path, span.offset, span.size.value_or(0));
  if (!data) return error_reply(data.error());
  response.body = std::move(*data);
  return response;
}

struct ReadRequest {
  Path path;
  Span span;
  bool stream = false;
  const std::string* range = nullptr;  // a header that counts
};

Result<ReadRequest> parse_read(const Call& call) {
  ReadRequest request;
  auto path = path_parameter(call);
  if (!path) return std::unexpected(path.error());
  request.path = std::move(*path);
  const auto offset = integer_parameter(call, "offset", 0, kMaxOffset);
  if (!offset) return std::unexpected(offset.error());
  const auto size = integer_parameter(call, "size", -1, kMaxOffset);
  if (!size) return std::unexpected(size.error());
  const auto stream = flag_parameter(call, "stream");
  if (!stream) return std::unexpected(stream.error());
  request.stream = *stream;
  request.span.offset = static_cast<uint64_t>(offset->value_or(0));
  if (size->value_or(-1) >= 0) request.span.size = static_cast<uint64_t>(**size);
  if (!*offset && !*size && !*stream) request.range = call.request.header("range");
  return request;
}

HttpResponse read_file(Services& services, Call& call) {
  auto request = parse_read(call);
  if (!request) return error_reply(request.error());
  const auto info = services.fs().stat(call.context, request->path);
  if (!info) return error_reply(info.error());
  if (info->is_dir()) return error_reply({ErrorCode::is_a_directory, request->path.text()});
  if (request->range != nullptr) {
    const auto parsed = parse_range(*request->range, info->size);
    if (!parsed) return range_refused(info->size, parsed.error());
    request->span = *parsed;
  }
  return send_file(services, call, request->path, *info, request->span, request->stream);
}

// A hit: what read_file() answers, of the bytes where they lie in the cache.
std::optional<HttpResponse> read_cached_file(Services& services, Call& call) {
  auto request = parse_read(call);
  if (!request || request->stream) return std::nullopt;
  std::optional<Bytes> whole = services.fs().read_at_once(call.context, request->path);
  if (!whole || whole->size() > kWholeReadBytes) return std::nullopt;
  const uint64_t file_size = whole->size();
  if (request->range != nullptr) {
    const auto parsed = parse_range(*request->range, file_size);
    if (!parsed) return range_refused(file_size, parsed.error());
    request->span = *parsed;
  }
  Bytes body = std::move(*whole).slice(request->span.offset, request->span.size.value_or(SIZE_MAX));
  HttpResponse response = bytes_reply(request->span, body.size(), file_size);
  response.body = std::move(body);
  return response;
}

HttpResponse write_file(Services& services, Call& call) {
  const auto path = path_parameter(call);
  if (!path) return error_reply(path.error());
  const auto written = services.fs().write(call.context, *path, call.request.body, 0, WriteFlag::create);
  if (!written) return error_reply(written.error());
  return message_reply(fmt::format("Written {} bytes", written->bytes));
}

// The alias POST /write takes {"data": text} as JSON too.
HttpResponse write_alias(Services& services, Call& call) {
  const std::string* type = call.request.header("content-type");
  if (type == nullptr || !type->starts_with("application/json")) return write_file(services, call);
  const auto body = BodyFields::parse(call);
  if (!body) return error_reply(body.error());
  auto data = body->text("data");
  if (!data) return error_reply(data.error());
  call.request.body = std::move(*data);
  return write_file(services, call);
}

HttpResponse create_file(Services& services, Call& call) {
  const auto path = path_parameter(call);
  if (!path) return error_reply(path.error());
  if (const auto done = services.fs().create(call.context, *path); !done) return error_reply(done.error());
  return message_reply("file created", 201);
}

HttpResponse make_directory(Services& services, Call& call) {
  const auto path = path_parameter(call);
  if (!path) return error_reply(path.error());
  const auto mode = mode_parameter(call, kDefaultDirMode);
  if (!mode) return error_reply(mode.error());
  if (const auto done = services.fs().mkdir(call.context, *path, *mode); !done) return error_reply(done.error());
  return message_reply("directory created", 201);
}

HttpResponse remove(Services& services, Call& call) {
  const auto path = path_parameter(call);
  if (!path) return error_reply(path.error());
  const auto recursive = flag_parameter(call, "recursive");
  if (!recursive) return error_reply(recursive.error());
  if (path->view().is_root()) return error_reply({ErrorCode::invalid_operation, "the root cannot be removed"});
  const auto hold = services.handles.hold_trees(*path, *path, call.context.deadline);
  if (!hold) return error_reply(hold.error());
  const auto done =
      *recursive ? services.fs().remove_all(call.context, *path) : services.fs().remove(call.context, *path);
  // A removal that failed may have taken part of the tree with it.
  if (done || *recursive) services.handles.break_below(*path);
  if (!done) return error_reply(done.error());
  return message_reply("deleted");
}

HttpResponse list_directory(Services& services, Call& call) {
  const auto path = path_parameter(call);
  if (!path) return error_reply(path.error());
  auto entries = services.fs().read_dir(call.context, *path);
  if (!entries) return error_reply(entries.error());
  Json files = Json::array();
  for (const FileInfo& info : *entries) files.push_back(file_json(info));
  return json_reply({{"files", std::move(files)}});
}

HttpResponse stat(Services& services, Call& call) {
  const auto path = path_parameter(call);
  if (!path) return error_reply(path.error());
  const auto info = services.fs().stat(call.context, *path);
  if (!info) return error_reply(info.error());
  return json_reply(file_json(*info));
}

HttpResponse rename(Services& services, Call& call) {
  const auto from = path_parameter(call);
  if (!from) return error_reply(from.error());
  const auto body = BodyFields::parse(call);
  if (!body) return error_reply(body.error());
  const auto text = body->text("newPath");
  if (!text) return error_reply(text.error());
  const auto to = checked_path(call, *text);
  if (!to) return error_reply(to.error());
  const auto hold = services.handles.hold_trees(*from, *to, call.context.deadline);
  if (!hold) return error_reply(hold.error());
  const auto done = services.fs().rename(call.context, *from, *to);
  if (!done) return error_reply(done.error());
  if (*from != *to) {
    services.handles.break_below(*from);
    services.handles.break_below(*to);
  }
  return message_reply("renamed");
}

HttpResponse chmod(Services& services, Call& call) {
  const auto path = path_parameter(call);
  if (!path) return error_reply(path.error());
  const auto body = BodyFields::parse(call);
  if (!body) return error_reply(body.error());
  const auto mode = body->integer("mode", 0, 07777);
  if (!mode) return error_reply(mode.error());
  if (!*mode) return error_reply({ErrorCode::invalid_argument, "mode is missing"});
  const auto done = services.fs().chmod(call.context, *path, static_cast<uint32_t>(**mode));
  return done ? message_reply("permissions changed") : error_reply(done.error());
}

HttpResponse truncate(Services& services, Call& call) {
  const auto path = path_parameter(call);
  if (!path) return error_reply(path.error());
  // Backends keep files in memory or pad them with zeros: what could not be written cannot be made by truncation.
  const auto max = static_cast<int64_t>(services.config.max_request_body_bytes);
  const auto size = integer_parameter(call, "size", 0, max);
  if (!size) return error_reply(size.error());
  if (!*size) return error_reply({ErrorCode::invalid_argument, "size is missing"});
  const auto done = services.fs().truncate(call.context, *path, static_cast<uint64_t>(**size));
  return done ? message_reply("truncated") : error_reply(done.error());
}

HttpResponse touch(Services& services, Call& call) {
  const auto path = path_parameter(call);
  if (!path) return error_reply(path.error());
  const auto done = services.fs().touch(call.context, *path);
  return done ? message_reply("touched") : error_reply(done.error());
}

HttpResponse no_symlinks(Services&, Call& call) {
  const auto path = path_parameter(call);
  if (!path) return error_reply(path.error());
  return error_reply({ErrorCode::not_supported, "symbolic links can be followed, not made or read"});
}

}  // namespace

void add_file_routes(Router& router, Services& services) {
  const auto add = [&](const char* method, const char* path, Access access, HttpResponse (*handler)(Services&, Call&)) {
    router.add({method, std::string("/api/v1") + path, access, Place::worker,
                [&services, handler](Call& call) { return handler(services, call); }, nullptr});
  };
  router.add({"GET", "/api/v1/files", Access::read, Place::worker,
              [&services](Call& call) { return read_file(services, call); },
              [&services](Call& call) { return read_cached_file(services, call); }});
  add("PUT", "/files", Access::write, write_file);
  add("POST", "/files", Access::write, create_file);
  add("DELETE", "/files", Access::write, remove);
  add("GET", "/directories", Access::read, list_directory);
  add("POST", "/directories", Access::write, make_directory);
  add("DELETE", "/directories", Access::write, remove);
  add("GET", "/stat", Access::read, stat);
  add("POST", "/rename", Access::write, rename);
  add("POST", "/chmod", Access::write, chmod);
  add("POST", "/truncate", Access::write, truncate);
  add("POST", "/touch", Access::write, touch);
  add("POST", "/symlink", Access::write, no_symlinks);
  add("GET", "/readlink", Access::read, no_symlinks);
  add("POST", "/mkdir", Access::write, make_directory);
  add("POST", "/write", Access::write, write_alias);
  add("GET", "/list", Access::read, list_directory);
}

}  // namespace ragfs::server
