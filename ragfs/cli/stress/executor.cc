#include "ragfs/cli/stress/executor.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "ragfs/cache/cached_file_system.h"

namespace ragfs::stress {
namespace {

constexpr uint64_t kRangeOffset = 1;
constexpr uint64_t kRangeSize = 24;

// Answers that follow from the tree as it is.
bool follows_from_tree(ErrorCode code) {
  switch (code) {
    case ErrorCode::not_found:
    case ErrorCode::already_exists:
    case ErrorCode::not_a_directory:
    case ErrorCode::is_a_directory:
    case ErrorCode::directory_not_empty:
    case ErrorCode::invalid_operation: return true;
    default: return false;
  }
}

template <typename T>
Result<void> as_void(const Result<T>& result) {
  return result ? Result<void>{} : std::unexpected(result.error());
}

}  // namespace

struct Executor::Call {
  const Operation& op;
  FileSystem& fs;
  const Path& path;
  Context ctx;
  Outcome out;
};

Outcome Executor::run(const Operation& op, size_t reader) {
  Call call{op, *mounts_[op.mount % mounts_.size()], oracle_.path(op.path), {}, {}};
  call.ctx.bypass_cache = op.bypass_cache;
  call.out.answer = "ok";
  call.out.start = oracle_.begin_read(reader);
  switch (op.kind) {
    case OpKind::read:
    case OpKind::read_range:
    case OpKind::read_file:
    case OpKind::stat:
    case OpKind::exists: read(call); break;
    case OpKind::list: list(call); break;
    case OpKind::tree: tree(call); break;
    case OpKind::glob: glob(call); break;
    case OpKind::grep: grep(call); break;
    case OpKind::read_many:
    case OpKind::stat_many: read_many(call); break;
    default: mutate(call); break;
  }
  oracle_.end_read(reader);
  if (call.out.violation) {
    call.out.violation->operation = op_name(op.kind);
    call.out.answer = "WRONG";
  }
  return std::move(call.out);
}

void Executor::note_error(Call& call, const Error& error, bool is_natural) {
  call.out.answer = kind_name(error.code);
  if (is_natural) return;
  if (backend_fails_ && (error.code == ErrorCode::io || error.code == ErrorCode::timeout)) return;
  const bool refused = error.code == ErrorCode::cache_not_updated || error.code == ErrorCode::unavailable;
  if (strict_ && is_mutation(call.op.kind) && refused) return;
  Violation violation;
  violation.kind = "an error that no fault of the backend explains";
  violation.path = call.path.text();
  violation.start = call.out.start;
  violation.end = call.out.end;
  violation.seen = error.text();
  call.out.violation = std::move(violation);
}

template <typename T>
void Executor::judge(Call& call, size_t index, Aspect aspect, const Result<T>& answer,
                     const std::optional<PathState>& seen) {
  if (!answer) note_error(call, answer.error(), seen.has_value());
  if (seen && !call.out.violation) {
    call.out.violation = oracle_.judge(index, aspect, *seen, call.out.start, call.out.end);
  }
}

void Executor::read(Call& call) {
  const size_t index = call.op.path;
  switch (call.op.kind) {
    case OpKind::read_range: {
      const Result<Bytes> range = call.fs.read(call.ctx, call.path, kRangeOffset, kRangeSize);
      call.out.end = oracle_.now();
      if (range) {
        call.out.violation =
            oracle_.judge_range(index, range->view(), kRangeOffset, kRangeSize, call.out.start, call.out.end);
      } else {
        judge(call, index, Aspect::content, range, PathState::of_content(range));
      }
      return;
    }
    case OpKind::read_file: {
      const Result<FileContent> file = call.fs.read_file(call.ctx, call.path);
      call.out.end = oracle_.now();
      const Result<Bytes> content = file ? Result<Bytes>(file->data) : std::unexpected(file.error());
      judge(call, index, Aspect::content, content, PathState::of_content(content));
      if (!file || call.out.violation) return;
      const Result<FileInfo> entry = FileInfo{"", file->meta.size, file->meta.mode, file->meta.mtime_ns};
      judge(call, index, Aspect::entry, entry, PathState::of_entry(entry));
      return;
    }
    case OpKind::stat: {
      const Result<FileInfo> entry = call.fs.stat(call.ctx, call.path);
      call.out.end = oracle_.now();
      judge(call, index, Aspect::entry, entry, PathState::of_entry(entry));
      return;
    }
    case OpKind::exists: {
      const Result<bool> there = call.fs.exists(call.ctx, call.path);
      call.out.end = oracle_.now();
      if (!there) return note_error(call, there.error(), false);
      call.out.violation = oracle_.judge_presence(index, *there, call.out.start, call.out.end);
      return;
    }
    default: {
      const Result<Bytes> content = call.fs.read(call.ctx, call.path, 0, 0);
      call.out.end = oracle_.now();
      judge(call, index, Aspect::content, content, PathState::of_content(content));
      return;
    }
  }
}

// Two paths and a neighbour of the first; each answer is judged for itself.
void Executor::read_many(Call& call) {
  const std::vector<size_t> indexes = {call.op.path, call.op.other, (call.op.path + 1) % oracle_.size()};
  std::vector<PathView> paths;
  for (const size_t index : indexes) paths.push_back(oracle_.path(index));
  std::vector<Result<Bytes>> contents;
  std::vector<Result<FileInfo>> entries;
  const bool reads = call.op.kind == OpKind::read_many;
  if (reads) {
    contents = call.fs.read_many(call.ctx, paths);
  } else {
    entries = call.fs.stat_many(call.ctx, paths);
  }
  call.out.end = oracle_.now();
  for (size_t i = 0; i < indexes.size() && !call.out.violation; ++i) {
    if (reads) {
      judge(call, indexes[i], Aspect::content, contents[i], PathState::of_content(contents[i]));
    } else {
      judge(call, indexes[i], Aspect::entry, entries[i], PathState::of_entry(entries[i]));
    }
  }
}

void Executor::list(Call& call) {
  const Result<std::vector<FileInfo>> entries = call.fs.read_dir(call.ctx, call.path);
  call.out.end = oracle_.now();
  judge(call, call.op.path, Aspect::listing, entries, PathState::of_listing(entries, false));
  if (call.out.violation) call.out.violation->seen = PathState::of_listing(entries, true)->text;
}

// A tree is many listings, each of them judged for itself.
void Executor::tree(Call& call) {
  TreeOptions options;
  options.show_hidden = true;
  const Result<std::vector<TreeEntry>> entries = call.fs.tree(call.ctx, call.path, options);
  call.out.end = oracle_.now();
  if (!entries) return note_error(call, entries.error(), follows_from_tree(entries.error().code));
  std::map<std::string, std::vector<FileInfo>> listings;
  listings[call.path.text()];
  for (const TreeEntry& entry : *entries) {
    if (entry.info.is_dir()) listings[entry.path];
    listings[std::string(PathView::from_normal(entry.path).parent().text())].push_back(entry.info);
  }
  for (const auto& [directory, infos] : listings) {
    const size_t index = oracle_.find(directory);
    if (index == Oracle::kNotTracked) continue;
    // One that vanished on the way counts as empty.
    if (infos.empty() && oracle_.was_no_directory(index, call.out.start, call.out.end)) continue;
    const Result<std::vector<FileInfo>> listing = infos;
    judge(call, index, Aspect::listing, listing, PathState::of_listing(listing, false));
    if (!call.out.violation) continue;
    call.out.violation->seen = PathState::of_listing(listing, true)->text;
    return;
  }
}

void Executor::glob(Call& call) {
  GlobOptions options;
  options.show_hidden = true;
  const Result<GlobPage> page = call.fs.glob(call.ctx, call.path, "**/*.md", options);
  call.out.end = oracle_.now();
  if (!page) return note_error(call, page.error(), follows_from_tree(page.error().code));
  for (const GlobEntry& entry : page->entries) {
    const Result<Path> path = Path::parse(entry.path);
    const size_t index = path ? oracle_.find(path->text()) : Oracle::kNotTracked;
    if (index == Oracle::kNotTracked) continue;
    call.out.violation = oracle_.judge_presence(index, true, call.out.start, call.out.end);
    if (call.out.violation) return;
  }
}

void Executor::grep(Call& call) {
  GrepOptions options;
  options.pattern = "v[0-9a-f]{16}";
  std::vector<GrepMatch> matches;
  const Result<void> done = call.fs.grep(call.ctx, call.path, options, [&](GrepMatch&& match) {
    matches.push_back(std::move(match));
    return true;
  });
  call.out.end = oracle_.now();
  if (!done) return note_error(call, done.error(), follows_from_tree(done.error().code));
  for (const GrepMatch& match : matches) {
    const size_t index = oracle_.find(call.path.text() + "/" + match.file);
    if (index == Oracle::kNotTracked) continue;
    const Result<Bytes> line = Bytes::copy(match.content);
    judge(call, index, Aspect::content, line, PathState::of_content(line));
    if (call.out.violation) return;
  }
}

void Executor::mutate(Call& call) {
  const bool of_file = call.op.kind < OpKind::copy;
  Result<void> done = of_file ? mutate_file(call) : mutate_place(call);
  if (!done && done.error().code == ErrorCode::not_found && call.op.kind == OpKind::write) {
    // The directory is gone: a writer makes it again.
    done = call.fs.ensure_parent_dirs(call.ctx, call.path, kDefaultDirMode);
    if (done) done = mutate_file(call);
  }
  call.out.end = oracle_.now();
  if (!done) note_error(call, done.error(), follows_from_tree(done.error().code));
}

Result<void> Executor::mutate_file(Call& call) {
  const auto& [op, fs, path, ctx, out] = call;
  const std::string bytes = content_of(path.text(), op.number);
  switch (op.kind) {
    case OpKind::write_new: return as_void(fs.write(ctx, path, bytes, 0, WriteFlag::create_new));
    case OpKind::append: return as_void(fs.write(ctx, path, fmt::format("+{:x}", op.number), 0, WriteFlag::append));
    case OpKind::overwrite: return as_void(fs.write(ctx, path, fmt::format("{:016x}", op.number), 1, WriteFlag::none));
    case OpKind::truncate: return fs.truncate(ctx, path, op.number % 60);
    case OpKind::create: return fs.create(ctx, path);
    case OpKind::touch: return fs.touch(ctx, path);
    case OpKind::chmod: return fs.chmod(ctx, path, 0600 | static_cast<uint32_t>(op.number & 077));
    case OpKind::remove: return fs.remove(ctx, path);
    case OpKind::compare_and_write:
    case OpKind::compare_and_remove: {
      const Result<Bytes> expected = truth_.read(ctx, path, 0, 0);
      if (!expected) return {};
      if (op.kind == OpKind::compare_and_remove) return as_void(fs.compare_and_remove(ctx, path, expected->view()));
      return as_void(fs.compare_and_write(ctx, path, expected->view(), bytes));
    }
    case OpKind::write_many: {
      const Path& other = oracle_.path(op.other);
      const std::string more = content_of(other.text(), op.number);
      std::vector<WriteItem> items = {{path, bytes}};
      if (path != other) items.push_back({other, more});
      for (const Result<WriteResult>& written : fs.write_many(ctx, items)) {
        if (!written) return std::unexpected(written.error());
      }
      return {};
    }
    default: return as_void(fs.write(ctx, path, bytes, 0, WriteFlag::create));
  }
}

Result<void> Executor::mutate_place(Call& call) {
  const auto& [op, fs, path, ctx, out] = call;
  const Path& other = oracle_.path(op.other);
  switch (op.kind) {
    case OpKind::copy: return as_void(fs.copy(ctx, path, other));
    case OpKind::replace: return fs.replace(ctx, path, other);
    case OpKind::mkdir: return fs.mkdir(ctx, path, kDefaultDirMode);
    case OpKind::ensure_parents: return fs.ensure_parent_dirs(ctx, path, kDefaultDirMode);
    case OpKind::remove_all: return fs.remove_all(ctx, path);
    case OpKind::invalidate: {
      auto* cached = dynamic_cast<CachedFileSystem*>(&fs);
      return cached == nullptr ? Result<void>{} : cached->invalidate(ctx, path);
    }
    default: return fs.rename(ctx, path, other);
  }
}

}  // namespace ragfs::stress
