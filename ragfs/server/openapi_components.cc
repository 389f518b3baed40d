// What the operations of the OpenAPI document refer to.
#include <nlohmann/json.hpp>

#include "ragfs/server/openapi.h"

namespace ragfs::server {
namespace {

// Objects are closed: a field that is not written here is a mistake. "..._b64" is beside a name that is not UTF-8.
constexpr std::string_view kSchemas = R"json({
"Error": {"type": "object", "additionalProperties": false, "required": ["error", "kind"], "properties": {
  "error": {"type": "string"}, "kind": {"type": "string"},
  "files": {"type": "array", "items": {"$ref": "#/components/schemas/WrittenFile"}}}},
"WrittenFile": {"type": "object", "additionalProperties": false, "required": ["path"], "properties": {
  "path": {"type": "string"}, "path_b64": {"type": "string"}, "bytes": {"type": "integer", "minimum": 0},
  "error": {"type": "string"}, "kind": {"type": "string"}}},
"WrittenFiles": {"type": "object", "additionalProperties": false, "required": ["files"], "properties": {
  "files": {"type": "array", "items": {"$ref": "#/components/schemas/WrittenFile"}}}},
"ReadFiles": {"type": "object", "additionalProperties": false, "required": ["files"], "properties": {
  "files": {"type": "array", "items": {"type": "object", "additionalProperties": false, "required": ["path"],
    "properties": {"path": {"type": "string"}, "path_b64": {"type": "string"}, "data": {"type": "string"},
    "data_b64": {"type": "string"}, "error": {"type": "string"}, "kind": {"type": "string"}}}}}},
"StatFiles": {"type": "object", "additionalProperties": false, "required": ["files"], "properties": {
  "files": {"type": "array", "items": {"type": "object", "additionalProperties": false, "required": ["path"],
    "properties": {"path": {"type": "string"}, "path_b64": {"type": "string"},
    "info": {"$ref": "#/components/schemas/FileInfo"}, "error": {"type": "string"}, "kind": {"type": "string"}}}}}},
"AgentListing": {"type": "object", "additionalProperties": false, "required": ["entries", "count"], "properties": {
  "count": {"type": "integer", "minimum": 0},
  "entries": {"type": "array", "items": {"type": "object", "additionalProperties": false,
    "required": ["path", "rel_path", "info"], "properties": {
    "path": {"type": "string"}, "path_b64": {"type": "string"}, "rel_path": {"type": "string"},
    "rel_path_b64": {"type": "string"}, "info": {"$ref": "#/components/schemas/FileInfo"},
    "abstract": {"type": "string"}, "abstract_b64": {"type": "string"}, "abstract_error": {"type": "string"}}}}}},
"Message": {"type": "object", "additionalProperties": false, "required": ["message"], "properties": {
  "message": {"type": "string"}}},
"HotKeys": {"type": "object", "additionalProperties": false, "required": ["keys"], "properties": {
  "keys": {"type": "array", "items": {"type": "object", "additionalProperties": false,
    "required": ["path", "kind", "reads"], "properties": {
    "path": {"type": "string"}, "path_b64": {"type": "string"},
    "kind": {"type": "string", "enum": ["file", "listing"]}, "reads": {"type": "integer", "minimum": 0}}}}}},
"Warmed": {"type": "object", "additionalProperties": false,
  "required": ["keys", "cached", "read", "bytes", "gone", "failed"], "properties": {
  "keys": {"type": "integer", "minimum": 0}, "cached": {"type": "integer", "minimum": 0},
  "read": {"type": "integer", "minimum": 0}, "bytes": {"type": "integer", "minimum": 0},
  "gone": {"type": "integer", "minimum": 0}, "failed": {"type": "integer", "minimum": 0}}},
"FileInfo": {"type": "object", "additionalProperties": false,
  "required": ["name", "size", "mode", "modTime", "isDir", "meta"], "properties": {
  "name": {"type": "string"}, "name_b64": {"type": "string"}, "size": {"type": "integer", "minimum": 0},
  "mode": {"type": "integer", "minimum": 0, "maximum": 4095}, "modTime": {"type": "string", "format": "date-time"},
  "isDir": {"type": "boolean"},
  "meta": {"type": "object", "additionalProperties": false, "required": ["Name", "Type", "Content"], "properties": {
    "Name": {"type": "string"}, "Type": {"enum": ["file", "directory", "other"]},
    "Content": {"type": "object", "additionalProperties": false}}}}},
"Listing": {"type": "object", "additionalProperties": false, "required": ["files"], "properties": {
  "files": {"type": "array", "items": {"$ref": "#/components/schemas/FileInfo"}}}},
"Line": {"type": "object", "additionalProperties": false, "required": ["line", "content"], "properties": {
  "line": {"type": "integer", "minimum": 1}, "content": {"type": "string"}}},
"Match": {"type": "object", "additionalProperties": false, "required": ["file", "line", "content"], "properties": {
  "file": {"type": "string"}, "file_b64": {"type": "string"}, "line": {"type": "integer", "minimum": 1},
  "content": {"type": "string"},
  "metadata": {"type": "object", "additionalProperties": false, "required": ["before", "after"], "properties": {
    "before": {"type": "array", "items": {"$ref": "#/components/schemas/Line"}},
    "after": {"type": "array", "items": {"$ref": "#/components/schemas/Line"}}}}}},
"Matches": {"type": "object", "additionalProperties": false, "required": ["matches", "count"], "properties": {
  "matches": {"type": "array", "items": {"$ref": "#/components/schemas/Match"}},
  "count": {"type": "integer", "minimum": 0}}},
"Digest": {"type": "object", "additionalProperties": false, "required": ["algorithm", "path", "digest"],
  "properties": {"algorithm": {"enum": ["xxh3", "md5"]}, "path": {"type": "string"}, "path_b64": {"type": "string"},
  "digest": {"type": "string", "pattern": "^[0-9a-f]+$"}}},
"GlobPage": {"type": "object", "additionalProperties": false, "required": ["entries", "next_token"], "properties": {
  "next_token": {"type": ["string", "null"]},
  "entries": {"type": "array", "items": {"type": "object", "additionalProperties": false,
    "required": ["path", "rel_path", "name", "is_dir"], "properties": {
    "path": {"type": "string"}, "path_b64": {"type": "string"}, "rel_path": {"type": "string"},
    "rel_path_b64": {"type": "string"}, "name": {"type": "string"}, "name_b64": {"type": "string"},
    "is_dir": {"type": "boolean"}}}}}},
"Tree": {"type": "object", "additionalProperties": false, "required": ["entries", "count"], "properties": {
  "count": {"type": "integer", "minimum": 0},
  "entries": {"type": "array", "items": {"type": "object", "additionalProperties": false,
    "required": ["path", "rel_path", "info"], "properties": {
    "path": {"type": "string"}, "path_b64": {"type": "string"}, "rel_path": {"type": "string"},
    "rel_path_b64": {"type": "string"}, "info": {"$ref": "#/components/schemas/FileInfo"}}}}}},
"Handle": {"type": "object", "additionalProperties": false,
  "required": ["handle_id", "path", "flags", "lease", "expires_at"], "properties": {
  "handle_id": {"type": "integer", "minimum": 1}, "path": {"type": "string"}, "path_b64": {"type": "string"},
  "flags": {"type": "integer"}, "lease": {"type": "integer", "minimum": 1},
  "expires_at": {"type": "string", "format": "date-time"}}},
"Handles": {"type": "object", "additionalProperties": false, "required": ["handles", "count", "max"], "properties": {
  "handles": {"type": "array", "items": {"$ref": "#/components/schemas/Handle"}},
  "count": {"type": "integer", "minimum": 0}, "max": {"type": "integer", "minimum": 1}}},
"Written": {"type": "object", "additionalProperties": false, "required": ["bytes_written", "position"],
  "properties": {"bytes_written": {"type": "integer", "minimum": 0}, "position": {"type": "integer", "minimum": 0}}},
"Position": {"type": "object", "additionalProperties": false, "required": ["position"], "properties": {
  "position": {"type": "integer", "minimum": 0}}},
"Mounts": {"type": "object", "additionalProperties": false, "required": ["mounts"], "properties": {
  "mounts": {"type": "array", "items": {"type": "object", "additionalProperties": false,
    "required": ["path", "pluginName", "status", "config"], "properties": {
    "path": {"type": "string"}, "path_b64": {"type": "string"}, "pluginName": {"type": "string"},
    "status": {"enum": ["mounted"]},
    "config": {"type": "object", "additionalProperties": false, "required": ["cache"], "properties": {
      "cache": {"type": "boolean"}}}}}}}},
"Plugins": {"type": "object", "additionalProperties": false, "required": ["plugins"], "properties": {
  "plugins": {"type": "array", "items": {"type": "object", "additionalProperties": false,
    "required": ["name", "library_path", "is_external", "mounted_paths", "config_params"], "properties": {
    "name": {"type": "string"}, "library_path": {"type": "string"}, "is_external": {"type": "boolean"},
    "mounted_paths": {"type": "array", "items": {"type": "object", "additionalProperties": false,
      "required": ["path", "config"], "properties": {"path": {"type": "string"},
      "config": {"type": "object", "additionalProperties": false}}}},
    "config_params": {"type": "array", "maxItems": 0}}}}}},
"Health": {"type": "object", "additionalProperties": false,
  "required": ["status", "version", "gitCommit", "buildTime", "ready", "degraded", "mounts", "problems",
               "checked_ms_ago"], "properties": {
  "status": {"enum": ["healthy", "degraded"]}, "version": {"type": "string"}, "gitCommit": {"type": "string"},
  "buildTime": {"type": "string"}, "ready": {"type": "boolean"}, "degraded": {"type": "boolean"},
  "mounts": {"type": "object", "additionalProperties": false,
    "required": ["total", "pending", "mounted", "failed"], "properties": {
    "total": {"type": "integer", "minimum": 0}, "pending": {"type": "integer", "minimum": 0},
    "mounted": {"type": "integer", "minimum": 0}, "failed": {"type": "integer", "minimum": 0}}},
  "problems": {"type": "array", "items": {"type": "string"}},
  "checked_ms_ago": {"type": "integer", "minimum": -1}}},
"Ready": {"type": "object", "additionalProperties": false, "required": ["ready"], "properties": {
  "ready": {"enum": [true]}}},
"Version": {"type": "object", "additionalProperties": false, "required": ["version", "gitCommit", "buildTime"],
  "properties": {"version": {"type": "string"}, "gitCommit": {"type": "string"}, "buildTime": {"type": "string"}}},
"Front": {"type": "object", "additionalProperties": false, "required": ["service", "version", "status"],
  "properties": {"service": {"enum": ["ragfs"]}, "version": {"type": "string"}, "status": {"enum": ["running"]}}},
"Capabilities": {"type": "object", "additionalProperties": false, "required": ["version", "features"],
  "properties": {"version": {"type": "string"}, "features": {"type": "array", "items": {"type": "string"}}}},
"CacheStats": {"type": "object", "additionalProperties": false,
  "required": ["configured", "on", "provider", "state", "life", "life_why", "warm", "hits", "misses", "hit_rate",
    "counters", "mounts", "latencies", "inflight_active", "retry_pending", "provider_metrics"],
  "properties": {
  "mounts": {"type": "object", "additionalProperties": false, "patternProperties": {"^/": {
    "type": "object", "additionalProperties": false,
    "patternProperties": {"^[a-z][a-z0-9_]*$": {"type": "integer", "minimum": 0}}}}},
  "latencies": {"type": "object", "additionalProperties": false, "patternProperties": {"^[a-z]": {
    "type": "object", "additionalProperties": false, "required": ["timed", "p50_ns", "p99_ns"],
      "properties": {"timed": {"type": "integer", "minimum": 0},
      "p50_ns": {"type": "integer", "minimum": 0}, "p99_ns": {"type": "integer", "minimum": 0}}}}},
  "inflight_active": {"type": "integer", "minimum": 0}, "retry_pending": {"type": "integer", "minimum": 0},
  "life": {"enum": ["", "off", "apart", "joined", "left", "closed"]}, "life_why": {"type": "string"},
  "warm": {"type": "boolean"},
  "configured": {"type": "boolean"}, "on": {"type": "boolean"}, "provider": {"type": "string"},
  "state": {"type": "string"}, "hits": {"type": "integer", "minimum": 0}, "misses": {"type": "integer", "minimum": 0},
  "hit_rate": {"type": "number", "minimum": 0, "maximum": 1},
  "counters": {"type": "object", "additionalProperties": false,
    "patternProperties": {"^[a-z][a-z0-9_]*$": {"type": "integer", "minimum": 0}}},
  "provider_metrics": {"type": "object", "additionalProperties": false,
    "patternProperties": {"^[a-z][a-z0-9_]*": {"type": "number"}}}}},
"OpenApi": {"type": "object", "additionalProperties": false,
  "required": ["openapi", "info", "jsonSchemaDialect", "paths", "components"], "properties": {
  "openapi": {"const": "3.1.0"}, "jsonSchemaDialect": {"type": "string"},
  "info": {"type": "object", "additionalProperties": false, "patternProperties": {"^[a-z]+$": {}}},
  "paths": {"type": "object", "additionalProperties": false, "patternProperties": {"^/": {}}},
  "components": {"type": "object", "additionalProperties": false, "patternProperties": {"^[a-zA-Z]+$": {}}}}}
})json";

