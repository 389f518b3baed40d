// RedisConfig: what the redis provider is told at start.
//
// Thread-safety: values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ragfs/base/error.h"

namespace ragfs::redis {

// Where a server listens. `path` set: a Unix socket, else TCP.
struct Endpoint {
  std::string host;
  uint16_t port = 0;
  std::string path;
  bool tls = false;

  // redis://HOST[:PORT], rediss://HOST[:PORT] or unix:///PATH. Errors: config, with what is wrong.
  static Result<Endpoint> parse(std::string_view text);
  // "host:port" or the path, for messages.
  std::string text() const;
  friend bool operator==(const Endpoint&, const Endpoint&) = default;
};

enum class Mode : uint8_t { standalone, sentinel, cluster };

struct Credentials {
  std::string username;  // "" = the default user
  std::string password;  // "" = no AUTH
};

struct TlsConfig {
  std::string ca_file;    // "" = the system's authorities
  std::string cert_file;  // of this client, "" = none
  std::string key_file;
  std::string server_name;  // that the certificate must name; "" = the endpoint's host
  bool skip_verify = false;
};

struct RedisConfig {
  Mode mode = Mode::standalone;
  std::vector<Endpoint> endpoints;  // standalone: the server; sentinel: the Sentinels; cluster: some nodes
  Credentials credentials;
  Credentials sentinel_credentials;
  std::string master_name;  // sentinel: the primary's name
  int64_t db = 0;
  std::string key_prefix;             // before every key, with a ':' between; "" = nothing
  std::string hash_tag;               // cluster: all keys in the slot of this text, which put_atomic needs; "" = spread
  int64_t pool_size = 32;             // most connections to one server
  int64_t connect_timeout_ms = 1000;  // resolve, connect, TLS and the first commands together
  int64_t max_batch_keys = 512;       // of one MGET, DEL or pipeline
  int64_t max_batch_bytes = 4 << 20;  // of the commands of one pipeline
  bool read_from_replica = false;
  int64_t wait_replicas = 0;          // a write is confirmed when so many replicas have it (WAIT); 0 = none
  bool wait_aof = false;              // ... and it is in the append-only file of the primary and of those (WAITAOF)
  int64_t wait_timeout_ms = 10;       // longest wait for them
  int64_t verify_interval_ms = 1000;  // how often a connection in use asks again who the server is
  TlsConfig tls;

  // Errors: config, naming field, value and what is allowed.
  Result<void> validate() const;
};

}  // namespace ragfs::redis
