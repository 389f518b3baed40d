// ragfs_engine_v1: the C interface between RAGFS and a key-value engine's own client (an SDK).
//
// A plug-in is a shared library that exports one function, ragfs_engine_v1_get(), whose table never changes. RAGFS
// loads it in a process of its own, `ragfs-engine-host PLUGIN.so` (isolation: process), or in its own process
// (isolation: in_process), with RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND, and never unloads it. engines/example is a whole
// plug-in.
//
// Thread-safety. create() is called before all others, destroy() once, when none of them runs any more. All others are
// called from several threads at once, also for the same key. A function may block; by `timeout_ms` it should have
// given up, because a call that hangs keeps its worker until it returns. No exception may leave a function.
// Memory. Who calls owns every pointer it passes, for the time of the call; a plug-in keeps none of them, but memory
// given to register_memory(), until destroy(). Text is UTF-8; keys are bytes with a length and no terminator.
// Promises. put overwrites, and is RAGFS_ENGINE_OK only when the engine has confirmed it: a get that begins afterwards
// gives the new bytes or none. erase of an absent key succeeds. An absent key is RAGFS_ENGINE_MISS, a failure never is.
// Limits. A key has 1 to 255 characters of [A-Za-z0-9:_-]; a value has at least 16 bytes and at most
// `max_value_bytes` of the abilities; a call has at most `max_batch_keys` items. Keys of one put or erase differ; those
// of one get may repeat.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RAGFS_ENGINE_V1_VERSION 1u

/* What a call says of one item. The numbers are part of the interface and of the wire format. */
typedef enum ragfs_engine_v1_status {
  RAGFS_ENGINE_OK = 0,
  RAGFS_ENGINE_MISS = 1,             /* get: the key is not there */
  RAGFS_ENGINE_TOO_SMALL = 2,        /* get: `capacity` is less than the value; `size` says what it needs */
  RAGFS_ENGINE_UNAVAILABLE = 3,      /* the engine cannot be reached, or is starting */
  RAGFS_ENGINE_TIMEOUT = 4,          /* no answer in time: a put may still land */
  RAGFS_ENGINE_INVALID_ARGUMENT = 5, /* the engine refuses the key or the value for what it is */
  RAGFS_ENGINE_INVALID_DATA = 6,     /* what the engine has is damaged */
  RAGFS_ENGINE_TOO_LARGE = 7,
  RAGFS_ENGINE_FULL = 8, /* no space, and nothing could be evicted in time */
  RAGFS_ENGINE_NOT_SUPPORTED = 9,
  RAGFS_ENGINE_EXISTS = 10, /* put_if_absent_tx: one of the keys is there; nothing was stored */
  RAGFS_ENGINE_INTERNAL = 11
} ragfs_engine_v1_status;

/* One key of a call. `status`, `size` (get) and `engine_code` are the answer. */
typedef struct ragfs_engine_v1_item {
  const char* key;
  uint32_t key_size;
  int32_t status;      /* a ragfs_engine_v1_status; undefined before the call */
  void* data;          /* get: where the value goes; put: the value, not changed; erase: NULL */
  uint64_t capacity;   /* get: bytes at `data`; put and erase: 0 */
  uint64_t size;       /* put: bytes of the value; get: the value's bytes, also when they did not fit */
  int64_t ttl_ms;      /* put: 0 = does not expire */
  int32_t engine_code; /* the engine's own code, for messages; 0 = none */
  uint32_t flags;      /* put: RAGFS_ENGINE_PREFERRED */
} ragfs_engine_v1_item;

#define RAGFS_ENGINE_PREFERRED 1u /* a value to keep under pressure, where the engine can */

/* One setting of the configuration. Names a plug-in does not know are an error of create(). */
typedef struct ragfs_engine_v1_option {
  const char* name;
  const char* value;
} ragfs_engine_v1_option;

