#include "ragfs/cli/stress/runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <thread>
#include <utility>

#include "ragfs/base/pause_point.h"
#include "ragfs/base/sync.h"
#include "ragfs/cli/stress/disturbance.h"
#include "ragfs/cli/stress/executor.h"

namespace ragfs::stress {
namespace {

constexpr size_t kRememberedOperations = 4096;  // a thread
constexpr size_t kShownOperations = 40;

struct Done {
  Operation op;
  uint64_t start = 0;
  uint64_t end = 0;
  std::string answer;
};

class Run {
 public:
  Run(const StressSetting& setting, const StressConfig& config, Stack& stack)
      : setting_(setting),
        config_(config),
        stack_(stack),
        executor_(stack.oracle(), stack.mounts(), stack.backend().backend(), setting.backend_faults.any(),
                  setting.domain.failure_mode == FailureMode::strict),
        logs_(config.threads) {}

  StressReport run() {
    const int64_t began_ns = Clock::system().monotonic_ns();
    {
      std::optional<Disturbance> disturbance;
      if (config_.disturb) disturbance.emplace(config_.seed);
      work_on_threads();
    }
    stack_.calm();
    if (!failed_.load()) look_at_everything();
    report_.setting = setting_.name;
    report_.seed = config_.seed;
    report_.operations = done_.load();
    report_.mutations = mutations_.load();
    for (const CacheCounter counter :
         {CacheCounter::file_hit, CacheCounter::directory_hit, CacheCounter::stat_hit, CacheCounter::negative_hit}) {
      report_.hits += stack_.count(counter);
    }
    report_.provider_faults = stack_.provider().injected();
    report_.landed_late = stack_.provider().landed_late() + stack_.backend().landed_late();
    report_.new_epochs = stack_.count(CacheCounter::new_epoch);
    report_.read_ahead = stack_.count(CacheCounter::prefetch_filled);
    report_.elapsed_ms = (Clock::system().monotonic_ns() - began_ns) / 1'000'000;
    return std::move(report_);
  }

