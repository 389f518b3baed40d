// State of the server: health, readiness, version, capabilities, metrics, and the cache's statistics and controls.
#include <nlohmann/json.hpp>

#include "ragfs/server/api.h"
#include "ragfs/server/arguments.h"

namespace ragfs::server {
namespace {

HttpResponse health(Services& services, Call&) {
  const HealthReport report = services.health.report();
  size_t failed = 0;
  for (const MountHealth& mount : report.mounts) failed += mount.error.empty() ? 0 : 1;
  const size_t total = services.instance.mounts().size();
  const bool draining = services.draining;
  const bool degraded = !report.problems.empty();
  Json json;
  json["status"] = degraded ? "degraded" : "healthy";
  json["version"] = services.version;
  json["gitCommit"] = "";
  json["buildTime"] = "";
  json["ready"] = !draining;
  json["degraded"] = degraded;
  json["mounts"] = {{"total", total}, {"pending", 0}, {"mounted", total - std::min(failed, total)}, {"failed", failed}};
  json["problems"] = report.problems;
  json["checked_ms_ago"] = report.age_ms;
  return json_reply(json);
}

HttpResponse ready(Services& services, Call&) {
  if (services.draining) return error_reply(503, "unavailable", "the server is shutting down");
  return json_reply({{"ready", true}});
}

Json version_json(const Services& services) {
  return {{"version", services.version}, {"gitCommit", ""}, {"buildTime", ""}};
}

HttpResponse capabilities(Services& services, Call&) {
  return json_reply({{"version", services.version},
                     {"features", {"handlefs", "grep", "digest", "stream", "touch", "tree", "glob", "cache"}}});
}

HttpResponse front(Services& services, Call&) {
  return json_reply({{"service", "ragfs"}, {"version", services.version}, {"status", "running"}});
}

HttpResponse metrics(Services& services, Call&) {
  HttpResponse response;
  response.content_type = "text/plain; version=0.0.4; charset=utf-8";
  response.body = Bytes::from_string(metrics_text(services));
  return response;
}

// By name, and by mount where it is of one: how many were timed, and bounds of the median and the 99th percentile.
Json latencies_json(const CacheReport& report) {
  Json out = Json::object();
  for (const CacheLatency& latency : report.latencies) {
    const std::string name = latency.mount.empty() ? latency.name : latency.name + " " + latency.mount;
    out[name] = {{"timed", latency.figures.count},
                 {"p50_ns", latency.figures.quantile_ns(0.5)},
                 {"p99_ns", latency.figures.quantile_ns(0.99)}};
  }
  return out;
}

HttpResponse cache_stats(Services& services, Call&) {
  const CacheReport report = services.instance.cache_report();
  Json counters = Json::object();
  for (const auto& [name, value] : report.counters) counters[name] = value;
  Json provider = Json::object();
  for (const ProviderMetric& metric : report.provider_metrics) provider[metric.full_name()] = metric.value;
  Json mounts = Json::object();
  for (const CacheMountReport& mount : report.mounts) {
    for (const auto& [name, value] : mount.counters) mounts[mount.path][name] = value;
  }
  Json json;
  json["mounts"] = std::move(mounts);
  json["latencies"] = latencies_json(report);
  json["inflight_active"] = report.inflight_active;
  json["retry_pending"] = report.retry_pending;
  json["configured"] = report.configured;
  json["on"] = report.on;
  json["provider"] = report.provider;
  json["state"] = report.state;
  json["life"] = report.life;
  json["life_why"] = report.life_why;
  json["warm"] = report.warm;
  json["hits"] = report.hits;
  json["misses"] = report.misses;
  const uint64_t asked = report.hits + report.misses;
  json["hit_rate"] = asked == 0 ? 0.0 : static_cast<double>(report.hits) / static_cast<double>(asked);
  json["counters"] = std::move(counters);
  json["provider_metrics"] = std::move(provider);
  return json_reply(json);
}

HttpResponse cache_invalidate(Services& services, Call& call) {
  const auto body = BodyFields::parse(call);
  if (!body) return error_reply(body.error());
  const auto path = body->path(call);
  if (!path) return error_reply(path.error());
  const auto done = services.instance.invalidate(*path);
  return done ? message_reply("invalidated") : error_reply(done.error());
}

HttpResponse cache_top(Services& services, Call& call) {
  constexpr int64_t kMost = 10'000;
  constexpr int64_t kDefault = 20;
  const auto path = path_parameter(call);
  if (!path) return error_reply(path.error());
  const auto limit = integer_parameter(call, "limit", 1, kMost);
  if (!limit) return error_reply(limit.error());
  const auto keys = services.instance.hot_keys(*path, static_cast<size_t>(limit->value_or(kDefault)));
  if (!keys) return error_reply(keys.error());
  Json list = Json::array();
  for (const HotKey& key : *keys) {
    Json entry;
    add_name(entry, "path", key.path);
    entry["kind"] = key.kind == ObjectKind::file ? "file" : "listing";
    entry["reads"] = key.reads;
    list.push_back(std::move(entry));
  }
  return json_reply({{"keys", std::move(list)}});
}

HttpResponse cache_warm(Services& services, Call& call) {
  const auto body = BodyFields::parse(call);
  if (!body) return error_reply(body.error());
  const auto path = body->path(call);
  if (!path) return error_reply(path.error());
  const auto report = services.instance.warm_cache(call.context, *path);
  if (!report) return error_reply(report.error());
  return json_reply({{"keys", report->keys},
                     {"cached", report->cached},
                     {"read", report->read},
                     {"bytes", report->bytes},
                     {"gone", report->gone},
                     {"failed", report->failed}});
}

HttpResponse cache_new_epoch(Services& services, Call& call) {
  const auto done = services.instance.new_epoch(call.context.deadline);
  return done ? message_reply("a new epoch has begun") : error_reply(done.error());
}

HttpResponse cache_rejoin(Services& services, Call& call) {
  const auto done = services.instance.rejoin_cache(call.context.deadline);
  return done ? message_reply("rejoined") : error_reply(done.error());
}

}  // namespace

void add_status_routes(Router& router, Services& services) {
  const auto add = [&](const char* method, const char* path, Access access, Place place,
                       HttpResponse (*handler)(Services&, Call&)) {
    router.add({method, path, access, place, [&services, handler](Call& call) { return handler(services, call); }});
  };
  for (const std::string prefix : {"", "/api/v1"}) {
    add("GET", (prefix + "/health").c_str(), Access::open, Place::connection, health);
    add("GET", (prefix + "/ready").c_str(), Access::open, Place::connection, ready);
    add("GET", (prefix + "/metrics").c_str(), Access::inspect, Place::connection, metrics);
  }
  add("GET", "/", Access::open, Place::connection, front);
  add("GET", "/api/v1", Access::open, Place::connection, front);
  add("GET", "/api/v1/capabilities", Access::read, Place::connection, capabilities);
  add("GET", "/api/v1/cache/stats", Access::inspect, Place::connection, cache_stats);
  add("POST", "/api/v1/cache/invalidate", Access::control, Place::worker, cache_invalidate);
  add("GET", "/api/v1/cache/top", Access::inspect, Place::worker, cache_top);
  add("POST", "/api/v1/cache/warm", Access::control, Place::worker, cache_warm);
  add("POST", "/api/v1/cache/new-epoch", Access::control, Place::worker, cache_new_epoch);
  add("POST", "/api/v1/cache/rejoin", Access::control, Place::worker, cache_rejoin);
  router.add({"GET", "/api/v1/version", Access::read, Place::connection,
              [&services](Call&) { return json_reply(version_json(services)); }});
}

}  // namespace ragfs::server
