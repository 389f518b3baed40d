// /metrics: everything that is counted, as Prometheus text.
#include <fmt/format.h>

#include <algorithm>

#include "ragfs/server/api.h"

namespace ragfs::server {
namespace {

class Page {
 public:
  void counter(std::string_view name, std::string_view help, double value) { one(name, "counter", help, value); }
  void gauge(std::string_view name, std::string_view help, double value) { one(name, "gauge", help, value); }
  void head(std::string_view name, std::string_view type, std::string_view help) {
    text += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
  }
  void sample(std::string_view name, std::string_view labels, double value) {
    text += fmt::format("{}{} {}\n", name, labels, value);
  }
  std::string text;

 private:
  void one(std::string_view name, std::string_view type, std::string_view help, double value) {
    head(name, type, help);
    sample(name, "", value);
  }
};

double number(const std::atomic<uint64_t>& counter) { return static_cast<double>(counter.load()); }

std::string quoted(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '"') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

// Those of one family follow each other.
void add_provider(Page& page, const std::vector<ProviderMetric>& metrics) {
  std::string last;
  for (const ProviderMetric& metric : metrics) {
    const std::string prefix = metric.name.starts_with("disk_")   ? "ragfs_store_"
                               : metric.name.starts_with("near_") ? "ragfs_cache_"
                                                                  : "ragfs_cache_provider_";
    const std::string name = prefix + metric.name;
    if (name != last) {
      page.head(name, name.ends_with("_total") ? "counter" : "gauge", "Of the provider: " + metric.name + ".");
    }
    last = name;
    page.sample(name, metric.labels, metric.value);
  }
}

// Prometheus' histogram in seconds, every second bucket. `labels`: as written between braces, "" for none.
void add_histogram(Page& page, const std::string& name, const std::string& labels, const LatencySnapshot& figures) {
  const std::string comma = labels.empty() ? "" : ",";
  double below = 0;
  for (size_t i = 0; i < kLatencyBuckets; ++i) {
    below += static_cast<double>(figures.buckets[i]);
    const bool last = i + 1 == kLatencyBuckets;
    if (i % 2 != 0 && !last) continue;
    const std::string bound =
        last ? "+Inf" : fmt::format("{}", static_cast<double>(latency_bucket_bound_ns(i)) / 1'000'000'000);
    page.sample(name + "_bucket", fmt::format("{{{}{}le=\"{}\"}}", labels, comma, bound), below);
  }
  const std::string braced = labels.empty() ? "" : fmt::format("{{{}}}", labels);
  page.sample(name + "_sum", braced, static_cast<double>(figures.sum_ns) / 1e9);
  page.sample(name + "_count", braced, below);
}

void add_cache_latencies(Page& page, const CacheReport& report) {
  std::string last;
  std::vector<CacheLatency> sorted = report.latencies;
  std::ranges::stable_sort(sorted, {}, &CacheLatency::name);  // those of one family follow each other
  for (const CacheLatency& latency : sorted) {
    const std::string name = fmt::format("ragfs_cache_{}_latency_seconds", latency.name);
    if (name != last) page.head(name, "histogram", "Cache: time of " + latency.name + ".");
    last = name;
    std::string labels = fmt::format("provider=\"{}\"", quoted(report.provider));
    if (!latency.mount.empty()) labels += fmt::format(",mount=\"{}\"", quoted(latency.mount));
    add_histogram(page, name, labels, latency.figures);
  }
}

// What mounts count is shown of each; what those counted that have gone since, as of mount "".
void add_cache_counters(Page& page, const CacheReport& report) {
  const std::string provider = fmt::format("provider=\"{}\"", quoted(report.provider));
  for (size_t i = 0; i < report.counters.size(); ++i) {
    const auto& [name, value] = report.counters[i];
    const std::string series = fmt::format("ragfs_cache_{}_total", name);
    page.head(series, "counter", fmt::format("Cache: {}.", name));
    if (report.mounts.empty() || i >= report.mounts[0].counters.size()) {
      page.sample(series, fmt::format("{{{}}}", provider), static_cast<double>(value));
      continue;
    }
    uint64_t gone = value;
    for (const CacheMountReport& mount : report.mounts) {
      const uint64_t of_mount = mount.counters[i].second;
      gone -= std::min(gone, of_mount);
      page.sample(series, fmt::format("{{{},mount=\"{}\"}}", provider, quoted(mount.path)),
                  static_cast<double>(of_mount));
    }
    if (gone != 0) page.sample(series, fmt::format("{{{},mount=\"\"}}", provider), static_cast<double>(gone));
  }
}

void add_cache(Page& page, const CacheReport& report) {
  page.gauge("ragfs_cache_enabled", "1 while the cache is in use.", report.configured && report.on ? 1 : 0);
  if (!report.configured) return;
  page.head("ragfs_cache_provider_info", "gauge", "The provider behind the cache.");
  page.sample("ragfs_cache_provider_info", fmt::format("{{provider=\"{}\"}}", quoted(report.provider)), 1);
  page.gauge("ragfs_cache_breaker_open", "1 while calls to the provider are not made because they fail.",
             report.state == "open" || report.state == "probing" ? 1 : 0);
  page.gauge("ragfs_cache_joined", "1 while objects may be served; 0: apart, left to another writer, or closed.",
             report.life == "joined" ? 1 : 0);
  page.gauge("ragfs_cache_inflight_active", "Backend reads that others may join.",
             static_cast<double>(report.inflight_active));
  page.gauge("ragfs_cache_retry_pending", "Erases that wait to be made again.",
             static_cast<double>(report.retry_pending));
  add_cache_counters(page, report);
  page.head("ragfs_cache_provider_errors_total", "counter", "Failed calls to the provider, by kind.");
  for (const auto& [kind, count] : report.provider_errors) {
    page.sample("ragfs_cache_provider_errors_total",
                fmt::format("{{provider=\"{}\",kind=\"{}\"}}", quoted(report.provider), kind),
                static_cast<double>(count));
  }
  add_cache_latencies(page, report);
  add_provider(page, report.provider_metrics);
}

// Those of every mount with at least one call. Latencies of fast operations are sampled: docs/metrics.md.
void add_operations(Page& page, const std::vector<MountOperations>& mounts) {
  constexpr std::string_view kLatency = "ragfs_operation_duration_seconds";
  struct Family {
    const char* name;
    const char* help;
    uint64_t OperationSnapshot::* value;
  };
  const auto labels = [](const MountOperations& mount, const OperationSnapshot& of) {
    return fmt::format("mount=\"{}\",operation=\"{}\"", quoted(mount.path), operation_name(of.operation));
  };
  for (const Family& family :
       {Family{"ragfs_operations_total", "Calls by mount and operation.", &OperationSnapshot::count},
        Family{"ragfs_operation_errors_total", "Those that failed.", &OperationSnapshot::errors}}) {
    page.head(family.name, "counter", family.help);
    for (const MountOperations& mount : mounts) {
      for (const OperationSnapshot& of : mount.operations) {
        if (of.count == 0) continue;
        page.sample(family.name, fmt::format("{{{}}}", labels(mount, of)), static_cast<double>(of.*family.value));
      }
    }
  }
  page.head(kLatency, "histogram", "Time of calls by mount and operation.");
  for (const MountOperations& mount : mounts) {
    for (const OperationSnapshot& of : mount.operations) {
      if (of.timed == 0) continue;
      add_histogram(page, std::string(kLatency), labels(mount, of),
                    {.count = of.timed, .sum_ns = of.avg_ns * of.timed, .buckets = of.buckets});
    }
  }
}

void add_http(Page& page, const HttpCounters& counters) {
  page.counter("ragfs_http_requests_total", "Requests.", number(counters.requests_total));
  page.head("ragfs_http_responses_total", "counter", "Answers by class of status.");
  for (size_t i = 2; i < counters.by_class.size(); ++i) {
    page.sample("ragfs_http_responses_total", fmt::format("{{class=\"{}xx\"}}", i), number(counters.by_class[i]));
  }
  page.counter("ragfs_http_connections_total", "Connections.", number(counters.connections_total));
  page.counter("ragfs_http_connections_refused_total", "Connections past the limit.",
               number(counters.connections_refused));
  page.counter("ragfs_http_answered_at_once_total", "Answers from memory, without a worker.",
               number(counters.answered_at_once));
  page.counter("ragfs_http_malformed_total", "Requests that the parser refused.", number(counters.malformed));
  page.counter("ragfs_http_unauthorized_total", "Requests without a token that is known.",
               number(counters.unauthorized));
  page.counter("ragfs_http_forbidden_total", "Requests that their token does not allow.", number(counters.forbidden));
  page.counter("ragfs_http_overloaded_total", "Requests refused because a bound was reached.",
               number(counters.overloaded));
  page.counter("ragfs_http_header_timeouts_total", "Connections closed: header too slow.",
               number(counters.header_timeouts));
  page.counter("ragfs_http_idle_timeouts_total", "Connections closed: idle.", number(counters.idle_timeouts));
  page.counter("ragfs_http_stalled_total", "Connections closed: client neither sent nor took.",
               number(counters.stalled));
  page.counter("ragfs_http_cut_off_total", "Answers that could not be completed.", number(counters.cut_off));
  page.counter("ragfs_http_received_bytes_total", "Bytes of request bodies.", number(counters.body_bytes_in));
  page.counter("ragfs_http_sent_bytes_total", "Bytes of answers' bodies.", number(counters.body_bytes_out));
  page.gauge("ragfs_http_buffered_bytes", "Request bodies in memory.", number(counters.buffered_bytes));
  page.counter("ragfs_http_access_log_lost_total", "Lines that the access log dropped.",
               number(counters.log_lines_lost));
  page.head("ragfs_http_request_duration_seconds", "histogram", "From a request's first byte to its answer's last.");
  double below = 0;
  for (size_t i = 0; i < HttpCounters::kBuckets; ++i) {
    below += number(counters.latency[i]);
    const bool last = i + 1 == HttpCounters::kBuckets;
    const std::string bound = last ? "+Inf" : fmt::format("{}", static_cast<double>(HttpCounters::bound_us(i)) / 1e6);
    page.sample("ragfs_http_request_duration_seconds_bucket", fmt::format("{{le=\"{}\"}}", bound), below);
  }
  page.sample("ragfs_http_request_duration_seconds_sum", "", number(counters.latency_sum_us) / 1e6);
  page.sample("ragfs_http_request_duration_seconds_count", "", below);
}

}  // namespace

std::string metrics_text(Services& services) {
  Page page;
  page.head("ragfs_build_info", "gauge", "The version of the program.");
  page.sample("ragfs_build_info", fmt::format("{{version=\"{}\"}}", services.version), 1);
  const HealthReport health = services.health.report();
  page.gauge("ragfs_degraded", "1 while /health names a problem.", health.problems.empty() ? 0 : 1);
  page.gauge("ragfs_mounts", "Mounts.", static_cast<double>(services.instance.mounts().size()));
  add_cache(page, services.instance.cache_report());
  add_operations(page, services.instance.operations());
  add_http(page, services.counters);
  page.gauge("ragfs_http_connections", "Open connections.", static_cast<double>(services.connections.count()));
  page.gauge("ragfs_http_workers_busy", "Workers with a request.", static_cast<double>(services.pool.busy()));
  page.gauge("ragfs_http_queue", "Requests that wait for a worker.", static_cast<double>(services.pool.queued()));
  page.gauge("ragfs_http_handles", "Open handles.", static_cast<double>(services.handles.size()));
  page.counter("ragfs_http_handles_expired_total", "Handles whose lease ended.",
               static_cast<double>(services.handles.expired_total()));
  page.counter("ragfs_http_handles_stale_total", "Calls on handles whose file had gone.",
               static_cast<double>(services.handles.stale_total()));
  return std::move(page.text);
}

}  // namespace ragfs::server
