#include "ragfs/engine/plugin.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <thread>

#include "ragfs/base/sync.h"

namespace ragfs::engine {
namespace {

constexpr size_t kTextBytes = 1024;
constexpr uint32_t kMostWarnings = 64;

int64_t timeout_ms_of(Deadline deadline) {
  return deadline.is_never() ? INT32_MAX : std::max<int64_t>(1, deadline.remaining_ns() / 1'000'000);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kDeepBind = 0;  // sanitizers replace functions by being found first
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr int kDeepBind = 0;
#else
constexpr int kDeepBind = RTLD_DEEPBIND;
#endif
#else
constexpr int kDeepBind = RTLD_DEEPBIND;
#endif

Result<const ragfs_engine_v1*> load(const std::string& file) {
  void* library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | kDeepBind);
  if (library == nullptr) {
    const char* why = ::dlerror();
    return fail(ErrorCode::config, fmt::format("{}: cannot be loaded: {}", file, why == nullptr ? "" : why));
  }
  const auto get = reinterpret_cast<ragfs_engine_v1_get_function>(::dlsym(library, RAGFS_ENGINE_V1_SYMBOL));
  const ragfs_engine_v1* table = get == nullptr ? nullptr : get();
  if (table == nullptr) {
    return fail(ErrorCode::config,
                fmt::format("{}: is no engine plug-in (it has no {})", file, RAGFS_ENGINE_V1_SYMBOL));
  }
  if (table->version != RAGFS_ENGINE_V1_VERSION || table->struct_size < sizeof(ragfs_engine_v1)) {
    return fail(ErrorCode::config, fmt::format("{}: speaks version {} of the engine interface; this program has {}",
                                               file, table->version, RAGFS_ENGINE_V1_VERSION));
  }
  return table;
}

ErrorCode code_of_create(int32_t status) {
  switch (status) {
    case RAGFS_ENGINE_UNAVAILABLE: return ErrorCode::unavailable;
    case RAGFS_ENGINE_TIMEOUT: return ErrorCode::timeout;
    case RAGFS_ENGINE_INVALID_ARGUMENT:
    case RAGFS_ENGINE_NOT_SUPPORTED: return ErrorCode::config;
    default: return ErrorCode::unavailable;
  }
}

}  // namespace

Plugin::Plugin(const ragfs_engine_v1* table, ragfs_engine_v1_handle* handle) : table_(table), handle_(handle) {
  abilities_.struct_size = sizeof abilities_;
  table_->abilities(handle_, &abilities_);
  abilities_.max_batch_keys = std::max(abilities_.max_batch_keys, 1U);
}

Result<std::unique_ptr<Plugin>> Plugin::open(const std::string& file, const std::vector<std::string>& options) {
  const auto table = load(file);
  if (!table) return std::unexpected(table.error());
  std::vector<std::string> names;
  std::vector<std::string> values;
  for (const std::string& option : options) {
    const size_t equals = option.find('=');
    if (equals == std::string::npos) return fail(ErrorCode::config, fmt::format("option {}: has no '='", option));
    names.push_back(option.substr(0, equals));
    values.push_back(option.substr(equals + 1));
  }
  std::vector<ragfs_engine_v1_option> passed;
  for (size_t i = 0; i < names.size(); ++i) passed.push_back({names[i].c_str(), values[i].c_str()});
  ragfs_engine_v1_handle* handle = nullptr;
  std::array<char, kTextBytes> error{};
  const int32_t status = (*table)->create(passed.data(), passed.size(), &handle, error.data(), error.size());
  error.back() = '\0';
  if (status != RAGFS_ENGINE_OK || handle == nullptr) {
    return fail(code_of_create(status), fmt::format("engine {}: {}", (*table)->name, error.data()));
  }
  return std::unique_ptr<Plugin>(new Plugin(*table, handle));  // NOLINT: a private constructor
}

bool Plugin::call(Op op, std::span<ragfs_engine_v1_item> items, Deadline deadline) const {
  const size_t most = op == Op::put_if_absent_tx ? items.size() : abilities_.max_batch_keys;
  bool failed = false;
  for (std::span<ragfs_engine_v1_item> rest = items; !rest.empty();) {
    const std::span<ragfs_engine_v1_item> now = rest.first(std::min(most, rest.size()));
    rest = rest.subspan(now.size());
    const auto answer_all = [&](int32_t status) {
      for (ragfs_engine_v1_item& item : now) item.status = status;
    };
    const int64_t timeout_ms = timeout_ms_of(deadline);
    if (deadline.expired()) {
      answer_all(RAGFS_ENGINE_TIMEOUT);
    } else if (op == Op::get) {
      table_->get_many(handle_, now.data(), now.size(), timeout_ms);
    } else if (op == Op::put) {
      table_->put_many(handle_, now.data(), now.size(), timeout_ms);
    } else if (op == Op::erase) {
      table_->erase_many(handle_, now.data(), now.size(), timeout_ms);
    } else if (op == Op::put_if_absent_tx && table_->put_if_absent_tx != nullptr) {
      answer_all(table_->put_if_absent_tx(handle_, now.data(), now.size(), timeout_ms));
    } else {
      answer_all(RAGFS_ENGINE_NOT_SUPPORTED);
    }
    for (const ragfs_engine_v1_item& item : now) failed = failed || engine_failed(item.status);
  }
  return failed;
}

int32_t Plugin::health(Deadline deadline) const { return table_->health(handle_, timeout_ms_of(deadline)); }

std::string Plugin::incarnation() const {
  std::array<char, kTextBytes> text{};
  table_->incarnation(handle_, text.data(), text.size());
  text.back() = '\0';
  return text.data();
}

std::string Plugin::last_error() const {
  std::array<char, kTextBytes> text{};
  table_->last_error(handle_, text.data(), text.size());
  text.back() = '\0';
  return text.data();
}

std::vector<std::string> Plugin::warnings() const {
  std::vector<std::string> out;
  std::array<char, kTextBytes> text{};
  while (table_->warning != nullptr && out.size() < kMostWarnings &&
         table_->warning(handle_, static_cast<uint32_t>(out.size()), text.data(), text.size()) != 0) {
    text.back() = '\0';
    out.emplace_back(text.data());
  }
  return out;
}

Result<void> Plugin::close(Deadline deadline) {
  struct Ending {
    Mutex mutex;
    CondVar changed;
    bool ended RAGFS_GUARDED_BY(mutex) = false;
  };
  const auto ending = std::make_shared<Ending>();
  std::thread([table = table_, handle = handle_, ending] {
    table->destroy(handle);
    const MutexLock lock(ending->mutex);
    ending->ended = true;
    ending->changed.notify_all();
  }).detach();
  const MutexLock lock(ending->mutex);
  while (!ending->ended) {
    if (!ending->changed.wait_until(ending->mutex, deadline) && !ending->ended) {
      return fail(ErrorCode::timeout, "the engine's client did not end in time; it is left behind");
    }
  }
  return {};
}

}  // namespace ragfs::engine
