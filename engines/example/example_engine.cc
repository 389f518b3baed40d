// The example of an engine plug-in (ragfs/engine/ragfs_engine_v1.h): values in this process's own memory.
//
// Whole, and as simple as one can be: a map under a mutex, the oldest values go when it is full. A plug-in for an
// engine elsewhere has the same functions; each must end by its timeout. Options: capacity_bytes.
#include <charconv>
#include <chrono>
#include <cstring>
#include <list>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "ragfs/engine/ragfs_engine_v1.h"

struct ragfs_engine_v1_handle {
  using Clock = std::chrono::steady_clock;
  struct Value {
    std::string bytes;
    Clock::time_point expires_at;
    std::list<std::string>::iterator place;  // in `order`
  };
  const uint64_t capacity_bytes;
  const std::string incarnation;
  std::mutex mutex;
  std::unordered_map<std::string, Value> values;
  std::list<std::string> order;  // the oldest first
  uint64_t used_bytes = 0;

  // So small that the values of one put_if_absent_tx never evict each other.
  uint64_t max_value_bytes() const { return capacity_bytes / 16; }
  void erase(const std::string& key) {
    const auto found = values.find(key);
    if (found == values.end()) return;
    used_bytes -= found->second.bytes.size();
    order.erase(found->second.place);
    values.erase(found);
  }
  int32_t put(const ragfs_engine_v1_item& item) {
    if (item.size > max_value_bytes()) return RAGFS_ENGINE_TOO_LARGE;
    const std::string key(item.key, item.key_size);
    erase(key);
    while (used_bytes + item.size > capacity_bytes) erase(std::string(order.front()));
    const auto place = order.insert(order.end(), key);
    const auto expires_at =
        item.ttl_ms > 0 ? Clock::now() + std::chrono::milliseconds(item.ttl_ms) : Clock::time_point::max();
    values.emplace(key, Value{std::string(static_cast<const char*>(item.data), item.size), expires_at, place});
    used_bytes += item.size;
    return RAGFS_ENGINE_OK;
  }
  int32_t get(ragfs_engine_v1_item& item) {
    const std::string key(item.key, item.key_size);
    const auto found = values.find(key);
    if (found == values.end()) return RAGFS_ENGINE_MISS;
    if (found->second.expires_at <= Clock::now()) {
      erase(key);
      return RAGFS_ENGINE_MISS;
    }
    item.size = found->second.bytes.size();
    if (item.size > item.capacity) return RAGFS_ENGINE_TOO_SMALL;
    std::memcpy(item.data, found->second.bytes.data(), item.size);
    return RAGFS_ENGINE_OK;
  }
};

namespace {

using Handle = ragfs_engine_v1_handle;
using Item = ragfs_engine_v1_item;
constexpr uint64_t kDefaultCapacity = 256ULL << 20;
constexpr uint64_t kLeastCapacity = 1ULL << 20;
constexpr uint32_t kMostAtOnce = 256;
constexpr uint32_t kMostInTx = 8;

void say(std::string_view text, char* out, size_t out_size) {
  if (out_size == 0) return;
  const size_t size = text.size() < out_size - 1 ? text.size() : out_size - 1;
  std::memcpy(out, text.data(), size);
  out[size] = '\0';
}

int32_t create(const ragfs_engine_v1_option* options, size_t count, Handle** out, char* error, size_t error_size) {
  *out = nullptr;
  uint64_t capacity_bytes = kDefaultCapacity;
  for (size_t i = 0; i < count; ++i) {
    if (std::string_view(options[i].name) == "capacity_bytes") {
      const std::string_view text = options[i].value;
      const auto parsed = std::from_chars(text.data(), text.data() + text.size(), capacity_bytes);
      if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size() || capacity_bytes < kLeastCapacity) {
        say("option capacity_bytes: " + std::string(text) + " is not allowed; it must be a number of at least " +
                std::to_string(kLeastCapacity),
            error, error_size);
        return RAGFS_ENGINE_INVALID_ARGUMENT;
      }
    } else {
      say(std::string("option ") + options[i].name + ": is not known; there is capacity_bytes", error, error_size);
      return RAGFS_ENGINE_INVALID_ARGUMENT;
    }
  }
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  *out = new Handle{capacity_bytes, "example-" + std::to_string(now)};
  return RAGFS_ENGINE_OK;
}

void destroy(Handle* handle) { delete handle; }

void abilities(Handle* handle, ragfs_engine_v1_abilities* out) {
  const uint32_t caller_size = out->struct_size;
  ragfs_engine_v1_abilities can{};
  can.struct_size = caller_size;
  can.native_ttl = 1;
  can.atomic_put = kMostInTx;
  can.whole_values = 1;
  can.max_batch_keys = kMostAtOnce;
  can.max_value_bytes = handle->max_value_bytes();
  std::memcpy(out, &can, caller_size < sizeof can ? caller_size : sizeof can);
}

void get_many(Handle* handle, Item* items, size_t count, int64_t) {
  const std::lock_guard lock(handle->mutex);
  for (size_t i = 0; i < count; ++i) items[i].status = handle->get(items[i]);
}
void put_many(Handle* handle, Item* items, size_t count, int64_t) {
  const std::lock_guard lock(handle->mutex);
  for (size_t i = 0; i < count; ++i) items[i].status = handle->put(items[i]);
}
void erase_many(Handle* handle, Item* items, size_t count, int64_t) {
  const std::lock_guard lock(handle->mutex);
  for (size_t i = 0; i < count; ++i) {
    handle->erase(std::string(items[i].key, items[i].key_size));
    items[i].status = RAGFS_ENGINE_OK;
  }
}
int32_t put_if_absent_tx(Handle* handle, Item* items, size_t count, int64_t) {
  const std::lock_guard lock(handle->mutex);
  for (size_t i = 0; i < count; ++i) {
    if (handle->values.contains(std::string(items[i].key, items[i].key_size))) return RAGFS_ENGINE_EXISTS;
  }
  for (size_t i = 0; i < count; ++i) {
    const int32_t status = handle->put(items[i]);
    if (status == RAGFS_ENGINE_OK) continue;
    for (size_t stored = 0; stored < i; ++stored) {
      handle->erase(std::string(items[stored].key, items[stored].key_size));
    }
    return status;
  }
  return RAGFS_ENGINE_OK;
}

int32_t health(Handle*, int64_t) { return RAGFS_ENGINE_OK; }
void incarnation(Handle* handle, char* out, size_t out_size) { say(handle->incarnation, out, out_size); }
void last_error(Handle*, char* out, size_t out_size) { say("", out, out_size); }
int32_t warning(Handle*, uint32_t number, char* out, size_t out_size) {
  if (number > 0) return 0;
  say("the example engine keeps values in the memory of its host alone; they go with it", out, out_size);
  return 1;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const ragfs_engine_v1* ragfs_engine_v1_get(void) {
  static const ragfs_engine_v1 table = {RAGFS_ENGINE_V1_VERSION,
                                        sizeof(ragfs_engine_v1),
                                        "example",
                                        "example 1.0",
                                        create,
                                        destroy,
                                        abilities,
                                        nullptr,
                                        get_many,
                                        put_many,
                                        erase_many,
                                        put_if_absent_tx,
                                        health,
                                        incarnation,
                                        last_error,
                                        warning};
  return &table;
}
