// Misses over page-cached local files beside open + read + close: without a fill, and with one.
//
// 4 KiB files in a directory of their own. Without fill: the files are above max_file_size_bytes, so each read is a
// miss that stores nothing. With fill: the cache is flushed before each pass, so each read is a miss that stores.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "bench/stack.h"
#include "bench/support.h"
#include "ragfs/backends/local/local_file_system.h"

namespace ragfs::bench {
namespace {

constexpr size_t kFileBytes = 4096;

std::shared_ptr<FileSystem> open_local(const std::string& root) {
  LocalConfig config;
  config.root_dir = root;
  auto local = LocalFileSystem::open(config);
  if (!local) std::abort();
  return std::shared_ptr<FileSystem>(*std::move(local));
}

// The median of single operations, in nanoseconds.
template <typename Operation>
double p50_ns(const std::vector<uint32_t>& order, const Operation& operation) {
  std::vector<double> samples;
  samples.reserve(order.size());
  for (const uint32_t i : order) {
    const int64_t start_ns = now_ns();
    operation(i);
    samples.push_back(static_cast<double>(now_ns() - start_ns));
  }
  return median(std::move(samples));
}

int run(int argc, char** argv) {
  const Options options = start(argc, argv);
  const uint32_t files = options.quick ? 2'000 : 10'000;
  const int passes = options.quick ? 7 : 31;
  char name[] = "/tmp/ragfs_bench_XXXXXX";
  if (::mkdtemp(name) == nullptr) return 1;
  const std::string root = name;
  std::vector<std::string> host;
  std::vector<std::string> paths;
  const auto plain = open_local(root);
  const Context ctx;
  for (uint32_t i = 0; i < files; ++i) {
    paths.push_back(fmt::format("/d{:02}/f{:05}.md", i % 50, i));
    host.push_back(root + paths.back());
    const PathView path = PathView::from_normal(paths.back());
    (void)plain->ensure_parent_dirs(ctx, path, kDefaultDirMode);
    if (!plain->write(ctx, path, std::string(kFileBytes, 'v'), 0, WriteFlag::create)) return 1;
  }
  CachedMountConfig no_fill;
  no_fill.policy.max_file_size_bytes = kFileBytes - 1;
  Stack misses = Stack::cached_over(open_local(root), uint64_t{128} << 20, no_fill);
  Stack fills = Stack::cached_over(open_local(root), uint64_t{128} << 20);
  const auto order = uniform_draws(files, files, 3);
  std::vector<uint32_t> each(files);
  for (uint32_t i = 0; i < files; ++i) each[i] = i;
  std::string buffer(kFileBytes, '\0');
  const auto by_hand = [&](uint32_t i) {
    const int fd = ::open(host[i].c_str(), O_RDONLY | O_CLOEXEC);
    if (::read(fd, buffer.data(), buffer.size()) != static_cast<ssize_t>(kFileBytes)) std::abort();
    ::close(fd);
    keep(buffer[0]);
  };
  const auto through = [&](Stack& stack) {
    return [&](uint32_t i) {
      const auto found = stack.top->read(ctx, PathView::from_normal(paths[i]), 0, 0);
      if (!found || found->size() != kFileBytes) std::abort();
      keep(found->data()[0]);
    };
  };
  const auto figures =
      alternate(passes, {[&] { return p50_ns(order, by_hand); }, [&] { return p50_ns(order, through(misses)); },
                         [&] {
                           fills.domain->new_epoch();
                           return p50_ns(each, through(fills));
                         }});
  Report report("miss");
  report.add("open_read_close_p50_ns", median(figures[0]));
  report.add("miss_p50_ns", median(figures[1]));
  report.add("miss_fill_p50_ns", median(figures[2]));
  report.add("ratio_p50", median_ratio(figures[0], figures[1]));
  report.add("ratio_fill_p50", median_ratio(figures[0], figures[2]));
  report.print();
  std::filesystem::remove_all(root);
  return 0;
}

}  // namespace
}  // namespace ragfs::bench

int main(int argc, char** argv) { return ragfs::bench::run(argc, argv); }
