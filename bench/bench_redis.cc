// A hit in Redis beside a bare hiredis GET loop of the same size, latency and hits/s by threads; batches; Unix socket.
//
// Starts a redis-server of its own on a free loopback port. The ratio compares what a reader of the provider waits with
// what the bare loop waits, in one run, both reading the value's first byte.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <hiredis/hiredis.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <thread>

#include "bench/support.h"
#include "ragfs/backends/mem/mem_file_system.h"
#include "ragfs/cache/cached_file_system.h"
#include "ragfs/providers/embedded/embedded_provider.h"
#include "ragfs/providers/redis/redis_provider.h"

namespace ragfs::bench {
namespace {

constexpr size_t kValueBytes = 4096;
constexpr int kKeys = 1'000;

uint16_t free_port() {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  (void)::bind(fd, reinterpret_cast<sockaddr*>(&address), size);
  (void)::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  ::close(fd);
  return ntohs(address.sin_port);
}

// A redis-server in a directory of its own; ended with the object.
class Server {
 public:
  Server() : port_(free_port()) {
    std::string pattern = (std::filesystem::temp_directory_path() / "ragfs_bench_XXXXXX").string();
    dir_ = ::mkdtemp(pattern.data());
    const std::string port = std::to_string(port_);
    const std::string path = socket();
    pid_ = ::fork();
    if (pid_ == 0) {
      ::execlp("redis-server", "redis-server", "--port", port.c_str(), "--bind", "127.0.0.1", "--dir", dir_.c_str(),
               "--unixsocket", path.c_str(), "--save", "", "--loglevel", "warning", nullptr);
      ::_exit(127);
    }
  }
  ~Server() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    std::error_code ignored;
    std::filesystem::remove_all(dir_, ignored);
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  uint16_t port() const { return port_; }
  std::string socket() const { return dir_ + "/s"; }

