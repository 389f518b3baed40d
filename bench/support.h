// What the benchmarks share: options, data, alternating passes, figures, the JSON line.
//
// A benchmark measures sides that belong together in one run: it gives them to alternate(), which runs them in turn,
// forth and back, so that a machine that grows slower meanwhile slows all of them; it compares medians, and its last
// line of output is a JSON object with stable keys. Not for: the library itself. Thread-safety: none, but for the free
// functions without arguments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ragfs::bench {

struct Options {
  bool quick = false;  // --quick: ends within a minute
};

// Reads the command line; ends the program with a message when it is wrong. Pins the main thread to one CPU, which
// threads made later inherit unless they pin themselves elsewhere.
Options start(int argc, char** argv);

void pin_thread(int cpu);
// Lets the calling thread run on the `index`-th of the CPUs that the program was started with.
void pin_thread_to_nth(size_t index);
size_t cpu_count();

int64_t now_ns();

// Keeps the compiler from dropping the computation of `value`.
template <typename T>
inline void keep(const T& value) {
  asm volatile("" : : "r,m"(value) : "memory");
}

// `count` draws from `items` by Zipf's law (rank r with weight r^-exponent); ranks are dealt to the items at random, so
// that popular ones are not neighbours.
std::vector<uint32_t> zipf_draws(uint32_t items, double exponent, size_t count, uint64_t seed);
// `count` draws, all items alike.
std::vector<uint32_t> uniform_draws(uint32_t items, size_t count, uint64_t seed);

// The value below which `share` (0 to 1) of the samples lie; 0 for none.
double percentile(std::vector<double> samples, double share);
inline double median(std::vector<double> samples) { return percentile(std::move(samples), 0.5); }

// Runs all sides once for warm-up, then `passes` times in turn, in changing direction; each side returns one figure a
// pass. The figures of each side, in the order of passes.
using Side = std::function<double()>;
std::vector<std::vector<double>> alternate(int passes, const std::vector<Side>& sides);
// Median of b / a over the passes: pairs that ran next to each other.
double median_ratio(const std::vector<double>& a, const std::vector<double>& b);

// Anonymous resident memory of this process, in bytes.
size_t resident_bytes();

// Nanoseconds of one load that misses the caches: a random walk through `bytes` of memory of 4 KiB pages.
class MissingLoad {
 public:
  explicit MissingLoad(size_t bytes);
  ~MissingLoad();
  MissingLoad(const MissingLoad&) = delete;
  MissingLoad& operator=(const MissingLoad&) = delete;
  double measure_ns(size_t loads);

 private:
  uint64_t* cells_;
  size_t bytes_;
  uint64_t at_ = 0;
};

// The last line: figures in the order they were added.
class Report {
 public:
  explicit Report(std::string_view name) : name_(name) {}
  void add(std::string_view key, double value);
  // Prints a table for people, then the JSON line.
  void print() const;

 private:
  std::string name_;
  std::vector<std::pair<std::string, double>> figures_;
};

}  // namespace ragfs::bench