constexpr std::string_view kParameters = R"json({
"path": {"name": "path", "in": "query", "required": true, "description": "Absolute path in the tree.",
  "schema": {"type": "string", "minLength": 1}},
"id": {"name": "id", "in": "path", "required": true, "description": "A handle, as open answered it.",
  "schema": {"type": "integer", "minimum": -9223372036854775808, "maximum": 9223372036854775807}},
"offset": {"name": "offset", "in": "query", "description": "First byte.",
  "schema": {"type": "integer", "minimum": 0, "maximum": 9223372036854775807}},
"recursive": {"name": "recursive", "in": "query", "description": "With everything below it.",
  "schema": {"type": "boolean"}},
"mode": {"name": "mode", "in": "query", "description": "Permission bits, octal.",
  "schema": {"type": "string", "pattern": "^0*[0-7]{1,4}$"}},
"lease": {"name": "lease", "in": "query", "description": "Seconds that the handle stays open without a call.",
  "schema": {"type": "integer", "minimum": 1, "maximum": 86400, "default": 60}},
"show_hidden": {"name": "show_hidden", "in": "query", "description": "Names that begin with a dot too.",
  "schema": {"type": "boolean"}},
"level_limit": {"name": "level_limit", "in": "query", "description": "Levels below the path.",
  "schema": {"type": "integer", "minimum": 0, "maximum": 9223372036854775807}}
})json";

}  // namespace

Json openapi_components() {
  Json components;
  components["schemas"] = Json::parse(kSchemas);
  components["parameters"] = Json::parse(kParameters);
  components["responses"]["Error"] = {
      {"description", "It was not done, and why."},
      {"content", {{"application/json", {{"schema", {{"$ref", "#/components/schemas/Error"}}}}}}}};
  return components;
}

}  // namespace ragfs::server