/* What the engine can do, as it is set up. */
typedef struct ragfs_engine_v1_abilities {
  uint32_t struct_size;      /* sizeof of the caller's; fill no more than that */
  uint32_t native_ttl;       /* 1: ttl_ms is kept */
  uint32_t atomic_put;       /* most items of put_if_absent_tx; 0 = not supported */
  uint32_t whole_values;     /* 1: a get during a put gives the old or the new bytes; 0: maybe a mixture */
  uint32_t may_resurrect;    /* 1: what was erased or overwritten can come back */
  uint32_t outlives_process; /* 1: values are there after destroy() and create() */
  uint32_t max_batch_keys;   /* most items of one call, at least 1 */
  uint32_t reserved;         /* 0 */
  uint64_t max_value_bytes;
} ragfs_engine_v1_abilities;

typedef struct ragfs_engine_v1_handle ragfs_engine_v1_handle; /* the plug-in's own; opaque */

typedef struct ragfs_engine_v1 {
  uint32_t version;     /* RAGFS_ENGINE_V1_VERSION */
  uint32_t struct_size; /* sizeof(ragfs_engine_v1); a longer one is compatible */
  const char* name;     /* "example" */
  const char* engine;   /* name and version of the SDK it was built against */

  /* Connects. On failure *out is NULL and `error`, of `error_size` bytes, holds a sentence. INVALID_ARGUMENT: the
   * options are wrong; trying again cannot help. UNAVAILABLE or TIMEOUT: it is tried again after a pause. */
  int32_t (*create)(const ragfs_engine_v1_option* options, size_t count, ragfs_engine_v1_handle** out, char* error,
                    size_t error_size);
  /* Ends all. Afterwards the handle is gone. It may hang: it runs on a thread that is given up at a deadline, and the
   * process ends then. */
  void (*destroy)(ragfs_engine_v1_handle* handle);
  void (*abilities)(ragfs_engine_v1_handle* handle, ragfs_engine_v1_abilities* out);
  /* Memory in which the `data` of later items lies, before the first of them. May be NULL (no registration needed). */
  int32_t (*register_memory)(ragfs_engine_v1_handle* handle, void* memory, size_t size);

  /* Each fills status (and size) of every item. A call for one key is a batch of one. */
  void (*get_many)(ragfs_engine_v1_handle* handle, ragfs_engine_v1_item* items, size_t count, int64_t timeout_ms);
  void (*put_many)(ragfs_engine_v1_handle* handle, ragfs_engine_v1_item* items, size_t count, int64_t timeout_ms);
  void (*erase_many)(ragfs_engine_v1_handle* handle, ragfs_engine_v1_item* items, size_t count, int64_t timeout_ms);
  /* All or none; the status for all. EXISTS: nothing was stored. NULL where abilities say 0. */
  int32_t (*put_if_absent_tx)(ragfs_engine_v1_handle* handle, ragfs_engine_v1_item* items, size_t count,
                              int64_t timeout_ms);

  /* Asks the engine itself, by something that ends by timeout_ms. */
  int32_t (*health)(ragfs_engine_v1_handle* handle, int64_t timeout_ms);
  /* A text, with its 0, that changes whenever acknowledged writes may be gone. It is asked after every call that
   * failed, and every second, so it must be cheap and must not block. */
  void (*incarnation)(ragfs_engine_v1_handle* handle, char* out, size_t out_size);
  /* What the last failure of the calling thread was, a sentence with its 0; "" = nothing to say. */
  void (*last_error)(ragfs_engine_v1_handle* handle, char* out, size_t out_size);
  /* A sentence that an operator should know about how the engine is set up, by number from 0 on; 0 = no more. */
  int32_t (*warning)(ragfs_engine_v1_handle* handle, uint32_t number, char* out, size_t out_size);
} ragfs_engine_v1;

/* The one symbol of a plug-in. */
#define RAGFS_ENGINE_V1_SYMBOL "ragfs_engine_v1_get"
typedef const ragfs_engine_v1* (*ragfs_engine_v1_get_function)(void);
const ragfs_engine_v1* ragfs_engine_v1_get(void);

#ifdef __cplusplus
}
#endif
