// Schema and values are the original's, so that one `queue.db` serves both in turn: a message's row keeps the JSON
// {"id", "data": [bytes], "timestamp": RFC 3339}; rows of earlier versions hold the data as a string and the timestamp
// as a number.
#include <fmt/format.h>
#include <sqlite3.h>
#include <time.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "ragfs/backends/queue/queue_store.h"
#include "ragfs/base/clock.h"
#include "ragfs/base/sync.h"

namespace ragfs {
namespace {

constexpr int64_t kNsPerSec = 1'000'000'000;

constexpr const char* kSchema = R"sql(
CREATE TABLE IF NOT EXISTS queue_metadata (
  queue_name TEXT PRIMARY KEY,
  created_at INTEGER DEFAULT (strftime('%s', 'now')),
  last_updated INTEGER DEFAULT (strftime('%s', 'now'))
);
CREATE TABLE IF NOT EXISTS queue_messages (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  queue_name TEXT NOT NULL,
  message_id TEXT NOT NULL,
  data TEXT NOT NULL,
  timestamp INTEGER NOT NULL,
  status TEXT NOT NULL DEFAULT 'pending',
  processing_started_at INTEGER,
  created_at INTEGER DEFAULT (strftime('%s', 'now'))
);
)sql";
// After the columns of an old file were completed.
constexpr const char* kIndexes = R"sql(
CREATE INDEX IF NOT EXISTS idx_queue_status ON queue_messages(queue_name, status, id);
CREATE INDEX IF NOT EXISTS idx_queue_message_id ON queue_messages(queue_name, message_id);
INSERT OR IGNORE INTO queue_metadata (queue_name) SELECT DISTINCT queue_name FROM queue_messages;
)sql";

std::string rfc3339(int64_t timestamp_ns) {
  const time_t secs = timestamp_ns / kNsPerSec;
  struct tm parts{};
  gmtime_r(&secs, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:09}Z", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec, timestamp_ns % kNsPerSec);
}

int64_t parse_rfc3339(const std::string& text) {
  struct tm parts{};
  const char* rest = strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &parts);
  if (rest == nullptr) return 0;
  int64_t fraction_ns = 0;
  if (*rest == '.') fraction_ns = std::llround(strtod(rest, nullptr) * static_cast<double>(kNsPerSec));
  return int64_t{timegm(&parts)} * kNsPerSec + fraction_ns;
}

std::string encode(const QueueMessage& message) {
  nlohmann::ordered_json row;
  row["id"] = message.id;
  auto bytes = nlohmann::ordered_json::array();
  for (const char byte : message.data) bytes.push_back(static_cast<unsigned char>(byte));
  row["data"] = std::move(bytes);
  row["timestamp"] = rfc3339(message.timestamp_ns);
  return row.dump();
}

Result<QueueMessage> decode(std::string_view text) {
  const auto row = nlohmann::json::parse(text, nullptr, false);
  if (!row.is_object() || !row.contains("id") || !row["id"].is_string() || !row.contains("data")) {
    return fail(ErrorCode::serialization, "a row of queue_messages holds no message");
  }
  QueueMessage message;
  message.id = row["id"].get<std::string>();
  const auto& data = row["data"];
  if (data.is_string()) message.data = data.get<std::string>();
  for (const auto& byte : data.is_array() ? data : nlohmann::json::array()) {
    if (byte.is_number_integer()) message.data.push_back(static_cast<char>(byte.get<int>()));
  }
  const auto timestamp = row.value("timestamp", nlohmann::json());
  if (timestamp.is_string()) message.timestamp_ns = parse_rfc3339(timestamp.get<std::string>());
  if (timestamp.is_number()) {
    message.timestamp_ns = std::llround(timestamp.get<double>() * static_cast<double>(kNsPerSec));
  }
  return message;
}

// One prepared statement; finalized when it goes.
class Statement {
 public:
  Statement(sqlite3* db, const char* sql) : db_(db) {
    failed_ = sqlite3_prepare_v2(db, sql, -1, &statement_, nullptr) != SQLITE_OK;
  }
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  Statement& bind(std::string_view text) {
    if (!failed_) sqlite3_bind_text(statement_, ++bound_, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT);
    return *this;
  }
  Statement& bind(int64_t number) {
    if (!failed_) sqlite3_bind_int64(statement_, ++bound_, number);
    return *this;
  }
  // True when there is a row.
  Result<bool> step() {
    const int code = failed_ ? SQLITE_ERROR : sqlite3_step(statement_);
    if (code == SQLITE_ROW) return true;
    if (code == SQLITE_DONE) return false;
    return fail(ErrorCode::io, fmt::format("queue database: {}", sqlite3_errmsg(db_)));
  }
  Result<void> run() {
    auto stepped = step();
    if (!stepped) return std::unexpected(std::move(stepped.error()));
    return {};
  }
  std::string_view text(int column) const {
    const auto* chars = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
    return chars == nullptr ? std::string_view{}
                            : std::string_view(chars, static_cast<size_t>(sqlite3_column_bytes(statement_, column)));
  }
  int64_t number(int column) const { return sqlite3_column_int64(statement_, column); }

