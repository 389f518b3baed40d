// The writing half of CachedFileSystem: what each operation affects.
#include <algorithm>
#include <deque>
#include <iterator>
#include <utility>

#include "ragfs/base/pause_point.h"
#include "ragfs/cache/cached_file_system.h"
#include "ragfs/cache/cached_target.h"
#include "ragfs/cache/read_ahead.h"
#include "ragfs/cache/rules.h"

namespace ragfs {
namespace {

// Answers that say for certain that the backend did nothing at all would be `false` of a compare; everything else may
// have changed something, errors too.
template <typename T>
bool may_still_land(const Result<T>& result) {
  return !result && (result.error().code == ErrorCode::timeout || result.error().code == ErrorCode::network);
}

// Errors that say for certain that a rename or removal did nothing.
Result<void> come_back_if_nothing_happened(Result<void> done, const NestedRoots::Marked& marked) {
  if (done) return done;
  switch (done.error().code) {
    case ErrorCode::not_found:
    case ErrorCode::already_exists:
    case ErrorCode::not_a_directory:
    case ErrorCode::is_a_directory:
    case ErrorCode::directory_not_empty:
    case ErrorCode::permission_denied: NestedRoots::come_back(marked); break;
    default: break;
  }
  return done;
}

}  // namespace

// The one way through every mutation: lock and mark, backend, records, provider.
template <typename T>
Result<T> CachedFileSystem::mutate(const Context& ctx, PathView path, MutationPlan plan,
                                   const std::function<Result<T>()>& operation,
                                   const std::function<std::optional<NewValue>(const T&)>& new_value,
                                   const std::function<void(MutationPlan&)>& complete) {
  if (!moved()) {
    Result<Mutation> mutation = Mutation::begin(*domain_, std::move(plan), ctx.deadline, complete);
    if (!mutation) return std::unexpected(std::move(mutation.error()));
    if (!moved()) return carry_out<T>(ctx, path, *mutation, operation, new_value);
    mutation->abandon();  // the root went elsewhere while this call waited for its lock
  }
  Result<Mutation> mutation = Mutation::begin(*domain_, plan_everything(), ctx.deadline);
  if (!mutation) return std::unexpected(std::move(mutation.error()));
  return carry_out<T>(ctx, path, *mutation, operation, {});
}

MutationPlan CachedFileSystem::plan_everything() const {
  constexpr PathView kRoot;
  MutationPlan everything = plan();
  everything.lock(kRoot, PathLockKind::subtree);
  everything.affect_subtree(kRoot);
  return everything;
}

template <typename T>
Result<T> CachedFileSystem::carry_out(const Context& ctx, PathView path, Mutation& mutation,
                                      const std::function<Result<T>()>& operation,
                                      const std::function<std::optional<NewValue>(const T&)>& new_value) {
  if (!rule_enabled(Rule::kClockAfterBackend)) mutation.settle();
  RAGFS_PAUSE_POINT("mutation.before_backend");
  ctx.via_symlink = false;
  Result<T> result = operation();
  const bool aliased = ctx.via_symlink;
  RAGFS_PAUSE_POINT("mutation.after_backend");
  if (!result && !rule_enabled(Rule::kFailedMutationRecords)) {
    mutation.abandon();
    return result;
  }
  if (rule_enabled(Rule::kClockAfterBackend)) {
    mutation.settle(may_still_land(result), backend_->traits().late_apply_bound_ms);
  }
  if (aliased) refuse_aliases_of(ctx, path);
  if (ahead_) ahead_->seen_change(path);
  std::optional<NewValue> value;
  if (result && new_value && !aliased) value = new_value(*result);
  const std::span<const NewValue> values = value ? std::span<const NewValue>(&*value, 1) : std::span<const NewValue>();
  const Result<void> published = mutation.publish(values, ctx.deadline);
  if (result && !published) return std::unexpected(published.error());
  return result;
}

// No running mark stood over the other name, so reads of it during the mutation may see it early or late; none that
// starts after the mutation returned sees old bytes. Where the link leads may be gone by now (it was removed or
// renamed): then everything of the backend is refused, which is rare enough.
void CachedFileSystem::refuse_aliases_of(const Context& ctx, PathView path) {
  const Result<Path> real = backend_->resolve(ctx, path.parent());
  const bool leads_elsewhere = real && real->view() != path.parent();
  const Target target(*this, leads_elsewhere ? real->view() : PathView());
  MutationTable& table = domain_->table();
  table.record(RecordPath(identity_->root_id, target.identity_path()), ObjectKind::subtree, table.advance_clock());
  // The listings that show the directory, and its times.
  for (PathView above = target.identity_path(); !above.is_root();) {
    above = above.parent();
    table.record(RecordPath(identity_->root_id, above), ObjectKind::listing, table.advance_clock());
  }
  domain_->negatives().clear();
  table.enforce_limits();
}

Result<void> CachedFileSystem::mutate_void(const Context& ctx, PathView path, MutationPlan plan,
                                           const std::function<Result<void>()>& operation,
                                           const std::function<void(MutationPlan&)>& complete) {
  const auto as_value = [&]() -> Result<bool> {
    Result<void> result = operation();
    if (!result) return std::unexpected(std::move(result.error()));
    return true;
  };
  Result<bool> done = mutate<bool>(ctx, path, std::move(plan), as_value, {}, complete);
  if (!done) return std::unexpected(std::move(done.error()));
  return {};
}

Result<void> CachedFileSystem::mutate_file(const Context& ctx, PathView path,
                                           const std::function<Result<void>()>& operation) {
  const Target target(*this, path);
  MutationPlan affected = plan();
  affected.lock(target.identity_path(), PathLockKind::exact);
  affected.affect_file(target.identity_path());
  return mutate_void(ctx, path, std::move(affected), operation);
}

Result<void> CachedFileSystem::mutate_path(const Context& ctx, PathView path,
                                           const std::function<Result<void>()>& operation) {
  const Target target(*this, path);
  MutationPlan affected = plan();
  affected.lock(target.identity_path(), PathLockKind::exact);
  affected.affect_path(target.identity_path());
  return mutate_void(ctx, path, std::move(affected), operation);
}

Result<void> CachedFileSystem::create(const Context& ctx, PathView path) {
  return mutate_file(ctx, path, [&] { return backend_->create(ctx, path); });
}

Result<void> CachedFileSystem::mkdir(const Context& ctx, PathView path, uint32_t mode) {
  return mutate_path(ctx, path, [&] { return backend_->mkdir(ctx, path, mode); });
}

Result<void> CachedFileSystem::remove(const Context& ctx, PathView path) {
  const Target target(*this, path);
  return mutate_path(ctx, path, [&] {
    const NestedRoots::Marked marked = identity_->nested.leave(target.identity_path());
    return come_back_if_nothing_happened(backend_->remove(ctx, path), marked);
  });
}

Result<void> CachedFileSystem::truncate(const Context& ctx, PathView path, uint64_t size) {
  return mutate_file(ctx, path, [&] { return backend_->truncate(ctx, path, size); });
}

Result<void> CachedFileSystem::touch(const Context& ctx, PathView path) {
  return mutate_path(ctx, path, [&] { return backend_->touch(ctx, path); });
}

Result<void> CachedFileSystem::chmod(const Context& ctx, PathView path, uint32_t mode) {
  return mutate_path(ctx, path, [&] { return backend_->chmod(ctx, path, mode); });
}

std::optional<NewValue> CachedFileSystem::value_of(const Context& ctx, const Target& target, std::string_view data,
                                                   const WriteResult& written) const {
  const CacheDecision policy = policy_.cache_policy(target.path, CacheOp::write, ctx);
  const bool admitted = !filled_ || policy.preferred || filled_->has(domain_->key(target.at, ObjectKind::file).hash());
  const bool keeps = serves(target.path) && policy.may_fill && admitted && data.size() <= policy.max_bytes;
  // Only what the backend confirms: all of the bytes, and that they are all of the file.
  const bool complete = written.bytes == data.size() && written.meta.size == data.size();
  if (!keeps || !complete || !written.meta.cacheable) return std::nullopt;
  return NewValue{target.identity_path(), data, written.meta, {.preferred = policy.preferred}};
}

Result<WriteResult> CachedFileSystem::write(const Context& ctx, PathView path, std::string_view data, uint64_t offset,
                                            WriteFlag flag) {
  const Target target(*this, path);
  MutationPlan affected = plan();
  affected.lock(target.identity_path(), PathLockKind::exact);
  affected.affect_file(target.identity_path());
  const bool whole_file = flag == WriteFlag::create || flag == WriteFlag::create_new || flag == WriteFlag::truncate;
  return mutate<WriteResult>(
      ctx, path, std::move(affected), [&] { return backend_->write(ctx, path, data, offset, flag); },
      [&](const WriteResult& written) { return whole_file ? value_of(ctx, target, data, written) : std::nullopt; });
}

// One mutation of all the paths: every one stays locked until the values of all are stored.
std::vector<Result<WriteResult>> CachedFileSystem::write_many(const Context& ctx, std::span<const WriteItem> items) {
  const auto refuse = [&](const Error& error) {
    return std::vector<Result<WriteResult>>(items.size(), Result<WriteResult>(std::unexpected(error)));
  };
  if (const auto distinct = check_distinct(items); !distinct) return refuse(distinct.error());
  if (items.size() <= 1 || moved()) return FileSystem::write_many(ctx, items);
  std::deque<Target> targets;  // stay where they are
  MutationPlan affected = plan();
  for (const WriteItem& item : items) {
    const Target& target = targets.emplace_back(*this, item.path);
    affected.lock(target.identity_path(), PathLockKind::exact);
    affected.affect_file(target.identity_path());
  }
  Result<Mutation> mutation = Mutation::begin(*domain_, std::move(affected), ctx.deadline);
  if (!mutation) return refuse(mutation.error());
  if (moved()) {
    mutation->abandon();  // the root went elsewhere while this call waited for its locks
    return FileSystem::write_many(ctx, items);
  }
  RAGFS_PAUSE_POINT("mutation.before_backend");
  ctx.via_symlink = false;
  std::vector<Result<WriteResult>> results = backend_->write_many(ctx, items);
  const bool aliased = ctx.via_symlink;  // maybe only some of them: all are treated alike
  RAGFS_PAUSE_POINT("mutation.after_backend");
  const bool late = std::ranges::any_of(results, [](const auto& result) { return may_still_land(result); });
  mutation->settle(late, backend_->traits().late_apply_bound_ms);
  std::vector<NewValue> values;
  for (size_t i = 0; i < items.size(); ++i) {
    if (aliased) refuse_aliases_of(ctx, items[i].path);
    if (ahead_) ahead_->seen_change(items[i].path);
    if (!results[i] || aliased || late) continue;
    auto value = value_of(ctx, targets[i], items[i].data, *results[i]);
    if (value) values.push_back(*std::move(value));
  }
  if (const auto published = mutation->publish(values, ctx.deadline); !published) {
    for (Result<WriteResult>& result : results) {
      if (result) result = std::unexpected(published.error());
    }
  }
  return results;
}

Result<bool> CachedFileSystem::compare_and_write(const Context& ctx, PathView path, std::string_view expected,
                                                 std::string_view replacement) {
  const Target target(*this, path);
  MutationPlan affected = plan();
  affected.lock(target.identity_path(), PathLockKind::exact);
  affected.affect_file(target.identity_path());
  return mutate<bool>(ctx, path, std::move(affected),
                      [&] { return backend_->compare_and_write(ctx, path, expected, replacement); });
}

Result<bool> CachedFileSystem::compare_and_remove(const Context& ctx, PathView path, std::string_view expected) {
  const Target target(*this, path);
  MutationPlan affected = plan();
  affected.lock(target.identity_path(), PathLockKind::exact);
  affected.affect_path(target.identity_path());
  return mutate<bool>(ctx, path, std::move(affected),
                      [&] { return backend_->compare_and_remove(ctx, path, expected); });
}

Result<void> CachedFileSystem::remove_all(const Context& ctx, PathView path) {
  const Target target(*this, path);
  MutationPlan affected = plan();
  affected.lock(target.identity_path(), PathLockKind::subtree);
  affected.affect_subtree(target.identity_path());
  return mutate_void(ctx, path, std::move(affected), [&] {
    identity_->nested.leave_with_all_below(target.identity_path());
    return backend_->remove_all(ctx, path);
  });
}

Result<void> CachedFileSystem::invalidate(const Context& ctx, PathView path) {
  const Target target(*this, path);
  MutationPlan affected = plan();
  affected.lock(target.identity_path(), PathLockKind::subtree);
  affected.affect_subtree(target.identity_path());
  return mutate_void(ctx, path, std::move(affected), [] { return Result<void>{}; });
}

// mutate() looks after the aliases of the target; a move changes the source's as well.
Result<void> CachedFileSystem::both_sides(const Context& ctx, PathView from, Result<void> moved) {
  if (ctx.via_symlink) refuse_aliases_of(ctx, from);
  return moved;
}

Result<void> CachedFileSystem::rename(const Context& ctx, PathView from, PathView to) {
  const Target source(*this, from);
  const Target target(*this, to);
  MutationPlan affected = plan();
  affected.lock(source.identity_path(), PathLockKind::subtree);
  affected.lock(target.identity_path(), PathLockKind::subtree);
  return mutate_void(
      ctx, to, std::move(affected),
      [&] {
        NestedRoots::Marked marked = identity_->nested.leave_with_all_below(source.identity_path());
        std::ranges::move(identity_->nested.leave(target.identity_path()), std::back_inserter(marked));
        return both_sides(ctx, from, come_back_if_nothing_happened(backend_->rename(ctx, from, to), marked));
      },
      [&](MutationPlan& more) {
        // A file takes exact records, which are let go soon; a directory, or what could not be asked, takes its
        // subtree.
        const Result<FileInfo> moved = backend_->stat(ctx, from);
        const bool is_file = moved && moved->kind == FileKind::file;
        for (const PathView side : {source.identity_path(), target.identity_path()}) {
          if (is_file) {
            more.affect_path(side);
          } else {
            more.affect_subtree(side);
          }
        }
      });
}

Result<void> CachedFileSystem::replace(const Context& ctx, PathView from, PathView to) {
  const Target source(*this, from);
  const Target target(*this, to);
  MutationPlan affected = plan();
  affected.lock(source.identity_path(), PathLockKind::exact);
  affected.lock(target.identity_path(), PathLockKind::exact);
  affected.affect_path(source.identity_path());
  affected.affect_path(target.identity_path());
  return mutate_void(ctx, to, std::move(affected),
                     [&] { return both_sides(ctx, from, backend_->replace(ctx, from, to)); });
}

void CachedFileSystem::plan_missing_ancestors(const Context& ctx, PathView path, const Target& target,
                                              MutationPlan& plan) const {
  if (path.is_root()) return;
  const Target above(*this, path.parent());
  // A removal of the parent that timed out may still land; other mutations are kept away from it by the lock.
  const bool may_vanish = domain_->observe_for(above.at, ObjectKind::listing, 0).running();
  const Result<FileInfo> parent = backend_->stat(ctx, path.parent());
  // One that exists as a directory proves that all above it do.
  if (parent && parent->is_dir() && !may_vanish) return;
  plan.affect_ancestors(target.identity_path());
}

Result<void> CachedFileSystem::ensure_parent_dirs(const Context& ctx, PathView path, uint32_t mode) {
  const Target target(*this, path);
  MutationPlan affected = plan();
  affected.lock(target.identity_path(), PathLockKind::exact);
  // A parent that was there when it was asked for must not be removed before the backend makes it again, unrecorded.
  affected.lock(target.identity_path().parent(), PathLockKind::shared);
  return mutate_void(
      ctx, path, std::move(affected), [&] { return backend_->ensure_parent_dirs(ctx, path, mode); },
      [&](MutationPlan& more) { plan_missing_ancestors(ctx, path, target, more); });
}

Result<WriteResult> CachedFileSystem::copy(const Context& ctx, PathView from, PathView to) {
  const Target source(*this, from);
  const Target target(*this, to);
  MutationPlan affected = plan();
  affected.lock(source.identity_path(), PathLockKind::shared);
  affected.lock(target.identity_path(), PathLockKind::exact);
  affected.lock(target.identity_path().parent(), PathLockKind::shared);  // as in ensure_parent_dirs()
  affected.affect_file(target.identity_path());
  return mutate<WriteResult>(
      ctx, to, std::move(affected), [&] { return backend_->copy(ctx, from, to); }, {},
      [&](MutationPlan& more) { plan_missing_ancestors(ctx, to, target, more); });
}

}  // namespace ragfs
