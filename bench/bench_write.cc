// Overwrites and an import through the embedded cache beside no cache, on a local directory.
//
// Overwrite: 4 KiB files, whole content. Import: 10,000 new files into an empty directory, both sides; afterwards the
// working set that was hot before is read again.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "bench/stack.h"
#include "bench/support.h"
#include "ragfs/backends/local/local_file_system.h"

namespace ragfs::bench {
namespace {

std::shared_ptr<FileSystem> open_local(const std::string& root) {
  std::filesystem::create_directories(root);
  LocalConfig config;
  config.root_dir = root;
  auto local = LocalFileSystem::open(config);
  if (!local) std::abort();
  return std::shared_ptr<FileSystem>(*std::move(local));
}

void write(Stack& stack, std::string_view path, std::string_view data) {
  const Context ctx;
  if (!stack.top->write(ctx, PathView::from_normal(path), data, 0, WriteFlag::create)) std::abort();
}

double overwrite_p50_ns(Stack& stack, const std::vector<std::string>& paths, std::string_view data) {
  std::vector<double> samples;
  for (const std::string& path : paths) {
    const int64_t start_ns = now_ns();
    write(stack, path, data);
    samples.push_back(static_cast<double>(now_ns() - start_ns));
  }
  return median(std::move(samples));
}

double import_ms(Stack& stack, const std::string& dir, size_t files, std::string_view data) {
  const Context ctx;
  const int64_t start_ns = now_ns();
  (void)stack.top->mkdir(ctx, PathView::from_normal(dir), kDefaultDirMode);
  for (size_t i = 0; i < files; ++i) write(stack, fmt::format("{}/f{:05}.md", dir, i), data);
  return static_cast<double>(now_ns() - start_ns) / 1e6;
}

int run(int argc, char** argv) {
  const Options options = start(argc, argv);
  const int passes = options.quick ? 5 : 15;
  const size_t import_files = options.quick ? 2'000 : 10'000;
  constexpr size_t kFiles = 1'000;
  constexpr size_t kWorkingSet = 2'000;
  char name[] = "/tmp/ragfs_bench_XXXXXX";
  if (::mkdtemp(name) == nullptr) return 1;
  const std::string root = name;
  Stack plain = Stack::uncached_over(open_local(root + "/plain"));
  // Room for the working set and about a third of the import.
  Stack cached = Stack::cached_over(open_local(root + "/cached"), uint64_t{24} << 20);
  const std::string data(4096, 'v');
  std::vector<std::string> paths;
  for (size_t i = 0; i < kFiles; ++i) paths.push_back(fmt::format("/f{:05}.md", i));
  const auto overwrites = alternate(passes, {[&] { return overwrite_p50_ns(plain, paths, data); },
                                             [&] { return overwrite_p50_ns(cached, paths, data); }});
  const Context ctx;
  std::vector<std::string> hot;
  for (size_t i = 0; i < kWorkingSet; ++i) {
    hot.push_back(fmt::format("/hot{:05}.md", i));
    write(cached, hot.back(), data);
  }
  for (int pass = 0; pass < 3; ++pass) {
    for (const std::string& path : hot) (void)cached.top->read(ctx, PathView::from_normal(path), 0, 0);
  }
  int round = 0;
  const auto imports = alternate(
      options.quick ? 1 : 3, {[&] { return import_ms(plain, fmt::format("/in{}", round++), import_files, data); },
                              [&] { return import_ms(cached, fmt::format("/in{}", round++), import_files, data); }});
  const uint64_t hits_before = cached.cached->count(CacheCounter::file_hit);
  for (const std::string& path : hot) (void)cached.top->read(ctx, PathView::from_normal(path), 0, 0);
  const uint64_t hits = cached.cached->count(CacheCounter::file_hit) - hits_before;
  Report report("write");
  report.add("uncached_p50_ns", median(overwrites[0]));
  report.add("cached_p50_ns", median(overwrites[1]));
  report.add("ratio_p50", median_ratio(overwrites[0], overwrites[1]));
  report.add("import_files", static_cast<double>(import_files));
  report.add("import_uncached_ms", median(imports[0]));
  report.add("import_cached_ms", median(imports[1]));
  report.add("import_ratio", median_ratio(imports[0], imports[1]));
  report.add("working_set_hit_rate_after_import", static_cast<double>(hits) / static_cast<double>(kWorkingSet));
  report.print();
  std::filesystem::remove_all(root);
  return 0;
}

}  // namespace
}  // namespace ragfs::bench

int main(int argc, char** argv) { return ragfs::bench::run(argc, argv); }