 private:
  sqlite3* db_;
  sqlite3_stmt* statement_ = nullptr;
  int bound_ = 0;
  bool failed_ = false;
};

// A transaction that is rolled back unless it was committed.
class Transaction {
 public:
  explicit Transaction(sqlite3* db) : db_(db) {
    open_ = sqlite3_exec(db, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr) == SQLITE_OK;
  }
  ~Transaction() {
    if (open_) sqlite3_exec(db_, "ROLLBACK", nullptr, nullptr, nullptr);
  }
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  Result<void> commit() {
    if (!open_ || sqlite3_exec(db_, "COMMIT", nullptr, nullptr, nullptr) != SQLITE_OK) {
      return fail(ErrorCode::io, fmt::format("queue database: {}", sqlite3_errmsg(db_)));
    }
    open_ = false;
    return {};
  }

 private:
  sqlite3* db_;
  bool open_ = false;
};

class SqliteQueueStore final : public QueueStore {
 public:
  explicit SqliteQueueStore(sqlite3* db) : db_(db) {}
  ~SqliteQueueStore() override { sqlite3_close(db_); }

  Result<void> prepare(const QueueConfig& config, bool is_new);

  Result<void> create(std::string_view queue) override;
  Result<uint64_t> remove(std::string_view queue) override;
  Result<std::vector<std::string>> names() override;
  Result<bool> exists(std::string_view queue) override;
  Result<void> push(std::string_view queue, const QueueMessage& message) override;
  Result<std::optional<QueueMessage>> take(std::string_view queue) override;
  Result<std::optional<QueueMessage>> peek(std::string_view queue) override;
  Result<std::vector<QueueMessage>> messages(std::string_view queue) override;
  Result<QueueStatus> status(std::string_view queue) override;
  Result<void> clear(std::string_view queue) override;
  Result<void> acknowledge(std::string_view queue, std::string_view id) override;

 private:
  Result<void> execute(const char* sql) RAGFS_REQUIRES(mutex_);
  Result<void> complete_columns() RAGFS_REQUIRES(mutex_);
  Result<bool> known(std::string_view queue) RAGFS_REQUIRES(mutex_);
  // not_found unless the queue is there.
  Result<void> require(std::string_view queue) RAGFS_REQUIRES(mutex_);

  // SQLite serialises a connection's calls anyhow; this lock makes steps of several statements one.
  Mutex mutex_;
  sqlite3* const db_;
};

Result<void> SqliteQueueStore::execute(const char* sql) {
  char* text = nullptr;
  if (sqlite3_exec(db_, sql, nullptr, nullptr, &text) == SQLITE_OK) return {};
  const std::string message = text == nullptr ? "unknown" : text;
  sqlite3_free(text);
  return fail(ErrorCode::io, fmt::format("queue database: {}", message));
}

// Files of earlier versions lack the columns of at-least-once delivery.
Result<void> SqliteQueueStore::complete_columns() {
  std::string have;
  Statement columns(db_, "SELECT name FROM pragma_table_info('queue_messages')");
  while (true) {
    const auto row = columns.step();
    if (!row) return std::unexpected(row.error());
    if (!*row) break;
    have += fmt::format(" {} ", columns.text(0));
  }
  constexpr std::pair<const char*, const char*> kAdded[] = {
      {" message_id ", "ALTER TABLE queue_messages ADD COLUMN message_id TEXT NOT NULL DEFAULT ''"},
      {" status ", "ALTER TABLE queue_messages ADD COLUMN status TEXT NOT NULL DEFAULT 'pending'"},
      {" processing_started_at ", "ALTER TABLE queue_messages ADD COLUMN processing_started_at INTEGER"},
  };
  for (const auto& [name, sql] : kAdded) {
    if (have.find(name) != std::string::npos) continue;
    if (auto done = execute(sql); !done) return done;
  }
  return {};
}

