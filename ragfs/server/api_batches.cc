// Many paths in one request: read_many, stat_many, list_with_abstracts, write_context.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "ragfs/fs/agent_context.h"
#include "ragfs/fs/agent_listing.h"
#include "ragfs/server/api.h"
#include "ragfs/server/arguments.h"

namespace ragfs::server {
namespace {

constexpr size_t kMostPaths = 1'000;
constexpr uint64_t kMostFileBytes = 1 << 20;  // larger ones are asked for alone, and sent in parts
constexpr uint64_t kMostBytes = 16ULL << 20;  // of all files of one answer
constexpr int64_t kMostEntries = 100'000;

// The field "paths": 1 to kMostPaths texts. Errors: invalid_argument; those of checked_path().
Result<std::vector<Path>> paths_of(const Call& call) {
  const auto body = BodyFields::parse(call);
  if (!body) return std::unexpected(body.error());
  const auto found = body->json().find("paths");
  const bool fits = found != body->json().end() && found->is_array() && !found->empty() && found->size() <= kMostPaths;
  if (!fits) return fail(ErrorCode::invalid_argument, fmt::format("paths must be 1 to {} texts", kMostPaths));
  std::vector<Path> paths;
  for (const Json& one : *found) {
    if (!one.is_string()) return fail(ErrorCode::invalid_argument, "paths must be texts");
    auto path = checked_path(call, one.get_ref<const std::string&>());
    if (!path) return std::unexpected(std::move(path.error()));
    paths.push_back(*std::move(path));
  }
  return paths;
}

Json entry_json(PathView path) {
  Json entry;
  add_name(entry, "path", path.text());
  return entry;
}

void add_error(Json& entry, const Error& error) {
  entry["error"] = error.text();
  entry["kind"] = kind_name(error.code);
}

HttpResponse stat_many(Services& services, Call& call) {
  const auto paths = paths_of(call);
  if (!paths) return error_reply(paths.error());
  const std::vector<PathView> views(paths->begin(), paths->end());
  const auto infos = services.fs().stat_many(call.context, views);
  Json files = Json::array();
  for (size_t i = 0; i < infos.size(); ++i) {
    Json entry = entry_json(views[i]);
    if (infos[i]) {
      entry["info"] = file_json(*infos[i]);
    } else {
      add_error(entry, infos[i].error());
    }
    files.push_back(std::move(entry));
  }
  return json_reply({{"files", std::move(files)}});
}

// Which of the files may be in memory as one answer, by their sizes; why the others may not.
std::vector<std::optional<Error>> refusals(Services& services, const Call& call, std::span<const PathView> paths) {
  std::vector<std::optional<Error>> refused(paths.size());
  const auto infos = services.fs().stat_many(call.context, paths);
  uint64_t bytes = 0;
  for (size_t i = 0; i < paths.size(); ++i) {
    if (!infos[i]) {
      refused[i] = infos[i].error();
    } else if (infos[i]->is_dir()) {
      refused[i] = Error{ErrorCode::is_a_directory, std::string(paths[i].text())};
    } else if (infos[i]->size > kMostFileBytes || bytes + infos[i]->size > kMostBytes) {
      refused[i] = Error{ErrorCode::too_large, fmt::format("{}: ask for this file alone", paths[i].text())};
    } else {
      bytes += infos[i]->size;
    }
  }
  return refused;
}

HttpResponse read_many(Services& services, Call& call) {
  const auto paths = paths_of(call);
  if (!paths) return error_reply(paths.error());
  const std::vector<PathView> views(paths->begin(), paths->end());
  const std::vector<std::optional<Error>> refused = refusals(services, call, views);
  std::vector<PathView> wanted;
  for (size_t i = 0; i < views.size(); ++i) {
    if (!refused[i]) wanted.push_back(views[i]);
  }
  const auto contents = services.fs().read_many(call.context, wanted);
  Json files = Json::array();
  size_t next = 0;
  for (size_t i = 0; i < views.size(); ++i) {
    Json entry = entry_json(views[i]);
    if (refused[i]) {
      add_error(entry, *refused[i]);
    } else if (const Result<Bytes>& content = contents[next++]; content) {
      add_name(entry, "data", content->view());
    } else {
      add_error(entry, content.error());
    }
    files.push_back(std::move(entry));
  }
  return json_reply({{"files", std::move(files)}});
}

HttpResponse list_agent(Services& services, Call& call) {
  const auto path = path_parameter(call);
  if (!path) return error_reply(path.error());
  const auto levels = integer_parameter(call, "levels", 1, AgentListingOptions::kMostLevels);
  if (!levels) return error_reply(levels.error());
  const auto limit = integer_parameter(call, "node_limit", 0, kMostEntries);
  if (!limit) return error_reply(limit.error());
  const auto hidden = flag_parameter(call, "show_hidden");
  if (!hidden) return error_reply(hidden.error());
  AgentListingOptions options;
  options.levels = static_cast<uint64_t>(levels->value_or(1));
  options.show_hidden = *hidden;
  if (*limit) options.node_limit = static_cast<uint64_t>(**limit);
  const auto entries = list_with_abstracts(services.fs(), call.context, *path, options);
  if (!entries) return error_reply(entries.error());
  Json shown = Json::array();
  for (const AgentEntry& entry : *entries) {
    Json one = entry_json(PathView::from_normal(entry.path));
    add_name(one, "rel_path", entry.rel_path);
    one["info"] = file_json(entry.info);
    if (entry.abstract) add_name(one, "abstract", entry.abstract->view());
    if (entry.error) one["abstract_error"] = entry.error->text();
    shown.push_back(std::move(one));
  }
  const size_t count = shown.size();
  return json_reply({{"entries", std::move(shown)}, {"count", count}});
}

// A text that may be left out. Errors: invalid_argument.
Result<std::optional<std::string>> optional_text(const BodyFields& body, const std::string& name) {
  if (!body.json().contains(name)) return std::nullopt;
  auto text = body.text(name);
  if (!text) return std::unexpected(std::move(text.error()));
  return *std::move(text);
}

HttpResponse write_agent_context(Services& services, Call& call) {
  const auto body = BodyFields::parse(call);
  if (!body) return error_reply(body.error());
  const auto directory = body->path(call);
  if (!directory) return error_reply(directory.error());
  const auto name = body->text_or("content_name", "content.md");
  if (!name) return error_reply(name.error());
  ContextFiles files;
  files.content_name = *name;
  std::optional<std::string> texts[3];
  std::optional<std::string_view>* const parts[] = {&files.content, &files.abstract, &files.overview};
  const char* const names[] = {"content", "abstract", "overview"};
  for (size_t i = 0; i < 3; ++i) {
    auto text = optional_text(*body, names[i]);
    if (!text) return error_reply(text.error());
    texts[i] = *std::move(text);
    if (texts[i]) *parts[i] = *texts[i];
  }
  const auto written = write_context(services.fs(), call.context, *directory, files);
  if (!written) return error_reply(written.error());
  Json shown = Json::array();
  const Error* first_error = nullptr;
  for (const WrittenFile& file : *written) {
    Json entry = entry_json(file.path);
    if (file.result) {
      entry["bytes"] = file.result->bytes;
    } else {
      add_error(entry, file.result.error());
      if (first_error == nullptr) first_error = &file.result.error();
    }
    shown.push_back(std::move(entry));
  }
  // 200: all is written. Else the status of the first failure, with what became of each.
  Json answer = {{"files", std::move(shown)}};
  if (first_error == nullptr) return json_reply(answer);
  add_error(answer, *first_error);
  return json_reply(answer, status_of(first_error->code));
}

}  // namespace

void add_batch_routes(Router& router, Services& services) {
  const auto add = [&](const char* method, const char* path, Access access, HttpResponse (*handler)(Services&, Call&)) {
    router.add({method, std::string("/api/v1") + path, access, Place::worker,
                [&services, handler](Call& call) { return handler(services, call); }, nullptr});
  };
  add("POST", "/read_many", Access::read, read_many);
  add("POST", "/stat_many", Access::read, stat_many);
  add("GET", "/abstracts", Access::read, list_agent);
  add("POST", "/context", Access::write, write_agent_context);
}

}  // namespace ragfs::server
