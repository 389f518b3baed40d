// What several commands need: the opened tree with a checked path, and errors that name the path as it was typed.
// Thread-safety: pure functions of their arguments.
#pragma once

#include <string>
#include <string_view>

#include "ragfs/cli/json_writer.h"
#include "ragfs/cli/session.h"
#include "ragfs/fs/file_system.h"

namespace ragfs::cli {

// Runs `body(Instance&, const Context&)` on the opened instance; a failure to open is reported.
template <typename Body>
ExitCode with_instance(Session& session, std::string_view command, const Body& body) {
  auto instance = session.instance();
  if (!instance) return session.console().report(command, instance.error());
  const Context context = session.context();
  return body(**instance, context);
}

// The same with a path of the tree: `body(Instance&, const Context&, PathView)`.
template <typename Body>
ExitCode with_path(Session& session, std::string_view command, const std::string& typed, const Body& body) {
  const auto path = Path::parse(typed);
  if (!path) return session.console().report(command, path.error());
  return with_instance(session, command, [&](Instance& instance, const Context& context) {
    return body(instance, context, path->view());
  });
}

// An error of the tree, with the path when its message does not name it.
ExitCode report_path(Session& session, std::string_view command, PathView path, Error error);

// {"name", "kind", "size", "mode", "mtime", "mtime_ns"} into an open object.
void write_info(JsonWriter& json, const FileInfo& info);

}  // namespace ragfs::cli
