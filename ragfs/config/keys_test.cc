// Every key of the configuration: a good value arrives, a bad one is refused with file, line, field, value and what is
// allowed. A key without a row here fails CoversEveryKey.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

#include "ragfs/config/field_text.h"
#include "ragfs/config/fields.h"
#include "ragfs/config/loader.h"

namespace ragfs {
namespace {

struct Row {
  std::string path;       // "storage.agfs.cache.enabled"
  std::string good;       // as the file writes it
  std::string arrives;    // as field_value_text() shows it
  std::string bad;        // as the file writes it
  std::string complaint;  // part of the error after the field's name
  std::string beside;     // another line of the same section that `good` needs
};

const std::vector<Row>& rows() {
  static const std::string cache = "storage.agfs.cache.";
  static const std::string disk = cache + "embedded.disk.";
  static const std::string redis = cache + "redis.";
  static const std::string cake = cache + "mooncake.";
  static const std::string yuan = cache + "yuanrong.";
  static const std::string lock = "storage.agfs.pathlock.";
  static const std::string web = "server.";
  static const std::vector<Row> table = {
      {cache + "enabled", "false", "false", "yes", "yes is not allowed; true or false is expected", ""},
      {cache + "provider", "disabled", "disabled", "memcached",
       "\"memcached\" is not allowed; one of embedded, redis, mooncake, yuanrong, disabled is expected", ""},
      {cache + "failure_mode", "strict", "strict", "strickt", "did you mean \"strict\"?", ""},
      {cache + "operation_timeout_ms", "75", "75", "0", "0 is not allowed; an integer from 1 to 60000 (ms) is expected",
       ""},
      {cache + "sdk_concurrency", "4", "4", "\"4\"", "\"4\" is not allowed; an integer from 1 to 1024", ""},
      {cache + "namespace", "team-a", "\"team-a\"", "\"\"", "\"\" is not allowed; a text that is not empty", ""},
      {cache + "max_file_size_bytes", "64KiB", "65536", "-1",
       "-1 is not allowed; a size from 1 to 1073741824 bytes, such as 1048576 or 64MiB is expected", ""},
      {cache + "max_listing_bytes", "2 MiB", "2097152", "2MB", "2MB is not allowed; a size", ""},
      {cache + "write_admission", "read_before", "read_before", "none", "one of all, read_before is expected", ""},
      {cache + "cacheable_prefixes", "[/local/docs]", "[\"/local/docs\"]", "[docs]",
       "docs is not allowed in it; a list of absolute paths", ""},
      {cache + "bypass_prefixes", "[/local/tmp, /queue]", "[\"/local/tmp\", \"/queue\"]", "[tmp]",
       "tmp is not allowed in it; a list of absolute paths", ""},
      {cache + "bypass_globs", "['/local/**/*.tmp']", "[\"/local/**/*.tmp\"]", "text", "text is not allowed; a list",
       ""},
      {cache + "permission_dependent_prefixes", "[/local/secret]", "[\"/local/secret\"]", "[/a/../b]", "\"/a/../b\"",
       ""},
      {cache + "negative_only_prefixes", "[/local/new]", "[\"/local/new\"]", "[/a/../b]", "\"/a/../b\"",
       "negative: {ttl_ms: 100}"},
      {cache + "no_prefetch_prefixes", "[/local/busy]", "[\"/local/busy\"]", "{a: b}", "a section is not allowed", ""},
      {cache + "preferred_names", "[index.md]", "[\"index.md\"]", "[a/b]", "\"a/b\" is not allowed in it", ""},
      {cache + "negative.names", "[x.md]", "[\"x.md\"]", "[a/b]", "a file name without '/' is expected", ""},
      {cache + "negative.ttl_ms", "500", "500", "50", "50 is not allowed; 0 (off) or 100 to 1000 ms", ""},
      {cache + "hot_keys", "false", "false", "off", "true or false is expected", ""},
      {cache + "warm_on_start", "true", "true", "on", "true or false is expected", ""},
      {cache + "prefetch.enabled", "true", "true", "on", "true or false is expected", ""},
      {cache + "prefetch.concurrency", "4", "4", "0", "an integer from 1 to 64", ""},
      {cache + "prefetch.queue_limit", "10", "10", "0", "an integer from 1 to 65536", ""},
      {cache + "prefetch.max_objects", "8", "8", "32", "an integer from 4 to 16", ""},
      {cache + "prefetch.busy_reads_per_second", "0", "0", "-1", "an integer from 0 to 1000000000", ""},
      {cache + "prefetch.cooldown_ms", "5000", "5000", "500", "an integer from 1000 to 10000 (ms)", ""},
      {cache + "prefetch.bytes_per_second", "8MiB", "8388608", "1", "a size from 4096", ""},
      {cache + "near_cache_bytes", "0", "0", "many", "many is not allowed; a size", ""},
      {cache + "near_cache_bytes", "1MiB", "1048576", "1KiB", "1024 is not allowed; 0 (off) or at least 1MiB", ""},
      {cache + "default_ttl_seconds", "3600", "3600", "1.5", "1.5 is not allowed; an integer", ""},
      {cache + "verify_dram", "off", "off", "never", "one of off, sample, always is expected", ""},
      {cache + "verify_sample", "1000", "1000", "-1", "an integer from 0 to 1000000000", ""},
      {cache + "embedded.dram_bytes", "8MiB", "8388608", "1KiB",
       "1024 is not allowed; 0 (by itself) or at least 1048576", ""},
      {cache + "embedded.max_objects", "1000", "1000", "-1", "an integer from 0 to 1000000000000", ""},
      {cache + "embedded.max_object_bytes", "4MiB", "4194304", "1", "a size from 1024", ""},
      {cache + "embedded.shards", "8", "8", "3", "3 is not allowed; 0 or a power of two", ""},
      {cache + "embedded.account_share_percent", "50", "50", "0", "an integer from 1 to 100", ""},
      {disk + "directories", "[/d]", "[\"/d\"]", "/d", "/d is not allowed; a list", ""},
      {disk + "capacity_bytes", "1GiB", "1073741824", "1", "a size from 1048576", ""},
      {disk + "bucket_bytes", "8MiB", "8388608", "1KiB", "1KiB is not allowed; a size from 65536", ""},
      {disk + "min_free_bytes", "0", "0", "-1", "-1 is not allowed; a size", ""},
      {disk + "admission", "all", "all", "some", "one of second_touch, all, on_put is expected", ""},
      {disk + "promote_hits", "3", "3", "-1", "an integer from 0 to 255", ""},
      {disk + "queue_bytes", "8MiB", "8388608", "1", "a size from 1048576", ""},
      {disk + "flush_ms", "100", "100", "0", "an integer from 1 to 600000", ""},
      {disk + "hang_timeout_ms", "100", "100", "1", "an integer from 10 to 600000", ""},
      {disk + "read_threads", "2", "2", "0", "an integer from 1 to 256", ""},
      {disk + "direct_io", "false", "false", "no", "true or false is expected", ""},
      {redis + "mode", "cluster", "cluster", "singleton", "one of standalone, sentinel, cluster", ""},
      {redis + "endpoints", "[\"rediss://h:1\"]", "[\"rediss://h:1\"]", "[\"h:1\"]",
       "\"h:1\" is not allowed in it; redis://HOST:PORT", ""},
      {redis + "username", "app", "\"app\"", "[]", "a list is not allowed; a text", ""},
      {redis + "password_env", "PW", "\"PW\"", "{}", "a section is not allowed", ""},
      {redis + "password_file", "/run/pw", "\"/run/pw\"", "[/x]", "a list is not allowed", ""},
      {redis + "master_name", "main", "\"main\"", "[]", "a list is not allowed", ""},
      {redis + "sentinel_username", "app", "\"app\"", "[]", "a list is not allowed", ""},
      {redis + "sentinel_password_env", "PW", "\"PW\"", "[]", "a list is not allowed", ""},
      {redis + "sentinel_password_file", "/run/pw", "\"/run/pw\"", "[]", "a list is not allowed", ""},
      {redis + "db", "3", "3", "-1", "an integer from 0 to 1023", ""},
      {redis + "pool_size", "8", "8", "0", "an integer from 1 to 1024", ""},
      {redis + "connect_timeout_ms", "100", "100", "fast", "fast is not allowed", ""},
      {redis + "key_prefix", "other", "\"other\"", "[]", "a list is not allowed", ""},
      {redis + "hash_tag", "t", "\"t\"", "[]", "a list is not allowed", ""},
      {redis + "max_batch_keys", "64", "64", "0", "an integer from 1 to 100000", ""},
      {redis + "max_batch_bytes", "64KiB", "65536", "1", "a size from 1024", ""},
      {redis + "read_from_replica", "false", "false", "1", "true or false", ""},
      {redis + "wait_replicas", "1", "1", "-1", "an integer from 0 to 100", ""},
      {redis + "wait_aof", "true", "true", "1", "true or false", ""},
      {redis + "wait_timeout_ms", "5", "5", "0", "an integer from 1 to 60000", ""},
      {redis + "tls_ca_file", "/ca", "\"/ca\"", "[]", "a list is not allowed", ""},
      {redis + "tls_cert_file", "/c", "\"/c\"", "[]", "a list is not allowed", "tls_key_file: /k"},
      {redis + "tls_key_file", "/k", "\"/k\"", "[]", "a list is not allowed", "tls_cert_file: /c"},
      {redis + "tls_server_name", "h", "\"h\"", "[]", "a list is not allowed", ""},
      {redis + "tls_insecure_skip_verify", "true", "true", "1", "true or false", "endpoints: [\"rediss://h:1\"]"},
      {cake + "local_hostname", "node1", "\"node1\"", "[]", "a list is not allowed", ""},
      {cake + "metadata_server", "http://m/x", "\"http://m/x\"", "\"\"", "not empty", ""},
      {cake + "master_server_addr", "m:1", "\"m:1\"", "\"\"", "not empty", ""},
      {cake + "protocol", "rdma", "rdma", "udp", "one of tcp, rdma, ub", "device_name: mlx5_0"},
      {cake + "device_name", "mlx5_0", "\"mlx5_0\"", "[]", "a list is not allowed", ""},
      {cake + "global_segment_size", "1GiB", "1073741824", "-5", "-5 is not allowed", ""},
      {cake + "local_buffer_size", "16MiB", "16777216", "1", "1 is not allowed", ""},
      {cake + "replica_num", "1", "1", "0", "an integer from 1 to 16", ""},
      {yuan + "host", "10.0.0.1", "\"10.0.0.1\"", "\"\"", "not empty", ""},
      {yuan + "port", "1234", "1234", "70000", "70000 is not allowed; an integer from 1 to 65535", ""},
      {yuan + "connect_timeout_ms", "10", "10", "0", "an integer from 1 to 60000", ""},
      {yuan + "request_timeout_ms", "10", "10", "0", "an integer from 1 to 60000", ""},
      {lock + "provider", "memory", "memory", "filesystem", "one of memory is expected", ""},
      {lock + "lock_expire_secs", "1.5", "1.5", "0.5", "a number from 1 to 86400 (s)", ""},
      {lock + "lock_timeout_secs", "2", "2", ".inf", ".inf is not allowed", ""},
      {"log.level", "debug", "debug", "loud", "one of debug, info, warn, error, off", ""},
      {"log.file", "/var/log/x", "\"/var/log/x\"", "[]", "a list is not allowed", ""},
      {"log.slow_operation_ms", "100", "100", "-1", "an integer from 0 to 86400000 (ms)", ""},
      {web + "address", "\"[::1]:0\"", "\"[::1]:0\"", "\"localhost\"", "HOST:PORT is expected", ""},
      {web + "insecure", "true", "true", "1", "true or false", ""},
      {web + "tokens_env", "TOKENS", "\"TOKENS\"", "[]", "a list is not allowed", ""},
      {web + "tokens_file", "/run/tokens", "\"/run/tokens\"", "[]", "a list is not allowed", ""},
      {web + "tls_certificate_file", "/c.pem", "\"/c.pem\"", "[]", "a list is not allowed", "tls_key_file: /k.pem"},
      {web + "tls_key_file", "/k.pem", "\"/k.pem\"", "[]", "a list is not allowed", "tls_certificate_file: /c.pem"},
      {web + "access_log", "\"-\"", "\"-\"", "[]", "a list is not allowed", ""},
      {web + "allow_local_mounts", "true", "true", "1", "true or false", ""},
      {web + "io_threads", "2", "2", "65", "an integer from 0 to 64", ""},
      {web + "worker_threads", "4", "4", "0", "an integer from 1 to 256", ""},
      {web + "queue_limit", "10", "10", "0", "an integer from 1 to 100000", ""},
      {web + "max_connections", "10", "10", "0", "an integer from 1 to 100000", ""},
      {web + "max_handles", "10", "10", "0", "an integer from 1 to 1000000", ""},
      {web + "max_request_body_bytes", "1MiB", "1048576", "1", "a size from 1024", ""},
      {web + "max_buffered_bytes", "64MiB", "67108864", "1KiB", "a size from 1048576", ""},
      {web + "max_header_bytes", "8KiB", "8192", "1", "a size from 1024", ""},
      {web + "header_timeout_ms", "100", "100", "1", "an integer from 10", ""},
      {web + "idle_timeout_ms", "100", "100", "1", "an integer from 10", ""},
      {web + "stall_timeout_ms", "100", "100", "1", "an integer from 10", ""},
      {web + "request_timeout_ms", "100", "100", "1", "an integer from 10", ""},
      {web + "drain_timeout_ms", "0", "0", "-1", "an integer from 0", ""},
      {"storage.agfs.mounts[0].path", "/x", "\"/x\"", "x", "an absolute path of the tree", ""},
      {"storage.agfs.mounts[0].type", "memfs", "memfs", "s3", "one of localfs, memfs is expected", ""},
      {"storage.agfs.mounts[0].local_dir", "/srv", "\"/srv\"", "[]", "a list is not allowed", ""},
      {"storage.agfs.mounts[0].sync_writes", "true", "true", "2", "true or false", ""},
      {"storage.agfs.mounts[0].capacity_bytes", "1MiB", "1048576", "12", "a size from 4096", ""},
      {"storage.agfs.mounts[0].max_entries", "10", "10", "0", "an integer from 1", ""},
      {"storage.agfs.mounts[0].cache", "false", "false", "maybe", "true or false", ""},
      {"storage.agfs.mounts[0].cached_walks", "false", "false", "2", "true or false", ""},
      {"storage.agfs.mounts[0].cached_grep", "true", "true", "2", "true or false", ""},
      {"storage.agfs.mounts[0].revalidate_ms", "1000", "1000", "-1", "an integer from 0 to 86400000 (ms)", ""},
      {"storage.agfs.mounts[0].warm", "trust", "trust", "hot", "one of verify, trust", ""},
      {"storage.agfs.cache.state_dir", "/var/x", "\"/var/x\"", "[]", "a list is not allowed", ""},
      {"storage.agfs.cache.shared", "true", "true", "2", "true or false", ""},
      {"storage.agfs.cache.inherited", "discard", "discard", "keep", "one of verify, discard", ""},
  };
  return table;
}

// A document whose only unusual line is `key: value` at `path`; the value stands on line 8 or deeper.
std::string document(const Row& row, const std::string& value) {
  const std::string key = row.path.substr(row.path.rfind('.') + 1);
  const std::string mounts_prefix = "storage.agfs.mounts[0].";
  if (row.path.starts_with(mounts_prefix)) {
    std::string out = "storage:\n  agfs:\n    mounts:\n      - ";
    const bool local = key == "local_dir" || key == "sync_writes";
    out += fmt::format("{}: {}\n", key, value);
    if (key != "path") out += "        path: /m\n";
    if (key != "type") out += local ? "        type: localfs\n" : "        type: memfs\n";
    if (key == "sync_writes") out += "        local_dir: /srv\n";
    return out;
  }
  std::string out;
  size_t indent = 0;
  size_t from = 0;
  for (size_t dot = row.path.find('.'); dot != std::string::npos; from = dot + 1, dot = row.path.find('.', from)) {
    const std::string part = row.path.substr(from, dot - from);
    out += fmt::format("{}{}:\n", std::string(indent, ' '), part);
    indent += 2;
    if (part == "agfs") out += "    mounts: [{path: /m, type: memfs}]\n";
  }
  out += fmt::format("{}{}: {}\n", std::string(indent, ' '), key, value);
  if (!row.beside.empty()) out += fmt::format("{}{}\n", std::string(indent, ' '), row.beside);
  if (!row.path.starts_with("storage.")) out += "storage: {agfs: {mounts: [{path: /m, type: memfs}]}}\n";
  return out;
}

int line_of(const std::string& text, const std::string& needle) {
  const size_t at = text.find(needle);
  return static_cast<int>(std::count(text.begin(), text.begin() + static_cast<long>(at), '\n')) + 1;
}

TEST(ConfigKeys, CoversEveryKey) {
  Config one;
  one.mounts.emplace_back();
  std::set<std::string> known;
  visit_fields(config_section(), &one, "",
               [&](const std::string& path, const Field&, const void*) { known.insert(path); });
  for (const Row& row : rows()) known.erase(row.path);
  EXPECT_TRUE(known.empty()) << "no row for " << *known.begin();
}

TEST(ConfigKeys, AGoodValueArrives) {
  for (const Row& row : rows()) {
    const auto config = parse_config(document(row, row.good), "t.yaml");
    ASSERT_TRUE(config) << row.path << ": " << config.error().message;
    std::string value;
    visit_fields(config_section(), &*config, "", [&](const std::string& path, const Field& field, const void* owner) {
      if (path == row.path) value = field_value_text(field, owner);
    });
    EXPECT_EQ(value, row.arrives) << row.path;
  }
}

TEST(ConfigKeys, ABadValueIsRefusedWithPlaceFieldAndWhatIsAllowed) {
  for (const Row& row : rows()) {
    const std::string text = document(row, row.bad);
    const auto config = parse_config(text, "t.yaml");
    ASSERT_FALSE(config) << row.path;
    EXPECT_EQ(config.error().code, ErrorCode::config);
    const std::string key = row.path.substr(row.path.rfind('.') + 1) + ": ";
    const std::string start = fmt::format("t.yaml:{}: {}: ", line_of(text, key + row.bad), row.path);
    EXPECT_TRUE(config.error().message.starts_with(start)) << config.error().message << "\nexpected " << start;
    EXPECT_NE(config.error().message.find(row.complaint), std::string::npos)
        << config.error().message << "\nexpected " << row.complaint;
  }
}

TEST(ConfigKeys, AMisspeltKeyIsRefusedWithASuggestion) {
  for (const Row& row : rows()) {
    Row wrong = row;
    const std::string key = row.path.substr(row.path.rfind('.') + 1);
    wrong.path += "x";
    const auto config = parse_config(document(wrong, row.good), "t.yaml");
    ASSERT_FALSE(config) << wrong.path;
    const std::string start = fmt::format("{}: unknown key", wrong.path);
    EXPECT_NE(config.error().message.find(start), std::string::npos) << config.error().message;
    if (key.size() > 2) {
      EXPECT_NE(config.error().message.find("did you mean \"" + key + "\"?"), std::string::npos)
          << config.error().message;
    }
  }
}

}  // namespace
}  // namespace ragfs
