// cache stats, on, off, flush, invalidate, new-epoch, rejoin, verify, top, warm, purge: the cache of this process.
#include <fmt/format.h>

#include "ragfs/cli/command_support.h"
#include "ragfs/cli/commands.h"
#include "ragfs/cli/text.h"

namespace ragfs::cli {
namespace {

// One run of the program is one process: what is done to its cache ends with it.
constexpr std::string_view kOwnProcess =
    "this is the cache of this very process, which ends now; use `ragfs shell` to see it work";

void note_own_process(Session& session, std::string_view command) {
  if (!session.in_shell() && !session.console().json())
    session.console().err(fmt::format("ragfs: {}: note: {}\n", command, kOwnProcess));
}

// For what acts on the cache of another run as well, where there is one.
void note_unless_it_outlives(Session& session, Instance& instance, std::string_view command) {
  if (!instance.cache_report().outlives_process) note_own_process(session, command);
}

ExitCode report_done(Session& session, std::string_view command, const Result<void>& done, std::string_view what) {
  if (!done) return session.console().report(command, done.error());
  note_own_process(session, command);
  if (session.console().json()) {
    session.console().line(JsonWriter().begin_object().field("done", what).end_object().text());
  } else {
    session.console().line(what);
  }
  return ExitCode::ok;
}

void print_mounts(Console& console, const CacheReport& report) {
  if (report.mounts.size() < 2) return;
  for (const CacheMountReport& mount : report.mounts) {
    console.line(console.name(mount.path));
    for (const auto& [name, value] : mount.counters) {
      if (value != 0) console.line(fmt::format("  {:<32} {:>14}", name, grouped(value)));
    }
  }
}

void print_latencies(Console& console, const CacheReport& report) {
  for (const CacheLatency& latency : report.latencies) {
    const LatencySnapshot& of = latency.figures;
    if (of.count == 0) continue;
    const std::string name =
        latency.mount.empty() || report.mounts.size() < 2 ? latency.name : latency.name + " " + latency.mount;
    const auto bound = [&](double part) { return human_duration_ns(static_cast<int64_t>(of.quantile_ns(part))); };
    console.line(fmt::format("  {:<32} {:>14} timed, half below {}, 99 % below {}", console.name(name),
                             grouped(of.count), bound(0.5), bound(0.99)));
  }
}

void print_stats(Console& console, const CacheReport& report) {
  const uint64_t asked = report.hits + report.misses;
  console.line(fmt::format("cache       {}", !report.configured ? "none: no mount has one"
                                             : report.on        ? console.styled(Style::good, "on")
                                                                : console.styled(Style::warn, "off")));
  if (!report.configured) return;
  console.line(fmt::format("provider    {} (breaker {})", report.provider, report.state));
  console.line(fmt::format("life        {}{}{}", report.life,
                           report.warm ? ", went on with what was cached before" : "",
                           report.life_why.empty() ? "" : ": " + report.life_why));
  console.line(asked == 0 ? std::string("hit rate    - (nothing was asked yet)")
                          : fmt::format("hit rate    {:.1f}% ({} of {})",
                                        100.0 * static_cast<double>(report.hits) / static_cast<double>(asked),
                                        grouped(report.hits), grouped(asked)));
  for (const auto& [name, value] : report.counters) {
    if (value != 0) console.line(fmt::format("  {:<32} {:>14}", name, grouped(value)));
  }
  print_mounts(console, report);
  print_latencies(console, report);
  for (const ProviderMetric& metric : report.provider_metrics) {
    console.line(fmt::format("  {:<32} {:>14}", report.provider + "." + metric.full_name(),
                             grouped(static_cast<uint64_t>(metric.value < 0 ? 0 : metric.value))));
  }
}

}  // namespace

ExitCode run_cache_stats(Session& session) {
  return with_instance(session, "cache stats", [&](Instance& instance, const Context&) {
    const CacheReport report = instance.cache_report();
    Console& console = session.console();
    if (!console.json()) {
      print_stats(console, report);
      note_own_process(session, "cache stats");
      return ExitCode::ok;
    }
    JsonWriter json;
    json.begin_object().field("configured", report.configured).field("on", report.on);
    json.field("provider", report.provider).field("breaker", report.state);
    json.field("life", report.life).field("life_why", report.life_why).field("warm", report.warm);
    json.field("hits", report.hits).field("misses", report.misses).field("scope", "process");
    json.key("counters").begin_object();
    for (const auto& [name, value] : report.counters) json.field(name, value);
    json.end_object().key("mounts").begin_object();
    for (const CacheMountReport& mount : report.mounts) {
      json.key(utf8_lossy(mount.path)).begin_object();
      for (const auto& [name, value] : mount.counters) json.field(name, value);
      json.end_object();
    }
    json.end_object().key("latencies").begin_object();
    for (const CacheLatency& latency : report.latencies) {
      json.key(latency.mount.empty() ? latency.name : latency.name + " " + utf8_lossy(latency.mount)).begin_object();
      json.field("timed", latency.figures.count).field("p50_ns", latency.figures.quantile_ns(0.5));
      json.field("p99_ns", latency.figures.quantile_ns(0.99)).end_object();
    }
    json.end_object().key("provider_metrics").begin_object();
    for (const ProviderMetric& metric : report.provider_metrics) json.field(metric.full_name(), metric.value);
    console.line(json.end_object().end_object().text());
    return ExitCode::ok;
  });
}

ExitCode run_cache_switch(Session& session, bool on) {
  const std::string_view command = on ? "cache on" : "cache off";
  return with_instance(session, command, [&](Instance& instance, const Context&) {
    return report_done(session, command, instance.set_cache_on(on), on ? "cache is on" : "cache is off");
  });
}

ExitCode run_cache_flush(Session& session) {
  return with_instance(session, "cache flush", [&](Instance& instance, const Context&) {
    return report_done(session, "cache flush", instance.flush_cache(), "cache is empty");
  });
}

ExitCode run_cache_invalidate(Session& session, const std::string& typed) {
  return with_path(session, "cache invalidate", typed, [&](Instance& instance, const Context&, PathView path) {
    const auto done = instance.invalidate(path);
    return report_done(session, "cache invalidate", done,
                       fmt::format("{} and all below it will be read anew", session.console().name(path.text())));
  });
}

namespace {

// Without --timeout: for a provider that is asked once or twice.
constexpr int64_t kLifeTimeout_ms = 10'000;

Deadline life_deadline(const Context& ctx) {
  return ctx.deadline.is_never() ? Deadline::in_ms(kLifeTimeout_ms) : ctx.deadline;
}

ExitCode report_life(Session& session, std::string_view command, const Result<void>& done, std::string_view what) {
  if (!done) return session.console().report(command, done.error());
  if (session.console().json()) {
    session.console().line(JsonWriter().begin_object().field("done", what).end_object().text());
  } else {
    session.console().line(what);
  }
  return ExitCode::ok;
}

}  // namespace

ExitCode run_cache_new_epoch(Session& session) {
  return with_instance(session, "cache new-epoch", [&](Instance& instance, const Context& ctx) {
    const ExitCode code = report_life(session, "cache new-epoch", instance.new_epoch(life_deadline(ctx)),
                                      "a new epoch has begun; nothing that was cached before is served any more");
    if (code == ExitCode::ok) note_unless_it_outlives(session, instance, "cache new-epoch");
    return code;
  });
}

ExitCode run_cache_rejoin(Session& session) {
  return with_instance(session, "cache rejoin", [&](Instance& instance, const Context& ctx) {
    const ExitCode code =
        report_life(session, "cache rejoin", instance.rejoin_cache(life_deadline(ctx)), "the cache is in use");
    if (code == ExitCode::ok) note_unless_it_outlives(session, instance, "cache rejoin");
    return code;
  });
}

ExitCode run_cache_verify(Session& session, const std::string& typed) {
  return with_path(session, "cache verify", typed, [&](Instance& instance, const Context& ctx, PathView path) {
    Console& console = session.console();
    const auto report = instance.verify_cache(ctx, path);
    if (!report) return console.report("cache verify", report.error());
    if (console.json()) {
      JsonWriter json;
      json.begin_object().field("looked_at", report->looked_at).field("objects", report->objects);
      json.field("unreadable", report->unreadable).field("left_out", report->left_out).field("wrong", report->wrong);
      json.key("wrong_paths").begin_array();
      for (const std::string& wrong : report->wrong_paths) json.value(wrong);
      console.line(json.end_array().end_object().text());
    } else {
      for (const std::string& wrong : report->wrong_paths) console.line("wrong: " + console.name(wrong));
      console.line(fmt::format("{} compared of {}: {} wrong, {} not readable",
                               counted(report->objects, "object", "objects"),
                               counted(report->looked_at, "path", "paths"), report->wrong, report->unreadable));
      if (report->left_out > 0)
        console.line(
            fmt::format("{} left out: there are too many", counted(report->left_out, "directory", "directories")));
    }
    return report->wrong == 0 ? ExitCode::ok : ExitCode::negative;
  });
}

ExitCode run_cache_top(Session& session, const std::string& typed, size_t most) {
  return with_path(session, "cache top", typed, [&](Instance& instance, const Context&, PathView path) {
    Console& console = session.console();
    const auto keys = instance.hot_keys(path, most);
    if (!keys) return console.report("cache top", keys.error());
    if (console.json()) {
      JsonWriter json;
      json.begin_object().key("keys").begin_array();
      for (const HotKey& key : *keys) {
        json.begin_object().field("path", key.path).field("reads", key.reads);
        json.field("kind", key.kind == ObjectKind::file ? "file" : "listing").end_object();
      }
      console.line(json.end_array().end_object().text());
      return ExitCode::ok;
    }
    for (const HotKey& key : *keys) {
      console.line(fmt::format("{:>14}  {}{}", grouped(key.reads), console.name(key.path),
                               key.kind == ObjectKind::file ? "" : "  (listing)"));
    }
    if (keys->empty()) console.line("nothing was read yet");
    return ExitCode::ok;
  });
}

ExitCode run_cache_warm(Session& session, const std::string& typed) {
  return with_path(session, "cache warm", typed, [&](Instance& instance, const Context& ctx, PathView path) {
    Console& console = session.console();
    const auto report = instance.warm_cache(ctx, path);
    if (!report) return console.report("cache warm", report.error());
    if (console.json()) {
      JsonWriter json;
      json.begin_object().field("keys", report->keys).field("cached", report->cached).field("read", report->read);
      json.field("bytes", report->bytes).field("gone", report->gone).field("failed", report->failed);
      console.line(json.end_object().text());
      return ExitCode::ok;
    }
    console.line(fmt::format("{}: {} cached already, {} read, {} gone, {} failed",
                             counted(report->keys, "hot key", "hot keys"), report->cached, report->read, report->gone,
                             report->failed));
    return ExitCode::ok;
  });
}

ExitCode run_cache_purge(Session& session, const std::string& account) {
  return with_instance(session, "cache purge", [&](Instance& instance, const Context& ctx) {
    Console& console = session.console();
    const Result<uint64_t> erased = instance.purge_account(account, ctx.deadline);
    if (!erased) return console.report("cache purge", erased.error());
    if (console.json()) {
      console.line(JsonWriter().begin_object().field("erased", *erased).end_object().text());
    } else {
      console.line(fmt::format("{} of {} erased", counted(*erased, "object", "objects"), console.name(account)));
    }
    note_unless_it_outlives(session, instance, "cache purge");
    return ExitCode::ok;
  });
}

}  // namespace ragfs::cli
