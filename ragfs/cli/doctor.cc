// doctor: is this configuration usable on this machine, now?
#include <fmt/format.h>

#include "ragfs/base/clock.h"
#include "ragfs/cli/command_support.h"
#include "ragfs/cli/commands.h"
#include "ragfs/cli/text.h"

namespace ragfs::cli {
namespace {

constexpr int64_t kCheckTimeout_ms = 5'000;

struct Finding {
  std::string what;  // "mount /local"
  bool good = false;
  std::string detail;  // one sentence
  std::string advice;  // when it is not good
  ExitCode code = ExitCode::ok;
};

Finding failed(std::string what, const Error& error) {
  return {std::move(what), false, error.text(), std::string(hint_for(error.code)), exit_code_of(error.code)};
}

Finding check_mount(Instance& instance, const MountStatus& mount) {
  const std::string what = "mount " + mount.path;
  const auto path = Path::parse(mount.path);
  if (!path) return failed(what, path.error());
  Context context;
  context.deadline = Deadline::in_ms(kCheckTimeout_ms);
  context.bypass_cache = true;
  const int64_t start_ns = Clock::system().monotonic_ns();
  const auto entries = instance.fs().read_dir(context, *path);
  if (!entries) return failed(what, entries.error());
  const int64_t took_ns = Clock::system().monotonic_ns() - start_ns;
  return {what, true,
          fmt::format("{}{}{} answers in {}: {}; {}", mount.type, mount.detail.empty() ? "" : " ", mount.detail,
                      human_duration_ns(took_ns), counted(entries->size(), "entry", "entries"),
                      mount.cached ? "cached" : "not cached"),
          "", ExitCode::ok};
}

Finding check_provider(Instance& instance) {
  const CacheReport report = instance.cache_report();
  if (!report.configured) return {"cache", true, "no mount has a cache", "", ExitCode::ok};
  const int64_t start_ns = Clock::system().monotonic_ns();
  const auto health = instance.check_provider(Deadline::in_ms(kCheckTimeout_ms));
  if (!health) {
    Finding finding = failed("cache provider " + report.provider, health.error());
    finding.code = ExitCode::cache;
    return finding;
  }
  return {"cache provider " + report.provider, true,
          fmt::format("works, answers in {}", human_duration_ns(Clock::system().monotonic_ns() - start_ns)), "",
          ExitCode::ok};
}

std::vector<Finding> examine(Session& session) {
  std::vector<Finding> findings;
  const auto config = session.load();
  if (!config) {
    findings.push_back(failed("configuration", config.error()));
    return findings;
  }
  findings.push_back({"configuration", true, session.source() + " is valid", "", ExitCode::ok});
  for (const std::string& warning : config->warnings) {
    findings.push_back({"configuration", true, "warning: " + warning, "", ExitCode::ok});
  }
  auto instance = session.instance();
  if (!instance) {
    findings.push_back(failed("start", instance.error()));
    return findings;
  }
  for (const MountStatus& mount : (*instance)->mounts()) findings.push_back(check_mount(**instance, mount));
  findings.push_back(check_provider(**instance));
  if (!findings.back().good) return findings;
  for (const std::string& warning : (*instance)->provider_warnings(Deadline::in_ms(kCheckTimeout_ms))) {
    findings.push_back({"cache provider", true, "warning: " + warning, "", ExitCode::ok});
  }
  return findings;
}

}  // namespace

ExitCode run_doctor(Session& session) {
  Console& console = session.console();
  const std::vector<Finding> findings = examine(session);
  ExitCode code = ExitCode::ok;
  JsonWriter json;
  json.begin_object().key("findings").begin_array();
  for (const Finding& finding : findings) {
    code = worse(code, finding.code);
    if (console.json()) {
      json.begin_object().field("what", finding.what).field("ok", finding.good).field("detail", finding.detail);
      json.field("advice", finding.advice).end_object();
      continue;
    }
    const std::string mark = finding.good ? console.styled(Style::good, "ok  ") : console.styled(Style::bad, "FAIL");
    console.line(fmt::format("{}  {}: {}", mark, finding.what, printable(finding.detail)));
    if (!finding.advice.empty()) console.line("      " + finding.advice);
  }
  if (console.json()) {
    console.line(json.end_array().field("ok", code == ExitCode::ok).end_object().text());
  } else {
    console.line(code == ExitCode::ok ? "all is well" : "not well: see FAIL above");
  }
  return code;
}

}  // namespace ragfs::cli
