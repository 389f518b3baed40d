// The disk tier: hits beside a bare pread, fill beside fio, recovery, and a replayed trace with and without the filter.
//
// In a directory of its own below RAGFS_BENCH_DIR (default: the temporary directory). Hits: 4 KiB blocks, in random
// order, one thread, O_DIRECT on both sides; then both from the page cache. Fill: buckets of 32 MiB beside `fio`
// writing 1 MiB blocks with a fdatasync every 32. The trace: ../shared/data/conversation_trace.jsonl.zst, DRAM 5,000 +
// disk 50,000 blocks, left out when absent.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <numeric>
#include <random>

#include "bench/support.h"
#include "ragfs/base/hash.h"
#include "ragfs/store/disk/aligned_buffer.h"
#include "ragfs/store/node/second_tier.h"

namespace ragfs::bench {
namespace {

constexpr size_t kKeyBytes = 57;

[[noreturn]] void die(std::string_view what) {
  fmt::print(stderr, "bench_disk: {}\n", what);
  std::exit(1);
}

class Place {
 public:
  Place() {
    const char* wanted = std::getenv("RAGFS_BENCH_DIR");
    std::string name = (wanted == nullptr ? std::filesystem::temp_directory_path() : std::filesystem::path(wanted)) /
                       "ragfs_bench_XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) die("no directory: " + name);
    path_ = name;
  }
  ~Place() { std::filesystem::remove_all(path_); }
  std::string sub(const std::string& name) const {
    std::filesystem::create_directories(path_ / name);
    return path_ / name;
  }

