// An engine plug-in whose gets take a while, and which ends the process when it is ended around one of them.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <thread>

#include "ragfs/engine/ragfs_engine_v1.h"

struct ragfs_engine_v1_handle {
  std::atomic<int> inside{0};
};

namespace {

using Handle = ragfs_engine_v1_handle;
using Item = ragfs_engine_v1_item;
constexpr auto kGetTakes = std::chrono::milliseconds(500);

int32_t create(const ragfs_engine_v1_option*, size_t, Handle** out, char*, size_t) {
  *out = std::make_unique<Handle>().release();
  return RAGFS_ENGINE_OK;
}
void destroy(Handle* handle) {
  if (handle->inside > 0) std::abort();
  delete handle;
}
void abilities(Handle*, ragfs_engine_v1_abilities* out) {
  out->max_batch_keys = 64;
  out->max_value_bytes = 1 << 20;
}
void get_many(Handle* handle, Item* items, size_t count, int64_t) {
  ++handle->inside;
  std::this_thread::sleep_for(kGetTakes);
  for (size_t i = 0; i < count; ++i) items[i].status = RAGFS_ENGINE_MISS;
  --handle->inside;
}
void take_many(Handle*, Item* items, size_t count, int64_t) {
  for (size_t i = 0; i < count; ++i) items[i].status = RAGFS_ENGINE_OK;
}
int32_t health(Handle*, int64_t) { return RAGFS_ENGINE_OK; }
void say_nothing(Handle*, char* out, size_t) { out[0] = '\0'; }
int32_t warning(Handle*, uint32_t, char*, size_t) { return 0; }

}  // namespace

extern "C" __attribute__((visibility("default"))) const ragfs_engine_v1* ragfs_engine_v1_get(void) {
  static const ragfs_engine_v1 table = {RAGFS_ENGINE_V1_VERSION,
                                        sizeof(ragfs_engine_v1),
                                        "slow",
                                        "slow 1.0",
                                        create,
                                        destroy,
                                        abilities,
                                        nullptr,
                                        get_many,
                                        take_many,
                                        take_many,
                                        nullptr,
                                        health,
                                        say_nothing,
                                        say_nothing,
                                        warning};
  return &table;
}
