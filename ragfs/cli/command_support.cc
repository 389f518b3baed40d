#include "ragfs/cli/command_support.h"

#include <fmt/format.h>

#include "ragfs/cli/text.h"

namespace ragfs::cli {

ExitCode report_path(Session& session, std::string_view command, PathView path, Error error) {
  if (error.message.find(path.text()) == std::string::npos) {
    error.message =
        error.message.empty() ? std::string(path.text()) : fmt::format("{}: {}", path.text(), error.message);
  }
  return session.console().report(command, error);
}

void write_info(JsonWriter& json, const FileInfo& info) {
  json.name("name", info.name).field("kind", kind_text(info.kind)).field("size", info.size);
  json.field("mode", fmt::format("{:04o}", info.mode & 07777)).field("mtime", rfc3339(info.mtime_ns));
  json.field("mtime_ns", info.mtime_ns);
}

}  // namespace ragfs::cli
