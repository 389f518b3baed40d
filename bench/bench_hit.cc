// Hits of 4 KiB files through the public entry beside RocksDB's HyperClockCache: Zipf 1.0 over 65,536 files.
//
// All sides look the same paths up in the same order and read the value's first byte; passes alternate. HyperClockCache
// takes keys of 16 bytes only, so it is given the path's XXH3-128, as its callers do; what it costs with keys that were
// hashed beforehand is told too (..._prehashed). First with no mutation ever (..._quiet), then with 65,536 subtree and
// 10,000 path records in the mutation table and one mutation per 1,000 reads (whose own time is left out).
#include <fmt/format.h>
#include <rocksdb/cache.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "bench/stack.h"
#include "bench/support.h"
#include "ragfs/backends/mem/mem_file_system.h"

namespace ragfs::bench {
namespace {

constexpr uint32_t kFiles = 65'536;
constexpr size_t kFileBytes = 4096;
constexpr uint32_t kSubtreeRecords = 65'536;
constexpr uint32_t kPathRecords = 10'000;
constexpr size_t kReadsPerMutation = 1'000;

using Draws = std::vector<uint32_t>;

// Texts of one length side by side. A caller has its path or key at hand, in its core's cache: it has just made or
// received it. So both sides ask for the texts of the draws to come, and fetching them is not measured.
class Texts {
 public:
  void add(std::string_view text) {
    if (arena_.empty()) length_ = text.size();
    if (text.size() != length_) std::abort();
    arena_ += text;
  }
  std::string_view operator[](size_t i) const { return {arena_.data() + i * length_, length_}; }
  std::string_view back() const { return std::string_view(arena_).substr(arena_.size() - length_); }
  // Of the draw that comes kAhead after draw `i`.
  void prefetch(const Draws& draws, size_t i) const {
    if (i + kAhead >= draws.size()) return;
    const char* const text = arena_.data() + draws[i + kAhead] * length_;
    __builtin_prefetch(text);
    __builtin_prefetch(text + length_ - 1);
  }

 private:
  static constexpr size_t kAhead = 8;
  size_t length_ = 0;
  std::string arena_;
};

std::string path_of(uint32_t i) {
  return fmt::format("/acct{:02}/resources/project{:03}/docs/topic{:03}/page{:06}.md", i % 16, i / 16 % 64, i / 1024,
                     i);
}

[[noreturn]] void die(std::string_view what) {
  fmt::print(stderr, "bench_hit: {}\n", what);
  std::exit(1);
}

struct Timing {
  double mean_ns = 0;
  std::vector<double> samples_ns;  // of single hits, now and then
};

// A sampled hit costs two clock reads; one in 61 leaves the others alone. Not a multiple of the 64 by which the
// statistics layers sample: else every hit timed here would be one that they time too.
constexpr size_t kSampleEvery = 61;

class Ours {
 public:
  Ours() {
    auto memory = MemFileSystem::open({});
    if (!memory) die(memory.error().text());
    stack_ = Stack::cached_over(std::shared_ptr<FileSystem>(*std::move(memory)), uint64_t{600} << 20);
    value_.assign(kFileBytes, 'v');
    for (uint32_t i = 0; i < kFiles; ++i) {
      paths_.add(path_of(i));
      const PathView path = PathView::from_normal(paths_.back());
      if (!stack_.top->ensure_parent_dirs(ctx_, path, kDefaultDirMode)) die("a directory could not be made");
      if (!stack_.top->write(ctx_, path, value_, 0, WriteFlag::create)) die("a write failed");
    }
  }
  // Records over other paths of the same accounts.
  void add_records() {
    MutationTable& table = stack_.domain->table();
    const uint64_t root = stack_.domain->backend(stack_.backend->traits().identity)->root_id;
    const auto record = [&](const std::string& path, ObjectKind kind) {
      table.record(RecordPath(root, PathView::from_normal(path)), kind, table.advance_clock());
    };
    for (uint32_t i = 0; i < kSubtreeRecords; ++i) {
      record(fmt::format("/acct{:02}/resources/old{:03}/x{:06}", i % 16, i / 16 % 64, i), ObjectKind::subtree);
    }
    for (uint32_t i = 0; i < kPathRecords; ++i) {
      record(fmt::format("/acct{:02}/resources/old{:03}/y{:06}", i % 16, i / 16 % 64, i), ObjectKind::file);
    }
  }
  void run(const Draws& draws, bool mutates, Timing& timing) {
    const Context ctx;
    uint64_t sum = 0;
    int64_t left_out_ns = 0;
    const int64_t start_ns = now_ns();
    for (size_t i = 0; i < draws.size(); ++i) {
      if (mutates && i % kReadsPerMutation == 0) {
        const int64_t mutation_ns = now_ns();
        const PathView path = PathView::from_normal(paths_[draws[(i + 7) % draws.size()]]);
        if (!stack_.top->write(ctx, path, value_, 0, WriteFlag::create)) die("a write failed");
        left_out_ns += now_ns() - mutation_ns;
      }
      paths_.prefetch(draws, i);
      const bool sampled = i % kSampleEvery == 0;
      const int64_t hit_ns = sampled ? now_ns() : 0;
      const Result<Bytes> found = stack_.top->read(ctx, PathView::from_normal(paths_[draws[i]]), 0, 0);
      if (!found) die("a read failed");
      sum += static_cast<unsigned char>(*found->data());
      if (sampled) timing.samples_ns.push_back(static_cast<double>(now_ns() - hit_ns));
    }
    keep(sum);
    timing.mean_ns = static_cast<double>(now_ns() - start_ns - left_out_ns) / static_cast<double>(draws.size());
  }
  uint64_t misses() const { return stack_.cached->count(CacheCounter::file_miss); }

