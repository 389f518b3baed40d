#include "ragfs/providers/engine/direct_channel.h"

#include <fmt/format.h>

#include <algorithm>

#include "ragfs/base/hash.h"

namespace ragfs::engine {
namespace {

constexpr int64_t kAsk_ns = 1'000'000'000;

}  // namespace

struct DirectChannel::Shared {
  explicit Shared(EngineConfig from) : config(std::move(from)) {}
  const EngineConfig config;
  Mutex mutex;
  CondVar changed;
  std::unique_ptr<Plugin> plugin RAGFS_GUARDED_BY(mutex);
  std::optional<Error> last_failure RAGFS_GUARDED_BY(mutex);
  uint64_t starts RAGFS_GUARDED_BY(mutex) = 0;
  uint64_t failures RAGFS_GUARDED_BY(mutex) = 0;
  uint32_t inside RAGFS_GUARDED_BY(mutex) = 0;
  bool closing RAGFS_GUARDED_BY(mutex) = false;
  bool opening RAGFS_GUARDED_BY(mutex) = true;
};

class DirectChannel::Inside {
 public:
  explicit Inside(Shared& shared) : shared_(shared) {
    const MutexLock lock(shared_.mutex);
    if (shared_.closing) {
      why_ = "the provider is closed";
    } else if (shared_.plugin == nullptr) {
      why_ = shared_.last_failure ? shared_.last_failure->message : "the engine is being reached";
    } else {
      plugin_ = shared_.plugin.get();
      ++shared_.inside;
    }
  }
  ~Inside() {
    if (plugin_ == nullptr) return;
    const MutexLock lock(shared_.mutex);
    if (--shared_.inside == 0 && shared_.closing) shared_.changed.notify_all();
  }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  // nullptr when the engine cannot be asked.
  Plugin* plugin() const { return plugin_; }
  const std::string& why() const { return why_; }

