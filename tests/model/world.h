// World: one small setting in which the protocol is explored: which keys exist, which mutations run, what may fail.
//
// A world bounds only what is named here. Reads, failing calls, evictions and retries are not counted: there may be any
// number of them. Thread-safety: values.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace ragfs::model {

inline constexpr int kMaxKeys = 3;
inline constexpr int kMaxMutations = 3;
inline constexpr int kReaders = 2;
inline constexpr int kMaxLate = 2;
inline constexpr int kMaxMarkers = 2;

// How a mutation touches a key. The rules decide what follows from it (plan.h).
enum class Role : uint8_t {
  kUntouched,
  kUnseen,              // what the key shows changes, and the mutation cannot know it (the target of a link)
  kFile,                // the path itself
  kParentListing,       // the listing that shows the path
  kGrandparentListing,  // the listing that shows the parent's times
  kCreatedListing,      // the listing above a parent made on the way; known only after the backend call
  kNegative,            // the negative entry of the path itself
  kCreatedNegative,     // the negative entry of a parent made on the way
  kBelow,               // below the subtree that is mutated
};

enum class KeyKind : uint8_t {
  kObject,    // a file or a listing, kept by the provider
  kNegative,  // "not found", kept in the process only; the path is absent while its version is even
};

struct Mutation {
  std::string_view name;
  std::array<Role, kMaxKeys> roles{};
  uint8_t path = 0;      // mutations of one path exclude each other
  bool subtree = false;  // excludes all others, and sets the subtree record
  bool stores = false;   // step 5 puts the new value; otherwise it erases
};

// What a reader asks for.
enum class Ask : uint8_t {
  kAny,     // reads any key of the world
  kFirst,   // reads key 0
  kSecond,  // reads key 1
  kStat,    // stat of the file at key 0, answered from the listing at key 1
  kList,    // reads key 1, and notes the entry of key 0 in it
};

struct World {
  std::string_view name;
  std::string_view about;

  int keys = 1;
  std::array<KeyKind, kMaxKeys> kinds{};
  std::array<bool, kMaxKeys> base_claim_only{};  // reads may go back while a mutation runs
  std::vector<Mutation> mutations;               // each happens at most once, in any order the locks allow
  std::array<Ask, kReaders> asks{};
  uint8_t first_version = 0;    // of every key; a negative world may begin with a path that exists
  bool stat_of_a_link = false;  // the entry at key 0 is a link, not a plain file

  // Faults and shapes
  int late = 1;               // timed-out calls under way at once
  bool late_backend = false;  // a backend call may time out and land after the mutation returned
  bool resurrects = false;    // the provider may bring back what it confirmed as erased or overwritten
  bool near = false;          // a near tier
  bool flights = false;       // reads of one key are merged
  bool split_clock = false;   // advancing the clock and setting the records are two steps
  bool split_lookup = false;  // the two subtree levels are looked up in two steps
  int folds = 0;              // records folded into their parent
  bool sweeps = false;        // subtree records are dropped after a sweep

  // Restarts: how often each may happen
  int crashes = 0;
  int closes = 0;
  int failovers = 0;
  bool restarts = false;            // lives end and begin; attempts at the pointer are not counted
  bool bypass = false;              // a start may find the provider unreachable
  bool cache_off = false;           // a life may run with the cache off
  bool mutate_after_close = false;  // mutations may follow an orderly close
  bool verify_inherited = false;    // objects of an earlier epoch are checked with the backend's version

  // Time, in ticks; 0 ticks: time stands still
  int ticks = 0;
  int ttl = 0;         // logical expiry of every object; 0 = none
  int revalidate = 0;  // age from which an object is checked with the backend's version; 0 = never
  int edits = 0;       // changes of the backend behind the cache

  // True when the epoch can change while a read is under way.
  bool epoch_moves() const { return failovers > 0 || bypass; }
  // True when objects carry the backend's version.
  bool versioned() const { return revalidate > 0 || verify_inherited; }
};

// All worlds that are explored with every rule on. `full` gives the larger bounds (RAGFS_TEST_FULL=1).
std::vector<World> worlds(bool full);
// The world of that name, which must exist.
World world_named(std::string_view name, bool full);

}  // namespace ragfs::model