 private:
  Context ctx_;
  Stack stack_;
  Texts paths_;
  std::string value_;
};

class Theirs {
 public:
  Theirs() {
    cache_ = rocksdb::HyperClockCacheOptions(size_t{512} << 20, kFileBytes + 256).MakeSharedCache();
    for (uint32_t i = 0; i < kFiles; ++i) {
      paths_.add(path_of(i));
      keys_.add(Key(paths_.back()).text());
      void* value = std::malloc(kFileBytes);
      std::memset(value, 'v', kFileBytes);
      const auto free_value = [](const rocksdb::Slice&, void* at) { std::free(at); };
      const rocksdb::Slice key(keys_.back().data(), keys_.back().size());
      if (!cache_->Insert(key, value, kFileBytes, free_value).ok()) die("an insert failed");
    }
  }
  // From the path's text.
  void run(const Draws& draws, bool, Timing& timing) {
    run(draws, paths_, [](std::string_view path) { return Key(path); }, timing);
  }
  // From a key that was made before.
  void run_prehashed(const Draws& draws, Timing& timing) {
    run(draws, keys_, [](std::string_view key) { return rocksdb::Slice(key.data(), key.size()); }, timing);
  }

 private:
  class Key {
   public:
    explicit Key(std::string_view path) : hash_(hash128(path)) {}
    operator rocksdb::Slice() const { return {reinterpret_cast<const char*>(&hash_), sizeof hash_}; }
    std::string_view text() const { return {reinterpret_cast<const char*>(&hash_), sizeof hash_}; }

   private:
    Hash128 hash_;
  };

  template <typename KeyOf>
  void run(const Draws& draws, const Texts& texts, const KeyOf& key_of, Timing& timing) {
    uint64_t sum = 0;
    const int64_t start_ns = now_ns();
    for (size_t i = 0; i < draws.size(); ++i) {
      texts.prefetch(draws, i);
      const bool sampled = i % kSampleEvery == 0;
      const int64_t hit_ns = sampled ? now_ns() : 0;
      rocksdb::Cache::Handle* handle = cache_->Lookup(key_of(texts[draws[i]]));
      if (handle == nullptr) die("a miss of theirs");
      sum += *static_cast<unsigned char*>(cache_->Value(handle));
      cache_->Release(handle);
      if (sampled) timing.samples_ns.push_back(static_cast<double>(now_ns() - hit_ns));
    }
    keep(sum);
    timing.mean_ns = static_cast<double>(now_ns() - start_ns) / static_cast<double>(draws.size());
  }

