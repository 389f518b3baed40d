// MemoryTier hits beside RocksDB's HyperClockCache: Zipf 1.0 over 65,536 values of 4 KiB.
//
// Both sides look the same 16-byte keys up in the same order, hash them themselves, read the value's first byte and let
// go. Then the same on two threads, and ours with keys as long as the cache's own.
#include <fmt/format.h>
#include <rocksdb/cache.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>

#include "bench/support.h"
#include "ragfs/base/hash.h"
#include "ragfs/store/memory/memory_tier.h"

namespace ragfs::bench {
namespace {

constexpr uint32_t kItems = 65'536;
constexpr size_t kValueBytes = 4096;
constexpr size_t kShortKeyBytes = 16;
constexpr size_t kLongKeyBytes = 57;  // "file:namespace:account:" and 32 hex digits

using Draws = std::vector<uint32_t>;

struct Keys {
  explicit Keys(size_t key_bytes_in) : key_bytes(key_bytes_in), text(kItems * key_bytes_in, 'k') {
    for (uint32_t i = 0; i < kItems; ++i) {
      const std::string tail = fmt::format("{:016x}", mix64(i));
      std::memcpy(&text[(i + 1) * key_bytes - kShortKeyBytes], tail.data(), kShortKeyBytes);
    }
  }
  std::string_view operator[](uint32_t i) const { return {&text[i * key_bytes], key_bytes}; }
  size_t key_bytes;
  std::string text;
};

[[noreturn]] void die(std::string_view what) {
  fmt::print(stderr, "bench_store_hit: {}\n", what);
  std::exit(1);
}

class Ours {
 public:
  explicit Ours(const Keys& keys) : keys_(keys) {
    auto tier = MemoryTier::create({.capacity_bytes = uint64_t{512} << 20});
    if (!tier) die(tier.error().text());
    tier_ = std::move(*tier);
    const std::string value(kValueBytes, 'v');
    for (uint32_t i = 0; i < kItems; ++i) {
      if (!tier_->put({.key = keys[i], .hash = hash64(keys[i]), .head = value, .tail = ""})) die("a put failed");
    }
  }
  void run(const Draws& draws) const {
    uint64_t sum = 0;
    for (const uint32_t draw : draws) {
      const std::string_view key = keys_[draw];
      const std::optional<Bytes> found = tier_->get(key, hash64(key));
      if (!found) die("a miss");
      sum += static_cast<unsigned char>(*found->data());
    }
    keep(sum);
  }

 private:
  const Keys& keys_;
  std::unique_ptr<MemoryTier> tier_;
};

class Theirs {
 public:
  explicit Theirs(const Keys& keys) : keys_(keys) {
    cache_ = rocksdb::HyperClockCacheOptions(size_t{512} << 20, kValueBytes + 256).MakeSharedCache();
    const auto free_value = [](const rocksdb::Slice&, void* value) { std::free(value); };
    for (uint32_t i = 0; i < kItems; ++i) {
      void* value = std::malloc(kValueBytes);
      std::memset(value, 'v', kValueBytes);
      if (!cache_->Insert(slice(i), value, kValueBytes, free_value).ok()) die("an insert failed");
    }
  }
  void run(const Draws& draws) const {
    uint64_t sum = 0;
    for (const uint32_t draw : draws) {
      rocksdb::Cache::Handle* handle = cache_->Lookup(slice(draw));
      if (handle == nullptr) die("a miss of theirs");
      sum += *static_cast<unsigned char*>(cache_->Value(handle));
      cache_->Release(handle);
    }
    keep(sum);
  }

 private:
  rocksdb::Slice slice(uint32_t i) const { return {keys_[i].data(), keys_[i].size()}; }
  const Keys& keys_;
  std::shared_ptr<rocksdb::Cache> cache_;
};

template <typename Cache>
double ns_per_hit(const Cache& cache, const Draws& draws) {
  const int64_t start = now_ns();
  cache.run(draws);
  return static_cast<double>(now_ns() - start) / static_cast<double>(draws.size());
}

// Hits a second of two threads together, each with its own draws.
template <typename Cache>
double hits_per_s_2(const Cache& cache, const std::array<Draws, 2>& draws) {
  std::atomic<int> ready{0};
  std::array<int64_t, 2> took{};
  {
    std::vector<std::jthread> threads;
    for (size_t t = 0; t < 2; ++t) {
      threads.emplace_back([&, t] {
        pin_thread_to_nth(t);
        ++ready;
        while (ready.load() < 2) {
        }
        const int64_t start = now_ns();
        cache.run(draws[t]);
        took[t] = now_ns() - start;
      });
    }
  }
  double rate = 0;
  for (size_t t = 0; t < 2; ++t) rate += static_cast<double>(draws[t].size()) * 1e9 / static_cast<double>(took[t]);
  return rate;
}

int run(int argc, char** argv) {
  const Options options = start(argc, argv);
  const int passes = options.quick ? 7 : 31;
  const size_t draws_per_pass = options.quick ? 500'000 : 2'000'000;
  const Keys keys(kShortKeyBytes);
  const Keys long_keys(kLongKeyBytes);
  const Ours ours(keys);
  const Ours ours_long(long_keys);
  const Theirs theirs(keys);
  const std::array<Draws, 2> draws{zipf_draws(kItems, 1.0, draws_per_pass, 1),
                                   zipf_draws(kItems, 1.0, draws_per_pass, 2)};

  const auto single =
      alternate(passes, {[&] { return ns_per_hit(theirs, draws[0]); }, [&] { return ns_per_hit(ours, draws[0]); },
                         [&] { return ns_per_hit(ours_long, draws[0]); }});
  const auto two =
      alternate(passes, {[&] { return hits_per_s_2(theirs, draws); }, [&] { return hits_per_s_2(ours, draws); }});
  Report report("store_hit");
  report.add("hyper_clock_ns", median(single[0]));
  report.add("hit_ns", median(single[1]));
  report.add("ratio", median_ratio(single[0], single[1]));
  report.add("hit_long_key_ns", median(single[2]));
  report.add("ratio_long_key", median_ratio(single[0], single[2]));
  report.add("hyper_clock_hits_per_s_2", median(two[0]));
  report.add("hits_per_s_2", median(two[1]));
  report.add("throughput_ratio_2", median_ratio(two[0], two[1]));
  report.print();
  return 0;
}

}  // namespace
}  // namespace ragfs::bench

int main(int argc, char** argv) { return ragfs::bench::run(argc, argv); }
