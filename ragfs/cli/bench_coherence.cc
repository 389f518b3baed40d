// bench coherence: threads read and mutate through the cache over everything that fails, and each answer is judged.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "ragfs/base/random.h"
#include "ragfs/cli/command_support.h"
#include "ragfs/cli/commands.h"
#include "ragfs/cli/progress.h"
#include "ragfs/cli/stress/runner.h"
#include "ragfs/cli/text.h"
#include "ragfs/config/factories.h"

namespace ragfs::cli {
namespace {

constexpr uint64_t kDefaultOperations = 100'000;
constexpr int64_t kCloseTimeout_ms = 5'000;

// A setting over the engine of the configuration. Its namespace is the run's own: what is stored there is of no use to
// anybody, and nobody else's objects are met.
Result<stress::StressSetting> setting_over_engine(Session& session, const std::string& name, uint64_t seed) {
  CacheConfig cache;
  const bool has_config = !session.options().config_file.empty();
  if (has_config) {
    Result<Config> config = session.load();
    if (!config) return std::unexpected(std::move(config.error()));
    cache = config->cache;
  }
  const std::vector<std::string> known = known_providers();
  if (name != "configured" && std::ranges::find(known, name) == known.end()) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("--provider '{}' is not in this build; there are {}", name, fmt::join(known, ", ")));
  }
  if (name != "configured") cache.provider = name;
  Result<std::shared_ptr<CacheProvider>> engine = open_provider(cache);
  if (!engine) return std::unexpected(std::move(engine.error()));
  if (auto up = (*engine)->health(Deadline::in_ms(kCloseTimeout_ms)); !up) return std::unexpected(up.error());
  stress::StressSetting setting = stress::setting_over(*std::move(engine));
  setting.domain.name_space = fmt::format("stress-{:016x}", seed);
  setting.domain.guard.operation_timeout_ms = cache.effective_operation_timeout_ms();
  return setting;
}

Result<std::vector<stress::StressSetting>> chosen_settings(Session& session, const BenchCoherenceOptions& options,
                                                           uint64_t seed) {
  std::vector<stress::StressSetting> chosen;
  for (const std::string& name : options.settings) {
    Result<stress::StressSetting> found = stress::find_setting(name);
    if (!found) return std::unexpected(std::move(found.error()));
    chosen.push_back(*std::move(found));
  }
  for (const std::string& name : options.providers) {
    Result<stress::StressSetting> made = setting_over_engine(session, name, seed);
    if (!made) return std::unexpected(std::move(made.error()));
    chosen.push_back(*std::move(made));
  }
  return chosen.empty() ? stress::standard_settings() : std::move(chosen);
}

void write_report(JsonWriter& json, const stress::StressReport& report) {
  json.begin_object().field("setting", report.setting).field("seed", report.seed);
  json.field("operations", report.operations).field("mutations", report.mutations).field("hits", report.hits);
  json.field("provider_faults", report.provider_faults).field("landed_late", report.landed_late);
  json.field("new_epochs", report.new_epochs).field("elapsed_ms", report.elapsed_ms);
  json.field("violations", report.violations);
  json.key("history").begin_array();
  for (const std::string& line : report.history) json.value(line);
  json.end_array().end_object();
}

Result<stress::StressReport> run_one(Console& console, const stress::StressSetting& setting,
                                     const BenchCoherenceOptions& options, uint64_t seed) {
  stress::StressConfig config;
  config.seed = seed;
  config.threads = static_cast<uint32_t>(options.threads);
  config.operations = options.operations.value_or(options.minutes > 0 ? 0 : kDefaultOperations);
  if (options.minutes > 0) config.deadline = Deadline::in_ms(static_cast<int64_t>(options.minutes * 60'000));
  Progress progress(console, fmt::format("{}: operation", setting.name), config.operations);
  uint64_t told = 0;
  config.progress = [&](uint64_t done) {
    progress.advance(done - told, 0);
    told = done;
  };
  return run_stress(setting, config);
}

}  // namespace

ExitCode run_bench_coherence(Session& session, const BenchCoherenceOptions& options) {
  constexpr std::string_view kCommand = "bench coherence";
  Console& console = session.console();
  const uint64_t seed = options.seed.value_or(random_u64());
  Result<std::vector<stress::StressSetting>> settings = chosen_settings(session, options, seed);
  if (!settings) return console.report(kCommand, settings.error());
  JsonWriter json;
  json.begin_object().field("seed", seed).key("runs").begin_array();
  ExitCode code = ExitCode::ok;
  for (const stress::StressSetting& setting : *settings) {
    const Result<stress::StressReport> report = run_one(console, setting, options, seed);
    if (!report) return console.report(kCommand, report.error());
    if (!report->passed()) code = ExitCode::negative;
    if (console.json()) {
      write_report(json, *report);
    } else {
      console.line(report->text());
    }
  }
  json.end_array().field("passed", code == ExitCode::ok).end_object();
  if (console.json()) console.line(json.text());
  return code;
}

}  // namespace ragfs::cli