  std::shared_ptr<rocksdb::Cache> cache_;
  Texts paths_;
  Texts keys_;
};

// Hits a second of `threads` threads together, each with its own draws.
template <typename Cache>
double hits_per_s(Cache& cache, std::span<const Draws> draws, bool mutates) {
  std::atomic<size_t> ready{0};
  std::vector<Timing> timings(draws.size());
  {
    std::vector<std::jthread> threads;
    for (size_t t = 0; t < draws.size(); ++t) {
      threads.emplace_back([&, t] {
        pin_thread_to_nth(t);
        ++ready;
        while (ready.load() < draws.size()) {
        }
        cache.run(draws[t], mutates, timings[t]);
      });
    }
  }
  double rate = 0;
  for (const Timing& timing : timings) rate += 1e9 / timing.mean_ns;
  return rate;
}

void measure(Ours& ours, Theirs& theirs, const std::array<Draws, 2>& draws, int passes, bool mutates,
             std::string_view suffix, Report& report) {
  std::vector<double> our_p50;
  std::vector<double> our_p99;
  std::vector<double> their_p50;
  std::vector<double> prehashed_p50;
  const auto pass = [](auto&& run, std::vector<double>& p50, std::vector<double>* p99) {
    Timing timing;
    run(timing);
    p50.push_back(percentile(timing.samples_ns, 0.5));
    if (p99 != nullptr) p99->push_back(percentile(timing.samples_ns, 0.99));
    return timing.mean_ns;
  };
  const auto their_run = [&](Timing& timing) { theirs.run(draws[0], mutates, timing); };
  const auto prehashed_run = [&](Timing& timing) { theirs.run_prehashed(draws[0], timing); };
  const auto our_run = [&](Timing& timing) { ours.run(draws[0], mutates, timing); };
  const auto means = alternate(passes, {[&] { return pass(their_run, their_p50, nullptr); },
                                        [&] { return pass(prehashed_run, prehashed_p50, nullptr); },
                                        [&] { return pass(our_run, our_p50, &our_p99); }});
  const auto rates_1 =
      alternate(passes / 2 + 1, {[&] { return hits_per_s(theirs, std::span(draws).first(1), mutates); },
                                 [&] { return hits_per_s(ours, std::span(draws).first(1), mutates); }});
  const auto rates_2 = alternate(passes / 2 + 1, {[&] { return hits_per_s(theirs, std::span(draws), mutates); },
                                                  [&] { return hits_per_s(ours, std::span(draws), mutates); }});
  const auto key = [&](std::string_view name) { return fmt::format("{}{}", name, suffix); };
  report.add(key("hit_p50_ns"), median(our_p50));
  report.add(key("hit_p99_ns"), median(our_p99));
  report.add(key("hyperclock_p50_ns"), median(their_p50));
  report.add(key("ratio_p50"), median_ratio(their_p50, our_p50));
  report.add(key("hyperclock_p50_ns_prehashed"), median(prehashed_p50));
  report.add(key("ratio_p50_prehashed"), median_ratio(prehashed_p50, our_p50));
  report.add(key("hit_mean_ns"), median(means[2]));
  report.add(key("hyperclock_mean_ns"), median(means[0]));
  report.add(key("ratio_mean"), median_ratio(means[0], means[2]));
  report.add(key("ratio_mean_prehashed"), median_ratio(means[1], means[2]));
  report.add(key("hits_per_s_1t"), median(rates_1[1]));
  report.add(key("hits_per_s_2t"), median(rates_2[1]));
  report.add(key("hyperclock_per_s_2t"), median(rates_2[0]));
  report.add(key("ratio_per_s_2t"), median_ratio(rates_2[0], rates_2[1]));
}

int run(int argc, char** argv) {
  const Options options = start(argc, argv);
  const int passes = options.quick ? 5 : 21;
  const size_t draws_per_pass = options.quick ? 300'000 : 1'000'000;
  const std::array<Draws, 2> draws{zipf_draws(kFiles, 1.0, draws_per_pass, 1),
                                   zipf_draws(kFiles, 1.0, draws_per_pass, 2)};
  Ours ours;
  Theirs theirs;
  Report report("hit");
  measure(ours, theirs, draws, passes, false, "_quiet", report);
  ours.add_records();
  measure(ours, theirs, draws, passes, true, "", report);
  report.add("misses", static_cast<double>(ours.misses()));
  report.print();
  return 0;
}

}  // namespace
}  // namespace ragfs::bench

int main(int argc, char** argv) { return ragfs::bench::run(argc, argv); }
