// What each operation takes and answers, for the OpenAPI document.
#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <nlohmann/json.hpp>

#include "ragfs/server/openapi.h"

namespace ragfs::server {
namespace {

// Errors that may come from anywhere: the request itself, tokens, other origins, too much work, slow backends.
constexpr std::initializer_list<int> kCommon = {400, 401, 403, 404, 413, 421, 431, 503, 504};
constexpr std::initializer_list<int> kMutation = {409, 507};
constexpr std::initializer_list<int> kHandle = {409, 410, 507};

Json ref(const char* section, const char* name) { return {{"$ref", fmt::format("#/components/{}/{}", section, name)}}; }

// {"$ref": ...} to the schema `name`.
Json schema(const char* name) { return ref("schemas", name); }

class Operation {
 public:
  Operation(const char* method, std::string path, std::string id, const char* summary) {
    doc_.method = method;
    doc_.path = std::move(path);
    doc_.id = std::move(id);
    doc_.summary = summary;
    errors(kCommon);
  }

  // A parameter of the components.
  Operation& takes(const char* name) {
    doc_.parameters.push_back(ref("parameters", name));
    return *this;
  }
  // One of its own; `text` is its schema.
  Operation& takes(const char* name, std::string_view text, bool required = false) {
    doc_.parameters.push_back({{"name", name}, {"in", "query"}, {"required", required}, {"schema", Json::parse(text)}});
    return *this;
  }
  Operation& bytes() {
    doc_.body["content"]["application/octet-stream"]["schema"] = Json::object();
    return *this;
  }
  // An object; `properties` are those that are looked at, others are let pass.
  Operation& fields(std::string_view properties, std::initializer_list<const char*> required) {
    Json object = {{"type", "object"}, {"required", Json::array()}, {"properties", Json::parse(properties)}};
    for (const char* name : required) object["required"].push_back(name);
    doc_.body["required"] = true;
    doc_.body["content"]["application/json"]["schema"] = std::move(object);
    return *this;
  }
  Operation& answers(Json json_schema, const char* status = "200") {
    return answers_as("application/json", std::move(json_schema), status);
  }
  Operation& answers_as(const char* type, Json body_schema, const char* status = "200") {
    Json& answer = doc_.answers[status];
    answer["description"] = "Done.";
    answer["content"][type]["schema"] = std::move(body_schema);
    return *this;
  }
  Operation& answers_bytes(const char* status = "200") {
    return answers_as("application/octet-stream", Json::object(), status);
  }
  Operation& header(const char* name, const char* status = "200") {
    doc_.answers[status]["headers"][name] = {{"required", true}, {"schema", {{"type", "string"}}}};
    return *this;
  }
  Operation& errors(std::initializer_list<int> statuses) {
    for (const int status : statuses) doc_.answers[std::to_string(status)] = ref("responses", "Error");
    return *this;
  }

  operator OperationDoc() const { return doc_; }

