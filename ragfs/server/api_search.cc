// Searches: grep, glob, tree, digest.
#include <fmt/format.h>
#include <openssl/evp.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "ragfs/base/hash.h"
#include "ragfs/server/api.h"
#include "ragfs/server/arguments.h"
#include "ragfs/server/file_source.h"
#include "ragfs/server/grep_source.h"

namespace ragfs::server {
namespace {

constexpr size_t kMaxAnswerBytes = 64 << 20;  // of matches in one JSON document
constexpr int64_t kMaxNodes = 1'000'000;      // of a tree in one answer
constexpr int64_t kDefaultNodes = 100'000;
constexpr int64_t kMaxCount = INT64_MAX;

struct GrepRequest {
  Path path;
  GrepOptions options;
  bool stream = false;
};

Result<GrepRequest> parse_grep(const Call& call) {
  const auto body = BodyFields::parse(call);
  if (!body) return std::unexpected(body.error());
  GrepRequest request;
  auto path = body->path(call);
  if (!path) return std::unexpected(path.error());
  request.path = std::move(*path);
  const auto take = [](const auto& from, auto& into) {
    if (from) into = *from;
    return from ? Result<void>() : std::unexpected(from.error());
  };
  const auto count = [&](const char* name, std::optional<uint64_t>& into) -> Result<void> {
    const auto value = body->integer(name, 0, kMaxCount);
    if (!value) return std::unexpected(value.error());
    if (*value) into = static_cast<uint64_t>(**value);
    return {};
  };
  std::optional<uint64_t> before;
  std::optional<uint64_t> after;
  for (const Result<void>& checked :
       {take(body->text("pattern"), request.options.pattern), take(body->flag("recursive"), request.options.recursive),
        take(body->flag("case_insensitive"), request.options.case_insensitive),
        take(body->flag("stream"), request.stream), count("node_limit", request.options.node_limit),
        count("limit", request.options.node_limit), count("level_limit", request.options.level_limit),
        count("before_context", before), count("after_context", after),
        take(body->text_or("exclude_path", ""), request.options.exclude_path)}) {
    if (!checked) return std::unexpected(checked.error());
  }
  constexpr uint64_t kMaxContext = 100;
  request.options.before_context = std::min(before.value_or(0), kMaxContext);
  request.options.after_context = std::min(after.value_or(0), kMaxContext);
  return request;
}

HttpResponse grep(Services& services, Call& call) {
  auto request = parse_grep(call);
  if (!request) return error_reply(request.error());
  const auto info = services.fs().stat(call.context, request->path);
  if (!info) return error_reply(info.error());
  if (info->is_dir() && !request->options.recursive) {
    return error_reply({ErrorCode::is_a_directory, request->path.text() + ": say recursive"});
  }
  HttpResponse response;
  if (request->stream) {
    // Checked here: once the answer has begun there is no status left to say it with.
    GrepOptions nothing = request->options;
    nothing.node_limit = 0;
    const auto valid = services.fs().grep(call.context, request->path, nothing, [](GrepMatch&&) { return false; });
    if (!valid) return error_reply(valid.error());
    if (services.searches.fetch_add(1) >= GrepSource::kMaxSearches) {
      services.searches.fetch_sub(1);
      return error_reply({ErrorCode::would_block, "as many searches as may stream at a time are running"});
    }
    Context context = call.context;
    context.deadline = Deadline();
    response.content_type = "application/x-ndjson";
    response.source = std::make_unique<GrepSource>(services.fs(), std::move(context), request->path, request->options,
                                                   services.config.stall_timeout_ms, services.searches);
    return response;
  }
  std::string text = "{\"matches\":[";
  uint64_t count = 0;
  const auto sink = [&](GrepMatch&& match) {
    if (count++ > 0) text += ',';
    text += grep_line(request->path, match);
    return text.size() < kMaxAnswerBytes;
  };
  const auto done = services.fs().grep(call.context, request->path, request->options, sink);
  if (!done) return error_reply(done.error());
  if (text.size() >= kMaxAnswerBytes) {
    return error_reply({ErrorCode::too_large, "too many matches for one answer; set limit or stream"});
  }
  response.body = Bytes::from_string(text + fmt::format("],\"count\":{}}}\n", count));
  return response;
}

HttpResponse glob(Services& services, Call& call) {
  const auto path = path_parameter(call);
  if (!path) return error_reply(path.error());
  const std::string* pattern = call.target.parameter("pattern");
  if (pattern == nullptr) return error_reply({ErrorCode::invalid_argument, "pattern is missing"});
  GlobOptions options;
  const auto hidden = flag_parameter(call, "show_hidden");
  if (!hidden) return error_reply(hidden.error());
  options.show_hidden = *hidden;
  const auto page = integer_parameter(call, "page_size", 1, kMaxNodes);
  if (!page) return error_reply(page.error());
  options.page_size = static_cast<uint64_t>(page->value_or(kDefaultNodes));
  const auto levels = integer_parameter(call, "level_limit", 0, kMaxCount);
  if (!levels) return error_reply(levels.error());
  if (*levels) options.level_limit = static_cast<uint64_t>(**levels);
  if (const std::string* token = call.target.parameter("continuation_token")) options.token = *token;
  const auto found = services.fs().glob(call.context, *path, *pattern, options);
  if (!found) return error_reply(found.error());
  Json entries = Json::array();
  for (const GlobEntry& entry : found->entries) {
    Json json;
    add_name(json, "path", entry.path);
    add_name(json, "rel_path", entry.rel_path);
    add_name(json, "name", entry.name);
    json["is_dir"] = entry.is_dir;
    entries.push_back(std::move(json));
  }
  Json token = found->next_token.empty() ? Json(nullptr) : Json(found->next_token);
  return json_reply({{"entries", std::move(entries)}, {"next_token", std::move(token)}});
}

HttpResponse tree(Services& services, Call& call) {
  const auto path = path_parameter(call);
  if (!path) return error_reply(path.error());
  TreeOptions options;
  const auto hidden = flag_parameter(call, "show_hidden");
  if (!hidden) return error_reply(hidden.error());
  options.show_hidden = *hidden;
  const auto nodes = integer_parameter(call, "node_limit", 0, kMaxNodes);
  if (!nodes) return error_reply(nodes.error());
  options.node_limit = static_cast<uint64_t>(nodes->value_or(kDefaultNodes));
  const auto levels = integer_parameter(call, "level_limit", 0, kMaxCount);
  if (!levels) return error_reply(levels.error());
  if (*levels) options.level_limit = static_cast<uint64_t>(**levels);
  const auto found = services.fs().tree(call.context, *path, options);
  if (!found) return error_reply(found.error());
  Json entries = Json::array();
  for (const TreeEntry& entry : *found) {
    Json json;
    add_name(json, "path", entry.path);
    add_name(json, "rel_path", entry.rel_path);
    json["info"] = file_json(entry.info);
    entries.push_back(std::move(json));
  }
  const size_t count = entries.size();
  return json_reply({{"entries", std::move(entries)}, {"count", count}});
}

// One hash over a file's parts. Not copyable.
class Digest {
 public:
  explicit Digest(bool md5) : md5_(md5), context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
    if (md5_) {
      EVP_DigestInit_ex(context_.get(), EVP_md5(), nullptr);
    } else {
      XXH3_128bits_reset(&xxh3_);
    }
  }
  void add(std::string_view bytes) {
    if (md5_) {
      EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size());
    } else {
      XXH3_128bits_update(&xxh3_, bytes.data(), bytes.size());
    }
  }
  std::string hex() {
    // AGFS shows the low half of the 128 bits as its xxh3.
    if (!md5_) return fmt::format("{:016x}", XXH3_128bits_digest(&xxh3_).low64);
    std::array<unsigned char, EVP_MAX_MD_SIZE> bytes{};
    unsigned size = 0;
    EVP_DigestFinal_ex(context_.get(), bytes.data(), &size);
    std::string text;
    for (unsigned i = 0; i < size; ++i) text += fmt::format("{:02x}", bytes[i]);
    return text;
  }

