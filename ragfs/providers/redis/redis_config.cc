#include "ragfs/providers/redis/redis_config.h"

#include <fmt/format.h>

#include <charconv>

namespace ragfs::redis {
namespace {

constexpr uint16_t kDefaultPort = 6379;
// Keys of the cache are at most 128 characters; this bounds what a key costs.
constexpr size_t kMaxPrefixBytes = 64;

std::unexpected<Error> wrong(std::string_view text, std::string_view why) {
  return fail(ErrorCode::config, fmt::format("\"{}\" is not allowed in it; redis://HOST:PORT, rediss://HOST:PORT or "
                                             "unix:///PATH is expected ({})",
                                             text, why));
}

Result<void> in_range(std::string_view field, int64_t value, int64_t least, int64_t most) {
  if (value >= least && value <= most) return {};
  return fail(ErrorCode::config, fmt::format("{}: {} is not allowed; it must be {} to {}", field, value, least, most));
}

}  // namespace

Result<Endpoint> Endpoint::parse(std::string_view text) {
  Endpoint out;
  std::string_view rest = text;
  if (rest.starts_with("unix://")) {
    out.path = rest.substr(7);
    if (!out.path.starts_with('/')) return wrong(text, "the path is not absolute");
    if (out.path.size() > 100) return wrong(text, "a socket's path has at most 100 bytes");
    return out;
  }
  out.tls = rest.starts_with("rediss://");
  if (!out.tls && !rest.starts_with("redis://")) return wrong(text, "it names no known kind of address");
  rest.remove_prefix(out.tls ? 9 : 8);
  if (rest.ends_with('/')) rest.remove_suffix(1);
  if (rest.find_first_of("@/?# ") != std::string_view::npos) {
    return wrong(text, "users, passwords, databases and options have keys of their own");
  }
  std::string_view port;
  if (rest.starts_with('[')) {  // an IPv6 address
    const size_t close = rest.find(']');
    if (close == std::string_view::npos) return wrong(text, "'[' without ']'");
    out.host = rest.substr(1, close - 1);
    port = rest.substr(close + 1);
  } else {
    const size_t colon = rest.find(':');
    out.host = rest.substr(0, colon);
    port = colon == std::string_view::npos ? "" : rest.substr(colon);
  }
  if (out.host.empty()) return wrong(text, "it names no host");
  out.port = kDefaultPort;
  if (port.empty()) return out;
  const auto [end, error] = std::from_chars(port.data() + 1, port.data() + port.size(), out.port);
  if (port[0] != ':' || error != std::errc() || end != port.data() + port.size() || out.port == 0) {
    return wrong(text, "its port is no number from 1 to 65535");
  }
  return out;
}

std::string Endpoint::text() const {
  if (!path.empty()) return path;
  return host.find(':') == std::string::npos ? fmt::format("{}:{}", host, port) : fmt::format("[{}]:{}", host, port);
}

Result<void> RedisConfig::validate() const {
  if (endpoints.empty()) return fail(ErrorCode::config, "endpoints: is empty; name at least one server");
  if (mode == Mode::sentinel && master_name.empty()) {
    return fail(ErrorCode::config, "master_name: is missing; mode sentinel needs it");
  }
  if (mode == Mode::cluster && db != 0) {
    return fail(ErrorCode::config, fmt::format("db: {} is not allowed; a cluster has database 0 only", db));
  }
  if (!hash_tag.empty() && hash_tag.find_first_of("{}") != std::string::npos) {
    return fail(ErrorCode::config, fmt::format("hash_tag: \"{}\" is not allowed; it must have no braces", hash_tag));
  }
  if (key_prefix.size() + hash_tag.size() > kMaxPrefixBytes) {
    return fail(ErrorCode::config,
                fmt::format("key_prefix: is too long; with hash_tag it has at most {} bytes", kMaxPrefixBytes));
  }
  if (tls.cert_file.empty() != tls.key_file.empty()) {
    return fail(ErrorCode::config, "tls_cert_file, tls_key_file: one is missing; a client certificate needs both");
  }
  if (auto ok = in_range("db", db, 0, 1'000'000); !ok) return ok;
  if (auto ok = in_range("pool_size", pool_size, 1, 1024); !ok) return ok;
  if (auto ok = in_range("connect_timeout_ms", connect_timeout_ms, 1, 60'000); !ok) return ok;
  if (auto ok = in_range("max_batch_keys", max_batch_keys, 1, 100'000); !ok) return ok;
  if (auto ok = in_range("max_batch_bytes", max_batch_bytes, 1024, int64_t{1} << 30); !ok) return ok;
  if (auto ok = in_range("wait_replicas", wait_replicas, 0, 100); !ok) return ok;
  if (auto ok = in_range("wait_timeout_ms", wait_timeout_ms, 1, 60'000); !ok) return ok;
  return in_range("verify_interval_ms", verify_interval_ms, 1, 3'600'000);
}

}  // namespace ragfs::redis
