// Agent turns over a tree of pages, at several budgets: hit ratio beside LRU, LFU and Belady's MIN; time per operation.
//
// RAGFS_BENCH_PAGES=DIR: a directory of pages (else drawn ones); RAGFS_BENCH_TRACE=FILE: a request trace, JSON lines
// with "hash_ids" (else drawn conversations). The backend is a local directory in the system's page cache.
// Then the same turns with and without reading ahead, with a pause before each call, as an agent thinks, or with none:
// hit ratio, what part of what was read ahead was used, and the readers' times side by side. Both sides pause alike:
// after a pause a call is slower by itself.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <thread>

#include "bench/policies.h"
#include "bench/stack.h"
#include "bench/support.h"
#include "bench/turns.h"
#include "ragfs/backends/local/local_file_system.h"

namespace ragfs::bench {
namespace {

constexpr uint64_t kSeed = 20'250'101;
// What an object costs beside its payload and twice its path's text: header of the entry, key, envelope.
constexpr uint32_t kObjectOverheadBytes = 64 + 55 + 96;

[[noreturn]] void die(std::string_view what, std::string_view path, const Error& error) {
  fmt::print(stderr, "bench_trace: {} {}: {}\n", what, path, error.text());
  std::exit(1);
}

std::string from_environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

class TempTree {
 public:
  explicit TempTree(const Tree& tree) {
    std::string name = std::filesystem::temp_directory_path() / "ragfs-trace-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    directory_ = name;
    auto backend = LocalFileSystem::open({.root_dir = directory_});
    if (!backend) die("open", directory_, backend.error());
    backend_ = std::shared_ptr<FileSystem>(*std::move(backend));
    const Context ctx;
    for (const PageFile& file : tree.files) {
      const PathView path = PathView::from_normal(file.path);
      (void)backend_->ensure_parent_dirs(ctx, path, kDefaultDirMode);
      const auto written = backend_->write(ctx, path, std::string(file.size, 'p'), 0, WriteFlag::create);
      if (!written) die("write", file.path, written.error());
    }
  }
  TempTree(const TempTree&) = delete;
  TempTree& operator=(const TempTree&) = delete;
  ~TempTree() { std::filesystem::remove_all(directory_); }
  std::shared_ptr<FileSystem> backend() const { return backend_; }

 private:
  std::string directory_;
  std::shared_ptr<FileSystem> backend_;
};

// The object accesses of a run, for the other policies.
class Recorder {
 public:
  void get(const std::string& key, size_t payload_bytes) { touch(key, payload_bytes, Touch::get); }
  void put(const std::string& key, size_t payload_bytes) { touch(key, payload_bytes, Touch::put); }
  void drop(const std::string& key) {
    const auto found = ids_.find(key);
    if (found != ids_.end()) accesses_.push_back({found->second, 0, Touch::drop});
  }
  void drop_below(const std::string& path) {
    for (const char* kind : {"f:", "d:"}) {
      drop(kind + path);
      const std::string below = kind + path + "/";
      for (auto at = ids_.lower_bound(below); at != ids_.end() && at->first.starts_with(below); ++at) {
        accesses_.push_back({at->second, 0, Touch::drop});
      }
    }
  }
  const std::vector<Access>& accesses() const { return accesses_; }
  // Of all objects that were ever got.
  uint64_t working_set_bytes() const {
    std::map<uint32_t, uint32_t> sizes;
    for (const Access& access : accesses_) {
      if (access.touch != Touch::drop) sizes[access.object] = access.bytes;
    }
    uint64_t bytes = 0;
    for (const auto& [object, size] : sizes) bytes += size;
    return bytes;
  }

 private:
  void touch(const std::string& key, size_t payload_bytes, Touch touch) {
    const auto id = ids_.try_emplace(key, static_cast<uint32_t>(ids_.size())).first->second;
    accesses_.push_back({id, static_cast<uint32_t>(payload_bytes + key.size() + kObjectOverheadBytes), touch});
  }
  std::map<std::string, uint32_t> ids_;
  std::vector<Access> accesses_;
};

struct Times {
  std::vector<double> read_ns;
  std::vector<double> list_ns;
  std::vector<double> write_ns;
};

std::string parent_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == 0 ? "/" : path.substr(0, slash);
}

class Runner {
 public:
  Runner(FileSystem& fs, Times* times, Recorder* recorder) : fs_(fs), times_(times), recorder_(recorder) {}

  void run(const std::vector<Call>& calls, const std::function<void(bool)>& before_call = {}) {
    for (const Call& call : calls) {
      // A turn begins at the root.
      if (before_call) before_call(call.kind == CallKind::list && call.path == "/");
      one(call);
    }
  }

 private:
  template <typename Operation>
  auto timed(std::vector<double> Times::* into, const Operation& operation) {
    const int64_t start_ns = now_ns();
    auto result = operation();
    if (times_ != nullptr) (times_->*into).push_back(static_cast<double>(now_ns() - start_ns));
    return result;
  }