 private:
  const bool md5_;
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_;
  XXH3_state_t xxh3_;
};

HttpResponse digest(Services& services, Call& call) {
  const auto body = BodyFields::parse(call);
  if (!body) return error_reply(body.error());
  const auto path = body->path(call);
  if (!path) return error_reply(path.error());
  const auto algorithm = body->text_or("algorithm", "xxh3");
  if (!algorithm) return error_reply(algorithm.error());
  if (*algorithm != "xxh3" && *algorithm != "md5") {
    return error_reply({ErrorCode::invalid_argument, "algorithm must be xxh3 or md5"});
  }
  const auto info = services.fs().stat(call.context, *path);
  if (!info) return error_reply(info.error());
  if (info->is_dir()) return error_reply({ErrorCode::is_a_directory, path->text()});
  FileSource source(services.fs(), call.context, services.config.request_timeout_ms, *path, 0, std::nullopt);
  const auto sum = std::make_unique<Digest>(*algorithm == "md5");
  while (true) {
    const auto part = source.next();
    if (!part) return error_reply(part.error());
    if (part->empty()) break;
    sum->add(part->view());
  }
  Json json;
  json["algorithm"] = *algorithm;
  add_name(json, "path", path->text());
  json["digest"] = sum->hex();
  return json_reply(json);
}

}  // namespace

void add_search_routes(Router& router, Services& services) {
  const auto add = [&](const char* method, const char* path, HttpResponse (*handler)(Services&, Call&)) {
    router.add({method, path, Access::read, Place::worker,
                [&services, handler](Call& call) { return handler(services, call); }});
  };
  add("POST", "/api/v1/grep", grep);
  add("POST", "/api/v1/digest", digest);
  add("GET", "/api/v1/glob", glob);
  add("GET", "/api/v1/tree", tree);
}

}  // namespace ragfs::server
