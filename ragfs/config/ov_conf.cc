#include "ragfs/config/ov_conf.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

namespace ragfs {
namespace {

// As OpenViking does it: relative to the working directory, not to the file.
std::string workspace_path(const std::string& path) {
  std::error_code error;
  const std::string here = (std::filesystem::current_path(error) / "ov.conf").string();
  return resolve_host_path(path, here);
}

Node scalar(std::string text, int line, std::string origin) {
  Node node;
  node.kind = Node::Kind::scalar;
  node.text = std::move(text);
  node.line = line;
  node.origin = std::move(origin);
  return node;
}

Node section_at(int line) {
  Node node;
  node.kind = Node::Kind::map;
  node.line = line;
  return node;
}

void put(Node& section, const std::string& key, Node value) {
  const int line = value.line;
  section.entries.push_back({key, line, std::move(value)});
}

class Translator {
 public:
  Translator(const Node& root, ParseReport& report) : root_(root), report_(report) {}

  Node run() {
    const Node* storage = root_.find("storage");
    agfs_ = storage == nullptr ? nullptr : storage->find("agfs");
    if (const Node* service = root_.find("service_name"); service != nullptr && !is_text(*service)) {
      error(*service, "service_name", fmt::format("{} is not allowed; a text is expected", service->described()));
    }
    Node agfs = section_at(agfs_ == nullptr ? root_.line : agfs_->line);
    Node mounts;
    mounts.kind = Node::Kind::sequence;
    mounts.line = agfs.line;
    mounts.items.push_back(mount(storage));
    put(agfs, "mounts", std::move(mounts));
    put(agfs, "cache", cache());
    put(agfs, "pathlock", pathlock());
    Node storage_out = section_at(root_.line);
    put(storage_out, "agfs", std::move(agfs));
    Node out = section_at(root_.line);
    put(out, "storage", std::move(storage_out));
    put(out, "log", log());
    return out;
  }

 private:
  static bool is_text(const Node& node) { return node.kind == Node::Kind::scalar && node.quoted; }

  void error(const Node& node, const std::string& field, std::string_view what) {
    if (report_.errors.size() < kMaxReported) {
      report_.errors.push_back(fmt::format("{}:{}: {}: {}", report_.file, node.line, field, what));
    }
  }
  void warning(int line, const std::string& field, std::string_view what) {
    if (report_.warnings.size() < kMaxReported) {
      report_.warnings.push_back(fmt::format("{}:{}: {}: {}", report_.file, line, field, what));
    }
  }

  const Node* in_agfs(std::string_view key) const { return agfs_ == nullptr ? nullptr : agfs_->find(key); }

  // The text of a choice; "" after an error.
  std::string choice(const Node* node, const std::string& field, const std::vector<std::string>& allowed,
                     const std::string& absent) {
    if (node == nullptr || node->kind == Node::Kind::null) return absent;
    if (is_text(*node) && std::find(allowed.begin(), allowed.end(), node->text) != allowed.end()) return node->text;
    const std::string near = nearest_word(node->text, allowed);
    error(*node, field,
          fmt::format("{} is not allowed; one of {} is expected{}", node->described(), fmt::join(allowed, ", "),
                      near.empty() ? "" : fmt::format("; did you mean \"{}\"?", near)));
    return "";
  }

  Node mount(const Node* storage) {
    Node out = section_at(agfs_ == nullptr ? root_.line : agfs_->line);
    put(out, "path", scalar("/local", out.line, ""));
    const std::string backend = choice(in_agfs("backend"), "storage.agfs.backend", {"local", "memory", "s3"}, "local");
    if (backend == "s3") {
      error(*in_agfs("backend"), "storage.agfs.backend", "s3 is not in this build; local or memory is expected");
    }
    put(out, "type", scalar(backend == "memory" ? "memfs" : "localfs", out.line, "storage.agfs.backend"));
    if (backend == "memory") return out;
    const Node* path = in_agfs("path");
    std::string origin = "storage.agfs.path";
    if (path == nullptr || path->kind == Node::Kind::null) {
      path = storage == nullptr ? nullptr : storage->find("workspace");
      origin = "storage.workspace";
    }
    if (path != nullptr && path->kind != Node::Kind::null && !is_text(*path)) {
      error(*path, origin, fmt::format("{} is not allowed; a directory is expected", path->described()));
      path = nullptr;
    }
    const std::string workspace = path != nullptr && is_text(*path) ? path->text : "./data";
    put(out, "local_dir",
        scalar(workspace_path(workspace) + "/viking", path == nullptr ? out.line : path->line, origin));
    return out;
  }

  Node cache() {
    if (const Node* old = in_agfs("cache"); old != nullptr) {
      error(*old, "storage.agfs.cache",
            "was replaced in OpenViking 0.5: use cache.provider, cache.params and storage.agfs.cachefs.backend "
            "\"cache\"");
    }
    const Node* cachefs = in_agfs("cachefs");
    const Node* backend = cachefs == nullptr ? nullptr : cachefs->find("backend");
    const bool enabled = choice(backend, "storage.agfs.cachefs.backend", {"local", "cache"}, "local") == "cache";
    Node out = section_at(cachefs == nullptr ? root_.line : cachefs->line);
    put(out, "enabled", scalar(enabled ? "true" : "false", out.line, "storage.agfs.cachefs.backend"));
    const Node* space = cachefs == nullptr ? nullptr : cachefs->find("namespace");
    std::string space_origin = "storage.agfs.cachefs.namespace";
    if (space == nullptr) {
      space = root_.find("service_name");
      space_origin = "service_name";
    }
    if (space != nullptr && is_text(*space) && !space->text.empty()) {
      put(out, "namespace", scalar(space->text, space->line, space_origin));
    }
    if (cachefs != nullptr) cachefs_keys(*cachefs, out);
    if (enabled) provider(out);
    return out;
  }

