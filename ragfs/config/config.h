// Config: everything a process is told at start.
//
// Each struct holds the default of its fields; unit, limits and meaning of every field stand in fields.cc, the table
// that the parser, the JSON Schema and docs/config.md share. Secrets are never in it: only the names of the environment
// variable or file that holds them. Not for: state that changes while the process runs.
// Thread-safety: values.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ragfs/base/error.h"

namespace ragfs {

struct MountConfig {
  std::string path;                      // in the tree, absolute
  std::string type;                      // localfs, memfs
  std::string local_dir;                 // localfs: the directory that is shown
  bool sync_writes = false;              // localfs: survive a power cut
  uint64_t capacity_bytes = 4ULL << 30;  // memfs
  int64_t max_entries = 4'000'000;       // memfs
  bool cache = true;                     // put the cache in front of it
  int64_t revalidate_ms = 0;             // 0 = the backend is changed through this process alone
  std::string warm = "verify";           // objects of earlier runs: verify, trust
  bool cached_walks = true;              // tree and glob over cached listings
  bool cached_grep = false;              // grep too, reading through the cache
};

struct NegativeConfig {
  std::vector<std::string> names = {".abstract.md", ".overview.md"};
  int64_t ttl_ms = 0;  // 0 = no negative entries
};

// What is read before anyone asks.
struct PrefetchSection {
  bool enabled = false;
  int64_t concurrency = 2;
  int64_t queue_limit = 256;
  int64_t max_objects = 16;
  int64_t cooldown_ms = 2000;
  int64_t busy_reads_per_second = 20'000;
  uint64_t bytes_per_second = 32ULL << 20;
};

// Local disks behind the embedded provider's memory.
struct DiskSection {
  std::vector<std::string> directories;  // none = no disk tier
  uint64_t capacity_bytes = 8ULL << 30;  // of each
  uint64_t bucket_bytes = 32ULL << 20;
  uint64_t min_free_bytes = 256ULL << 20;
  std::string admission = "second_touch";
  int64_t promote_hits = 2;
  uint64_t queue_bytes = 64ULL << 20;  // of each
  int64_t flush_ms = 2000;
  int64_t hang_timeout_ms = 5000;
  int64_t read_threads = 8;  // of each
  bool direct_io = true;
};

struct EmbeddedSection {
  uint64_t dram_bytes = 0;  // 0 = by what this process may use
  int64_t max_objects = 0;  // 0 = as many as fit
  uint64_t max_object_bytes = 16ULL << 20;
  int64_t shards = 0;  // 0 = by memory and CPUs
  int64_t account_share_percent = 80;
  DiskSection disk;

  // dram_bytes, or the default: 256 MiB, but no more than a quarter of `limit_bytes`.
  uint64_t effective_dram_bytes(uint64_t limit_bytes) const;
};

struct RedisSection {
  std::string mode = "standalone";
  std::vector<std::string> endpoints = {"redis://127.0.0.1:6379"};
  std::string username;
  std::string password_env;   // name of an environment variable; "" = no password
  std::string password_file;  // instead of password_env
  std::string master_name;
  std::string sentinel_username;
  std::string sentinel_password_env;
  std::string sentinel_password_file;
  int64_t db = 0;
  std::string key_prefix = "ragfs-cache";
  std::string hash_tag;  // cluster: "" = keys are spread over all slots
  int64_t pool_size = 32;
  int64_t connect_timeout_ms = 1000;
  int64_t max_batch_keys = 512;
  uint64_t max_batch_bytes = 4ULL << 20;
  bool read_from_replica = false;
  int64_t wait_replicas = 0;
  bool wait_aof = false;
  int64_t wait_timeout_ms = 10;
  std::string tls_ca_file;  // "" = the system's authorities
  std::string tls_cert_file;
  std::string tls_key_file;
  std::string tls_server_name;  // "" = the endpoint's host
  bool tls_insecure_skip_verify = false;
};

struct MooncakeSection {
  std::string local_hostname = "127.0.0.1";
  std::string metadata_server = "http://127.0.0.1:8080/metadata";
  std::string master_server_addr = "127.0.0.1:50051";
  std::string protocol = "tcp";
  std::string device_name;
  uint64_t global_segment_size = 512ULL << 20;
  uint64_t local_buffer_size = 128ULL << 20;
  int64_t replica_num = 2;
};

struct YuanrongSection {
  std::string host = "127.0.0.1";
  int64_t port = 31501;
  int64_t connect_timeout_ms = 5000;
  int64_t request_timeout_ms = 50;
};

struct CacheConfig {
  bool enabled = true;
  std::string provider = "embedded";
  std::string failure_mode = "bypass";
  std::optional<int64_t> operation_timeout_ms;  // absent: 50, or 20 for redis
  int64_t sdk_concurrency = 16;
  std::string name_space = "openviking";
  std::string state_dir;             // "" = $XDG_STATE_HOME/ragfs/<namespace>
  bool shared = false;               // other processes with a cache write the same files
  std::string inherited = "verify";  // objects of earlier epochs: verify, discard
  uint64_t max_file_size_bytes = 1ULL << 20;
  uint64_t max_listing_bytes = 1ULL << 20;
  std::string write_admission = "all";
  std::vector<std::string> cacheable_prefixes;
  std::vector<std::string> bypass_prefixes;
  std::vector<std::string> bypass_globs;
  std::vector<std::string> permission_dependent_prefixes;
  std::vector<std::string> negative_only_prefixes;
  std::vector<std::string> no_prefetch_prefixes;
  std::vector<std::string> preferred_names = {".abstract.md", ".overview.md"};
  NegativeConfig negative;
  PrefetchSection prefetch;
  bool hot_keys = true;
  bool warm_on_start = false;
  uint64_t near_cache_bytes = 64ULL << 20;
  int64_t default_ttl_seconds = 0;
  std::string verify_dram = "sample";
  int64_t verify_sample = 0;  // 0 = off
  EmbeddedSection embedded;
  RedisSection redis;
  MooncakeSection mooncake;
  YuanrongSection yuanrong;

