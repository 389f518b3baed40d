// CachedFileSystem::ReadAhead: which objects of a mount are worth reading before anyone asks, and reading them.
//
// Private to CachedFileSystem's source files. Readers tell it what they asked for (seen_*); it decides in a few loads
// whether that is an occasion, and leaves the rest to the threads of PrefetchLane:
// - a listing: the `.abstract.md` of the directories in it at once, their `.overview.md` and listings at low priority;
// - two files of a directory one after the other: those that follow, and again when half of them were asked for;
// - a hit on `.overview.md`: the listing of its directory, and the files that the overview names, in its order;
// - a miss or a listing in a scope whose hot keys are known: those.
// What it reads goes the way of a reader's miss (coalesce(), lead_file(), lead_listing()): the same flights, stamps and
// policy, so it cannot leave behind what a reader could not. It counts no hit and no miss of readers.
// Not for: batches and walks, which ask for everything they want anyway.
// Thread-safety: all methods may be called from any thread.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ragfs/cache/cached_file_system.h"
#include "ragfs/cache/cached_target.h"
#include "ragfs/cache/cooldown_table.h"
#include "ragfs/cache/prefetch_lane.h"
#include "ragfs/cache/prefetch_ledger.h"
#include "ragfs/cache/sequential_reads.h"

namespace ragfs {

class CachedFileSystem::ReadAhead {
 public:
  // Both must outlive it.
  ReadAhead(CachedFileSystem& fs, PrefetchLane& lane);
  // Waits for what runs.
  ~ReadAhead();
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  // A file came from the cache. Of a batch (`single` false), only whether it had been read ahead is noted.
  void seen_hit(PathView path, const Bytes& payload, bool single = true) {
    const PrefetchLedger::Taken taken = ledger_.take(id_of(path, ObjectKind::file));
    if (taken != PrefetchLedger::Taken::no) [[unlikely]]
      note_use(path, taken, single);
    if (single && path.text().ends_with(kOverviewEnd)) [[unlikely]]
      seen_overview(path, payload);
  }
  // A file has to be asked for at the backend.
  void seen_miss(PathView path, bool single = true);
  // A listing was asked for. `single`: by a caller who lists this directory alone.
  void seen_listing_hit(PathView path);
  void seen_listing_miss(PathView path) { seen_loss(path, ObjectKind::listing); }
  void seen_listing(PathView path, const std::vector<FileInfo>& entries);
  // A mutation of `path` makes what was read ahead of it worthless. What lay below it is found out by the next reader.
  void seen_change(PathView path) {
    seen_loss(path, ObjectKind::file);
    if (!path.is_root()) seen_loss(path.parent(), ObjectKind::listing);
  }

  // Reads these in the background, past the occasions; `paths` are of the mount.
  void warm(const std::vector<HotKey>& keys);

  // No task begins from here on; waits for those that run. False when some still run at the deadline.
  bool stop(Deadline deadline);

 private:
  static constexpr std::string_view kOverviewEnd = "/.overview.md";
  static constexpr size_t kCandidatesPerObject = 4;  // that are looked up for one that is read
  struct Item {
    Path path;
    ObjectKind kind = ObjectKind::file;
    bool marked = false;  // the one whose use means: go on from here
  };

  static uint64_t id_of(PathView path, ObjectKind kind) { return hash64(path.text(), static_cast<uint64_t>(kind)); }
  enum class Occasion : uint8_t { listing = 1, sequence, overview, scope };
  // Readers are busy: nothing is looked at. Counted.
  bool gives_way() {
    if (!lane_.busy()) [[likely]]
      return false;
    count(CacheCounter::prefetch_held_back);
    return true;
  }
  // True when the occasion counts now: reading ahead is possible and the last one of this path is long enough ago.
  bool begins(Occasion occasion, PathView path);
  void submit(PrefetchPriority priority, std::function<void()> task);

  void seen_loss(PathView path, ObjectKind kind) {
    if (ledger_.take(id_of(path, kind)) != PrefetchLedger::Taken::no) count(CacheCounter::prefetch_waste);
  }
  void note_use(PathView path, PrefetchLedger::Taken taken, bool single);
  void seen_overview(PathView path, const Bytes& payload);
  void seen_sequence(PathView path);
  void follow(PathView path);
  void enter_scope(PathView path);

  // What tasks do, on the lane's threads.
  void read_sequence(const Path& directory, const std::string& before, const std::string& name);
  void read_below_overview(const Path& directory, const Bytes& overview);
  // Looks all items up with one get_many and reads up to max_objects of those that are absent.
  void read_items(const std::vector<Item>& items);
  bool read_item(const Context& ctx, const Item& item, const Target& target);
  std::vector<Item> items_of(const std::vector<HotKey>& keys) const;
  // The listing of a directory, from the cache or read ahead; nullptr when it is not to be had.
  SharedListing listing_of(const Path& directory);
  bool may_read(PathView path, ObjectKind kind) const;
  bool provider_answers() const;
  void count(CacheCounter counter, uint64_t by = 1) { fs_.counters_.add(counter, by); }
  void note_filled(const Item& item, uint64_t bytes);
  void forget_old();
  int64_t now_ms() const { return fs_.domain_->clock().monotonic_ns() / 1'000'000; }

  CachedFileSystem& fs_;
  PrefetchLane& lane_;
  const bool sees_occasions_;  // else it only warms
  CooldownTable cooldown_;
  PrefetchLedger ledger_;
  SequentialReads sequences_;
  std::atomic<int64_t> swept_ms_{0};
};

}  // namespace ragfs