 private:
  uint16_t port_;
  std::string dir_;
  pid_t pid_ = 0;
};

CacheKey key_of(int i) { return CacheKey(fmt::format("file:bench:acc:{:032x}", i)); }

std::shared_ptr<redis::RedisProvider> provider_at(const std::string& endpoint) {
  redis::RedisConfig config;
  config.endpoints = {redis::Endpoint::parse(endpoint).value()};
  config.key_prefix = "b";
  return redis::RedisProvider::create(std::move(config)).value();
}

Deadline soon() { return Deadline::in_ms(5'000); }

[[noreturn]] void give_up(std::string_view why) {
  fmt::print(stderr, "bench redis: {}\n", why);
  std::exit(1);
}

// Median microseconds of one provider get.
double provider_get_us(redis::RedisProvider& provider, int gets) {
  std::vector<double> samples;
  for (int i = 0; i < gets; ++i) {
    const CacheKey key = key_of(i % kKeys);
    const int64_t start_ns = now_ns();
    const GetResult got = provider.get(key, soon());
    if (!got || !got->has_value()) give_up("a value is missing");
    keep((*got)->data()[0]);
    samples.push_back(static_cast<double>(now_ns() - start_ns) / 1e3);
  }
  return median(samples);
}

double bare_get_us(redisContext* connection, int gets) {
  std::vector<double> samples;
  for (int i = 0; i < gets; ++i) {
    const std::string key = fmt::format("b:{}", key_of(i % kKeys).text());
    const int64_t start_ns = now_ns();
    auto* reply = static_cast<redisReply*>(redisCommand(connection, "GET %b", key.data(), key.size()));
    if (reply == nullptr || reply->type != REDIS_REPLY_STRING) give_up("hiredis got no value");
    keep(reply->str[0]);
    freeReplyObject(reply);
    samples.push_back(static_cast<double>(now_ns() - start_ns) / 1e3);
  }
  return median(samples);
}

double provider_hits_per_s(redis::RedisProvider& provider, int threads, int64_t run_ms) {
  std::atomic<uint64_t> hits{0};
  const int64_t end_ns = now_ns() + run_ms * 1'000'000;
  {
    std::vector<std::jthread> readers;
    for (int t = 0; t < threads; ++t) {
      readers.emplace_back([&, t] {
        pin_thread_to_nth(static_cast<size_t>(t) % cpu_count());
        uint64_t mine = 0;
        for (int i = t * 37; now_ns() < end_ns; ++i) {
          const GetResult got = provider.get(key_of(i % kKeys), soon());
          if (!got || !got->has_value()) give_up("a value is missing");
          keep((*got)->data()[0]);
          ++mine;
        }
        hits += mine;
      });
    }
  }
  return static_cast<double>(hits) * 1e3 / static_cast<double>(run_ms);
}

double bare_hits_per_s(const Server& server, int threads, int64_t run_ms) {
  std::atomic<uint64_t> hits{0};
  const int64_t end_ns = now_ns() + run_ms * 1'000'000;
  {
    std::vector<std::jthread> readers;
    for (int t = 0; t < threads; ++t) {
      readers.emplace_back([&, t] {
        pin_thread_to_nth(static_cast<size_t>(t) % cpu_count());
        redisContext* connection = redisConnect("127.0.0.1", server.port());
        uint64_t mine = 0;
        for (int i = t * 37; now_ns() < end_ns; ++i) {
          const std::string key = fmt::format("b:{}", key_of(i % kKeys).text());
          auto* reply = static_cast<redisReply*>(redisCommand(connection, "GET %b", key.data(), key.size()));
          if (reply == nullptr) give_up("hiredis got no answer");
          keep(reply->str[0]);
          freeReplyObject(reply);
          ++mine;
        }
        hits += mine;
        redisFree(connection);
      });
    }
  }
  return static_cast<double>(hits) * 1e3 / static_cast<double>(run_ms);
}

double get_many_us(redis::RedisProvider& provider, int count, int rounds) {
  std::vector<CacheKey> keys;
  for (int i = 0; i < count; ++i) keys.push_back(key_of(i));
  std::vector<double> samples;
  for (int round = 0; round < rounds; ++round) {
    const int64_t start_ns = now_ns();
    const auto got = provider.get_many(keys, soon());
    samples.push_back(static_cast<double>(now_ns() - start_ns) / 1e3);
    if (!got.back() || !got.back()->has_value()) give_up("a value is missing");
  }
  return median(samples);
}

// One MGET of as many keys by hiredis.
double bare_mget_us(redisContext* connection, int count, int rounds) {
  std::vector<std::string> words = {"MGET"};
  for (int i = 0; i < count; ++i) words.push_back(fmt::format("b:{}", key_of(i).text()));
  std::vector<const char*> texts;
  std::vector<size_t> sizes;
  for (const std::string& word : words) {
    texts.push_back(word.data());
    sizes.push_back(word.size());
  }
  std::vector<double> samples;
  for (int round = 0; round < rounds; ++round) {
    const int64_t start_ns = now_ns();
    void* reply = redisCommandArgv(connection, static_cast<int>(texts.size()), texts.data(), sizes.data());
    samples.push_back(static_cast<double>(now_ns() - start_ns) / 1e3);
    if (reply == nullptr) give_up("hiredis got no answer");
    freeReplyObject(reply);
  }
  return median(samples);
}

// Cached files in front of a memfs: over Redis with a near tier, or over the embedded provider.
struct CachedFiles {
  CachedFiles(std::shared_ptr<CacheProvider> provider, std::shared_ptr<CacheProvider> near) {
    const auto backend = std::shared_ptr<FileSystem>(MemFileSystem::open({}).value());
    DomainStart start;
    start.near = std::move(near);
    domain = std::make_shared<CoherenceDomain>(CoherenceConfig{}, std::move(provider), Clock::system(), start);
    files = std::make_shared<CachedFileSystem>(backend, domain, CachedMountConfig{});
    const std::string value(kValueBytes, 'v');
    for (int i = 0; i < kKeys; ++i) {
      paths.push_back(*Path::parse(fmt::format("/f{}", i)));
      if (!files->write(Context(), paths.back(), value, 0, WriteFlag::create)) give_up("a file cannot be written");
    }
    (void)hit_ns(kKeys);  // all of them are in memory now
  }
  // Mean nanoseconds of a read.
  double hit_ns(int reads) const {
    const Context ctx;
    const int64_t start_ns = now_ns();
    for (int i = 0; i < reads; ++i) {
      const auto got = files->read(ctx, paths[static_cast<size_t>(i % kKeys)], 0, 0);
      if (!got) give_up("a file cannot be read");
      keep(got->data()[0]);
    }
    return static_cast<double>(now_ns() - start_ns) / reads;
  }
  std::vector<Path> paths;
  std::shared_ptr<CoherenceDomain> domain;
  std::shared_ptr<CachedFileSystem> files;
};

// A hit in the near tier beside one in the embedded provider, both by a read of a cached file.
void measure_near(Report& report, const std::shared_ptr<CacheProvider>& redis, int passes, int reads) {
  constexpr uint64_t kNearBytes = uint64_t{64} << 20;
  const auto memory = [] {
    return std::shared_ptr<CacheProvider>(EmbeddedProvider::create({.dram_bytes = kNearBytes}).value());
  };
  const CachedFiles over_redis(redis, memory());
  const CachedFiles embedded(memory(), nullptr);
  const auto sides =
      alternate(passes, {[&] { return embedded.hit_ns(reads); }, [&] { return over_redis.hit_ns(reads); }});
  report.add("embedded_hit_ns", median(sides[0]));
  report.add("near_hit_ns", median(sides[1]));
  report.add("near_ratio", median_ratio(sides[0], sides[1]));
}

// Requests a second of redis-benchmark: one connection, and fifty; 0 where it does not run.
double redis_benchmark_per_s(const Server& server, int clients, int requests) {
  const std::string command =
      fmt::format("redis-benchmark -p {} -c {} -n {} -d {} -r 1000 -t get --csv 2>/dev/null | tail -1", server.port(),
                  clients, requests, kValueBytes);
  FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return 0;
  char line[512] = {};
  const bool read = std::fgets(line, sizeof line, pipe) != nullptr;
  ::pclose(pipe);
  const char* comma = read ? std::strchr(line, ',') : nullptr;
  return comma == nullptr ? 0 : std::atof(comma + 2);  // "GET","12345.67",...
}

// A hit through the Python modules with Redis, the original's and ours; what this machine lacks is left out.
void measure_modules(Report& report, const Server& server, int rounds) {
  const std::string command = fmt::format("python3 bench/redis_modules.py {} {}", server.port(), rounds);
  FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return;
  char name[64] = {};
  double value_us = 0;
  while (std::fscanf(pipe, "%63s %lf", name, &value_us) == 2) report.add(name, value_us);
  ::pclose(pipe);
}

int run(int argc, char** argv) {
  const Options options = start(argc, argv);
  const Server server;
  const auto tcp = provider_at(fmt::format("redis://127.0.0.1:{}", server.port()));
  const Deadline up = Deadline::in_ms(10'000);
  while (!tcp->health(soon())) {
    if (up.expired()) give_up("redis-server does not start");
  }
  const auto unix_socket = provider_at("unix://" + server.socket());
  const std::string value(kValueBytes, 'v');
  for (int i = 0; i < kKeys; ++i) {
    if (!tcp->put(key_of(i), {"", value}, {}, soon())) give_up("a put failed");
  }
  redisContext* bare = redisConnect("127.0.0.1", server.port());
  redisContext* bare_unix = redisConnectUnix(server.socket().c_str());
  const int gets = options.quick ? 4'000 : 20'000;
  const int passes = options.quick ? 5 : 11;
  const auto sides = alternate(
      passes, {[&] { return bare_get_us(bare, gets); }, [&] { return provider_get_us(*tcp, gets); },
               [&] { return bare_get_us(bare_unix, gets); }, [&] { return provider_get_us(*unix_socket, gets); }});
  Report report("redis");
  report.add("value_bytes", static_cast<double>(kValueBytes));
  report.add("bare_p50_us", median(sides[0]));
  report.add("hit_p50_us", median(sides[1]));
  report.add("ratio_p50", median_ratio(sides[0], sides[1]));
  report.add("unix_bare_p50_us", median(sides[2]));
  report.add("unix_hit_p50_us", median(sides[3]));
  report.add("unix_ratio_p50", median_ratio(sides[2], sides[3]));
  const int64_t run_ms = options.quick ? 500 : 3'000;
  for (const int threads : {1, 2, 16, 64}) {
    report.add(fmt::format("bare_per_s_{}", threads), bare_hits_per_s(server, threads, run_ms));
    report.add(fmt::format("hits_per_s_{}", threads), provider_hits_per_s(*tcp, threads, run_ms));
  }
  report.add("redis_benchmark_per_s_1", redis_benchmark_per_s(server, 1, options.quick ? 10'000 : 100'000));
  report.add("redis_benchmark_per_s_50", redis_benchmark_per_s(server, 50, options.quick ? 50'000 : 500'000));
  for (const int count : {64, 1'000}) {
    const int rounds = (options.quick ? 5'000 : 50'000) / count;
    const auto batches = alternate(
        3, {[&] { return bare_mget_us(bare, count, rounds); }, [&] { return get_many_us(*tcp, count, rounds); }});
    report.add(fmt::format("bare_mget_{}_us", count), median(batches[0]));
    report.add(fmt::format("get_many_{}_us", count), median(batches[1]));
  }
  report.add("connections", static_cast<double>(tcp->stats().read(redis::Event::connects)));
  measure_near(report, tcp, passes, options.quick ? 300'000 : 2'000'000);
  measure_modules(report, server, options.quick ? 1 : 5);
  redisFree(bare);
  redisFree(bare_unix);
  report.print();
  return 0;
}

}  // namespace
}  // namespace ragfs::bench

int main(int argc, char** argv) { return ragfs::bench::run(argc, argv); }