  void one(const Call& call) {
    const PathView path = PathView::from_normal(call.path);
    switch (call.kind) {
      case CallKind::list: return list(call, path);
      case CallKind::read:
      case CallKind::scan_read: return read(call, path);
      case CallKind::write:
      case CallKind::append: return write(call, path);
      case CallKind::rename_directory: {
        const auto renamed = fs_.rename(ctx_, path, PathView::from_normal(call.to));
        if (!renamed) die("rename", call.path, renamed.error());
        return changed(call.path, call.to);
      }
      case CallKind::remove_all: {
        (void)fs_.remove_all(ctx_, path);  // not there yet, or not any more
        return changed(call.path, call.path);
      }
    }
  }
  void list(const Call& call, PathView path) {
    const auto entries = timed(&Times::list_ns, [&] { return fs_.read_dir(ctx_, path); });
    if (!entries) die("list", call.path, entries.error());
    size_t bytes = 0;
    for (const FileInfo& entry : *entries) bytes += entry.name.size() + 32;
    if (recorder_ != nullptr) recorder_->get("d:" + call.path, bytes);
  }
  void read(const Call& call, PathView path) {
    const auto bytes = timed(&Times::read_ns, [&] { return fs_.read(ctx_, path, 0, 0); });
    if (!bytes) die("read", call.path, bytes.error());
    if (recorder_ != nullptr) recorder_->get("f:" + call.path, bytes->size());
  }
  void write(const Call& call, PathView path) {
    const bool append = call.kind == CallKind::append;
    const std::string data(call.size, 'w');
    if (append) (void)fs_.ensure_parent_dirs(ctx_, path, kDefaultDirMode);
    const auto written = timed(&Times::write_ns, [&] {
      const auto appended = fs_.write(ctx_, path, data, 0, append ? WriteFlag::append : WriteFlag::create);
      const bool absent = append && !appended && appended.error().code == ErrorCode::not_found;
      return absent ? fs_.write(ctx_, path, data, 0, WriteFlag::create) : appended;
    });
    if (!written) die("write", call.path, written.error());
    if (recorder_ == nullptr) return;
    recorder_->drop("d:" + parent_of(call.path));
    if (append) {
      recorder_->drop("f:" + call.path);
    } else {
      recorder_->put("f:" + call.path, data.size());
    }
  }
  void changed(const std::string& from, const std::string& to) {
    if (recorder_ == nullptr) return;
    recorder_->drop_below(from);
    recorder_->drop_below(to);
    recorder_->drop("d:" + parent_of(from));
  }

