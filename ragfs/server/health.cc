#include "ragfs/server/health.h"

#include <fmt/format.h>

namespace ragfs::server {
namespace {
constexpr int64_t kCheckTimeout_ms = 2'000;
constexpr int64_t kMillisecond_ns = 1'000'000;
}  // namespace

void HealthMonitor::tick() {
  const int64_t now_ns = Clock::system().monotonic_ns();
  {
    const MutexLock lock(mutex_);
    if (begun_at_ns_ != 0) return;
    if (checked_at_ns_ != 0 && now_ns - checked_at_ns_ < kInterval_ms * kMillisecond_ns) return;
    begun_at_ns_ = now_ns;
  }
  if (pool_.submit([this] { check(); })) return;
  const MutexLock lock(mutex_);
  begun_at_ns_ = 0;  // the queue is full, which report() tells
}

void HealthMonitor::check() {
  std::vector<MountHealth> mounts;
  for (const MountStatus& mount : instance_.mounts()) {
    MountHealth health{mount.path, mount.type, ""};
    Context context;
    context.deadline = Deadline::in_ms(kCheckTimeout_ms);
    context.bypass_cache = true;
    const auto path = Path::parse(mount.path);
    const auto info = path ? instance_.fs().stat(context, *path) : std::unexpected(path.error());
    // A name without a mount is one that was taken away meanwhile.
    if (!info && info.error().code != ErrorCode::mount_point_not_found) health.error = info.error().text();
    mounts.push_back(std::move(health));
  }
  std::string provider;
  if (instance_.cache_report().configured) {
    const auto works = instance_.check_provider(Deadline::in_ms(kCheckTimeout_ms));
    if (!works) provider = works.error().text();
  }
  const MutexLock lock(mutex_);
  mounts_ = std::move(mounts);
  provider_error_ = std::move(provider);
  checked_at_ns_ = Clock::system().monotonic_ns();
  begun_at_ns_ = 0;
}

HealthReport HealthMonitor::report() {
  HealthReport report;
  const CacheReport cache = instance_.cache_report();
  if (cache.configured && cache.state != "closed") {
    report.problems.push_back(fmt::format("cache provider {}: calls fail, its breaker is {}: reads go to the backends",
                                          cache.provider, cache.state));
  }
  if (cache.configured && !cache.on) report.problems.emplace_back("the cache is switched off");
  if (pool_.busy() == pool_.threads() && pool_.queued() > 0) {
    report.problems.push_back(
        fmt::format("all {} workers are busy, {} requests wait", pool_.threads(), pool_.queued()));
  }
  const int64_t now_ns = Clock::system().monotonic_ns();
  const MutexLock lock(mutex_);
  report.mounts = mounts_;
  report.age_ms = checked_at_ns_ == 0 ? -1 : (now_ns - checked_at_ns_) / kMillisecond_ns;
  if (begun_at_ns_ != 0 && now_ns - begun_at_ns_ > kOverdue_ms * kMillisecond_ns) {
    report.problems.push_back(
        fmt::format("a look at the mounts hangs since {} s", (now_ns - begun_at_ns_) / (1000 * kMillisecond_ns)));
  }
  if (!provider_error_.empty()) {
    report.problems.push_back(fmt::format("cache provider {}: {}", cache.provider, provider_error_));
  }
  for (const MountHealth& mount : mounts_) {
    if (!mount.error.empty()) report.problems.push_back(fmt::format("mount {}: {}", mount.path, mount.error));
  }
  return report;
}

}  // namespace ragfs::server
