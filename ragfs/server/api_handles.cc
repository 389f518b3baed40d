// Handles: open, read, write, seek, sync, stat, stream, truncate, renew, close.
#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include "ragfs/server/api.h"
#include "ragfs/server/arguments.h"
#include "ragfs/server/file_source.h"

namespace ragfs::server {
namespace {

constexpr int64_t kAllFlags =
    kOpenWriteOnly | kOpenReadWrite | kOpenAppend | kOpenCreate | kOpenExclusive | kOpenTruncate;
constexpr int64_t kDefaultReadBytes = 4096;
constexpr int64_t kMaxReadBytes = 1 << 20;
constexpr int64_t kMaxLease_s = 86'400;

Json handle_json(const HandleInfo& info) {
  Json json;
  json["handle_id"] = info.id;
  add_name(json, "path", info.path.text());
  json["flags"] = info.flags;
  json["lease"] = info.lease_s;
  json["expires_at"] = rfc3339(info.expires_at_ns);
  return json;
}

Result<int64_t> id_of(const Call& call) {
  const std::string& text = call.captures.at(0);
  int64_t id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (error != std::errc() || end != text.data() + text.size()) {
    return fail(ErrorCode::invalid_argument, "a handle is a whole number");
  }
  return id;
}

// Makes what the flags ask for and answers the position to start at. The path is held.
Result<uint64_t> open_file(FileSystem& fs, const Context& context, const Path& path, int64_t flags) {
  auto info = fs.stat(context, path);
  if (!info && info.error().code != ErrorCode::not_found) return std::unexpected(info.error());
  if (info && info->is_dir()) return fail(ErrorCode::is_a_directory, path.text());
  if (info && (flags & kOpenCreate) != 0 && (flags & kOpenExclusive) != 0) {
    return fail(ErrorCode::already_exists, path.text());
  }
  if (!info) {
    if ((flags & kOpenCreate) == 0) return std::unexpected(info.error());
    const auto made = fs.create(context, path);
    const bool other = !made && made.error().code == ErrorCode::already_exists && (flags & kOpenExclusive) == 0;
    if (!made && !other) return std::unexpected(made.error());
  } else if ((flags & kOpenTruncate) != 0 && (flags & 3) != 0) {
    if (const auto cut = fs.truncate(context, path, 0); !cut) return std::unexpected(cut.error());
  }
  return 0;
}

HttpResponse open_handle(Services& services, Call& call) {
  const auto path = path_parameter(call);
  if (!path) return error_reply(path.error());
  const auto flags = integer_parameter(call, "flags", 0, kAllFlags);
  if (!flags) return error_reply(flags.error());
  const int64_t wanted = flags->value_or(0);
  if ((wanted & ~kAllFlags) != 0 || (wanted & 3) == 3) {
    return error_reply({ErrorCode::invalid_argument, "flags are a sum of 0 or 1 or 2, and 8, 16, 32, 64"});
  }
  // The SDK sends decimal 420 for 0644; modes of new files are the backend's, so any octal number will do.
  if (const auto mode = mode_parameter(call, kDefaultFileMode); !mode) return error_reply(mode.error());
  const auto lease = integer_parameter(call, "lease", 1, kMaxLease_s);
  if (!lease) return error_reply(lease.error());
  const bool mutates = (wanted & (3 | kOpenCreate | kOpenTruncate)) != 0;
  if (mutates && call.caller.read_only) return error_reply({ErrorCode::permission_denied, "this token may only read"});
  const auto hold = services.handles.hold_file(*path, call.context.deadline);
  if (!hold) return error_reply(hold.error());
  const auto position = open_file(services.fs(), call.context, *path, wanted);
  if (!position) return error_reply(position.error());
  const auto info = services.handles.add(call.caller.id, *path, wanted, lease->value_or(60), *position);
  return info ? json_reply(handle_json(*info)) : error_reply(info.error());
}

Result<HandleTable::Use> use_handle(Services& services, const Call& call) {
  const auto id = id_of(call);
  if (!id) return std::unexpected(id.error());
  return services.handles.use(call.caller.id, *id, call.context.deadline);
}

std::unexpected<Error> not_opened_for(std::string_view what) {
  return fail(ErrorCode::permission_denied, fmt::format("the handle was not opened for {}", what));
}

HttpResponse read_handle(Services& services, Call& call) {
  const auto size = integer_parameter(call, "size", -1, INT64_MAX);
  if (!size) return error_reply(size.error());
  const auto offset = integer_parameter(call, "offset", 0, INT64_MAX);
  if (!offset) return error_reply(offset.error());
  auto use = use_handle(services, call);
  if (!use) return error_reply(use.error());
  if (!use->info.may_read()) return error_reply(not_opened_for("reading").error());
  int64_t wanted = size->value_or(kDefaultReadBytes);
  if (wanted < 0 || wanted > kMaxReadBytes) wanted = kMaxReadBytes;
  const uint64_t from = *offset ? static_cast<uint64_t>(**offset) : use->info.position;
  HttpResponse response;
  response.content_type = "application/octet-stream";
  if (wanted > 0) {
    auto data = services.fs().read(call.context, use->info.path, from, static_cast<uint64_t>(wanted));
    if (!data) return error_reply(data.error());
    response.body = std::move(*data);
  }
  if (!*offset) use->info.position = from + response.body.size();
  response.headers.emplace_back("X-Bytes-Read", std::to_string(response.body.size()));
  return response;
}

HttpResponse write_handle(Services& services, Call& call) {
  const auto max = static_cast<int64_t>(services.config.max_request_body_bytes);
  const auto offset = integer_parameter(call, "offset", 0, INT64_MAX);
  if (!offset) return error_reply(offset.error());
  auto use = use_handle(services, call);
  if (!use) return error_reply(use.error());
  if (!use->info.may_write()) return error_reply(not_opened_for("writing").error());
  const bool append = (use->info.flags & kOpenAppend) != 0;
  const uint64_t at = *offset ? static_cast<uint64_t>(**offset) : use->info.position;
  if (!append) {
    // A gap is filled with zeros: as far as a body could reach, not further.
    const auto info = services.fs().stat(call.context, use->info.path);
    if (!info) return error_reply(info.error());
    if (at > info->size && at - info->size > static_cast<uint64_t>(max)) {
      return error_reply({ErrorCode::invalid_argument, "the offset is too far behind the end of the file"});
    }
  }
  const auto written = services.fs().write(call.context, use->info.path, call.request.body, append ? 0 : at,
                                           append ? WriteFlag::append : WriteFlag::none);
  if (!written) return error_reply(written.error());
  const uint64_t end = append ? written->meta.size : at + written->bytes;
  if (!*offset || append) use->info.position = end;
  return json_reply({{"bytes_written", written->bytes}, {"position", use->info.position}});
}

HttpResponse seek_handle(Services& services, Call& call) {
  const auto offset = integer_parameter(call, "offset", INT64_MIN, INT64_MAX);
  if (!offset) return error_reply(offset.error());
  const auto whence = integer_parameter(call, "whence", 0, 2);
  if (!whence) return error_reply(whence.error());
  auto use = use_handle(services, call);
  if (!use) return error_reply(use.error());
  uint64_t base = 0;
  if (whence->value_or(0) == 1) base = use->info.position;
  if (whence->value_or(0) == 2) {
    const auto info = services.fs().stat(call.context, use->info.path);
    if (!info) return error_reply(info.error());
    base = info->size;
  }
  int64_t position = 0;
  if (__builtin_add_overflow(static_cast<int64_t>(base), offset->value_or(0), &position) || position < 0) {
    return error_reply({ErrorCode::invalid_argument, "the position would be before the file's begin"});
  }
  use->info.position = static_cast<uint64_t>(position);
  return json_reply({{"position", position}});
}

HttpResponse stat_handle(Services& services, Call& call) {
  const auto use = use_handle(services, call);
  if (!use) return error_reply(use.error());
  const auto info = services.fs().stat(call.context, use->info.path);
  return info ? json_reply(file_json(*info)) : error_reply(info.error());
}

// Every write is with the backend when it is answered; this says whether the file is still there.
HttpResponse sync_handle(Services& services, Call& call) {
  const auto use = use_handle(services, call);
  if (!use) return error_reply(use.error());
  const auto info = services.fs().stat(call.context, use->info.path);
  return info ? message_reply("synced") : error_reply(info.error());
}

HttpResponse stream_handle(Services& services, Call& call) {
  const auto use = use_handle(services, call);
  if (!use) return error_reply(use.error());
  if (!use->info.may_read()) return error_reply(not_opened_for("reading").error());
  HttpResponse response;
  response.content_type = "application/octet-stream";
  response.source = std::make_unique<FileSource>(services.fs(), call.context, services.config.request_timeout_ms,
                                                 use->info.path, use->info.position, std::nullopt);
  return response;
}

HttpResponse truncate_handle(Services& services, Call& call) {
  const auto max = static_cast<int64_t>(services.config.max_request_body_bytes);
  const auto size = integer_parameter(call, "size", 0, max);
  if (!size) return error_reply(size.error());
  if (!*size) return error_reply({ErrorCode::invalid_argument, "size is missing"});
  const auto use = use_handle(services, call);
  if (!use) return error_reply(use.error());
  if (!use->info.may_write()) return error_reply(not_opened_for("writing").error());
  const auto done = services.fs().truncate(call.context, use->info.path, static_cast<uint64_t>(**size));
  return done ? message_reply("truncated") : error_reply(done.error());
}

HttpResponse renew_handle(Services& services, Call& call) {
  const auto id = id_of(call);
  if (!id) return error_reply(id.error());
  const auto lease = integer_parameter(call, "lease", 1, kMaxLease_s);
  if (!lease) return error_reply(lease.error());
  const auto info = services.handles.renew(call.caller.id, *id, lease->value_or(60));
  return info ? json_reply(handle_json(*info)) : error_reply(info.error());
}

HttpResponse show_handle(Services& services, Call& call) {
  const auto id = id_of(call);
  if (!id) return error_reply(id.error());
  const auto info = services.handles.info(call.caller.id, *id);
  return info ? json_reply(handle_json(*info)) : error_reply(info.error());
}

HttpResponse close_handle(Services& services, Call& call) {
  const auto id = id_of(call);
  if (!id) return error_reply(id.error());
  const auto done = services.handles.close(call.caller.id, *id);
  return done ? message_reply("handle closed") : error_reply(done.error());
}

HttpResponse list_handles(Services& services, Call& call) {
  Json handles = Json::array();
  for (const HandleInfo& info : services.handles.list(call.caller.id)) handles.push_back(handle_json(info));
  const size_t count = handles.size();
  return json_reply({{"handles", std::move(handles)}, {"count", count}, {"max", services.handles.max()}});
}

}  // namespace

void add_handle_routes(Router& router, Services& services) {
  const auto add = [&](const char* method, const char* path, Access access, HttpResponse (*handler)(Services&, Call&)) {
    router.add({method, std::string("/api/v1/handles") + path, access, Place::worker,
                [&services, handler](Call& call) { return handler(services, call); }});
  };
  add("GET", "", Access::read, list_handles);
  add("POST", "/open", Access::read, open_handle);  // checks itself what its flags need
  add("GET", "/{id}", Access::read, show_handle);
  add("DELETE", "/{id}", Access::read, close_handle);
  add("GET", "/{id}/read", Access::read, read_handle);
  add("PUT", "/{id}/write", Access::write, write_handle);
  add("POST", "/{id}/seek", Access::read, seek_handle);
  add("POST", "/{id}/sync", Access::read, sync_handle);
  add("GET", "/{id}/stat", Access::read, stat_handle);
  add("GET", "/{id}/stream", Access::read, stream_handle);
  add("POST", "/{id}/truncate", Access::write, truncate_handle);
  add("POST", "/{id}/renew", Access::read, renew_handle);
}

}  // namespace ragfs::server