Result<void> SqliteQueueStore::prepare(const QueueConfig& config, bool is_new) {
  const MutexLock lock(mutex_);
  sqlite3_busy_timeout(db_, static_cast<int>(config.busy_timeout_ms));
  if (is_new) {
    if (auto done = execute("PRAGMA auto_vacuum = FULL"); !done) return done;
  }
  for (const char* sql : {"PRAGMA journal_mode = WAL", "PRAGMA synchronous = NORMAL", kSchema}) {
    if (auto done = execute(sql); !done) return done;
  }
  if (auto done = complete_columns(); !done) return done;
  if (auto done = execute(kIndexes); !done) return done;
  // Whoever took these is gone.
  const int64_t now_secs = Clock::system().wall_ns() / kNsPerSec;
  const int64_t taken_before = config.recover_stale_secs <= 0 ? INT64_MAX : now_secs - config.recover_stale_secs;
  Statement recover(db_,
                    "UPDATE queue_messages SET status = 'pending', processing_started_at = NULL "
                    "WHERE status = 'processing' AND COALESCE(processing_started_at, 0) <= ?");
  return recover.bind(taken_before).run();
}

Result<bool> SqliteQueueStore::known(std::string_view queue) {
  Statement find(db_, "SELECT 1 FROM queue_metadata WHERE queue_name = ?");
  return find.bind(queue).step();
}

Result<void> SqliteQueueStore::require(std::string_view queue) {
  const auto there = known(queue);
  if (!there) return std::unexpected(there.error());
  if (!*there) return fail(ErrorCode::not_found, fmt::format("queue '{}' not found", queue));
  return {};
}

Result<void> SqliteQueueStore::create(std::string_view queue) {
  const MutexLock lock(mutex_);
  Statement insert(db_, "INSERT OR IGNORE INTO queue_metadata (queue_name) VALUES (?)");
  if (auto done = insert.bind(queue).run(); !done) return done;
  if (sqlite3_changes(db_) == 1) return {};
  return fail(ErrorCode::already_exists, fmt::format("queue '{}' already exists", queue));
}

Result<uint64_t> SqliteQueueStore::remove(std::string_view queue) {
  const MutexLock lock(mutex_);
  Transaction transaction(db_);
  const std::string below = fmt::format("{}/", queue);
  // By prefix and length, not LIKE: '_' and '%' in a name stand for themselves.
  constexpr const char* kWhere = "WHERE queue_name = ?1 OR substr(queue_name, 1, length(?2)) = ?2";
  Statement drop_messages(db_, fmt::format("DELETE FROM queue_messages {}", kWhere).c_str());
  if (auto done = drop_messages.bind(queue).bind(below).run(); !done) return std::unexpected(done.error());
  Statement drop_queues(db_, fmt::format("DELETE FROM queue_metadata {}", kWhere).c_str());
  if (auto done = drop_queues.bind(queue).bind(below).run(); !done) return std::unexpected(done.error());
  const auto removed = static_cast<uint64_t>(sqlite3_changes(db_));
  if (auto done = transaction.commit(); !done) return std::unexpected(done.error());
  return removed;
}

Result<std::vector<std::string>> SqliteQueueStore::names() {
  const MutexLock lock(mutex_);
  std::vector<std::string> names;
  Statement select(db_, "SELECT queue_name FROM queue_metadata ORDER BY queue_name");
  while (true) {
    const auto row = select.step();
    if (!row) return std::unexpected(row.error());
    if (!*row) return names;
    names.emplace_back(select.text(0));
  }
}

Result<bool> SqliteQueueStore::exists(std::string_view queue) {
  const MutexLock lock(mutex_);
  return known(queue);
}

Result<void> SqliteQueueStore::push(std::string_view queue, const QueueMessage& message) {
  const MutexLock lock(mutex_);
  Transaction transaction(db_);
  if (auto there = require(queue); !there) return there;
  Statement insert(db_,
                   "INSERT INTO queue_messages (queue_name, message_id, data, timestamp, status) "
                   "VALUES (?, ?, ?, ?, 'pending')");
  insert.bind(queue).bind(message.id).bind(encode(message)).bind(message.timestamp_ns / kNsPerSec);
  if (auto done = insert.run(); !done) return done;
  Statement touch(db_, "UPDATE queue_metadata SET last_updated = strftime('%s', 'now') WHERE queue_name = ?");
  if (auto done = touch.bind(queue).run(); !done) return done;
  return transaction.commit();
}

