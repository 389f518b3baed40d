#include "ragfs/backends/queue/queue_file_system.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>

#include "ragfs/base/clock.h"
#include "ragfs/base/random.h"

namespace ragfs {
namespace {

constexpr uint32_t kReadOnly = 0444;
constexpr uint32_t kWriteOnly = 0222;

struct Control {
  std::string_view name;
  uint32_t mode;
};
constexpr std::array<Control, 8> kControls = {{{"ack", kWriteOnly},
                                               {"clear", kWriteOnly},
                                               {"dequeue", kReadOnly},
                                               {"enqueue", kWriteOnly},
                                               {"messages", kReadOnly},
                                               {"peek", kReadOnly},
                                               {"size", kReadOnly},
                                               {"status", kReadOnly}}};

const Control* control_named(std::string_view name) {
  const auto at = std::ranges::find(kControls, name, &Control::name);
  return at == kControls.end() ? nullptr : &*at;
}

// What a path means: a control file of a queue, or a queue.
struct Target {
  std::string_view queue;  // "" for the root
  const Control* control = nullptr;
  // A control file's name where a queue's should be.
  bool is_bare() const { return control != nullptr && queue.empty(); }
};

std::unexpected<Error> bare_name() { return fail(ErrorCode::invalid_operation, "operation without queue name"); }

std::unexpected<Error> no_control(const Target& target) {
  return fail(ErrorCode::invalid_operation, target.queue.empty() ? "no queue specified" : "no operation specified");
}

Target target_of(PathView path) {
  const Control* control = control_named(path.name());
  const PathView queue = control == nullptr ? path : path.parent();
  return {queue.is_root() ? std::string_view{} : queue.text().substr(1), control};
}

std::unexpected<Error> refused(std::string_view what) {
  return fail(ErrorCode::invalid_operation, fmt::format("QueueFS does not support {}", what));
}

nlohmann::ordered_json shown(const QueueMessage& message) {
  nlohmann::ordered_json out;
  out["id"] = message.id;
  out["data"] = message.data;
  constexpr double kNsPerSec = 1e9;
  out["timestamp"] = static_cast<double>(message.timestamp_ns) / kNsPerSec;
  return out;
}

Bytes text_of(const nlohmann::ordered_json& json) {
  return Bytes::from_string(json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

Result<Bytes> one_message(Result<std::optional<QueueMessage>> message) {
  if (!message) return std::unexpected(std::move(message.error()));
  return *message ? text_of(shown(**message)) : Bytes::from_static("{}");
}

FileInfo info_of(std::string_view name, bool is_dir, uint32_t mode) {
  return {.name = std::string(name),
          .mode = mode,
          .mtime_ns = Clock::system().wall_ns(),
          .kind = is_dir ? FileKind::directory : FileKind::file};
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const size_t first = text.find_first_not_of(kBlank);
  return first == std::string_view::npos ? std::string_view{}
                                         : text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

}  // namespace

Result<void> QueueConfig::validate() const {
  if (busy_timeout_ms >= 0 && busy_timeout_ms <= INT32_MAX) return {};
  return fail(ErrorCode::config,
              fmt::format("busy_timeout_ms: {} is not allowed; 0 to {} is", busy_timeout_ms, INT32_MAX));
}

Result<std::unique_ptr<QueueFileSystem>> QueueFileSystem::open(const QueueConfig& config) {
  if (auto valid = config.validate(); !valid) return std::unexpected(valid.error());
  if (config.db_path.empty()) return std::make_unique<QueueFileSystem>(make_memory_queue_store(config));
  auto store = open_sqlite_queue_store(config);
  if (!store) return std::unexpected(store.error());
  return std::make_unique<QueueFileSystem>(std::move(*store));
}

QueueFileSystem::QueueFileSystem(std::unique_ptr<QueueStore> store)
    : traits_{.type = "queuefs", .control = true}, store_(std::move(store)) {}

Result<void> QueueFileSystem::create(const Context& /*ctx*/, PathView path) {
  const Target target = target_of(path);
  if (target.is_bare()) return bare_name();
  if (target.control != nullptr) return {};
  return fail(ErrorCode::invalid_operation, "QueueFS only supports control files");
}

Result<void> QueueFileSystem::mkdir(const Context& /*ctx*/, PathView path, uint32_t /*mode*/) {
  if (path.is_root()) return {};
  const Target target = target_of(path);
  if (target.control != nullptr) {
    return fail(ErrorCode::invalid_operation, fmt::format("'{}' is a control file", target.control->name));
  }
  return store_->create(target.queue);
}

Result<void> QueueFileSystem::ensure_parent_dirs(const Context& /*ctx*/, PathView path, uint32_t /*mode*/) {
  const PathView parent = path.parent();
  if (parent.is_root()) return {};
  auto made = store_->create(parent.text().substr(1));
  if (!made && made.error().code != ErrorCode::already_exists) return made;
  return {};
}

Result<void> QueueFileSystem::remove(const Context& /*ctx*/, PathView /*path*/) { return refused("remove"); }

Result<void> QueueFileSystem::remove_all(const Context& /*ctx*/, PathView path) {
  if (path.is_root()) return fail(ErrorCode::invalid_operation, "cannot remove root directory");
  const Target target = target_of(path);
  if (target.control != nullptr) return refused("remove");
  const auto removed = store_->remove(target.queue);
  if (!removed) return std::unexpected(removed.error());
  if (*removed == 0) return fail(ErrorCode::not_found, fmt::format("queue '{}' not found", target.queue));
  return {};
}

Result<Bytes> QueueFileSystem::read(const Context& /*ctx*/, PathView path, uint64_t /*offset*/, uint64_t /*size*/) {
  const Target target = target_of(path);
  if (target.control == nullptr) return no_control(target);
  if (target.queue.empty()) return bare_name();
  const std::string_view name = target.control->name;
  if (target.control->mode == kWriteOnly) {
    return fail(ErrorCode::invalid_operation,
                fmt::format("Cannot read from '{}'. Use dequeue, peek, size, status, or messages", name));
  }
  if (name == "dequeue") return one_message(store_->take(target.queue));
  if (name == "peek") return one_message(store_->peek(target.queue));
  if (name == "messages") {
    const auto messages = store_->messages(target.queue);
    if (!messages) return std::unexpected(messages.error());
    auto list = nlohmann::ordered_json::array();
    for (const QueueMessage& message : *messages) list.push_back(shown(message));
    return text_of(list);
  }
  const auto status = store_->status(target.queue);
  if (!status) return std::unexpected(status.error());
  if (name == "size") return Bytes::from_string(std::to_string(status->pending));
  nlohmann::ordered_json out;
  out["pending"] = status->pending;
  out["processing"] = status->processing;
  return text_of(out);
}

Result<FileContent> QueueFileSystem::read_file(const Context& ctx, PathView path) {
  auto data = read(ctx, path, 0, 0);
  if (!data) return std::unexpected(std::move(data.error()));
  FileMeta meta;
  meta.size = data->size();
  meta.cacheable = false;
  return FileContent{std::move(*data), std::move(meta)};
}

Result<WriteResult> QueueFileSystem::write(const Context& /*ctx*/, PathView path, std::string_view data,
                                           uint64_t /*offset*/, WriteFlag /*flag*/) {
  const Target target = target_of(path);
  if (target.control == nullptr) return no_control(target);
  if (target.queue.empty()) return bare_name();
  const std::string_view name = target.control->name;
  Result<void> done;
  if (name == "enqueue") {
    done = store_->push(target.queue, {random_uuid(), std::string(data), Clock::system().wall_ns()});
  } else if (name == "clear") {
    done = store_->clear(target.queue);
  } else if (name == "ack") {
    done = store_->acknowledge(target.queue, trimmed(data));
  } else {
    return fail(ErrorCode::invalid_operation, fmt::format("Cannot write to '{}'. Use enqueue, clear, or ack", name));
  }
  if (!done) return std::unexpected(std::move(done.error()));
  WriteResult result;
  result.bytes = data.size();
  result.meta.cacheable = false;
  return result;
}

Result<void> QueueFileSystem::truncate(const Context& /*ctx*/, PathView /*path*/, uint64_t /*size*/) {
  return refused("truncate");
}

Result<void> QueueFileSystem::touch(const Context& ctx, PathView path) { return create(ctx, path); }

Result<void> QueueFileSystem::chmod(const Context& /*ctx*/, PathView /*path*/, uint32_t /*mode*/) {
  return refused("chmod");
}

Result<std::vector<FileInfo>> QueueFileSystem::read_dir(const Context& /*ctx*/, PathView path) {
  const Target target = target_of(path);
  if (target.control != nullptr) return fail(ErrorCode::not_a_directory, std::string(path.text()));
  const auto names = store_->names();
  if (!names) return std::unexpected(names.error());
  bool found = target.queue.empty();
  std::set<std::string_view> children;
  for (const std::string& name : *names) {
    if (name == target.queue) found = true;
    if (!target.queue.empty() && (!is_queue_or_below(name, target.queue) || name == target.queue)) continue;
    const std::string_view rest =
        target.queue.empty() ? std::string_view(name) : std::string_view(name).substr(target.queue.size() + 1);
    children.insert(rest.substr(0, rest.find('/')));
  }
  std::vector<FileInfo> entries;
  for (const std::string_view child : children) entries.push_back(info_of(child, true, kDefaultDirMode));
  if (!children.empty() || target.queue.empty()) return entries;
  if (!found) return fail(ErrorCode::not_found, fmt::format("queue not found: {}", target.queue));
  for (const Control& control : kControls) entries.push_back(info_of(control.name, false, control.mode));
  return entries;
}

Result<FileInfo> QueueFileSystem::stat(const Context& /*ctx*/, PathView path) {
  if (path.is_root()) return info_of("/", true, kDefaultDirMode);
  const Target target = target_of(path);
  if (target.is_bare()) return bare_name();
  if (target.control != nullptr) return info_of(target.control->name, false, target.control->mode);
  const auto there = store_->exists(target.queue);
  if (!there) return std::unexpected(there.error());
  if (!*there) return fail(ErrorCode::not_found, fmt::format("queue '{}' not found", target.queue));
  return info_of(path.name(), true, kDefaultDirMode);
}

Result<void> QueueFileSystem::rename(const Context& /*ctx*/, PathView /*from*/, PathView /*to*/) {
  return refused("rename");
}

}  // namespace ragfs