  void cachefs_keys(const Node& cachefs, Node& out) {
    for (const NodeEntry& entry : cachefs.entries) {
      const std::string origin = "storage.agfs.cachefs." + entry.key;
      if (entry.key == "max_file_size_bytes" || entry.key == "bypass_prefixes") {
        Node value = entry.value;
        value.origin = origin;
        put(out, entry.key, std::move(value));
      } else if (entry.key == "traversal_mode") {
        choice(&entry.value, origin, {"backend", "cached_traversal"}, "backend");
      } else if (entry.key != "backend" && entry.key != "namespace") {
        warning(entry.line, origin, "is not known here and ignored");
      }
    }
  }

  void provider(Node& out) {
    const Node* cache = root_.find("cache");
    if (cache == nullptr || cache->kind != Node::Kind::map) {
      return error(cache == nullptr ? root_ : *cache, "cache",
                   "is missing; storage.agfs.cachefs.backend \"cache\" needs cache.provider");
    }
    for (const NodeEntry& entry : cache->entries) {
      if (entry.key != "provider" && entry.key != "params") {
        warning(entry.line, "cache." + entry.key, "is not known here and ignored");
      }
    }
    const Node* name = cache->find("provider");
    if (name == nullptr) return error(*cache, "cache.provider", "is missing; embedded or redis is expected");
    if (name->text == "dynamic") {
      return error(*name, "cache.provider",
                   "dynamic loads a library into OpenViking itself; here one of embedded, redis, mooncake, yuanrong "
                   "is expected");
    }
    const std::string provider =
        choice(name, "cache.provider", {"embedded", "redis", "mooncake", "yuanrong", "memory"}, "embedded");
    if (provider.empty()) return;
    if (provider == "memory") warning(name->line, "cache.provider", "memory is called embedded here");
    const std::string ours = provider == "memory" ? "embedded" : provider;
    put(out, "provider", scalar(ours, name->line, "cache.provider"));
    const Node* params = cache->find("params");
    Node section = section_at(params == nullptr ? cache->line : params->line);
    bool ttl_given = false;
    for (const NodeEntry& entry : params == nullptr ? section.entries : params->entries) {
      Node value = entry.value;
      value.origin = "cache.params." + entry.key;
      ttl_given = ttl_given || entry.key == "default_ttl_seconds";
      if (entry.key == "default_ttl_seconds" || entry.key == "sdk_concurrency") {
        put(out, entry.key, std::move(value));
      } else if (entry.key == "command_timeout_ms" || entry.key == "operation_timeout_ms") {
        put(out, "operation_timeout_ms", std::move(value));
      } else {
        put(section, entry.key, std::move(value));
      }
    }
    if (ours == "redis" && !ttl_given) {
      put(out, "default_ttl_seconds", scalar("3600", section.line, "cache.params.default_ttl_seconds"));
    }
    put(out, ours, std::move(section));
  }

  Node pathlock() {
    const Node* theirs = in_agfs("pathlock");
    Node out = section_at(theirs == nullptr ? root_.line : theirs->line);
    if (theirs == nullptr) return out;
    const std::string provider = choice(theirs->find("provider"), "storage.agfs.pathlock.provider",
                                        {"filesystem", "memory", "cache"}, "filesystem");
    if (theirs->find("provider") != nullptr && (provider == "filesystem" || provider == "cache")) {
      warning(theirs->find("provider")->line, "storage.agfs.pathlock.provider",
              fmt::format("{} is not used here: locks are kept in this process", provider));
    }
    if (const Node* expire = theirs->find("lock_expire_secs"); expire != nullptr) {
      Node value = *expire;
      value.origin = "storage.agfs.pathlock.lock_expire_secs";
      put(out, "lock_expire_secs", std::move(value));
    }
    return out;
  }

  Node log() {
    const Node* theirs = root_.find("log");
    Node out = section_at(theirs == nullptr ? root_.line : theirs->line);
    const Node* level = theirs == nullptr ? nullptr : theirs->find("level");
    if (level == nullptr || level->kind != Node::Kind::scalar) return out;
    std::string word = level->text;
    std::transform(word.begin(), word.end(), word.begin(), [](unsigned char c) { return std::tolower(c); });
    if (word == "warning") word = "warn";
    if (word == "trace") word = "debug";
    if (word == "critical") word = "error";
    put(out, "level", scalar(word, level->line, "log.level"));
    return out;
  }

  const Node& root_;
  ParseReport& report_;
  const Node* agfs_ = nullptr;
};

}  // namespace

Node translate_ov_conf(const Node& root, ParseReport& report) { return Translator(root, report).run(); }

}  // namespace ragfs
