// CachedFileSystem::verify() and the sampled hits: are the objects of the cache what the backend holds?
#include <deque>

#include "ragfs/cache/cached_file_system.h"
#include "ragfs/cache/cached_target.h"

namespace ragfs {

// An object that is served before the backend was asked and is served still, under the same stamp, was valid all the
// time in between: a mutation would have refused it. So what differs then is wrong.
bool CachedFileSystem::verify_object(const Context& ctx, PathView path, ObjectKind kind, VerifyReport& report) {
  const Target target(*this, path);
  const std::optional<CacheHit> before = domain_->lookup(target.at, kind, ctx.deadline);
  if (!before) return true;
  ++report.objects;
  std::string truth;
  if (kind == ObjectKind::file) {
    const Result<Bytes> content = backend_->read(ctx, path, 0, 0);
    if (!content) return ++report.unreadable, true;
    truth = content->str();
  } else {
    Result<std::vector<FileInfo>> entries = backend_->read_dir(ctx, path);
    if (!entries) return ++report.unreadable, true;
    std::erase_if(*entries, [](const FileInfo& entry) { return is_internal_lock_name(entry.name); });
    sort_entries(*entries);
    truth = pack_listing(*entries);
  }
  if (before->envelope.payload == truth) return true;
  const std::optional<CacheHit> after = domain_->lookup(target.at, kind, ctx.deadline);
  if (!after || after->envelope.info.stamp != before->envelope.info.stamp) return true;
  ++report.wrong;
  if (report.wrong_paths.size() < VerifyReport::kMostPaths) report.wrong_paths.emplace_back(path.text());
  return false;
}

bool CachedFileSystem::is_sampled() const {
  thread_local uint32_t hits = 0;
  return ++hits % verify_one_in_ == 0;
}

bool CachedFileSystem::verify_hit(const Context& ctx, PathView path) {
  counters_.add(CacheCounter::verify_sampled);
  VerifyReport report;
  if (verify_object(ctx, path, ObjectKind::file, report)) return true;
  counters_.add(CacheCounter::verify_wrong);
  (void)invalidate(ctx, path);  // when it cannot be done the next sample finds it again
  return false;
}

Result<void> CachedFileSystem::verify(const Context& ctx, PathView path, VerifyReport& report) {
  if (!serves(path)) return {};
  const Result<FileInfo> top =
      path.is_root() ? Result<FileInfo>(FileInfo{.kind = FileKind::directory}) : backend_->stat(ctx, path);
  if (!top) return std::unexpected(top.error());
  if (!top->is_dir()) {
    ++report.looked_at;
    return verify_object(ctx, path, ObjectKind::file, report) ? Result<void>{} : invalidate(ctx, path);
  }
  std::deque<Path> directories{Path(path)};
  while (!directories.empty()) {
    if (ctx.deadline.expired()) return fail(ErrorCode::timeout, directories.front().text());
    const Path directory = std::move(directories.front());
    directories.pop_front();
    bool right = verify_object(ctx, directory, ObjectKind::listing, report);
    const Result<std::vector<FileInfo>> entries = backend_->read_dir(ctx, directory);
    // One that went away, or cannot be read, is counted where its object was looked at.
    for (const FileInfo& entry : entries ? *entries : std::vector<FileInfo>()) {
      Result<Path> child = Path::join(directory, entry.name);
      if (!child || !serves(*child)) continue;
      ++report.looked_at;
      if (entry.is_dir()) {
        if (directories.size() < VerifyReport::kMostDirectories) {
          directories.push_back(*std::move(child));
        } else {
          ++report.left_out;
        }
      } else {
        right = verify_object(ctx, *child, ObjectKind::file, report) && right;
      }
    }
    if (right) continue;
    if (auto done = invalidate(ctx, directory); !done) return done;
  }
  return {};
}

}  // namespace ragfs
