// QueueStore: named queues of messages, as queuefs shows them.
//
// At least once: a message that was taken stays known as "processing" until it is acknowledged. Not for: paths and
// control files (QueueFileSystem). Thread-safety: all methods may be called from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ragfs/base/error.h"

namespace ragfs {

struct QueueMessage {
  std::string id;  // UUID
  std::string data;
  int64_t timestamp_ns = 0;  // wall clock
};

struct QueueStatus {
  uint64_t pending = 0;
  uint64_t processing = 0;
};

struct QueueConfig {
  std::string db_path;               // "" = in memory
  int64_t recover_stale_secs = 0;    // at start, messages taken longer ago are pending again; 0 = all of them
  int64_t busy_timeout_ms = 5'000;   // waiting for another process that writes the database
  size_t max_messages = 10'000'000;  // in memory, over all queues

  // Errors: config.
  Result<void> validate() const;
};

class QueueStore {
 public:
  virtual ~QueueStore() = default;

  // Errors of all: io. Of those with a queue's name: not_found `queue 'X' not found`.
  // Errors: already_exists `queue 'X' already exists`.
  virtual Result<void> create(std::string_view queue) = 0;
  // The queue and those nested in it; the count of removed.
  virtual Result<uint64_t> remove(std::string_view queue) = 0;
  // Sorted.
  virtual Result<std::vector<std::string>> names() = 0;
  virtual Result<bool> exists(std::string_view queue) = 0;

  // Errors: full.
  virtual Result<void> push(std::string_view queue, const QueueMessage& message) = 0;
  virtual Result<std::optional<QueueMessage>> take(std::string_view queue) = 0;
  virtual Result<std::optional<QueueMessage>> peek(std::string_view queue) = 0;
  // Pending and processing, oldest first.
  virtual Result<std::vector<QueueMessage>> messages(std::string_view queue) = 0;
  virtual Result<QueueStatus> status(std::string_view queue) = 0;
  virtual Result<void> clear(std::string_view queue) = 0;
  // Forgets a message that was taken; an unknown id is not an error.
  virtual Result<void> acknowledge(std::string_view queue, std::string_view id) = 0;
};

// Whether `name` is `queue` or nested in it.
bool is_queue_or_below(std::string_view name, std::string_view queue);

std::unique_ptr<QueueStore> make_memory_queue_store(const QueueConfig& config);
// The original's `queue.db`: both can open it in turn. Errors: io.
Result<std::unique_ptr<QueueStore>> open_sqlite_queue_store(const QueueConfig& config);

}  // namespace ragfs
