// /metrics: everything that is counted, as Prometheus text.
#include <fmt/format.h>

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
    const std::string name =
        (metric.name.starts_with("disk_") ? "ragfs_store_" : "ragfs_cache_provider_") + metric.name;
    if (name != last) {
      page.head(name, name.ends_with("_total") ? "counter" : "gauge", "Of the provider: " + metric.name + ".");
    }
    last = name;
    page.sample(name, metric.labels, metric.value);
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
  for (const auto& [name, value] : report.counters) {
    page.counter(fmt::format("ragfs_cache_{}_total", name), fmt::format("Cache: {}.", name),
                 static_cast<double>(value));
  }
  add_provider(page, report.provider_metrics);
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
