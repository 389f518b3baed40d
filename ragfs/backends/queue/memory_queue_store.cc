#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>

#include "ragfs/backends/queue/queue_store.h"
#include "ragfs/base/sync.h"

namespace ragfs {
namespace {

class MemoryQueueStore final : public QueueStore {
 public:
  explicit MemoryQueueStore(size_t max_messages) : max_messages_(max_messages) {}

  Result<void> create(std::string_view queue) override {
    const MutexLock lock(mutex_);
    if (queues_.contains(queue)) {
      return fail(ErrorCode::already_exists, fmt::format("queue '{}' already exists", queue));
    }
    queues_.emplace(queue, Queue());
    return {};
  }

  Result<uint64_t> remove(std::string_view queue) override {
    const MutexLock lock(mutex_);
    size_t messages = 0;
    const uint64_t gone = std::erase_if(queues_, [&](const auto& entry) {
      const bool goes = is_queue_or_below(entry.first, queue);
      if (goes) messages += entry.second.pending.size() + entry.second.taken.size();
      return goes;
    });
    total_ -= messages;
    return gone;
  }

  Result<std::vector<std::string>> names() override {
    const MutexLock lock(mutex_);
    std::vector<std::string> names;
    for (const auto& [name, queue] : queues_) names.push_back(name);
    return names;
  }

  Result<bool> exists(std::string_view queue) override {
    const MutexLock lock(mutex_);
    return queues_.contains(queue);
  }

  Result<void> push(std::string_view name, const QueueMessage& message) override {
    const MutexLock lock(mutex_);
    Queue* queue = find(name);
    if (queue == nullptr) return missing(name);
    if (total_ >= max_messages_) return fail(ErrorCode::full, "too many messages are kept in memory");
    queue->pending.push_back(message);
    ++total_;
    return {};
  }

  Result<std::optional<QueueMessage>> take(std::string_view name) override {
    const MutexLock lock(mutex_);
    Queue* queue = find(name);
    if (queue == nullptr) return missing(name);
    if (queue->pending.empty()) return std::optional<QueueMessage>();
    queue->taken.push_back(std::move(queue->pending.front()));
    queue->pending.pop_front();
    return queue->taken.back();
  }

  Result<std::optional<QueueMessage>> peek(std::string_view name) override {
    const MutexLock lock(mutex_);
    Queue* queue = find(name);
    if (queue == nullptr) return missing(name);
    if (queue->pending.empty()) return std::optional<QueueMessage>();
    return queue->pending.front();
  }

  Result<std::vector<QueueMessage>> messages(std::string_view name) override {
    const MutexLock lock(mutex_);
    Queue* queue = find(name);
    if (queue == nullptr) return missing(name);
    std::vector<QueueMessage> all(queue->taken.begin(), queue->taken.end());
    all.insert(all.end(), queue->pending.begin(), queue->pending.end());
    return all;
  }

  Result<QueueStatus> status(std::string_view name) override {
    const MutexLock lock(mutex_);
    Queue* queue = find(name);
    if (queue == nullptr) return missing(name);
    return QueueStatus{.pending = queue->pending.size(), .processing = queue->taken.size()};
  }

  Result<void> clear(std::string_view name) override {
    const MutexLock lock(mutex_);
    Queue* queue = find(name);
    if (queue == nullptr) return missing(name);
    total_ -= queue->pending.size() + queue->taken.size();
    *queue = Queue();
    return {};
  }

  Result<void> acknowledge(std::string_view name, std::string_view id) override {
    const MutexLock lock(mutex_);
    Queue* queue = find(name);
    if (queue == nullptr) return missing(name);
    const auto has_id = [&](const QueueMessage& message) { return message.id == id; };
    total_ -= std::erase_if(queue->taken, has_id);
    return {};
  }

 private:
  struct Queue {
    std::deque<QueueMessage> pending;
    std::deque<QueueMessage> taken;
  };

  Queue* find(std::string_view name) RAGFS_REQUIRES(mutex_) {
    const auto at = queues_.find(name);
    return at == queues_.end() ? nullptr : &at->second;
  }
  static std::unexpected<Error> missing(std::string_view name) {
    return fail(ErrorCode::not_found, fmt::format("queue '{}' not found", name));
  }

  const size_t max_messages_;
  Mutex mutex_;
  size_t total_ RAGFS_GUARDED_BY(mutex_) = 0;
  std::map<std::string, Queue, std::less<>> queues_ RAGFS_GUARDED_BY(mutex_);
};

}  // namespace

bool is_queue_or_below(std::string_view name, std::string_view queue) {
  return name.starts_with(queue) && (name.size() == queue.size() || name[queue.size()] == '/');
}

std::unique_ptr<QueueStore> make_memory_queue_store(const QueueConfig& config) {
  return std::make_unique<MemoryQueueStore>(config.max_messages);
}

}  // namespace ragfs