 private:
  OperationDoc doc_;
};

using Operations = std::vector<OperationDoc>;

constexpr std::string_view kText = R"({"type": "string"})";
constexpr std::string_view kBoolean = R"({"type": "boolean"})";

Operation on_path(const char* method, const std::string& path, const char* id, const char* summary) {
  return Operation(method, "/api/v1" + path, id, summary).takes("path");
}

Operations file_operations() {
  const auto read = on_path("GET", "/files", "readFile", "A file's bytes, or some of them.")
                        .takes("offset")
                        .takes("size", R"({"type": "integer", "minimum": -1, "maximum": 9223372036854775807})")
                        .takes("stream", kBoolean)
                        .answers_bytes()
                        .answers_bytes("206")
                        .header("Content-Range", "206")
                        .errors({416});
  const auto put = [](const char* id) {
    return on_path("PUT", "/files", id, "Replaces a file's whole content, or makes the file.")
        .bytes()
        .answers(schema("Message"))
        .errors(kMutation);
  };
  const auto list = [](const char* path, const char* id) {
    return on_path("GET", path, id, "What is in a directory.").answers(schema("Listing"));
  };
  const auto make = [](const char* path, const char* id) {
    return on_path("POST", path, id, "Makes a directory.")
        .takes("mode")
        .answers(schema("Message"), "201")
        .errors(kMutation);
  };
  const auto remove = [](const char* path, const char* id) {
    return on_path("DELETE", path, id, "Removes a file or a directory.")
        .takes("recursive")
        .answers(schema("Message"))
        .errors(kMutation);
  };
  const auto change = [](const char* path, const char* id, const char* summary) {
    return on_path("POST", path, id, summary).answers(schema("Message")).errors(kMutation);
  };
  auto write = on_path("POST", "/write", "writeAlias", "As PUT /files; a JSON body is {\"data\": text}.")
                   .fields(R"({"data": {"type": "string"}})", {"data"})
                   .bytes()
                   .answers(schema("Message"))
                   .errors(kMutation);
  return {
      read,
      put("writeFile"),
      on_path("POST", "/files", "createFile", "Makes an empty file.")
          .answers(schema("Message"), "201")
          .errors(kMutation),
      remove("/files", "removeFile"),
      list("/directories", "listDirectory"),
      make("/directories", "makeDirectory"),
      remove("/directories", "removeDirectory"),
      on_path("GET", "/stat", "stat", "A file's or directory's metadata.").answers(schema("FileInfo")),
      change("/rename", "rename", "Moves a file or a directory.")
          .fields(R"({"newPath": {"type": "string", "minLength": 1}})", {"newPath"}),
      change("/chmod", "chmod", "Sets permission bits.")
          .fields(R"({"mode": {"type": "integer", "minimum": 0, "maximum": 4095}})", {"mode"}),
      change("/truncate", "truncate", "Cuts a file, or grows it with zeros.")
          .takes("size", R"({"type": "integer", "minimum": 0})", true),
      change("/touch", "touch", "Makes an empty file, or sets its time to now."),
      change("/symlink", "symlink", "Not supported: links are followed, not made.").errors({501}),
      on_path("GET", "/readlink", "readlink", "Not supported: links are followed, not read.")
          .answers(schema("Message"))
          .errors({501}),
      make("/mkdir", "mkdirAlias"),
      write,
      list("/list", "listAlias"),
  };
}

Operations batch_operations() {
  constexpr std::string_view kPaths = R"({"paths": {"type": "array", "minItems": 1, "maxItems": 1000,
                                                    "items": {"type": "string", "minLength": 1}}})";
  return {
      Operation("POST", "/api/v1/read_many", "readMany", "The bytes of many small files.")
          .fields(kPaths, {"paths"})
          .answers(schema("ReadFiles")),
      Operation("POST", "/api/v1/stat_many", "statMany", "The metadata of many files and directories.")
          .fields(kPaths, {"paths"})
          .answers(schema("StatFiles")),
      on_path("GET", "/abstracts", "listWithAbstracts", "A directory, and the abstracts of the directories in it.")
          .takes("levels", R"({"type": "integer", "minimum": 1, "maximum": 64, "default": 1})")
          .takes("node_limit", R"({"type": "integer", "minimum": 0, "maximum": 100000})")
          .takes("show_hidden")
          .answers(schema("AgentListing")),
      Operation("POST", "/api/v1/context", "writeContext",
                "Writes a directory's content, abstract and overview; an error has what became of each.")
          .fields(R"({"path": {"type": "string", "minLength": 1}, "content": {"type": "string"},
                      "content_name": {"type": "string", "minLength": 1}, "abstract": {"type": "string"},
                      "overview": {"type": "string"}})",
                  {"path"})
          .answers(schema("WrittenFiles"))
          .errors(kMutation),
  };
}