Result<std::optional<QueueMessage>> SqliteQueueStore::take(std::string_view queue) {
  const MutexLock lock(mutex_);
  Transaction transaction(db_);
  if (auto there = require(queue); !there) return std::unexpected(there.error());
  std::string data;
  int64_t row_id = 0;
  {
    Statement first(db_,
                    "SELECT id, data FROM queue_messages WHERE queue_name = ? AND status = 'pending' "
                    "ORDER BY id LIMIT 1");
    const auto row = first.bind(queue).step();
    if (!row) return std::unexpected(row.error());
    if (!*row) return std::optional<QueueMessage>();
    row_id = first.number(0);
    data = first.text(1);
  }
  Statement mark(db_, "UPDATE queue_messages SET status = 'processing', processing_started_at = ? WHERE id = ?");
  if (auto done = mark.bind(Clock::system().wall_ns() / kNsPerSec).bind(row_id).run(); !done) {
    return std::unexpected(done.error());
  }
  auto message = decode(data);
  if (!message) return std::unexpected(message.error());
  if (auto done = transaction.commit(); !done) return std::unexpected(done.error());
  return std::optional<QueueMessage>(std::move(*message));
}

Result<std::optional<QueueMessage>> SqliteQueueStore::peek(std::string_view queue) {
  const MutexLock lock(mutex_);
  if (auto there = require(queue); !there) return std::unexpected(there.error());
  Statement first(db_,
                  "SELECT data FROM queue_messages WHERE queue_name = ? AND status = 'pending' ORDER BY id LIMIT 1");
  const auto row = first.bind(queue).step();
  if (!row) return std::unexpected(row.error());
  if (!*row) return std::optional<QueueMessage>();
  auto message = decode(first.text(0));
  if (!message) return std::unexpected(message.error());
  return std::optional<QueueMessage>(std::move(*message));
}

Result<std::vector<QueueMessage>> SqliteQueueStore::messages(std::string_view queue) {
  const MutexLock lock(mutex_);
  if (auto there = require(queue); !there) return std::unexpected(there.error());
  std::vector<QueueMessage> all;
  Statement select(db_, "SELECT data FROM queue_messages WHERE queue_name = ? ORDER BY id");
  select.bind(queue);
  while (true) {
    const auto row = select.step();
    if (!row) return std::unexpected(row.error());
    if (!*row) return all;
    auto message = decode(select.text(0));
    if (!message) return std::unexpected(message.error());
    all.push_back(std::move(*message));
  }
}

Result<QueueStatus> SqliteQueueStore::status(std::string_view queue) {
  const MutexLock lock(mutex_);
  if (auto there = require(queue); !there) return std::unexpected(there.error());
  QueueStatus status;
  Statement count(db_, "SELECT status, COUNT(*) FROM queue_messages WHERE queue_name = ? GROUP BY status");
  count.bind(queue);
  while (true) {
    const auto row = count.step();
    if (!row) return std::unexpected(row.error());
    if (!*row) return status;
    (count.text(0) == "processing" ? status.processing : status.pending) += static_cast<uint64_t>(count.number(1));
  }
}

Result<void> SqliteQueueStore::clear(std::string_view queue) {
  const MutexLock lock(mutex_);
  if (auto there = require(queue); !there) return there;
  Statement drop(db_, "DELETE FROM queue_messages WHERE queue_name = ?");
  return drop.bind(queue).run();
}

Result<void> SqliteQueueStore::acknowledge(std::string_view queue, std::string_view id) {
  const MutexLock lock(mutex_);
  if (auto there = require(queue); !there) return there;
  Statement drop(db_, "DELETE FROM queue_messages WHERE queue_name = ? AND message_id = ? AND status = 'processing'");
  return drop.bind(queue).bind(id).run();
}

}  // namespace

Result<std::unique_ptr<QueueStore>> open_sqlite_queue_store(const QueueConfig& config) {
  sqlite3* db = nullptr;
  const int code = sqlite3_open_v2(config.db_path.c_str(), &db,
                                   SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX, nullptr);
  if (code != SQLITE_OK) {
    const std::string text = db == nullptr ? "no memory" : sqlite3_errmsg(db);
    sqlite3_close(db);
    return fail(ErrorCode::io, fmt::format("queue database {}: {}", config.db_path, text));
  }
  auto store = std::make_unique<SqliteQueueStore>(db);
  bool is_new = false;
  {
    Statement pages(db, "PRAGMA page_count");
    const auto row = pages.step();
    is_new = row && *row && pages.number(0) == 0;
  }
  if (auto prepared = store->prepare(config, is_new); !prepared) return std::unexpected(prepared.error());
  return std::unique_ptr<QueueStore>(std::move(store));
}

}  // namespace ragfs
