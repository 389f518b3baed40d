// Everything of the Python class that is neither a file nor a lock: mounts, health, statistics, git's answers.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "python/bind.h"

namespace ragfs::python {
namespace {

using py::arg;

// The names that the original gives its operations; rename counts replace too.
struct Shown {
  const char* name;
  std::array<Operation, 2> operations;
};
constexpr std::array<Shown, 16> kShown = {
    {{"create", {Operation::create, Operation::create}},
     {"mkdir", {Operation::mkdir, Operation::mkdir}},
     {"remove", {Operation::remove, Operation::remove}},
     {"remove_all", {Operation::remove_all, Operation::remove_all}},
     {"read", {Operation::read, Operation::read}},
     {"write", {Operation::write, Operation::write}},
     {"read_dir", {Operation::read_dir, Operation::read_dir}},
     {"stat", {Operation::stat, Operation::stat}},
     {"rename", {Operation::rename, Operation::replace}},
     {"chmod", {Operation::chmod, Operation::chmod}},
     {"truncate", {Operation::truncate, Operation::truncate}},
     {"exists", {Operation::exists, Operation::exists}},
     {"grep", {Operation::grep, Operation::grep}},
     {"ensure_parent_dirs", {Operation::ensure_parent_dirs, Operation::ensure_parent_dirs}},
     {"tree_dir", {Operation::tree, Operation::tree}},
     {"glob_dir", {Operation::glob, Operation::glob}}}};

constexpr uint64_t kNsPerUs = 1'000;
// Upper bounds of the original's histogram, in nanoseconds.
constexpr std::array<uint64_t, 11> kBounds = {100'000,       500'000,       1'000'000,     5'000'000,
                                              10'000'000,    50'000'000,    100'000'000,   500'000'000,
                                              1'000'000'000, 5'000'000'000, 10'000'000'000};

// Two operations that are shown as one.
OperationSnapshot joined(const MountStats& stats, const Shown& shown) {
  OperationSnapshot sum = stats.operations[static_cast<size_t>(shown.operations[0])];
  if (shown.operations[0] == shown.operations[1]) return sum;
  const OperationSnapshot& other = stats.operations[static_cast<size_t>(shown.operations[1])];
  sum.count += other.count;
  sum.errors += other.errors;
  sum.timed += other.timed;
  sum.total_ns += other.total_ns;
  sum.min_ns = std::min(sum.min_ns, other.min_ns);
  sum.max_ns = std::max(sum.max_ns, other.max_ns);
  for (size_t i = 0; i < kLatencyBuckets; ++i) sum.buckets[i] += other.buckets[i];
  return sum;
}

py::dict stats_dict(const MountStats& stats) {
  py::dict operations;
  for (const Shown& shown : kShown) {
    const OperationSnapshot sum = joined(stats, shown);
    py::dict one;
    one["count"] = sum.count;
    one["total_time_us"] = sum.total_ns / kNsPerUs;
    one["min_time_us"] = sum.timed == 0 ? UINT64_MAX : sum.min_ns / kNsPerUs;
    one["max_time_us"] = sum.max_ns / kNsPerUs;
    one["avg_time_us"] =
        sum.count == 0 ? 0.0 : static_cast<double>(sum.total_ns) / static_cast<double>(kNsPerUs * sum.count);
    operations[shown.name] = one;
  }
  py::dict inner;
  inner["operations"] = operations;
  py::dict out;
  out["path"] = stats.path;
  out["plugin"] = stats.plugin;
  out["stats"] = inner;
  return out;
}

py::object get_stats(BoundClient& self, py::handle path) {
  const auto wanted = optional_text(path, "path");
  const auto all = value(self.client->stats(wanted));
  if (wanted) return stats_dict(all.front());
  py::list mounts;
  for (const MountStats& stats : all) mounts.append(stats_dict(stats));
  py::dict out;
  out["mounts"] = mounts;
  return out;
}

class MetricList {
 public:
  void counter(const std::string& name, const py::dict& labels, uint64_t number, double scale = 1.0) {
    py::dict one = head(name, labels, "counter");
    one["value"] = number;
    one["scale"] = scale;
    list_.append(one);
  }
  void gauge(const std::string& name, double number) {
    py::dict one = head(name, py::dict(), "gauge");
    one["value"] = number;
    list_.append(one);
  }
  // Latencies are those of the timed calls; the counters count all.
  void histogram(const std::string& name, const py::dict& labels, const OperationSnapshot& sum) {
    std::array<uint64_t, kBounds.size() + 1> counts{};
    uint64_t total = 0;
    for (size_t i = 0; i < kLatencyBuckets; ++i) {
      const auto bound = std::ranges::lower_bound(kBounds, latency_bucket_bound_ns(i));
      counts[static_cast<size_t>(bound - kBounds.begin())] += sum.buckets[i];
      total += sum.buckets[i];
    }
    py::dict one = head(name, labels, "histogram");
    py::list bounds;
    for (const uint64_t bound : kBounds) bounds.append(bound);
    py::list shown;
    for (const uint64_t count : counts) shown.append(count);
    one["bucket_bounds"] = bounds;
    one["bucket_counts"] = shown;
    one["count"] = total;
    one["sum"] = sum.total_ns;
    one["scale"] = 1e-9;
    list_.append(one);
  }
  py::list take() { return std::move(list_); }

 private:
  static py::dict head(const std::string& name, const py::dict& labels, const char* type) {
    py::dict one;
    one["name"] = name;
    one["labels"] = labels;
    one["type"] = type;
    return one;
  }
  py::list list_;
};

py::dict labels(std::initializer_list<std::pair<const char*, std::string>> pairs) {
  py::dict out;
  for (const auto& [key, text] : pairs) out[key] = text;
  return out;
}

// Mounts of one plugin are one series each, as the original's.
std::vector<MountStats> by_plugin(std::vector<MountStats> mounts) {
  std::vector<MountStats> sums;
  for (MountStats& mount : mounts) {
    const auto same = std::ranges::find(sums, mount.plugin, &MountStats::plugin);
    if (same == sums.end()) {
      sums.push_back(std::move(mount));
      continue;
    }
    for (size_t i = 0; i < same->operations.size(); ++i) {
      OperationSnapshot& sum = same->operations[i];
      const OperationSnapshot& other = mount.operations[i];
      sum.count += other.count;
      sum.errors += other.errors;
      sum.timed += other.timed;
      sum.total_ns += other.total_ns;
      for (size_t bucket = 0; bucket < kLatencyBuckets; ++bucket) sum.buckets[bucket] += other.buckets[bucket];
    }
  }
  return sums;
}

uint64_t counter_named(const CacheReport& report, std::string_view name) {
  for (const auto& [key, count] : report.counters) {
    if (key == name) return count;
  }
  return 0;
}

void cache_metrics(const CacheReport& report, MetricList& out) {
  const auto count = [&](std::string_view name) { return counter_named(report, name); };
  out.counter("ragfs_cache_requests_total", labels({{"kind", "file"}, {"result", "hit"}}), count("file_hit"));
  out.counter("ragfs_cache_requests_total", labels({{"kind", "file"}, {"result", "miss"}}), count("file_miss"));
  out.counter("ragfs_cache_requests_total", labels({{"kind", "directory"}, {"result", "hit"}}), count("directory_hit"));
  out.counter("ragfs_cache_requests_total", labels({{"kind", "directory"}, {"result", "miss"}}),
              count("directory_miss"));
  out.counter("ragfs_cache_bytes_total", labels({{"source", "cache"}}), count("bytes_from_cache"));
  out.counter("ragfs_cache_bytes_total", labels({{"source", "backend"}}), count("bytes_from_backend"));
  out.counter("ragfs_cache_policy_bypasses_total", py::dict(), count("bypass"));
}

py::object metrics(BoundClient& self) {
  MetricList out;
  const LockReport locks = self.client->locks().report();
  out.gauge("lock_active", static_cast<double>(locks.active));
  out.counter("lock_conflicts_total", py::dict(), locks.conflicts_total);
  out.counter("lock_descendant_scan_duration_seconds_total", py::dict(), locks.descendant_scan_ns, 1e-9);
  out.counter("lock_descendant_scans_total", py::dict(), locks.descendant_scans);
  out.gauge("lock_stale", 0.0);
  out.counter("lock_stale_leases_released_total", py::dict(), locks.stale_removed);
  out.gauge("lock_waiting", static_cast<double>(locks.waiting));
  for (const MountStats& stats : by_plugin(value(self.client->stats(std::nullopt)))) {
    for (const Shown& shown : kShown) {
      const OperationSnapshot sum = joined(stats, shown);
      out.histogram("ragfs_operation_duration_seconds", labels({{"operation", shown.name}, {"plugin", stats.plugin}}),
                    sum);
      for (const char* status : {"success", "error"}) {
        out.counter("ragfs_operation_results_total",
                    labels({{"operation", shown.name}, {"plugin", stats.plugin}, {"status", status}}),
                    *status == 'e' ? sum.errors : sum.count - std::min(sum.errors, sum.count));
      }
    }
  }
  const CacheReport cache = self.client->cache_report();
  if (cache.configured) cache_metrics(cache, out);
  return out.take();
}

py::object cache_stats(BoundClient& self) {
  const CacheReport report = self.client->cache_report();
  py::dict counters;
  for (const auto& [name, count] : report.counters) counters[name.c_str()] = count;
  py::dict provider;
  for (const ProviderMetric& metric : report.provider_metrics) provider[metric.full_name().c_str()] = metric.value;
  py::dict out;
  out["configured"] = report.configured;
  out["on"] = report.on;
  out["provider"] = report.provider;
  out["state"] = report.state;
  out["life"] = report.life;
  out["life_why"] = report.life_why;
  out["warm"] = report.warm;
  out["hits"] = report.hits;
  out["misses"] = report.misses;
  out["counters"] = counters;
  out["provider_metrics"] = provider;
  return out;
}

py::object health(BoundClient& self) {
  py::dict out;
  out["status"] = "healthy";
  out["git_enabled"] = "false";
  if (self.client->options().git_backend) out["git_backend"] = *self.client->options().git_backend;
  return out;
}

py::list plugin_names() {
  py::list out;
  for (const char* name : {"memfs", "kvfs", "queuefs", "sqlfs", "localfs", "serverinfofs", "s3fs"}) out.append(name);
  return out;
}

py::object diff_text(py::handle before, py::handle after, py::handle fromfile, py::handle tofile, py::handle,
                     py::handle) {
  const py::object lines = py::module_::import("difflib").attr("unified_diff")(
      before.attr("splitlines")(true), after.attr("splitlines")(true), fromfile, tofile);
  return py::str("").attr("join")(lines);
}

void bind_git(ClientClass& type) {
  for (const char* name : {"git_commit", "git_restore", "git_show", "git_log", "git_diff_paths"}) {
    type.def(name, [](BoundClient&, const py::kwargs&) -> py::object {
      throw_raised({"AGFSNotSupportedError", "git feature disabled"});
    });
  }
  type.def(
      "git_diff_text",
      [](BoundClient&, py::handle before, py::handle after, py::handle from, py::handle to, py::handle timeout_ms,
         py::handle max_bytes) { return diff_text(before, after, from, to, timeout_ms, max_bytes); },
      py::kw_only(), arg("before"), arg("after"), arg("fromfile"), arg("tofile"), arg("timeout_ms") = 500,
      arg("max_output_bytes") = 20 << 20);
}

void bind_refused(ClientClass& type) {
  const auto refuse = [&](const char* name, const char* argument, const char* text) {
    type.def(
        name, [text](BoundClient&, py::handle) -> py::object { throw_raised({"RuntimeError", text}); }, arg(argument));
  };
  refuse("load_plugin", "library_path", "External plugin loading not supported in ragfs-python binding");
  refuse("unload_plugin", "library_path", "External plugin unloading not supported in ragfs-python binding");
  type.def(
      "digest",
      [](BoundClient&, py::handle path, py::handle) -> py::object {
        (void)text_of(path, "path");
        throw_raised({"RuntimeError", "digest not yet implemented in ragfs-python"});
      },
      arg("path"), arg("algorithm") = "xxh3");
  type.def("__getattr__", [](BoundClient&, const std::string& name) -> py::object {
    const std::string text = fmt::format("'builtins.RAGFSBindingClient' object has no attribute '{}'", name);
    PyErr_SetString(PyExc_AttributeError, text.c_str());
    throw py::error_already_set();
  });
}

py::dict message(const std::string& text) {
  py::dict out;
  out["message"] = text;
  return out;
}

void bind_mount_calls(ClientClass& type) {
  type.def(
      "mount",
      [](BoundClient& self, py::handle fstype, py::handle path, py::handle config) {
        const std::string name(text_of(fstype, "fstype"));
        const std::string at(text_of(path, "path"));
        const nlohmann::json parameters = parameters_of(config);
        Answer<void> done;
        {
          const py::gil_scoped_release release;
          done = self.client->mount(name, at, parameters);
        }
        value(std::move(done));
        return message(fmt::format("mounted {} at {}", name, at));
      },
      arg("fstype"), arg("path"), arg("config") = py::none());
  type.def(
      "unmount",
      [](BoundClient& self, py::handle path) {
        const std::string at(text_of(path, "path"));
        Answer<void> done;
        {
          const py::gil_scoped_release release;
          done = self.client->unmount(at);
        }
        value(std::move(done));
        return message(fmt::format("unmounted {}", at));
      },
      arg("path"));
  type.def("mounts", [](BoundClient& self) {
    py::list out;
    for (const auto& [path, plugin] : self.client->mounts()) {
      py::dict one;
      one["path"] = path;
      one["fstype"] = plugin;
      out.append(one);
    }
    return out;
  });
}

}  // namespace

void bind_mounts(ClientClass& type) {
  bind_mount_calls(type);
  type.def("health", health);
  type.def("get_capabilities", [](BoundClient&) {
    py::dict out;
    out["version"] = "ragfs-python";
    out["features"] = plugin_names();
    return out;
  });
  type.def("list_plugins", [](BoundClient&) { return plugin_names(); });
  type.def("get_plugins_info", [](BoundClient&) { return plugin_names(); });
  type.def("get_stats", get_stats, arg("path") = py::none());
  type.def("metrics", metrics);
  type.def("cache_stats", cache_stats);
  type.def(
      "cache_invalidate",
      [](BoundClient& self, py::handle path) {
        const std::string at(text_of(path, "path"));
        const py::gil_scoped_release release;
        const Answer<void> done = self.client->invalidate(at);
        const py::gil_scoped_acquire acquire;
        if (!done) throw_raised(done.error());
      },
      arg("path") = "/");
  type.def("close", [](BoundClient& self) {
    const py::gil_scoped_release release;
    self.client->close();
  });
  bind_git(type);
  bind_refused(type);
}

}  // namespace ragfs::python