Operations search_operations() {
  constexpr std::string_view kGrep = R"({
    "path": {"type": "string", "minLength": 1}, "pattern": {"type": "string"}, "recursive": {"type": "boolean"},
    "case_insensitive": {"type": "boolean"}, "stream": {"type": "boolean"},
    "limit": {"type": "integer", "minimum": 0, "maximum": 9223372036854775807},
    "node_limit": {"type": "integer", "minimum": 0, "maximum": 9223372036854775807},
    "level_limit": {"type": "integer", "minimum": 0, "maximum": 9223372036854775807},
    "before_context": {"type": "integer", "minimum": 0, "maximum": 9223372036854775807},
    "after_context": {"type": "integer", "minimum": 0, "maximum": 9223372036854775807},
    "exclude_path": {"type": "string"}})";
  constexpr std::string_view kNodes = R"({"type": "integer", "minimum": 0, "maximum": 1000000})";
  return {
      Operation("POST", "/api/v1/grep", "grep",
                "Lines that match; with stream one JSON object a line, a summary at the end.")
          .fields(kGrep, {"path", "pattern"})
          .answers(schema("Matches"))
          .answers_as("application/x-ndjson", Json::object()),
      Operation("POST", "/api/v1/digest", "digest", "A hash of a file's bytes.")
          .fields(R"({"path": {"type": "string", "minLength": 1}, "algorithm": {"enum": ["xxh3", "md5"]}})", {"path"})
          .answers(schema("Digest")),
      on_path("GET", "/glob", "glob", "Paths that match a pattern, page by page.")
          .takes("pattern", kText, true)
          .takes("show_hidden")
          .takes("page_size", R"({"type": "integer", "minimum": 1, "maximum": 1000000})")
          .takes("level_limit")
          .takes("continuation_token", kText)
          .answers(schema("GlobPage")),
      on_path("GET", "/tree", "tree", "Everything below a directory.")
          .takes("show_hidden")
          .takes("node_limit", kNodes)
          .takes("level_limit")
          .answers(schema("Tree")),
  };
}

Operation on_handle(const char* method, const char* path, const char* id, const char* summary) {
  return Operation(method, std::string("/api/v1/handles/{id}") + path, id, summary).takes("id").errors(kHandle);
}

Operations handle_operations() {
  constexpr std::string_view kPosition = R"({"type": "integer", "minimum": -9223372036854775808,
                                             "maximum": 9223372036854775807})";
  constexpr std::string_view kSize = R"({"type": "integer", "minimum": -1, "maximum": 9223372036854775807})";
  return {
      Operation("GET", "/api/v1/handles", "listHandles", "The caller's open handles.").answers(schema("Handles")),
      on_path("POST", "/handles/open", "openHandle", "Opens a file; flags as AGFS numbers them.")
          .takes("flags", R"({"type": "integer", "minimum": 0, "maximum": 123})")
          .takes("mode")
          .takes("lease")
          .answers(schema("Handle"))
          .errors(kHandle),
      on_handle("GET", "", "showHandle", "What is known of a handle.").answers(schema("Handle")),
      on_handle("DELETE", "", "closeHandle", "Closes it.").answers(schema("Message")),
      on_handle("GET", "/read", "readHandle", "Bytes from an offset, or from where it stands.")
          .takes("size", kSize)
          .takes("offset")
          .answers_bytes()
          .header("X-Bytes-Read"),
      on_handle("PUT", "/write", "writeHandle", "Writes at an offset, or where it stands.")
          .takes("offset")
          .bytes()
          .answers(schema("Written")),
      on_handle("POST", "/seek", "seekHandle", "Moves where it stands.")
          .takes("offset", kPosition)
          .takes("whence", R"({"type": "integer", "minimum": 0, "maximum": 2})")
          .answers(schema("Position")),
      on_handle("POST", "/sync", "syncHandle", "Says whether its file is still there; writes are durable anyway.")
          .answers(schema("Message")),
      on_handle("GET", "/stat", "statHandle", "Its file's metadata.").answers(schema("FileInfo")),
      on_handle("GET", "/stream", "streamHandle", "Its file's bytes from where it stands.").answers_bytes(),
      on_handle("POST", "/truncate", "truncateHandle", "Cuts its file, or grows it with zeros.")
          .takes("size", R"({"type": "integer", "minimum": 0})", true)
          .answers(schema("Message")),
      on_handle("POST", "/renew", "renewHandle", "Begins a new lease.").takes("lease").answers(schema("Handle")),
  };
}