 private:
  Shared& shared_;
  Plugin* plugin_ = nullptr;
  std::string why_;
};

DirectChannel::DirectChannel(EngineConfig config, EngineIncarnation& incarnation)
    : shared_(std::make_shared<Shared>(std::move(config))), incarnation_(incarnation) {
  std::thread([shared = shared_] { open_until_done(shared); }).detach();
}

DirectChannel::~DirectChannel() { (void)close(Deadline::in_ms(0)); }

void DirectChannel::open_until_done(const std::shared_ptr<Shared>& shared) {
  int64_t pause_ms = shared->config.first_pause_ms;
  while (true) {
    auto opened = Plugin::open(shared->config.plugin, shared->config.options);
    const MutexLock lock(shared->mutex);
    ++shared->starts;
    if (opened) {
      shared->plugin = *std::move(opened);
      shared->last_failure.reset();
    } else {
      ++shared->failures;
      shared->last_failure = opened.error();
    }
    const bool done = opened || opened.error().code == ErrorCode::config;
    shared->changed.notify_all();
    const Deadline until = Deadline::in_ms(pause_ms);
    while (!done && !shared->closing && shared->changed.wait_until(shared->mutex, until)) {
    }
    if (done || shared->closing) {
      shared->opening = false;
      shared->changed.notify_all();
      return;
    }
    pause_ms = std::min(pause_ms * 2, shared->config.max_pause_ms);
  }
}

void DirectChannel::observe(bool failed) {
  const int64_t now_ns = Clock::system().monotonic_ns();
  if (!failed && now_ns - asked_at_ns_.load() < kAsk_ns) return;
  asked_at_ns_ = now_ns;
  const Inside inside(*shared_);
  if (inside.plugin() != nullptr) incarnation_.observe(hash64(inside.plugin()->incarnation()));
}

Result<std::string> DirectChannel::call(Op op, std::span<ChannelItem> items, Deadline deadline) {
  const Inside inside(*shared_);
  if (inside.plugin() == nullptr) return fail(ErrorCode::unavailable, inside.why());
  std::vector<ragfs_engine_v1_item> calls(items.size());
  std::vector<ByteBuffer> buffers;
  std::vector<std::string> joined(op == Op::get ? 0 : items.size());
  buffers.reserve(items.size());
  for (size_t i = 0; i < items.size(); ++i) {
    ragfs_engine_v1_item& call = calls[i];
    call.key = items[i].key.data();
    call.key_size = static_cast<uint32_t>(items[i].key.size());
    call.ttl_ms = items[i].ttl_ms;
    call.flags = items[i].preferred ? RAGFS_ENGINE_PREFERRED : 0;
    if (op == Op::get) {
      buffers.emplace_back(items[i].capacity);
      call.data = buffers.back().data();
      call.capacity = items[i].capacity;
    } else if (op != Op::erase) {
      for (const std::string_view part : items[i].parts) joined[i].append(part);
      call.data = joined[i].data();
      call.size = joined[i].size();
    }
  }
  const bool failed = inside.plugin()->call(op, calls, deadline);
  for (size_t i = 0; i < items.size(); ++i) {
    items[i].status = calls[i].status;
    items[i].engine_code = calls[i].engine_code;
    items[i].size = calls[i].size;
    if (op != Op::get || calls[i].status != RAGFS_ENGINE_OK) continue;
    const bool mostly_used = calls[i].size * 2 > calls[i].capacity;
    items[i].value =
        mostly_used ? std::move(buffers[i]).take(calls[i].size) : Bytes::copy({buffers[i].data(), calls[i].size});
  }
  std::string message = inside.plugin()->last_error();
  observe(failed);
  return message;
}

Result<void> DirectChannel::health(Deadline deadline) {
  const Inside inside(*shared_);
  if (inside.plugin() == nullptr) return fail(ErrorCode::unavailable, inside.why());
  const int32_t status = inside.plugin()->health(deadline);
  observe(true);
  if (status == RAGFS_ENGINE_OK) return {};
  return fail(status == RAGFS_ENGINE_TIMEOUT ? ErrorCode::timeout : ErrorCode::unavailable,
              inside.plugin()->last_error());
}

std::vector<std::string> DirectChannel::warnings(Deadline) {
  const Inside inside(*shared_);
  if (inside.plugin() == nullptr) return {};
  return inside.plugin()->warnings();
}

Result<void> DirectChannel::wait_for_start(Deadline deadline) {
  {
    const MutexLock lock(shared_->mutex);
    while (shared_->starts == 0 && shared_->changed.wait_until(shared_->mutex, deadline)) {
    }
    if (shared_->last_failure && shared_->last_failure->code == ErrorCode::config) {
      return std::unexpected(*shared_->last_failure);
    }
  }
  observe(true);
  return {};
}

Abilities DirectChannel::abilities() const {
  const MutexLock lock(shared_->mutex);
  if (shared_->plugin == nullptr) return shared_->config.assumed;
  const ragfs_engine_v1_abilities& can = shared_->plugin->abilities();
  return {.native_ttl = can.native_ttl != 0,
          .whole_values = can.whole_values != 0,
          .may_resurrect = can.may_resurrect != 0,
          .outlives_process = can.outlives_process != 0,
          .atomic_put = can.atomic_put,
          .max_batch_keys = std::clamp(can.max_batch_keys, 1U, kMaxItems),
          .max_value_bytes = can.max_value_bytes};
}

std::string DirectChannel::engine_text() const {
  const MutexLock lock(shared_->mutex);
  if (shared_->plugin == nullptr) return "";
  return fmt::format("{} {}", shared_->plugin->table().name, shared_->plugin->table().engine);
}

void DirectChannel::append_metrics(std::vector<ProviderMetric>& out) const {
  const MutexLock lock(shared_->mutex);
  out.push_back({"host_up", shared_->plugin != nullptr ? 1.0 : 0.0});
  out.push_back({"opens_total", static_cast<double>(shared_->starts)});
  out.push_back({"open_failures_total", static_cast<double>(shared_->failures)});
  out.push_back({"calls_inside", static_cast<double>(shared_->inside)});
}

Result<void> DirectChannel::close(Deadline deadline) {
  std::unique_ptr<Plugin> plugin;
  {
    const MutexLock lock(shared_->mutex);
    shared_->closing = true;
    shared_->changed.notify_all();
    while (shared_->opening || shared_->inside > 0) {
      if (!shared_->changed.wait_until(shared_->mutex, deadline) && (shared_->opening || shared_->inside > 0)) {
        return fail(ErrorCode::timeout, "a call is still inside the engine's client; it is left behind");
      }
    }
    plugin = std::move(shared_->plugin);
  }
  if (plugin == nullptr) return {};
  auto closed = plugin->close(deadline);
  if (!closed) (void)plugin.release();  // NOLINT: the engine's thread goes on with it
  return closed;
}

}  // namespace ragfs::engine