  // The deadline of one provider call, with the default of the provider filled in.
  int64_t effective_operation_timeout_ms() const;
};

struct PathLockConfig {
  std::string provider = "memory";
  double lock_expire_secs = 30.0;
  double lock_timeout_secs = 0.0;
};

struct LogConfig {
  std::string level = "info";
  std::string file;                  // "" = standard error
  int64_t slow_operation_ms = 1000;  // 0 = not told
};

// The HTTP server (`ragfs serve`).
struct ServerConfig {
  std::string address = "127.0.0.1:8080";  // HOST:PORT; port 0 = any free one
  bool insecure = false;                   // another address than loopback without tokens and TLS
  std::string tokens_env;                  // name of an environment variable; "" = none
  std::string tokens_file;                 // instead of tokens_env
  std::string tls_certificate_file;        // PEM, with the chain; "" = no TLS
  std::string tls_key_file;
  std::string access_log;           // JSON lines; "" = none, "-" = standard error
  bool allow_local_mounts = false;  // POST /mount may show directories of this machine
  int64_t io_threads = 0;           // 0 = one per CPU, at most 8
  int64_t worker_threads = 16;
  int64_t queue_limit = 1024;
  int64_t max_connections = 4096;
  int64_t max_handles = 10'000;
  uint64_t max_request_body_bytes = 64ULL << 20;
  uint64_t max_buffered_bytes = 256ULL << 20;
  uint64_t max_header_bytes = 16ULL << 10;
  int64_t header_timeout_ms = 10'000;
  int64_t idle_timeout_ms = 75'000;
  int64_t stall_timeout_ms = 30'000;
  int64_t request_timeout_ms = 60'000;
  int64_t drain_timeout_ms = 15'000;
};

// Where a file gives a field, for messages.
struct FieldPlace {
  int line = 0;
  std::string shown;  // the field as the file names it
};

struct Config {
  std::vector<MountConfig> mounts;
  CacheConfig cache;
  PathLockConfig pathlock;
  LogConfig log;
  ServerConfig server;

  // Not keys: where this came from, and what was ignored on the way.
  std::string source;                        // the file; "" = made by a program
  std::map<std::string, FieldPlace> places;  // by field path, "storage.agfs.mounts[0].path"
  std::vector<std::string> warnings;
  bool mounts_come_later = false;  // a program mounts by itself: none need to be named here

  // "FILE:LINE: FIELD" of a field path, as the operator knows it.
  std::string place(const std::string& field_path) const;

  // Rules between fields; the limits of single fields hold already when the parser made this. All that is wrong is in
  // one message, a line each. Errors: config.
  Result<void> validate() const;

  // One localfs mount at "/" over `directory`, embedded cache, changes from outside seen after 1 s.
  static Config for_root(const std::string& directory);
};

// What changed between two configurations and cannot be changed in a running process; "restart" tells the operator.
// Errors: config, one line for each such field.
Result<void> check_reload(const Config& running, const Config& next);

}  // namespace ragfs
