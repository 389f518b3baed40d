// 1,000 readers of one cold key over a backend that takes 20 ms: how many reads reach it, and how long readers wait.
#include <fmt/format.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "bench/slow_file_system.h"
#include "bench/stack.h"
#include "bench/support.h"
#include "ragfs/backends/mem/mem_file_system.h"
#include "ragfs/base/one_shot_event.h"

namespace ragfs::bench {
namespace {

constexpr int kReaders = 1'000;
constexpr int64_t kBackendMs = 20;

// Lets kReaders threads begin `read(i)` at once; the 99th percentile of their times, in milliseconds.
double p99_ms_of(const std::function<void(int)>& read) {
  std::vector<double> waits_ms(kReaders);
  std::barrier all_ready(kReaders);
  OneShotEvent all_done;  // nobody's wait holds the time in which another's thread is taken apart
  std::atomic<int> done{0};
  {
    std::vector<std::jthread> readers;
    for (int i = 0; i < kReaders; ++i) {
      readers.emplace_back([&, i] {
        pin_thread_to_nth(static_cast<size_t>(i) % cpu_count());
        all_ready.arrive_and_wait();
        const int64_t start_ns = now_ns();
        read(i);
        waits_ms[static_cast<size_t>(i)] = static_cast<double>(now_ns() - start_ns) / 1e6;
        if (++done == kReaders) all_done.set();
        (void)all_done.wait_until(Deadline());
      });
    }
  }
  return percentile(waits_ms, 0.99);
}

// What this machine takes to wake as many threads, with nothing between them: one sleeps, the others wait for it.
double floor_ms() {
  OneShotEvent slept;
  std::atomic<bool> led{false};
  return p99_ms_of([&](int) {
    if (led.exchange(true)) return void(slept.wait_until(Deadline()));
    std::this_thread::sleep_for(std::chrono::milliseconds(kBackendMs));
    slept.set();
  });
}

int run(int argc, char** argv) {
  const Options options = start(argc, argv);
  const int rounds = options.quick ? 5 : 25;
  auto memory = MemFileSystem::open({});
  if (!memory) return 1;
  auto slow = std::make_shared<SlowFileSystem>(std::shared_ptr<FileSystem>(*std::move(memory)), kBackendMs);
  Stack stack = Stack::cached_over(slow, uint64_t{64} << 20);
  const Context ctx;
  std::vector<double> p99_ms;
  std::vector<double> floors_ms;
  std::vector<double> reads;
  for (int round = 0; round < rounds; ++round) {
    const std::string path = fmt::format("/cold{}", round);
    (void)slow->inner().write(ctx, PathView::from_normal(path), std::string(4096, 'v'), 0, WriteFlag::create);
    const uint64_t before = slow->reads();
    p99_ms.push_back(p99_ms_of([&](int) {
      if (!stack.top->read(ctx, PathView::from_normal(path), 0, 0)) std::abort();
    }));
    reads.push_back(static_cast<double>(slow->reads() - before));
    floors_ms.push_back(floor_ms());
  }
  Report report("coalesce");
  report.add("readers", kReaders);
  report.add("backend_reads", percentile(reads, 1.0));
  report.add("backend_ms", static_cast<double>(kBackendMs));
  report.add("p99_ms", median(p99_ms));
  report.add("floor_p99_ms", median(floors_ms));
  report.add("ratio_floor", median_ratio(floors_ms, p99_ms));
  report.add("ratio_p99", median(p99_ms) / static_cast<double>(kBackendMs));
  report.print();
  return 0;
}

}  // namespace
}  // namespace ragfs::bench

int main(int argc, char** argv) { return ragfs::bench::run(argc, argv); }