 private:
  std::filesystem::path path_;
};

std::string key_of(uint64_t i) {
  std::string key = fmt::format("{:016x}", mix64(i));
  return std::string(kKeyBytes - key.size(), 'k') + key;
}

std::unique_ptr<DiskTier> open_tier(const std::string& directory, uint64_t bucket_bytes = uint64_t{32} << 20,
                                    bool direct = true) {
  auto opened = DiskTier::open({.directory = directory,
                                .capacity_bytes = uint64_t{4} << 30,
                                .bucket_bytes = bucket_bytes,
                                .min_free_bytes = 0,
                                .direct_io = direct},
                               {});
  if (!opened) die(opened.error().text());
  return std::move(*opened);
}

// Writes objects [from, to) in buckets; the seconds it took.
double fill(DiskTier& tier, uint64_t from, uint64_t to, const Bytes& value) {
  const int64_t start = now_ns();
  const uint64_t most = tier.most_record_bytes();
  std::vector<DiskRecord> batch;
  uint64_t bytes = 0;
  const auto write = [&] {
    if (!batch.empty() && !tier.write(batch, [](const DiskRecord&) { return true; })) die("a write failed");
    batch.clear();
    bytes = 0;
  };
  for (uint64_t i = from; i < to; ++i) {
    DiskRecord record;
    record.key = key_of(i);
    record.hash = hash64(record.key);
    record.generation = tier.next_generation();
    record.value = value;
    const uint64_t more = round_up(DiskTier::bytes_of(record), 8);
    if (bytes + more > most) write();
    bytes += more;
    batch.push_back(std::move(record));
  }
  write();
  return static_cast<double>(now_ns() - start) / 1e9;
}

// p50 and p99 of hits on objects that fill `block_bytes` of the disk, and of preads of as much.
// Both with O_DIRECT, or both from the page cache.
void hits(Report& report, const Place& place, size_t block_bytes, uint64_t objects, int reads, bool direct = true) {
  const std::string label = fmt::format("{}k{}", block_bytes / 1024, direct ? "" : "_buffered");
  const std::string directory = place.sub("hits_" + label);
  const auto tier = open_tier(directory, uint64_t{32} << 20, direct);
  const size_t value_bytes = block_bytes - record_bytes(kKeyBytes, 0);
  fill(*tier, 0, objects, Bytes::from_string(std::string(value_bytes, 'v')));
  const std::string bare_file = directory + "/../bare_" + label;
  const int fd = ::open(bare_file.c_str(), O_RDWR | O_CREAT | (direct ? O_DIRECT : 0), 0600);
  if (fd < 0) die("no O_DIRECT here");
  AlignedBuffer buffer(block_bytes);
  std::memset(buffer.data(), 'b', block_bytes);
  for (uint64_t i = 0; i < objects; ++i) {
    if (::pwrite(fd, buffer.data(), block_bytes, static_cast<off_t>(i * block_bytes)) < 0) die("a bare write failed");
  }
  ::fdatasync(fd);
  std::vector<double> bare_us, ours_us;
  std::mt19937_64 random(7);
  const auto bare = [&] {
    std::vector<double> us;
    for (int i = 0; i < reads; ++i) {
      const auto at = static_cast<off_t>(random() % objects * block_bytes);
      const int64_t start = now_ns();
      if (::pread(fd, buffer.data(), block_bytes, at) != static_cast<ssize_t>(block_bytes)) die("a bare read failed");
      us.push_back(static_cast<double>(now_ns() - start) / 1e3);
    }
    bare_us.insert(bare_us.end(), us.begin(), us.end());
    return median(us);
  };
  const auto ours = [&] {
    std::vector<double> us;
    for (int i = 0; i < reads; ++i) {
      const std::string key = key_of(random() % objects);
      const int64_t start = now_ns();
      const auto hit = tier->read(key, hash64(key), Deadline::in_ms(1'000));
      if (!hit) die("a miss");
      keep(hit->value.data()[0]);
      us.push_back(static_cast<double>(now_ns() - start) / 1e3);
    }
    ours_us.insert(ours_us.end(), us.begin(), us.end());
    return median(us);
  };
  const auto sides = alternate(5, {bare, ours});
  report.add(fmt::format("pread_{}_p50_us", label), median(sides[0]));
  report.add(fmt::format("hit_{}_p50_us", label), median(sides[1]));
  report.add(fmt::format("pread_{}_p99_us", label), percentile(bare_us, 0.99));
  report.add(fmt::format("hit_{}_p99_us", label), percentile(ours_us, 0.99));
  report.add(fmt::format("ratio_{}_p50", label), median_ratio(sides[0], sides[1]));
  ::close(fd);
  std::filesystem::remove(bare_file);
}

double fio_mib_per_s(const std::string& directory, uint64_t mib) {
  const std::string command = fmt::format(
      "fio --name=fill --directory={} --rw=write --bs=1M --direct=1 --size={}M --fdatasync=32 --minimal 2>/dev/null",
      directory, mib);
  std::FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return 0;
  std::string line;
  char part[4096];
  while (std::fgets(part, sizeof part, pipe) != nullptr) line += part;
  ::pclose(pipe);
  // Field 48 of the terse line is the write bandwidth in KiB/s.
  size_t at = 0;
  for (int field = 1; field < 48 && at != std::string::npos; ++field) at = line.find(';', at == 0 ? 0 : at + 1);
  return at == std::string::npos || line.empty() ? 0 : std::atof(line.c_str() + at + 1) / 1024;
}

void fills(Report& report, const Place& place, uint64_t mib) {
  std::vector<double> ours, fio;
  for (int pass = 0; pass < 3; ++pass) {
    const std::string name = fmt::format("fill{}", pass);
    {
      const auto tier = open_tier(place.sub(name));
      const double seconds =
          fill(*tier, 0, mib * 16, Bytes::from_string(std::string((64 << 10) - record_bytes(kKeyBytes, 0), 'v')));
      ours.push_back(static_cast<double>(mib) / seconds);
      if (pass == 0) {
        report.add("write_amplification", static_cast<double>(tier->count(DiskCounter::bytes_written)) /
                                              static_cast<double>(tier->count(DiskCounter::payload_bytes)));
      }
    }
    std::filesystem::remove_all(place.sub(name));
    const std::string other = place.sub("fio");
    if (const double rate = fio_mib_per_s(other, mib); rate > 0) fio.push_back(rate);
    std::filesystem::remove_all(other);
  }
  report.add("fill_mib_per_s", median(ours));
  if (fio.size() != ours.size()) return;
  report.add("fio_mib_per_s", median(fio));
  report.add("fill_ratio", median_ratio(fio, ours));
}

void recovery(Report& report, const Place& place, uint64_t objects) {
  const std::string directory = place.sub("recovery");
  {
    const auto tier = open_tier(directory, uint64_t{4} << 20);
    fill(*tier, 0, objects, Bytes::from_string(std::string(100, 'v')));
    tier->close(Deadline::in_ms(60'000));
  }
  const int64_t start = now_ns();
  const auto tier = open_tier(directory, uint64_t{4} << 20);
  const double open_ms = static_cast<double>(now_ns() - start) / 1e6;
  if (!tier->wait_recovered(Deadline::in_ms(600'000))) die("recovery did not end");
  report.add("recovery_open_ms", open_ms);
  report.add("recovery_ms_per_million",
             static_cast<double>(tier->recovery_ns()) / 1e6 * 1e6 / static_cast<double>(objects));
  report.add("recovered_share", static_cast<double>(tier->objects()) / static_cast<double>(objects));
  report.add("index_bytes_per_object", static_cast<double>(tier->index_bytes()) / static_cast<double>(tier->objects()));
}

std::vector<uint32_t> read_trace(size_t most) {
  std::vector<uint32_t> blocks;
  std::FILE* pipe = ::popen("zstd -dc ../shared/data/conversation_trace.jsonl.zst 2>/dev/null", "r");
  if (pipe == nullptr) return blocks;
  char* line = nullptr;
  size_t capacity = 0;
  while (blocks.size() < most && ::getline(&line, &capacity, pipe) > 0) {
    const char* at = std::strstr(line, "\"hash_ids\"");
    at = at == nullptr ? nullptr : std::strchr(at, '[');
    while (at != nullptr && *at != ']' && *at != '\0') {
      char* end = nullptr;
      blocks.push_back(static_cast<uint32_t>(std::strtoul(at + 1, &end, 10)));
      at = end;
      while (*at == ' ') ++at;
    }
  }
  std::free(line);
  ::pclose(pipe);
  return blocks;
}

void replay(Report& report, const Place& place, const std::vector<uint32_t>& trace, bool filter) {
  const std::string label = filter ? "second_touch" : "all";
  constexpr uint64_t kBlock = 4096;
  SecondTierConfig config;
  config.disks = {{.directory = place.sub("trace_" + label),
                   .capacity_bytes = 50'000 * kBlock,
                   .bucket_bytes = uint64_t{4} << 20,
                   .min_free_bytes = 0}};
  config.admit_all = !filter;
  config.flush_ms = 100;
  auto second = SecondTier::open(config, {});
  if (!second) die(second.error().text());
  auto memory = MemoryTier::create({.capacity_bytes = uint64_t{64} << 20, .max_objects = 5'000, .sink = second->get()});
  (*second)->attach(**memory);
  const std::string value(kBlock - record_bytes(kKeyBytes, 0), 'v');
  uint64_t dram_hits = 0, disk_hits = 0;
  const Deadline no_end;
  for (const uint32_t block : trace) {
    const std::string key = key_of(block);
    const uint64_t hash = hash64(key);
    if ((*memory)->get(key, hash)) {
      ++dram_hits;
    } else if ((*second)->get(key, hash, no_end)) {
      ++disk_hits;
    } else {
      const SecondTier::Change change(**second, hash, no_end);
      (void)(*memory)->put({.key = key, .hash = hash, .head = value});
    }
  }
  const auto total = static_cast<double>(trace.size());
  const uint64_t written = (*second)->lanes()[0]->disk()->count(DiskCounter::records_written);
  report.add(fmt::format("trace_{}_dram_hits", label), static_cast<double>(dram_hits) / total);
  report.add(fmt::format("trace_{}_disk_hits", label), static_cast<double>(disk_hits) / total);
  report.add(fmt::format("trace_{}_writes_per_disk_hit", label),
             disk_hits == 0 ? 0 : static_cast<double>(written) / static_cast<double>(disk_hits));
  (*second)->close(Deadline::in_ms(60'000));
}

int run(int argc, char** argv) {
  const Options options = start(argc, argv);
  // The disk's own threads and the reader may share the machine as they like.
  pin_thread_to_nth(0);
  const Place place;
  Report report("disk");
  hits(report, place, 4096, options.quick ? 20'000 : 100'000, options.quick ? 1'000 : 10'000);
  hits(report, place, 65'536, options.quick ? 1'000 : 8'000, options.quick ? 400 : 4'000);
  hits(report, place, 4096, options.quick ? 20'000 : 50'000, options.quick ? 5'000 : 50'000, false);
  fills(report, place, options.quick ? 256 : 1'024);
  recovery(report, place, options.quick ? 200'000 : 1'000'000);
  const auto trace = read_trace(options.quick ? 100'000 : SIZE_MAX);
  if (!trace.empty()) {
    replay(report, place, trace, true);
    replay(report, place, trace, false);
  }
  report.print();
  return 0;
}

}  // namespace
}  // namespace ragfs::bench

int main(int argc, char** argv) { return ragfs::bench::run(argc, argv); }
