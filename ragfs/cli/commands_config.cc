// config check, show, schema: what the program was told.
#include <fmt/format.h>

#include "ragfs/cli/command_support.h"
#include "ragfs/cli/commands.h"
#include "ragfs/config/field_text.h"
#include "ragfs/config/loader.h"
#include "ragfs/config/schema.h"

namespace ragfs::cli {

ExitCode run_config_check(Session& session, const std::string& file) {
  Console& console = session.console();
  const auto config = file.empty() ? session.load() : load_config(file);
  const std::string source = file.empty() ? session.source() : file;
  if (!config) return console.report("config check", config.error());
  if (console.json()) {
    JsonWriter json;
    json.begin_object().name("source", source).field("ok", true).key("warnings").begin_array();
    for (const std::string& warning : config->warnings) json.value(warning);
    console.line(json.end_array().end_object().text());
    return ExitCode::ok;
  }
  for (const std::string& warning : config->warnings) console.warn("config check", warning);
  console.line(fmt::format("{}: {}", console.name(source), console.styled(Style::good, "ok")));
  return ExitCode::ok;
}

ExitCode run_config_show(Session& session) {
  const auto config = session.load();
  if (!config) return session.console().report("config show", config.error());
  session.console().out(session.console().json() ? config_as_json(*config) : config_as_yaml(*config));
  return ExitCode::ok;
}

ExitCode run_config_schema(Session& session) {
  session.console().out(config_schema_json());
  return ExitCode::ok;
}

ExitCode run_config_keys(Session& session) {
  session.console().out(session.console().json() ? config_schema_json() : config_as_markdown());
  return ExitCode::ok;
}

}  // namespace ragfs::cli
