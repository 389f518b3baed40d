#include "bench/support.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <numeric>
#include <random>

namespace ragfs::bench {

namespace {

// The CPUs the program may use, as they were before the first pinning.
const std::vector<int>& cpus() {
  static const std::vector<int> all = [] {
    cpu_set_t set;
    std::vector<int> found;
    if (sched_getaffinity(0, sizeof(set), &set) == 0) {
      for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (CPU_ISSET(cpu, &set)) found.push_back(cpu);
      }
    }
    if (found.empty()) found.push_back(0);
    return found;
  }();
  return all;
}

}  // namespace

Options start(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--quick") {
      options.quick = true;
    } else {
      fmt::print(stderr, "{}: unknown option '{}'; there is --quick\n", argv[0], argv[i]);
      std::exit(2);
    }
  }
  pin_thread_to_nth(0);
  return options;
}

void pin_thread(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  sched_setaffinity(0, sizeof(set), &set);
}

void pin_thread_to_nth(size_t index) { pin_thread(cpus()[index % cpus().size()]); }
size_t cpu_count() { return cpus().size(); }

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

std::vector<uint32_t> zipf_draws(uint32_t items, double exponent, size_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<uint32_t> item_of_rank(items);
  std::iota(item_of_rank.begin(), item_of_rank.end(), 0);
  std::shuffle(item_of_rank.begin(), item_of_rank.end(), random);
  std::vector<double> cumulated(items);
  double sum = 0;
  for (uint32_t rank = 0; rank < items; ++rank) {
    sum += std::pow(rank + 1.0, -exponent);
    cumulated[rank] = sum;
  }
  std::uniform_real_distribution<double> uniform(0, sum);
  std::vector<uint32_t> draws(count);
  for (uint32_t& draw : draws) {
    const auto at = std::lower_bound(cumulated.begin(), cumulated.end() - 1, uniform(random));
    draw = item_of_rank[static_cast<size_t>(at - cumulated.begin())];
  }
  return draws;
}

std::vector<uint32_t> uniform_draws(uint32_t items, size_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_int_distribution<uint32_t> uniform(0, items - 1);
  std::vector<uint32_t> draws(count);
  for (uint32_t& draw : draws) draw = uniform(random);
  return draws;
}

double percentile(std::vector<double> samples, double share) {
  if (samples.empty()) return 0;
  const auto at = static_cast<std::ptrdiff_t>(share * static_cast<double>(samples.size() - 1) + 0.5);
  std::nth_element(samples.begin(), samples.begin() + at, samples.end());
  return samples[static_cast<size_t>(at)];
}

std::vector<std::vector<double>> alternate(int passes, const std::vector<Side>& sides) {
  std::vector<std::vector<double>> figures(sides.size());
  for (const Side& side : sides) side();
  for (int pass = 0; pass < passes; ++pass) {
    for (size_t i = 0; i < sides.size(); ++i) {
      const size_t turn = pass % 2 == 0 ? i : sides.size() - 1 - i;
      figures[turn].push_back(sides[turn]());
    }
  }
  return figures;
}

double median_ratio(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> ratios;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) ratios.push_back(b[i] / a[i]);
  return median(std::move(ratios));
}

size_t resident_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    size_t kib = 0;
    if (word == "RssAnon:" && status >> kib) return kib * 1024;
  }
  return 0;
}

MissingLoad::MissingLoad(size_t bytes) : bytes_(bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    fmt::print(stderr, "no memory for {} bytes\n", bytes);
    std::exit(1);
  }
  madvise(memory, bytes, MADV_NOHUGEPAGE);
  cells_ = static_cast<uint64_t*>(memory);
  // One random cycle (Sattolo) through all cache lines: each load's address is known only when the one before is there.
  const size_t lines = bytes / 64;
  std::mt19937_64 random(1);
  for (size_t i = 0; i < lines; ++i) cells_[i * 8] = i * 8;
  for (size_t i = lines - 1; i > 0; --i) std::swap(cells_[i * 8], cells_[random() % i * 8]);
}

MissingLoad::~MissingLoad() { munmap(cells_, bytes_); }

double MissingLoad::measure_ns(size_t loads) {
  const int64_t start = now_ns();
  for (size_t i = 0; i < loads; ++i) at_ = cells_[at_];
  keep(at_);
  return static_cast<double>(now_ns() - start) / static_cast<double>(loads);
}

void Report::add(std::string_view key, double value) { figures_.emplace_back(key, value); }

void Report::print() const {
  fmt::print("{}\n", name_);
  for (const auto& [key, value] : figures_) fmt::print("  {:<32} {:.4g}\n", key, value);
  std::string line;
  for (const auto& [key, value] : figures_) fmt::format_to(std::back_inserter(line), ", \"{}\": {:.6g}", key, value);
  fmt::print("{{\"bench\": \"{}\"{}}}\n", name_, line);
  std::fflush(stdout);
}

}  // namespace ragfs::bench
