// Mounts and plugins: what stands where in the tree, and which kinds of backends this build has.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "ragfs/config/factories.h"
#include "ragfs/config/loader.h"
#include "ragfs/server/api.h"
#include "ragfs/server/arguments.h"

namespace ragfs::server {
namespace {

HttpResponse list_mounts(Services& services, Call&) {
  Json mounts = Json::array();
  for (const MountStatus& mount : services.instance.mounts()) {
    Json json;
    add_name(json, "path", mount.path);
    json["pluginName"] = mount.type;
    json["status"] = "mounted";
    json["config"] = {{"cache", mount.cached}};
    mounts.push_back(std::move(json));
  }
  return json_reply({{"mounts", std::move(mounts)}});
}

// A scalar or a list of texts as it is written in a configuration. Errors: invalid_argument.
Result<std::string> config_value(const std::string& key, const Json& value) {
  bool plain = value.is_string() || value.is_boolean() || value.is_number();
  if (value.is_array()) {
    plain = std::ranges::all_of(value, [](const Json& element) { return element.is_string(); });
  }
  if (!plain) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("config.{} must be a text, a number, true, false, or a list of texts", key));
  }
  return dump(value);
}

// The request as the configuration of one mount, checked by the same table as a file. Errors: invalid_argument, config.
Result<MountConfig> parse_mount(const std::string& type, const Path& path, const Json& config) {
  Json mount;
  std::string text = fmt::format("storage:\n  agfs:\n    mounts:\n      - path: {}\n        type: {}\n",
                                 dump(Json(path.text())), dump(Json(type)));
  for (const auto& [key, value] : config.items()) {
    if (key == "path" || key == "type") return fail(ErrorCode::invalid_argument, "config." + key + " is not allowed");
    const auto written = config_value(key, value);
    if (!written) return std::unexpected(written.error());
    text += fmt::format("        {}: {}\n", dump(Json(key)), *written);
  }
  auto parsed = parse_config(text, "mount");
  if (!parsed) return std::unexpected(parsed.error());
  if (parsed->mounts.size() != 1) return fail(ErrorCode::invalid_argument, "config is not one of a mount");
  return std::move(parsed->mounts.front());
}

HttpResponse mount(Services& services, Call& call) {
  const auto body = BodyFields::parse(call);
  if (!body) return error_reply(body.error());
  const auto type = body->text("fstype");
  if (!type) return error_reply(type.error());
  const auto path = body->path(call);
  if (!path) return error_reply(path.error());
  Json config = Json::object();
  if (const auto given = body->json().find("config"); given != body->json().end() && !given->is_null()) {
    if (!given->is_object()) return error_reply({ErrorCode::invalid_argument, "config must be an object"});
    config = *given;
  }
  const auto parsed = parse_mount(*type, *path, config);
  if (!parsed) return error_reply(parsed.error());
  if (parsed->type == "localfs" && !services.config.allow_local_mounts) {
    return error_reply({ErrorCode::permission_denied,
                        "directories of this machine are mounted by its configuration; server.allow_local_mounts "
                        "lets clients do it"});
  }
  const auto hold = services.handles.hold_trees(*path, *path, call.context.deadline);
  if (!hold) return error_reply(hold.error());
  const auto done = services.instance.mount(*parsed);
  if (!done) return error_reply(done.error());
  services.handles.break_below(*path);  // what was there is covered now
  return message_reply("plugin mounted");
}

HttpResponse unmount(Services& services, Call& call) {
  const auto body = BodyFields::parse(call);
  if (!body) return error_reply(body.error());
  const auto path = body->path(call);
  if (!path) return error_reply(path.error());
  const auto hold = services.handles.hold_trees(*path, *path, call.context.deadline);
  if (!hold) return error_reply(hold.error());
  const auto done = services.instance.unmount(*path);
  if (!done) return error_reply(done.error());
  services.handles.break_below(*path);
  return message_reply("plugin unmounted");
}

HttpResponse list_plugins(Services& services, Call&) {
  Json plugins = Json::array();
  const std::vector<MountStatus> mounts = services.instance.mounts();
  for (const std::string& name : known_backends()) {
    Json paths = Json::array();
    for (const MountStatus& mount : mounts) {
      if (mount.type == name) paths.push_back({{"path", mount.path}, {"config", Json::object()}});
    }
    plugins.push_back({{"name", name},
                       {"library_path", ""},
                       {"is_external", false},
                       {"mounted_paths", std::move(paths)},
                       {"config_params", Json::array()}});
  }
  return json_reply({{"plugins", std::move(plugins)}});
}

HttpResponse no_libraries(Services&, Call& call) {
  const auto body = BodyFields::parse(call);
  if (!body) return error_reply(body.error());
  const auto library = body->text("library_path");
  if (!library) return error_reply(library.error());
  return error_reply({ErrorCode::not_supported, "backends are built in; libraries are not loaded"});
}

}  // namespace

void add_mount_routes(Router& router, Services& services) {
  const auto add = [&](const char* method, const char* path, Access access, HttpResponse (*handler)(Services&, Call&)) {
    router.add({method, std::string("/api/v1") + path, access, Place::worker,
                [&services, handler](Call& call) { return handler(services, call); }});
  };
  add("GET", "/mounts", Access::inspect, list_mounts);
  add("POST", "/mount", Access::control, mount);
  add("POST", "/unmount", Access::control, unmount);
  add("GET", "/plugins", Access::inspect, list_plugins);
  add("POST", "/plugins/load", Access::control, no_libraries);
  add("POST", "/plugins/unload", Access::control, no_libraries);
}

}  // namespace ragfs::server
