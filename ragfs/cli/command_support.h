// What several commands need: the opened tree with a checked path, and errors that name the path as it was typed.
// Thread-safety: pure functions of their arguments.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

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

// The same with many: `body(Instance&, const Context&, std::span<const PathView>)` for each `at_once` of them, as long
// as somebody reads standard output. A path that is none is reported; the others are done all the same.
template <typename Body>
ExitCode with_paths(Session& session, std::string_view command, const std::vector<std::string>& typed, size_t at_once,
                    const Body& body) {
  ExitCode code = ExitCode::ok;
  std::vector<Path> paths;
  for (size_t i = 0; i < typed.size(); ++i) {
    auto path = Path::parse(typed[i]);
    if (path) paths.push_back(*std::move(path));
    const bool last = i + 1 == typed.size();
    if (!paths.empty() && (!path || last || paths.size() == at_once) && !session.console().out_closed()) {
      const std::vector<PathView> views(paths.begin(), paths.end());
      code = worse(code, with_instance(session, command, [&](Instance& instance, const Context& context) {
                     return body(instance, context, std::span<const PathView>(views));
                   }));
      paths.clear();
    }
    if (!path) code = worse(code, session.console().report(command, path.error()));
  }
  return code;
}

// An error of the tree, with the path when its message does not name it.
ExitCode report_path(Session& session, std::string_view command, PathView path, Error error);

// {"name", "kind", "size", "mode", "mtime", "mtime_ns"} into an open object.
void write_info(JsonWriter& json, const FileInfo& info);

}  // namespace ragfs::cli
