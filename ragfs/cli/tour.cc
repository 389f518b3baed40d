// tour: a first look at a tree and at what the cache does for it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ragfs/base/clock.h"
#include "ragfs/cli/command_support.h"
#include "ragfs/cli/commands.h"
#include "ragfs/cli/progress.h"
#include "ragfs/cli/text.h"

namespace ragfs::cli {
namespace {

struct Inventory {
  std::vector<Path> files;  // at most TourOptions::max_files, max_bytes together
  uint64_t all_files = 0;
  uint64_t directories = 0;
  uint64_t bytes = 0;
  uint64_t deepest = 0;
  uint64_t others = 0;  // neither file nor directory
};

struct Pass {
  uint64_t files = 0;
  uint64_t bytes = 0;
  uint64_t failed = 0;
  int64_t took_ns = 0;
  uint64_t hits = 0;
  uint64_t misses = 0;
};

Inventory take_inventory(const std::vector<TreeEntry>& entries, const TourOptions& options) {
  Inventory inventory;
  uint64_t chosen_bytes = 0;
  for (const TreeEntry& entry : entries) {
    inventory.deepest = std::max<uint64_t>(
        inventory.deepest, static_cast<uint64_t>(std::count(entry.rel_path.begin(), entry.rel_path.end(), '/')) + 1);
    if (entry.info.kind == FileKind::other) ++inventory.others;
    if (entry.info.is_dir()) ++inventory.directories;
    if (entry.info.kind != FileKind::file) continue;
    ++inventory.all_files;
    inventory.bytes += entry.info.size;
    if (inventory.files.size() >= options.max_files || chosen_bytes + entry.info.size > options.max_bytes) continue;
    auto path = Path::parse(entry.path);
    if (!path) continue;
    chosen_bytes += entry.info.size;
    inventory.files.push_back(std::move(*path));
  }
  return inventory;
}

Pass read_all(Session& session, Instance& instance, const Inventory& inventory, std::string_view name) {
  const CacheReport before = instance.cache_report();
  Progress progress(session.console(), fmt::format("{} pass: reading file", name), inventory.files.size());
  Pass pass;
  const Context context = session.context();
  const int64_t start_ns = Clock::system().monotonic_ns();
  for (const Path& path : inventory.files) {
    const auto data = instance.fs().read(context, path, 0, 0);
    ++pass.files;
    if (!data) ++pass.failed;
    pass.bytes += data ? data->size() : 0;
    progress.advance(1, data ? data->size() : 0);
  }
  pass.took_ns = std::max<int64_t>(1, Clock::system().monotonic_ns() - start_ns);
  const CacheReport after = instance.cache_report();
  pass.hits = after.hits - before.hits;
  pass.misses = after.misses - before.misses;
  return pass;
}

double rate(const Pass& pass) {
  const uint64_t asked = pass.hits + pass.misses;
  return asked == 0 ? 0 : 100.0 * static_cast<double>(pass.hits) / static_cast<double>(asked);
}

void print_pass(Console& console, std::string_view name, const Pass& pass) {
  const double seconds = static_cast<double>(pass.took_ns) / 1e9;
  console.line(fmt::format("  {:<6} {:>9}  {:>9}/file  {:>12} files/s  {:>11}/s  {:>5.1f}% hits", name,
                           human_duration_ns(pass.took_ns),
                           human_duration_ns(pass.took_ns / static_cast<int64_t>(std::max<uint64_t>(1, pass.files))),
                           grouped(static_cast<uint64_t>(static_cast<double>(pass.files) / seconds)),
                           human_bytes(static_cast<uint64_t>(static_cast<double>(pass.bytes) / seconds)), rate(pass)));
}

void write_pass(JsonWriter& json, std::string_view name, const Pass& pass) {
  json.key(name).begin_object().field("files", pass.files).field("bytes", pass.bytes).field("failed", pass.failed);
  json.field("duration_ns", pass.took_ns).field("hits", pass.hits).field("misses", pass.misses);
  json.field("hit_rate_percent", rate(pass)).end_object();
}

void print_inventory(Console& console, const std::string& source, const Inventory& inventory) {
  console.line(fmt::format("tree       {}: {} in {}, {}, {} deep", printable(source),
                           counted(inventory.all_files, "file", "files"),
                           counted(inventory.directories, "directory", "directories"), human_bytes(inventory.bytes),
                           counted(inventory.deepest, "level", "levels")));
  if (inventory.others > 0) {
    console.line(fmt::format("           {} neither file nor directory (links, sockets): not read",
                             counted(inventory.others, "entry is", "entries are")));
  }
  if (inventory.files.size() < inventory.all_files) {
    console.line(fmt::format("           {} are read here (--max-files, --max-bytes)",
                             counted(inventory.files.size(), "file", "files")));
  }
}

void print_next_steps(Session& session) {
  Console& console = session.console();
  const std::string ragfs = printable(session.command_start());
  console.line("\nwhat to try next");
  console.line(fmt::format("  {} ls -l /", ragfs));
  console.line(fmt::format("  {} tree -L 2 /", ragfs));
  console.line(fmt::format("  {} grep -i deadline /", ragfs));
  console.line(fmt::format("  {} shell      one process for many commands: watch `cache stats` grow", ragfs));
  console.line(fmt::format("  {} doctor     is everything in order?", ragfs));
}

void print_cache(Console& console, const CacheReport& report) {
  if (!report.configured) return console.line("cache      none");
  double dram_bytes = -1;
  for (const ProviderMetric& metric : report.provider_metrics) {
    if (metric.name == "dram_bytes" || metric.name == "bytes") dram_bytes = metric.value;
  }
  console.line(fmt::format("cache      {}, provider {}, breaker {}{}", report.on ? "on" : "off", report.provider,
                           report.state,
                           dram_bytes < 0 ? "" : ", holds " + human_bytes(static_cast<uint64_t>(dram_bytes))));
}

}  // namespace

ExitCode run_tour(Session& session, const TourOptions& options) {
  return with_instance(session, "tour", [&](Instance& instance, const Context& context) {
    Console& console = session.console();
    TreeOptions everything;
    everything.show_hidden = true;
    const auto entries = instance.fs().tree(context, PathView(), everything);
    if (!entries) return report_path(session, "tour", PathView(), entries.error());
    const Inventory inventory = take_inventory(*entries, options);
    if (!console.json()) print_inventory(console, session.source(), inventory);
    const Pass cold = read_all(session, instance, inventory, "cold");
    const Pass warm = read_all(session, instance, inventory, "warm");
    if (console.json()) {
      JsonWriter json;
      json.begin_object().name("source", session.source()).field("files", inventory.all_files);
      json.field("directories", inventory.directories).field("bytes", inventory.bytes);
      write_pass(json, "cold", cold);
      write_pass(json, "warm", warm);
      json.field("speedup", static_cast<double>(cold.took_ns) / static_cast<double>(warm.took_ns)).end_object();
      console.line(json.text());
    } else {
      console.line(fmt::format("reading    {} one after the other, twice", counted(cold.files, "file", "files")));
      print_pass(console, "cold", cold);
      print_pass(console, "warm", warm);
      console.line(
          fmt::format("           the second pass was {:.1f}x as fast; the first asked the backend (files the "
                      "system had in memory",
                      static_cast<double>(cold.took_ns) / static_cast<double>(warm.took_ns)));
      console.line("           already count as backend too), the second the cache");
      print_cache(console, instance.cache_report());
      print_next_steps(session);
    }
    if (cold.failed + warm.failed == 0) return ExitCode::ok;
    console.warn("tour", fmt::format("{} could not be read", counted(cold.failed, "file", "files")));
    return ExitCode::io;
  });
}

}  // namespace ragfs::cli
