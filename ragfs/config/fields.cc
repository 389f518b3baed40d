#include "ragfs/config/fields.h"

#include "ragfs/config/config.h"

namespace ragfs {
namespace {

constexpr double kDay_ms = 86'400'000;
constexpr double kTiB = 1ULL << 40;
constexpr const char* kNoSecret = "secrets are not kept in this file: name an environment variable (";

const Section& mount_fields() {
  static const Section spec{
      "What is shown where in the tree: one entry a mount.",
      {
          field("path", &MountConfig::path)
              .says("Where in the tree; \"/\" for the whole tree.")
              .must_be_given()
              .are_tree_paths(),
          field("type", &MountConfig::type)
              .says("The backend that holds the files.")
              .must_be_given()
              .one_of({"localfs", "memfs"}),
          field("local_dir", &MountConfig::local_dir)
              .says("localfs: the directory of this machine that is shown. It must exist.")
              .is_host_path(),
          field("sync_writes", &MountConfig::sync_writes)
              .says(
                  "localfs: bring every whole-file write to the disk before it is answered, so that a power cut loses "
                  "nothing. Much slower."),
          field("capacity_bytes", &MountConfig::capacity_bytes)
              .says("memfs: bytes of all files and names together.")
              .in("bytes")
              .between(4096, kTiB),
          field("max_entries", &MountConfig::max_entries)
              .says("memfs: most files and directories.")
              .between(1, 1'000'000'000),
          field("cache", &MountConfig::cache).says("Put the cache in front of this mount."),
          field("revalidate_ms", &MountConfig::revalidate_ms)
              .says("Check cached objects older than this against the backend, for directories that others change too. "
                    "0: all changes pass through this process.")
              .in("ms")
              .between(0, kDay_ms),
          field("warm", &MountConfig::warm)
              .says("What earlier runs cached: `verify` compares each file once with the backend's version, in case "
                    "somebody changed it while nothing ran; `trust` serves it as it is.")
              .one_of({"verify", "trust"}),
          field("cached_walks", &MountConfig::cached_walks)
              .says(
                  "`tree` and `glob` walk over cached listings; false: the backend does it. The results are the same."),
          field("cached_grep", &MountConfig::cached_grep)
              .says(
                  "`grep` walks over cached listings and reads files through the cache, for backends where reading is "
                  "slow; false: the backend does it. The results are the same."),
      },
      {}};
  return spec;
}

const Section& negative_fields() {
  static const Section spec{"Remembering for a moment, in this process only, that a file does not exist.",
                            {
                                field("names", &NegativeConfig::names).says("The file names it is done for."),
                                field("ttl_ms", &NegativeConfig::ttl_ms)
                                    .says("For how long; 0 turns it off, else 100 to 1000.")
                                    .in("ms")
                                    .between(0, 1000),
                            },
                            {}};
  return spec;
}

const Section& prefetch_fields() {
  static const Section spec{
      "Reading, beside the readers, what they are about to ask for: the abstracts below a directory that was listed, "
      "the "
      "files that follow on two that were read in a row, what an overview that was read names, the hottest files of a "
      "part of the tree that is entered.",
      {
          field("enabled", &PrefetchSection::enabled).says("Read ahead at all."),
          field("concurrency", &PrefetchSection::concurrency).says("Most reads ahead at once.").between(1, 64),
          field("queue_limit", &PrefetchSection::queue_limit)
              .says("Most tasks that wait; beyond, those that matter least are dropped and counted.")
              .between(1, 65'536),
          field("max_objects", &PrefetchSection::max_objects)
              .says("Most objects that a task reads: a listing makes two tasks, anything else one.")
              .between(4, 16),
          field("cooldown_ms", &PrefetchSection::cooldown_ms)
              .says("How long the same occasion at the same place is passed over.")
              .in("ms")
              .between(1000, 10'000),
          field("bytes_per_second", &PrefetchSection::bytes_per_second)
              .says("Most bytes that are read ahead in a second.")
              .in("bytes")
              .between(4096, kTiB),
          field("busy_reads_per_second", &PrefetchSection::busy_reads_per_second)
              .says("While readers ask more often than this, nothing is read ahead; 0: it never gives way.")
              .between(0, 1'000'000'000),
      },
      {}};
  return spec;
}

const Section& disk_fields() {
  static const Section spec{
      "Local disks behind the memory: what memory evicts is kept there, and all of it over an orderly restart.",
      {
          field("directories", &DiskSection::directories)
              .says("Existing, empty directories, one a disk, for this process alone; none: no disk tier. One that "
                    "cannot be used is left out, and said so.")
              .is_host_path(),
          field("capacity_bytes", &DiskSection::capacity_bytes)
              .says("Disk space of each directory; at least four buckets.")
              .in("bytes")
              .between(1 << 20, 256 * kTiB),
          field("bucket_bytes", &DiskSection::bucket_bytes)
              .says("Objects are written and evicted in files of about this size; none is larger.")
              .in("bytes")
              .between(64 << 10, 1 << 30),
          field("min_free_bytes", &DiskSection::min_free_bytes)
              .says("Free space of the file system that is left to others.")
              .in("bytes")
              .between(0, 256 * kTiB),
          field("admission", &DiskSection::admission)
              .says(
                  "What is written: of what memory evicts that which was used twice, or all; or what is put, at once.")
              .one_of({"second_touch", "all", "on_put"}),
          field("promote_hits", &DiskSection::promote_hits)
              .says("Hits on the disk after which an object goes back to memory; 0: never.")
              .between(0, 255),
          field("queue_bytes", &DiskSection::queue_bytes)
              .says("Memory for what waits to be written to each directory; what does not fit is dropped and counted.")
              .in("bytes")
              .between(1 << 20, kTiB / 1024),
          field("flush_ms", &DiskSection::flush_ms)
              .says("How long an object waits for its bucket to fill.")
              .in("ms")
              .between(1, 600'000),
          field("hang_timeout_ms", &DiskSection::hang_timeout_ms)
              .says("A call on the disk that takes longer suspends the directory until it comes back.")
              .in("ms")
              .between(10, 600'000),
          field("read_threads", &DiskSection::read_threads).says("Reads at once from each directory.").between(1, 256),
          field("direct_io", &DiskSection::direct_io).says("Past the page cache, where the file system can."),
      },
      {}};
  return spec;
}

const Section& embedded_fields() {
  static const Section spec{
      "Provider `embedded`: the cache lives in this process.",
      {
          field("dram_bytes", &EmbeddedSection::dram_bytes)
              .says("Memory for cached objects; 0: 256 MiB, or a quarter of what this process may use (the machine's "
                    "memory, or its control group's limit) where that is less. Else at least 1 MiB.")
              .in("bytes")
              .between(0, kTiB / 2),
          field("max_objects", &EmbeddedSection::max_objects).says("Most objects; 0: as many as fit.").between(0, 1e12),
          field("max_object_bytes", &EmbeddedSection::max_object_bytes)
              .says("Largest object; never more than an eighth of dram_bytes.")
              .in("bytes")
              .between(1024, 1 << 30),
          field("shards", &EmbeddedSection::shards)
              .says("Parts with a lock of their own, a power of two; 0: by memory "
                    "and CPUs.")
              .between(0, 256),
          field("account_share_percent", &EmbeddedSection::account_share_percent)
              .says("Part of a full memory that one account (the first directory below its mount) may take from "
                    "others; above it, its new objects push out its own. 100: no limit.")
              .between(1, 100),
          section("disk", &EmbeddedSection::disk, disk_fields()),
      },
      {}};
  return spec;
}

const Section& redis_fields() {
  static const Section spec{
      "Provider `redis`.",
      {
          field("mode", &RedisSection::mode)
              .says("How the servers are arranged.")
              .one_of({"standalone", "sentinel", "cluster"}),
          field("endpoints", &RedisSection::endpoints)
              .says("Servers (sentinel: the Sentinels; cluster: some nodes): redis://HOST:PORT, rediss:// with TLS, or "
                    "unix:///PATH."),
          field("username", &RedisSection::username).says("ACL user; empty for none."),
          field("password_env", &RedisSection::password_env)
              .says("Name of the environment variable that holds the password."),
          field("password_file", &RedisSection::password_file).says("File that holds the password.").is_host_path(),
          field("master_name", &RedisSection::master_name).says("sentinel: the name of the primary."),
          field("sentinel_username", &RedisSection::sentinel_username).says("ACL user at the Sentinels."),
          field("sentinel_password_env", &RedisSection::sentinel_password_env)
              .says("Environment variable with the Sentinels' password."),
          field("sentinel_password_file", &RedisSection::sentinel_password_file)
              .says("File with the Sentinels' password.")
              .is_host_path(),
          field("db", &RedisSection::db).says("Database number; 0 in a cluster.").between(0, 1023),
          field("key_prefix", &RedisSection::key_prefix).says("Before every key, with a colon between."),
          field("hash_tag", &RedisSection::hash_tag)
              .says("cluster: all keys in the one slot of this text, which atomic puts need; empty spreads them."),
          field("pool_size", &RedisSection::pool_size)
              .says("Most connections to one server. They are opened as they are needed, and shared.")
              .between(1, 1024),
          field("connect_timeout_ms", &RedisSection::connect_timeout_ms)
              .says("Longest time to open a connection: look-up, connect, TLS and log-in together. A call never waits "
                    "longer than its own time.")
              .in("ms")
              .between(1, 60'000),
          field("max_batch_keys", &RedisSection::max_batch_keys)
              .says("Most keys of one MGET or pipeline.")
              .between(1, 100'000),
          field("max_batch_bytes", &RedisSection::max_batch_bytes)
              .says("A pipeline is sent when its commands reach this.")
              .in("bytes")
              .between(1024, 1 << 30),
          field("read_from_replica", &RedisSection::read_from_replica)
              .says(
                  "Read from replicas, which may be late: every deletion is then remembered until what it deleted has "
                  "expired. Not in a cluster."),
          field("wait_replicas", &RedisSection::wait_replicas)
              .says("A write is confirmed when so many replicas have it (WAIT); 0: none.")
              .between(0, 100),
          field("wait_aof", &RedisSection::wait_aof)
              .says("A write is confirmed when it is in the append-only file of the primary, and of wait_replicas "
                    "replicas (WAITAOF; Valkey, or Redis since 7.2)."),
          field("wait_timeout_ms", &RedisSection::wait_timeout_ms)
              .says("Longest wait for them.")
              .in("ms")
              .between(1, 60'000),
          field("tls_ca_file", &RedisSection::tls_ca_file)
              .says("rediss://: certificates of the authorities to trust; empty: those of this machine.")
              .is_host_path(),
          field("tls_cert_file", &RedisSection::tls_cert_file)
              .says("rediss://: certificate of this client, where the server wants one.")
              .is_host_path(),
          field("tls_key_file", &RedisSection::tls_key_file).says("rediss://: its key.").is_host_path(),
          field("tls_server_name", &RedisSection::tls_server_name)
              .says("rediss://: the name that the server's certificate must have; empty: the endpoint's host."),
          field("tls_insecure_skip_verify", &RedisSection::tls_insecure_skip_verify)
              .says("Do not check the server's certificate. For tests."),
      },
      {{"password", std::string(kNoSecret) + "password_env) or a file (password_file)"},
       {"sentinel_password", std::string(kNoSecret) + "sentinel_password_env) or a file (sentinel_password_file)"}}};
  return spec;
}

const Section& mooncake_fields() {
  static const Section spec{
      "Provider `mooncake`: a Mooncake Store.",
      {
          field("local_hostname", &MooncakeSection::local_hostname).says("Name of this machine in the cluster."),
          field("metadata_server", &MooncakeSection::metadata_server)
              .says("Address of the metadata server.")
              .not_empty(),
          field("master_server_addr", &MooncakeSection::master_server_addr)
              .says("host:port of the master.")
              .not_empty(),
          field("protocol", &MooncakeSection::protocol)
              .says("Transport; rdma and ub need a device, tcp is never used "
                    "in their place.")
              .one_of({"tcp", "rdma", "ub"}),
          field("device_name", &MooncakeSection::device_name).says("rdma, ub: the device."),
          field("global_segment_size", &MooncakeSection::global_segment_size)
              .says("Memory that this process gives to the store.")
              .in("bytes")
              .between(0, kTiB),
          field("local_buffer_size", &MooncakeSection::local_buffer_size)
              .says("Memory for transfers.")
              .in("bytes")
              .between(1 << 20, kTiB),
          field("replica_num", &MooncakeSection::replica_num).says("Copies of an object.").between(1, 16),
      },
      {}};
  return spec;
}

const Section& yuanrong_fields() {
  static const Section spec{"Provider `yuanrong`: an openYuanrong DataSystem worker.",
                            {
                                field("host", &YuanrongSection::host).says("Address of the worker.").not_empty(),
                                field("port", &YuanrongSection::port).says("Its port.").between(1, 65535),
                                field("connect_timeout_ms", &YuanrongSection::connect_timeout_ms)
                                    .says("Longest wait for a connection.")
                                    .in("ms")
                                    .between(1, 60'000),
                                field("request_timeout_ms", &YuanrongSection::request_timeout_ms)
                                    .says("Longest wait of the SDK for one request.")
                                    .in("ms")
                                    .between(1, 60'000),
                            },
                            {}};
  return spec;
}

std::vector<Field> cache_limits() {
  return {
      field("max_file_size_bytes", &CacheConfig::max_file_size_bytes)
          .says("Larger files are not cached.")
          .in("bytes")
          .between(1, 1ULL << 30),
      field("max_listing_bytes", &CacheConfig::max_listing_bytes)
          .says("Larger directory listings (packed; about 64 bytes an entry) are not cached.")
          .in("bytes")
          .between(1, 1ULL << 30),
      field("near_cache_bytes", &CacheConfig::near_cache_bytes)
          .says("Memory of this process for objects of a remote provider: a hit in it takes no round trip; 0: none.")
          .in("bytes")
          .between(0, kTiB / 2),
      field("default_ttl_seconds", &CacheConfig::default_ttl_seconds)
          .says("Cached objects expire after this; 0: never by time.")
          .in("s")
          .between(0, 315'360'000),
      field("verify_dram", &CacheConfig::verify_dram)
          .says("Check the checksum of hits in memory: never, 1 of 1024, or always. What comes from a disk or the "
                "network is always checked.")
          .one_of({"off", "sample", "always"}),
      field("verify_sample", &CacheConfig::verify_sample)
          .says("Compare 1 in so many hits of files with the backend, count those that are wrong and serve them anew; "
                "0: none. Not where `revalidate_ms` or `shared` says that others change the files.")
          .between(0, 1'000'000'000),
  };
}

std::vector<Field> cache_policy() {
  return {
      field("write_admission", &CacheConfig::write_admission)
          .says("Which written files are cached at once: `all`, or `read_before`: those that this process has read, so "
                "that an import leaves no trace. preferred_names always are.")
          .one_of({"all", "read_before"}),
      field("cacheable_prefixes", &CacheConfig::cacheable_prefixes)
          .says("Only these paths are cached, with all below them; none: everything that no other key excludes.")
          .are_tree_paths(),
      field("bypass_prefixes", &CacheConfig::bypass_prefixes)
          .says("Paths that are never cached, with all below them.")
          .are_tree_paths(),
      field("bypass_globs", &CacheConfig::bypass_globs)
          .says("Patterns of absolute paths that are never cached (* within a name, ** across names)."),
      field("permission_dependent_prefixes", &CacheConfig::permission_dependent_prefixes)
          .says("Paths where the backend answers each caller differently: never cached.")
          .are_tree_paths(),
      field("negative_only_prefixes", &CacheConfig::negative_only_prefixes)
          .says("Paths of which nothing is cached but that a file does not exist, whatever its name, for "
                "negative.ttl_ms.")
          .are_tree_paths(),
      field("no_prefetch_prefixes", &CacheConfig::no_prefetch_prefixes)
          .says("Paths that are never read ahead: sensitive or changing all the time.")
          .are_tree_paths(),
      field("preferred_names", &CacheConfig::preferred_names)
          .says("File names that stay longest when memory is short; listings always do."),
      section("negative", &CacheConfig::negative, negative_fields()),
      section("prefetch", &CacheConfig::prefetch, prefetch_fields()),
      field("hot_keys", &CacheConfig::hot_keys)
          .says(
              "Note which files and listings are read most: `ragfs cache top`, `cache warm`, and in state_dir for the "
              "next run."),
      field("warm_on_start", &CacheConfig::warm_on_start)
          .says(
              "Read what the last run read most as soon as a mount is there, beside the readers and within the limits "
              "of `prefetch`."),
  };
}

const Section& cache_fields() {
  static const Section spec = [] {
    Section s;
    s.meaning = "The cache between the tree and its backends.";
    s.fields = {
        field("enabled", &CacheConfig::enabled).says("Use a cache at all."),
        field("provider", &CacheConfig::provider)
            .says("Where cached objects are kept; `disabled`: nowhere, as with enabled: false.")
            .one_of({"embedded", "redis", "mooncake", "yuanrong", "disabled"}),
        field("failure_mode", &CacheConfig::failure_mode)
            .says("When the provider fails: `bypass` goes on without it, `strict` answers an error.")
            .one_of({"bypass", "strict"}),
        field("operation_timeout_ms", &CacheConfig::operation_timeout_ms)
            .says("Longest wait for one call to the provider. Default: 50; redis: 20.")
            .in("ms")
            .between(1, 60'000),
        field("sdk_concurrency", &CacheConfig::sdk_concurrency)
            .says("Most calls at once into a provider's SDK.")
            .between(1, 1024),
        field("namespace", &CacheConfig::name_space)
            .says("Keeps deployments that share a provider apart. One writing process a namespace.")
            .not_empty(),
        field("state_dir", &CacheConfig::state_dir)
            .says("Where this machine remembers which run changed files last, and locks; not below a directory that is "
                  "shown. Empty: $XDG_STATE_HOME/ragfs/NAMESPACE.")
            .is_host_path(),
        field("shared", &CacheConfig::shared)
            .says("Other processes of this machine cache and write the same files: each file is compared with the "
                  "backend's version at every read."),
        field("inherited", &CacheConfig::inherited)
            .says("Objects from before an interruption: `verify` compares each file once with the backend's version, "
                  "`discard` reads it anew.")
            .one_of({"verify", "discard"}),
    };
    for (Field& f : cache_limits()) s.fields.push_back(std::move(f));
    for (Field& f : cache_policy()) s.fields.push_back(std::move(f));
    s.fields.push_back(section("embedded", &CacheConfig::embedded, embedded_fields()));
    s.fields.push_back(section("redis", &CacheConfig::redis, redis_fields()));
    s.fields.push_back(section("mooncake", &CacheConfig::mooncake, mooncake_fields()));
    s.fields.push_back(section("yuanrong", &CacheConfig::yuanrong, yuanrong_fields()));
    return s;
  }();
  return spec;
}

const Section& pathlock_fields() {
  static const Section spec{"Locks on paths that users of the tree see.",
                            {
                                field("provider", &PathLockConfig::provider)
                                    .says("Where locks are kept: in this process.")
                                    .one_of({"memory"}),
                                field("lock_expire_secs", &PathLockConfig::lock_expire_secs)
                                    .says("A lease that is not refreshed for this long is void.")
                                    .in("s")
                                    .between(1, 86'400),
                                field("lock_timeout_secs", &PathLockConfig::lock_timeout_secs)
                                    .says("How long an operation waits for a lock; 0: not at all.")
                                    .in("s")
                                    .between(0, 86'400),
                            },
                            {}};
  return spec;
}

const Section& log_fields() {
  static const Section spec{
      "What the program tells its operator.",
      {
          field("level", &LogConfig::level)
              .says("The least important lines that are written.")
              .one_of({"debug", "info", "warn", "error", "off"})
              .changes_live(),
          field("file", &LogConfig::file).says("Where to; empty: standard error.").is_host_path().changes_live(),
          field("slow_operation_ms", &LogConfig::slow_operation_ms)
              .says("Calls to a backend that take this long are told, at most 20 lines a second; 0: none.")
              .in("ms")
              .between(0, kDay_ms)
              .changes_live(),
      },
      {}};
  return spec;
}

const Section& server_fields() {
  static const Section spec{
      "The HTTP server of `ragfs serve`.",
      {
          field("address", &ServerConfig::address)
              .says("HOST:PORT to listen at; port 0: any free one. Anything but loopback needs tokens and TLS.")
              .not_empty(),
          field("insecure", &ServerConfig::insecure).says("Listen anywhere without tokens or TLS all the same."),
          field("tokens_env", &ServerConfig::tokens_env)
              .says("Name of the environment variable that holds the bearer tokens (docs/http.md has the form)."),
          field("tokens_file", &ServerConfig::tokens_file).says("File that holds the bearer tokens.").is_host_path(),
          field("tls_certificate_file", &ServerConfig::tls_certificate_file)
              .says("Certificate with its chain, PEM; empty: no TLS.")
              .is_host_path(),
          field("tls_key_file", &ServerConfig::tls_key_file).says("Its private key, PEM.").is_host_path(),
          field("access_log", &ServerConfig::access_log)
              .says("A JSON line for each request goes to this file; \"-\": standard error; empty: none.")
              .is_host_path(),
          field("allow_local_mounts", &ServerConfig::allow_local_mounts)
              .says("POST /mount may show any directory of this machine."),
          field("io_threads", &ServerConfig::io_threads)
              .says("Threads that serve connections; 0: one per CPU, at most 8.")
              .between(0, 64),
          field("worker_threads", &ServerConfig::worker_threads).says("Threads that do file work.").between(1, 256),
          field("queue_limit", &ServerConfig::queue_limit)
              .says("Requests that may wait for a worker; one more is answered 503.")
              .between(1, 100'000),
          field("max_connections", &ServerConfig::max_connections)
              .says("Open connections; one more is answered 503.")
              .between(1, 100'000),
          field("max_handles", &ServerConfig::max_handles).says("Open file handles.").between(1, 1'000'000),
          field("max_request_body_bytes", &ServerConfig::max_request_body_bytes)
              .says("Largest body of a request, which is the largest file that can be written whole.")
              .in("bytes")
              .between(1024, 1ULL << 32),
          field("max_buffered_bytes", &ServerConfig::max_buffered_bytes)
              .says("Bodies of all requests in memory together; one more is answered 503.")
              .in("bytes")
              .between(1 << 20, kTiB / 2),
          field("max_header_bytes", &ServerConfig::max_header_bytes)
              .says("Request line and header lines of a request together.")
              .in("bytes")
              .between(1024, 1 << 20),
          field("header_timeout_ms", &ServerConfig::header_timeout_ms)
              .says("From a request's first byte to the end of its header.")
              .in("ms")
              .between(10, kDay_ms),
          field("idle_timeout_ms", &ServerConfig::idle_timeout_ms)
              .says("A connection without a request is closed after this.")
              .in("ms")
              .between(10, kDay_ms),
          field("stall_timeout_ms", &ServerConfig::stall_timeout_ms)
              .says("A client that neither sends nor takes a byte for this long is dropped.")
              .in("ms")
              .between(10, kDay_ms),
          field("request_timeout_ms", &ServerConfig::request_timeout_ms)
              .says("Longest wait of one request for locks, the cache and the backend.")
              .in("ms")
              .between(10, kDay_ms),
          field("drain_timeout_ms", &ServerConfig::drain_timeout_ms)
              .says("After SIGTERM: what requests in flight get to end in.")
              .in("ms")
              .between(0, kDay_ms),
      },
      {{"tokens", std::string(kNoSecret) + "tokens_env) or a file (tokens_file)"}}};
  return spec;
}

const Section& agfs_fields() {
  static const Section spec{"The file system.",
                            {
                                section_list("mounts", &Config::mounts, mount_fields()),
                                section("cache", &Config::cache, cache_fields()),
                                section("pathlock", &Config::pathlock, pathlock_fields()),
                            },
                            {}};
  return spec;
}

const Section& storage_fields() {
  static const Section spec{"Storage.", {group("agfs", agfs_fields())}, {}};
  return spec;
}

}  // namespace

const Section& config_section() {
  static const Section spec{"RAGFS configuration.",
                            {group("storage", storage_fields()), section("log", &Config::log, log_fields()),
                             section("server", &Config::server, server_fields())},
                            {}};
  return spec;
}

}  // namespace ragfs