  FileSystem& fs_;
  Times* times_;
  Recorder* recorder_;
  Context ctx_;
};

double hit_ratio_of(const CachedFileSystem& cached) {
  const auto sum = [&](std::initializer_list<CacheCounter> counters) {
    uint64_t all = 0;
    for (const CacheCounter counter : counters) all += cached.count(counter);
    return static_cast<double>(all);
  };
  const double hits = sum({CacheCounter::file_hit, CacheCounter::directory_hit});
  return hits / (hits + sum({CacheCounter::file_miss, CacheCounter::directory_miss}));
}

void add_times(Report& report, const std::string& suffix, const Times& times) {
  report.add("read_p50_ns" + suffix, median(times.read_ns));
  report.add("read_p99_ns" + suffix, percentile(times.read_ns, 0.99));
  report.add("list_p50_ns" + suffix, median(times.list_ns));
  report.add("list_p99_ns" + suffix, percentile(times.list_ns, 0.99));
  report.add("write_p50_ns" + suffix, median(times.write_ns));
  report.add("write_p99_ns" + suffix, percentile(times.write_ns, 0.99));
}

struct AheadFigures {
  std::vector<double> read_p50_ns;
  std::vector<double> read_p99_ns;
  std::vector<double> list_p99_ns;
  double hit_ratio = 0;
  double filled = 0;
  double hits = 0;
  double waste = 0;
  double dropped = 0;
  double misses = 0;
};

// The calls through a cache of `budget` bytes, with or without reading ahead.
void run_ahead(const Tree& tree, const std::vector<Call>& calls, uint64_t budget, bool ahead, bool thinks,
               AheadFigures& figures) {
  constexpr int64_t kTurnMs = 5'000;  // by the cache's clock
  constexpr std::chrono::microseconds kThinks{1'500};
  const TempTree files(tree);
  ManualClock clock;
  PrefetchConfig prefetch;
  prefetch.enabled = ahead;
  const Stack stack = Stack::cached_over(files.backend(), budget, {}, prefetch, clock);
  Times times;
  Runner(*stack.top, &times, nullptr).run(calls, [&](bool turn_begins) {
    if (turn_begins) clock.advance_ms(kTurnMs);
    if (thinks) std::this_thread::sleep_for(kThinks);
  });
  (void)stack.cached->stop_prefetch(Deadline::in_ms(kTurnMs));
  const auto count = [&](CacheCounter counter) { return static_cast<double>(stack.cached->count(counter)); };
  figures.read_p50_ns.push_back(median(times.read_ns));
  figures.read_p99_ns.push_back(percentile(times.read_ns, 0.99));
  figures.list_p99_ns.push_back(percentile(times.list_ns, 0.99));
  figures.hit_ratio = hit_ratio_of(*stack.cached);
  figures.filled = count(CacheCounter::prefetch_filled);
  figures.hits = count(CacheCounter::prefetch_hit);
  figures.waste = count(CacheCounter::prefetch_waste);
  figures.dropped = count(CacheCounter::prefetch_dropped);
  figures.misses = count(CacheCounter::file_miss) + count(CacheCounter::directory_miss);
}

void compare_ahead(Report& report, const Tree& tree, const std::vector<Call>& calls, uint64_t budget,
                   const std::string& suffix) {
  constexpr int kRounds = 5;
  constexpr size_t kCallsWithPauses = 6'000;
  for (const bool thinks : {true, false}) {
    const std::vector<Call> part(
        calls.begin(),
        calls.begin() + static_cast<ptrdiff_t>(thinks ? std::min(calls.size(), kCallsWithPauses) : calls.size()));
    AheadFigures with;
    AheadFigures without;
    for (int round = 0; round < kRounds; ++round) {
      run_ahead(tree, part, budget, round % 2 == 0, thinks, round % 2 == 0 ? with : without);
      run_ahead(tree, part, budget, round % 2 != 0, thinks, round % 2 != 0 ? with : without);
    }
    const std::string name = fmt::format("{}_{}", suffix, thinks ? "thinking" : "hurried");
    report.add("hit_ratio_plain" + name, without.hit_ratio);
    report.add("hit_ratio_ahead" + name, with.hit_ratio);
    report.add("precision" + name, with.hits / with.filled);
    report.add("coverage" + name, with.hits / (with.hits + with.misses));
    report.add("read_ahead" + name, with.filled);
    report.add("waste" + name, with.waste);
    report.add("dropped" + name, with.dropped);
    report.add("read_p50_ratio" + name, median_ratio(without.read_p50_ns, with.read_p50_ns));
    report.add("read_p99_ratio" + name, median_ratio(without.read_p99_ns, with.read_p99_ns));
    report.add("list_p99_ratio" + name, median_ratio(without.list_p99_ns, with.list_p99_ns));
  }
}

int run(int argc, char** argv) {
  const Options options = start(argc, argv);
  const Tree tree = tree_of_pages(from_environment("RAGFS_BENCH_PAGES"), kSeed);
  const std::vector<Request> requests =
      requests_of(from_environment("RAGFS_BENCH_TRACE"), options.quick ? 3'000 : 12'000, kSeed);
  const std::vector<Call> calls = calls_of(tree, requests, kSeed);
  Report report("trace");
  report.add("pages", static_cast<double>(tree.files.size()));
  report.add("turns", static_cast<double>(requests.size()));
  report.add("calls", static_cast<double>(calls.size()));

  Recorder recorder;
  {
    const TempTree files(tree);
    const Stack stack = Stack::uncached_over(files.backend());
    Times times;
    Runner(*stack.top, &times, &recorder).run(calls);
    add_times(report, "_uncached", times);
  }
  const uint64_t working_set = recorder.working_set_bytes();
  report.add("working_set_bytes", static_cast<double>(working_set));
  for (const int part : {8, 4, 2, 1}) {
    const uint64_t budget = std::max<uint64_t>(working_set / part, MemoryTierConfig::kLeastCapacityBytes);
    const TempTree files(tree);
    const Stack stack = Stack::cached_over(files.backend(), budget);
    Times times;
    Runner(*stack.top, &times, nullptr).run(calls);
    const std::string suffix = fmt::format("_1_{}", part);  // budget: this part of the working set
    report.add("budget_bytes" + suffix, static_cast<double>(budget));
    report.add("hit_ratio" + suffix, hit_ratio_of(*stack.cached));
    report.add("lru_hit_ratio" + suffix, lru_hit_ratio(recorder.accesses(), budget));
    report.add("lfu_hit_ratio" + suffix, lfu_hit_ratio(recorder.accesses(), budget));
    report.add("min_hit_ratio" + suffix, min_hit_ratio(recorder.accesses(), budget));
    add_times(report, suffix, times);
  }
  for (const int part : {4, 1}) {
    const uint64_t budget = std::max<uint64_t>(working_set / part, MemoryTierConfig::kLeastCapacityBytes);
    compare_ahead(report, tree, calls, budget, fmt::format("_1_{}", part));
  }
  report.print();
  return 0;
}

}  // namespace
}  // namespace ragfs::bench

int main(int argc, char** argv) { return ragfs::bench::run(argc, argv); }