Operations mount_operations() {
  constexpr std::string_view kLibrary = R"({"library_path": {"type": "string"}})";
  const auto library = [&](const char* path, const char* id) {
    return Operation("POST", path, id, "Not supported: backends are built in.")
        .fields(kLibrary, {"library_path"})
        .answers(schema("Message"))
        .errors({501});
  };
  return {
      Operation("GET", "/api/v1/mounts", "listMounts", "What is mounted where.").answers(schema("Mounts")),
      Operation("POST", "/api/v1/mount", "mount", "Mounts a backend.")
          .fields(R"({"fstype": {"type": "string"}, "path": {"type": "string", "minLength": 1},
                      "config": {"type": ["object", "null"]}})",
                  {"fstype", "path"})
          .answers(schema("Message"))
          .errors(kMutation),
      Operation("POST", "/api/v1/unmount", "unmount", "Takes a mount away.")
          .fields(R"({"path": {"type": "string", "minLength": 1}})", {"path"})
          .answers(schema("Message")),
      Operation("GET", "/api/v1/plugins", "listPlugins", "The kinds of backends of this build.")
          .answers(schema("Plugins")),
      library("/api/v1/plugins/load", "loadPlugin"),
      library("/api/v1/plugins/unload", "unloadPlugin"),
  };
}

Operations status_operations() {
  Operations all = {
      Operation("GET", "/", "front", "Which service this is.").answers(schema("Front")),
      Operation("GET", "/api/v1", "frontOfApi", "Which service this is.").answers(schema("Front")),
      Operation("GET", "/api/v1/version", "version", "The program's version.").answers(schema("Version")),
      Operation("GET", "/api/v1/capabilities", "capabilities", "What this server can do.")
          .answers(schema("Capabilities")),
      Operation("GET", "/api/v1/cache/stats", "cacheStats", "What the cache did, and its provider's figures.")
          .answers(schema("CacheStats")),
      Operation("POST", "/api/v1/cache/invalidate", "invalidateCache", "Refuses what is cached at a path and below.")
          .fields(R"({"path": {"type": "string", "minLength": 1}})", {"path"})
          .answers(schema("Message"))
          .errors({501}),
      Operation("GET", "/api/v1/cache/top", "hottestKeys", "What is read most, at and below a path; estimated.")
          .takes("path")
          .takes("limit", R"({"type": "integer", "minimum": 1, "maximum": 10000})")
          .answers(schema("HotKeys"))
          .errors({501}),
      Operation("POST", "/api/v1/cache/warm", "warmCache",
                "Reads into the cache what is read most at and below a path.")
          .fields(R"({"path": {"type": "string", "minLength": 1}})", {"path"})
          .answers(schema("Warmed"))
          .errors({501}),
      Operation("POST", "/api/v1/cache/new-epoch", "beginEpoch", "Refuses what was cached, by earlier runs too.")
          .answers(schema("Message"))
          .errors({501}),
      Operation("POST", "/api/v1/cache/rejoin", "rejoinCache", "Uses the cache again after another process wrote.")
          .answers(schema("Message"))
          .errors({501}),
  };
  for (const std::string prefix : {"", "/api/v1"}) {
    const std::string suffix = prefix.empty() ? "" : "OfApi";
    const auto add = [&](const char* path, const char* id, const char* summary) {
      return Operation("GET", prefix + path, id + suffix, summary);
    };
    all.push_back(add("/health", "health", "Whether it works, and what does not.").answers(schema("Health")));
    all.push_back(add("/ready", "ready", "503 from the moment it is told to end.").answers(schema("Ready")));
    all.push_back(add("/metrics", "metrics", "Everything that is counted, in Prometheus' text format.")
                      .answers_as("text/plain", Json::parse(kText)));
    all.push_back(add("/openapi.json", "openapi", "This document.").answers(schema("OpenApi")));
  }
  return all;
}

}  // namespace

Operations described_operations() {
  Operations all;
  for (const auto describe :
       {file_operations, batch_operations, search_operations, handle_operations, mount_operations, status_operations}) {
    std::ranges::move(describe(), std::back_inserter(all));
  }
  return all;
}

}  // namespace ragfs::server