 private:
  void work_on_threads() {
    std::vector<std::jthread> threads;
    for (uint32_t number = 0; number < config_.threads; ++number) {
      threads.emplace_back([this, number] {
        work(number);
        MutexLock lock(mutex_);
        ++ended_;
        changed_.notify_all();
      });
    }
    if (config_.beside) {
      config_.beside(stack_);
      stopped_.store(true);
    }
    MutexLock lock(mutex_);
    Deadline next = Deadline::in_ms(1'000);
    while (ended_ < config_.threads) {
      if (changed_.wait_until(mutex_, next)) continue;
      next = Deadline::in_ms(1'000);
      if (config_.progress) config_.progress(done_.load());
    }
  }

  void work(uint32_t number) {
    Workload workload(setting_.workload, stack_.layout(), mix64(config_.seed * 64 + number));
    while (!failed_.load(std::memory_order_relaxed)) {
      if (config_.operations != 0 && taken_.fetch_add(1, std::memory_order_relaxed) >= config_.operations) return;
      if (config_.deadline.expired() || stopped_.load(std::memory_order_relaxed)) return;
      const Operation op = workload.next();
      Outcome outcome = executor_.run(op, number);
      done_.fetch_add(1, std::memory_order_relaxed);
      if (is_mutation(op.kind)) mutations_.fetch_add(1, std::memory_order_relaxed);
      std::deque<Done>& log = logs_[number];
      log.push_back({op, outcome.start, outcome.end, std::move(outcome.answer)});
      if (log.size() > kRememberedOperations) log.pop_front();
      if (outcome.violation) note(*std::move(outcome.violation));
    }
  }

  void note(Violation violation) {
    failed_.store(true);
    MutexLock lock(mutex_);
    ++report_.violations;
    if (!report_.first) report_.first = std::move(violation);
  }

  // With all faults off, everything is read once more, from what the run left in the cache.
  void look_at_everything() {
    for (size_t index = 0; index < stack_.oracle().size(); ++index) {
      for (const OpKind kind : {OpKind::read, OpKind::stat, OpKind::list}) {
        Operation op;
        op.kind = kind;
        op.path = index;
        Outcome outcome = executor_.run(op, 0);
        if (outcome.violation) note(*std::move(outcome.violation));
      }
    }
  }

  const StressSetting& setting_;
  const StressConfig& config_;
  Stack& stack_;
  Executor executor_;
  std::vector<std::deque<Done>> logs_;  // one a thread; read when all have ended
  std::atomic<uint64_t> taken_{0};
  std::atomic<uint64_t> done_{0};
  std::atomic<uint64_t> mutations_{0};
  std::atomic<bool> failed_{false};
  std::atomic<bool> stopped_{false};
  Mutex mutex_;
  CondVar changed_;
  uint32_t ended_ RAGFS_GUARDED_BY(mutex_) = 0;
  StressReport report_;  // its violations under mutex_ while threads run

 public:
  // The operations that touched the path of the violation, or something above or below it.
  void add_history(StressReport& report) const {
    if (!report.first) return;
    const Oracle& oracle = stack_.oracle();
    const Result<Path> path = Path::parse(report.first->path);
    if (!path) return;
    const auto concerns = [&](size_t index) {
      const PathView at = oracle.path(index);
      return at.is_within(*path) || path->view().is_within(at);
    };
    std::vector<std::pair<uint64_t, std::string>> lines;
    for (size_t thread = 0; thread < logs_.size(); ++thread) {
      for (const Done& done : logs_[thread]) {
        const bool two = done.op.kind == OpKind::copy || done.op.kind == OpKind::replace ||
                         done.op.kind == OpKind::rename || done.op.kind == OpKind::rename_directory;
        if (!concerns(done.op.path) && !(two && concerns(done.op.other))) continue;
        lines.emplace_back(done.end, fmt::format("[{}, {}] thread {}: {} {}{}{} -> {}", done.start, done.end, thread,
                                                 op_name(done.op.kind), oracle.path(done.op.path).text(),
                                                 two ? " " + oracle.path(done.op.other).text() : "",
                                                 done.op.bypass_cache ? " (bypass)" : "", done.answer));
      }
    }
    std::ranges::sort(lines);
    const size_t first = lines.size() > kShownOperations ? lines.size() - kShownOperations : 0;
    for (size_t i = first; i < lines.size(); ++i) report.history.push_back(std::move(lines[i].second));
  }
};

}  // namespace

Result<void> StressConfig::validate() const {
  if (threads < 1 || threads > 32) {
    return fail(ErrorCode::config, fmt::format("threads: {} is not allowed; it must be 1 to 32", threads));
  }
  if (operations == 0 && deadline.is_never() && !beside) {
    return fail(ErrorCode::config, "operations: 0 (no end) needs a deadline");
  }
  return {};
}

std::string StressReport::text() const {
  std::string text = fmt::format(
      "setting {} seed {}: {} operations ({} mutations, {} answered by the cache) in {} ms; {} provider faults, {} "
      "writes "
      "landed late, {} new epochs: {}",
      setting, seed, operations, mutations, hits, elapsed_ms, provider_faults, landed_late, new_epochs,
      passed() ? "no answer was wrong" : fmt::format("{} WRONG", violations));
  if (first) text += "\n" + first->text();
  if (!history.empty()) text += "\n  operations on the path, above and below it:";
  for (const std::string& line : history) text += "\n    " + line;
  return text;
}

Result<StressReport> run_stress(const StressSetting& setting, const StressConfig& config) {
  if (auto valid = config.validate(); !valid) return std::unexpected(valid.error());
  Result<std::unique_ptr<Stack>> stack = Stack::build(setting, config.seed);
  if (!stack) return std::unexpected(std::move(stack.error()));
  Run run(setting, config, **stack);
  StressReport report = run.run();
  run.add_history(report);
  return report;
}

}  // namespace ragfs::stress
