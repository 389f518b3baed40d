#include "ragfs/cli/stress/workload.h"

#include <fmt/format.h>

#include <array>

namespace ragfs::stress {
namespace {

constexpr std::array<std::string_view, kOpKindCount> kNames{"read",
                                                            "read_range",
                                                            "read_file",
                                                            "stat",
                                                            "exists",
                                                            "list",
                                                            "tree",
                                                            "glob",
                                                            "grep",
                                                            "read_many",
                                                            "stat_many",
                                                            "write",
                                                            "write_new",
                                                            "append",
                                                            "overwrite",
                                                            "truncate",
                                                            "create",
                                                            "touch",
                                                            "chmod",
                                                            "remove",
                                                            "compare_and_write",
                                                            "compare_and_remove",
                                                            "write_many",
                                                            "copy",
                                                            "replace",
                                                            "rename",
                                                            "mkdir",
                                                            "ensure_parents",
                                                            "remove_all",
                                                            "rename_directory",
                                                            "invalidate"};

constexpr size_t kFilesPerDirectory = 20;
constexpr size_t kDirectoriesPerScope = 10;

struct Weight {
  OpKind kind;
  uint32_t weight;
};

constexpr std::array<Weight, 11> kReads{{{OpKind::read, 450},
                                         {OpKind::read_range, 40},
                                         {OpKind::read_file, 60},
                                         {OpKind::stat, 160},
                                         {OpKind::exists, 80},
                                         {OpKind::list, 160},
                                         {OpKind::tree, 24},
                                         {OpKind::glob, 20},
                                         {OpKind::grep, 6},
                                         {OpKind::read_many, 60},
                                         {OpKind::stat_many, 40}}};

constexpr std::array<Weight, 17> kMutations{{{OpKind::write, 400},
                                             {OpKind::write_new, 30},
                                             {OpKind::append, 80},
                                             {OpKind::overwrite, 40},
                                             {OpKind::truncate, 40},
                                             {OpKind::create, 20},
                                             {OpKind::touch, 30},
                                             {OpKind::chmod, 40},
                                             {OpKind::remove, 80},
                                             {OpKind::compare_and_write, 40},
                                             {OpKind::compare_and_remove, 20},
                                             {OpKind::write_many, 80},
                                             {OpKind::copy, 50},
                                             {OpKind::replace, 30},
                                             {OpKind::rename, 50},
                                             {OpKind::mkdir, 20},
                                             {OpKind::ensure_parents, 30}}};

constexpr std::array<Weight, 6> kSubtreeMutations{{{OpKind::remove_all, 300},
                                                   {OpKind::rename_directory, 450},
                                                   {OpKind::remove, 40},
                                                   {OpKind::mkdir, 100},
                                                   {OpKind::chmod, 60},
                                                   {OpKind::invalidate, 50}}};

template <size_t N>
OpKind draw(const std::array<Weight, N>& weights, Random& random) {
  uint64_t sum = 0;
  for (const Weight& at : weights) sum += at.weight;
  uint64_t drawn = random.below(sum);
  for (const Weight& at : weights) {
    if (drawn < at.weight) return at.kind;
    drawn -= at.weight;
  }
  return weights.front().kind;
}

Result<void> in_range(std::string_view field, uint64_t value, uint64_t least, uint64_t most) {
  if (value >= least && value <= most) return {};
  return fail(ErrorCode::config, fmt::format("{}: {} is not allowed; it must be {} to {}", field, value, least, most));
}

}  // namespace

std::string_view op_name(OpKind kind) { return kNames[static_cast<size_t>(kind)]; }

Result<void> WorkloadConfig::validate() const {
  if (auto ok = in_range("hot_files", hot_files, 2, 1000); !ok) return ok;
  if (auto ok = in_range("cold_files", cold_files, 2, 100'000); !ok) return ok;
  if (auto ok = in_range("hot_per_mille", hot_per_mille, 0, 1000); !ok) return ok;
  if (auto ok = in_range("mutations_per_mille", mutations_per_mille, 0, 1000); !ok) return ok;
  if (auto ok = in_range("subtrees_per_mille", subtrees_per_mille, 0, 1000); !ok) return ok;
  return in_range("mounts", mounts, 1, 2);
}

Layout::Layout(const WorkloadConfig& config, Oracle& oracle) {
  add_scope("hot", 2, (config.hot_files + 1) / 2, config.hot_files, oracle, hot_files_);
  const size_t per_scope = kFilesPerDirectory * kDirectoriesPerScope;
  for (size_t made = 0; made < config.cold_files; made += per_scope) {
    add_scope(fmt::format("r{}", made / per_scope), kDirectoriesPerScope, kFilesPerDirectory,
              std::min(per_scope, config.cold_files - made), oracle, cold_files_);
  }
}

void Layout::add_scope(std::string_view name, size_t directories, size_t files, size_t most, Oracle& oracle,
                       std::vector<size_t>& into) {
  const std::string scope = fmt::format("/acct/resources/{}", name);
  scopes_.push_back(oracle.add(PathView::from_normal(scope)));
  size_t added = 0;
  for (size_t d = 0; d < directories && added < most; ++d) {
    const std::string directory = fmt::format("{}/d{}", scope, d);
    directories_.push_back(oracle.add(PathView::from_normal(directory)));
    for (size_t f = 0; f < files && added < most; ++f, ++added) {
      const std::string file = f == 0   ? directory + "/.abstract.md"
                               : f == 1 ? directory + "/.overview.md"
                                        : fmt::format("{}/f{}.md", directory, f);
      into.push_back(oracle.add(PathView::from_normal(file)));
    }
  }
}

std::string content_of(std::string_view path, uint64_t number) {
  // The number comes first, so that the beginning alone tells which write it was.
  std::string text = fmt::format("v{:016x} {} ", number, path);
  text.append(number % 500, 'x');
  return text;
}

Workload::Workload(const WorkloadConfig& config, const Layout& layout, uint64_t seed)
    : config_(config), layout_(layout), random_(seed) {}

size_t Workload::file() {
  const bool hot = random_.below(1000) < config_.hot_per_mille;
  const std::vector<size_t>& files = hot ? layout_.hot_files() : layout_.cold_files();
  return files[random_.below(files.size())];
}

Operation Workload::next() {
  const bool mutates = random_.below(1000) < config_.mutations_per_mille;
  Operation op = mutates ? mutation() : read();
  op.number = random_.next();
  op.mount = static_cast<uint32_t>(random_.below(config_.mounts));
  return op;
}

Operation Workload::read() {
  Operation op;
  op.kind = draw(kReads, random_);
  op.bypass_cache = random_.below(1000) < config_.bypass_per_mille;
  switch (op.kind) {
    case OpKind::list:
    case OpKind::tree:
    case OpKind::glob:
    case OpKind::grep:
      // Hot directories too: their files' parents are the first ones declared.
      op.path = random_.below(1000) < config_.hot_per_mille ? layout_.directories()[random_.below(2)] : directory();
      if (op.kind != OpKind::grep && random_.below(8) == 0) {
        op.path = layout_.scopes()[random_.below(layout_.scopes().size())];
      }
      break;
    case OpKind::stat:
    case OpKind::exists: op.path = random_.below(6) == 0 ? directory() : file(); break;
    case OpKind::read_many:
    case OpKind::stat_many:
      op.path = file();
      op.other = file();
      break;
    default: op.path = file(); break;
  }
  return op;
}

Operation Workload::mutation() {
  if (random_.below(1000) < config_.subtrees_per_mille) return subtree_mutation();
  Operation op;
  op.kind = draw(kMutations, random_);
  op.path = file();
  op.other = file();
  return op;
}

Operation Workload::subtree_mutation() {
  Operation op;
  op.kind = draw(kSubtreeMutations, random_);
  const bool hot = random_.below(1000) < config_.hot_per_mille / 2;
  op.path = hot ? layout_.directories()[random_.below(2)] : directory();
  op.other = directory();
  const bool whole_scope = random_.below(40) == 0;
  if (whole_scope && (op.kind == OpKind::remove_all || op.kind == OpKind::invalidate)) {
    op.path = layout_.scopes()[random_.below(layout_.scopes().size())];
  }
  return op;
}

}  // namespace ragfs::stress
