// Cost per object as the embedded provider grows from 10^4 to 10^7 objects: bytes beyond key and value, ns per get.
//
// Values of 64 bytes, keys as the cache makes them. Bytes: (RSS after - before - keys - values) / n, allocator and
// index included; the worst decade counts. ns: uniform gets through the provider, the value's first byte read. Ten
// times the objects no longer fit the CPU's caches and TLB, which costs a get a load from memory whatever the table
// does; so a decade is compared with the one before after taking off the cost of one load that misses them all, timed
// between the passes of the decade: ns_ratio = max over decades of (ns - missing_load_ns) / ns of the decade before.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>

#include "bench/support.h"
#include "ragfs/base/hash.h"
#include "ragfs/providers/embedded/embedded_provider.h"

namespace ragfs::bench {
namespace {

constexpr size_t kValueBytes = 64;
constexpr std::string_view kPrefix = "file:bench:account:";

// Keys are made when they are needed: an array of them would be measured too.
CacheKey key_of(uint64_t number) {
  std::array<char, kPrefix.size() + 32> text;
  std::copy(kPrefix.begin(), kPrefix.end(), text.begin());
  const uint64_t halves[2] = {mix64(number + 1), mix64(~number)};
  for (size_t i = 0; i < 32; ++i) text[kPrefix.size() + i] = "0123456789abcdef"[halves[i / 16] >> (i % 16 * 4) & 15];
  return CacheKey(std::string_view(text.data(), text.size()), mix64(number));
}

[[noreturn]] void die(std::string_view what) {
  fmt::print(stderr, "bench_scale: {}\n", what);
  std::exit(1);
}

struct Decade {
  double bytes_per_object = 0;
  double get_ns = 0;
  double put_ns = 0;
  double load_ns = 0;
};

double gets_ns(EmbeddedProvider& provider, const std::vector<uint32_t>& draws) {
  uint64_t sum = 0;
  const int64_t start = now_ns();
  for (const uint32_t draw : draws) {
    const GetResult found = provider.get(key_of(draw), Deadline::never());
    if (!found || !found->has_value()) die("a miss");
    sum += static_cast<unsigned char>(*(*found)->data());
  }
  keep(sum);
  return static_cast<double>(now_ns() - start) / static_cast<double>(draws.size());
}

Decade measure(uint32_t objects, int passes, MissingLoad& load) {
  Decade result;
  const std::string value(kValueBytes, 'v');
  const size_t key_bytes = key_of(0).text().size();
  const size_t before = resident_bytes();
  // Enough for all: what is measured is the cost of being there, not of eviction.
  auto provider =
      EmbeddedProvider::create({.dram_bytes = std::max<uint64_t>(uint64_t{256} << 20, uint64_t{objects} * 320)});
  if (!provider) die(provider.error().text());
  EmbeddedProvider& tier = **provider;
  const int64_t start = now_ns();
  for (uint32_t i = 0; i < objects; ++i) {
    if (!tier.put(key_of(i), {"", value}, {}, Deadline::never())) die("a put failed");
  }
  result.put_ns = static_cast<double>(now_ns() - start) / objects;
  const size_t after = resident_bytes();
  if (tier.memory().stats().objects != objects) die("objects were evicted");
  result.bytes_per_object = (static_cast<double>(after) - static_cast<double>(before)) / objects -
                            static_cast<double>(kValueBytes + key_bytes);
  const std::vector<uint32_t> draws = uniform_draws(objects, std::max<size_t>(200'000, objects / 10), objects);
  const auto figures =
      alternate(passes, {[&] { return gets_ns(tier, draws); }, [&] { return load.measure_ns(draws.size()); }});
  result.get_ns = median(figures[0]);
  result.load_ns = median(figures[1]);
  return result;
}

int run(int argc, char** argv) {
  const Options options = start(argc, argv);
  Report report("scale");
  double worst_bytes = 0;
  double worst_ratio = 0;
  double keys = 0;
  Decade last;
  MissingLoad load(size_t{options.quick ? 128U : 1024U} << 20);
  for (int exponent = 4; exponent <= (options.quick ? 6 : 7); ++exponent) {
    const auto objects = static_cast<uint32_t>(std::lround(std::pow(10, exponent)));
    const Decade now = measure(objects, options.quick ? 5 : 11, load);
    report.add(fmt::format("bytes_per_object_1e{}", exponent), now.bytes_per_object);
    report.add(fmt::format("get_ns_1e{}", exponent), now.get_ns);
    report.add(fmt::format("put_ns_1e{}", exponent), now.put_ns);
    report.add(fmt::format("missing_load_ns_1e{}", exponent), now.load_ns);
    worst_bytes = std::max(worst_bytes, now.bytes_per_object);
    if (keys != 0) {
      const double ratio = (now.get_ns - now.load_ns) / last.get_ns;
      report.add(fmt::format("ns_ratio_1e{}", exponent), ratio);
      report.add(fmt::format("ns_ratio_uncorrected_1e{}", exponent), now.get_ns / last.get_ns);
      worst_ratio = std::max(worst_ratio, ratio);
    }
    keys = objects;
    last = now;
  }
  report.add("keys", keys);
  report.add("bytes_per_object", worst_bytes);
  report.add("ns_ratio", worst_ratio);
  report.print();
  return 0;
}

}  // namespace
}  // namespace ragfs::bench

int main(int argc, char** argv) { return ragfs::bench::run(argc, argv); }
