// Oracle: what the backend held for each path, and when; the judge of every answer that came through the cache.
//
// It stands outside the cache: WatchedFileSystem, under it, tells the oracle each change of the backend, in order, with
// the interval of sequence numbers in which it took place. An answer is right if the backend held exactly that at some
// moment between the start and the end of the read. That is more than "not older than any mutation that returned
// before" and "never back in time": both follow from it, and so does that all ways to ask (read, stat, exists,
// listings, tree) agree. Sequence numbers come from one counter; a change is visible from its first number on and what
// it replaced up to its last one, so the order inside an interval is never held against the cache.
//
// Three aspects of a path are judged apart: its bytes, its entry (kind, size, mode, time) and its listing.
// Bounds: versions that ended before every running read are forgotten.
// Thread-safety: all methods may be called from any thread, after the last add().
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ragfs/base/bytes.h"
#include "ragfs/base/path.h"
#include "ragfs/base/sync.h"
#include "ragfs/fs/file_system.h"

namespace ragfs::stress {

enum class Aspect : uint8_t { content, entry, listing };
inline constexpr size_t kAspectCount = 3;

// One aspect of one path at one time, small enough to be kept for every version.
struct PathState {
  uint64_t digest = 0;   // equal states have equal digests
  bool present = false;  // the path exists
  std::string text;      // for the report: the begin of the bytes, the entry, the names

  static PathState absent();
  // What the backend or the cache answered. Nothing for an error that says nothing about the path (io, timeout).
  static std::optional<PathState> of_content(const Result<Bytes>& content);
  static std::optional<PathState> of_entry(const Result<FileInfo>& entry);
  // `with_text` false leaves the text out: it costs more than the rest.
  static std::optional<PathState> of_listing(const Result<std::vector<FileInfo>>& entries, bool with_text);
};

struct Version {
  uint64_t from = 0;
  uint64_t to = UINT64_MAX;
  PathState state;
};

// An answer that the backend did not hold at any moment of the read.
struct Violation {
  std::string path;
  Aspect aspect = Aspect::content;
  std::string operation;
  uint64_t start = 0;
  uint64_t end = 0;
  std::string seen;
  std::string kind;               // "stale", "never there" or "from the future"
  std::vector<Version> versions;  // of the aspect, oldest first, as far as they are remembered

  std::string text() const;
};

class Oracle {
 public:
  static constexpr size_t kNotTracked = SIZE_MAX;
  static constexpr size_t kMaxReaders = 64;
  static constexpr size_t kTextBytes = 40;  // of a file, kept for each version

  // Declares a path, every ancestor of it first; before any other use. Depth-first order keeps subtrees contiguous.
  size_t add(PathView path);
  size_t find(std::string_view path) const;
  const Path& path(size_t index) const { return entities_[index]->path; }
  size_t parent(size_t index) const { return entities_[index]->parent; }
  // One past the last path at or below `index`.
  size_t subtree_end(size_t index) const { return entities_[index]->end; }
  size_t size() const { return entities_.size(); }

  uint64_t now() const { return sequence_.load(std::memory_order_seq_cst); }
  uint64_t advance() { return sequence_.fetch_add(1, std::memory_order_seq_cst) + 1; }

  // Held by whoever changes the backend, from before the change until all of it was told: changes have one order, and
  // an answer is called wrong only when no change is half told.
  Mutex& changes() const RAGFS_RETURN_CAPABILITY(changes_) { return changes_; }
  // The aspect is `state` since some moment in [from, to]. Called in the order of the changes, under changes().
  void changed(size_t index, Aspect aspect, PathState state, uint64_t from, uint64_t to);

  // A read by reader number `reader` (one per thread) begins; its start.
  uint64_t begin_read(size_t reader);
  void end_read(size_t reader);
  // Judges what a read that ran in [start, end] saw.
  std::optional<Violation> judge(size_t index, Aspect aspect, const PathState& seen, uint64_t start,
                                 uint64_t end) const;
  // The same for exists(): presence alone.
  std::optional<Violation> judge_presence(size_t index, bool present, uint64_t start, uint64_t end) const;
  // The same for a part of the bytes, which must lie in what Version texts hold (the first kTextBytes).
  std::optional<Violation> judge_range(size_t index, std::string_view range, size_t offset, size_t size, uint64_t start,
                                       uint64_t end) const;
  // True if the path was absent, or no directory, at some moment in [start, end].
  bool was_no_directory(size_t index, uint64_t start, uint64_t end) const;

 private:
  struct Entity {
    Path path;
    size_t parent = 0;
    size_t end = 0;
    mutable Mutex mutex;
    std::array<std::deque<Version>, kAspectCount> history RAGFS_GUARDED_BY(mutex);
  };
  uint64_t oldest_running_start() const;
  template <typename Match>
  bool held(size_t index, Aspect aspect, const Match& match, uint64_t start, uint64_t end) const;
  template <typename Match>
  std::optional<Violation> judge_by(size_t index, Aspect aspect, const Match& match, std::string_view seen,
                                    uint64_t start, uint64_t end) const;

  mutable Mutex changes_;
  std::vector<std::unique_ptr<Entity>> entities_;
  std::unordered_map<std::string, size_t> index_;
  std::atomic<uint64_t> sequence_{1};
  std::array<std::atomic<uint64_t>, kMaxReaders> starts_{};  // 0 = no read runs
};

}  // namespace ragfs::stress
