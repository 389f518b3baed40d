// State: one moment of a world. Plain bytes, so that it is copied and hashed as raw memory.
//
// Words are those of docs/design.md, section 1. Clock values, versions, epochs and lives are small numbers; 0 is the
// beginning, or none. A field that has no meaning at the moment is zero, so that equal moments are equal bytes.
// Thread-safety: values.
#pragma once

#include <array>
#include <cstdint>
#include <type_traits>

#include "tests/model/world.h"

namespace ragfs::model {

using Byte = uint8_t;

// A cache object in the provider, in the near tier or under way.
struct Object {
  Byte present, version, stamp, epoch;
  Byte filled_at;  // tick
  Byte detail;     // the backend version it claims (versioned worlds), or the version of the entry of key 0 (stat)
};

enum class ReadPc : Byte {
  kIdle,
  kLookRoot,     // the second half of a split lookup
  kNear,         // looks into the near tier
  kGet,          // asks the provider
  kCheck,        // holds an object and decides about it
  kLookLate,     // the second half of a lookup made after the get (a rule taken out)
  kVerify,       // reads the backend's version of a suspect object
  kMiss,         // joins a flight or starts a fill
  kVersion,      // reads the backend's version for a fill
  kBackend,      // reads the backend
  kVersionLate,  // the same after the bytes (a rule taken out)
  kFillCheck,    // looks at the records before it stores
  kNearPut,      // stores into the near tier
  kPut,          // stores into the provider
  kFollow,       // waits for the leader of a flight
  kFollowReady,  // has the leader's bytes and re-checks
};

struct Reader {
  ReadPc pc;
  Byte key, stat;       // the key read; 1: stat of key 0 from the listing at key 1
  Byte floor;           // the least version the property allows
  Byte need, blocked;   // records captured by the lookup: the largest, and whether a mutation ran
  Byte captured_epoch;  // by the lookup (used when a rule is taken out)
  Byte from_near, hit;  // where the object in hand is from; 1: it was delivered and is copied into the near tier
  Byte registered, start, epoch, began;  // the fill: registered at the clock value `start`, in `epoch`, at a tick
  Object object;                         // in hand
};

enum class WritePc : Byte { kIdle, kBackend, kClock, kRecords, kLateRecords, kIssue, kCall, kDone };

struct Writer {
  WritePc pc;
  Byte ok, landed;                           // what the backend said, and what it did (2: still under way)
  Byte value, began;                         // the clock value of the records; the tick it began at
  std::array<Byte, kMaxKeys> own;            // the versions that it made
  Byte key, no_put, put_epoch, after_fills;  // step 5: at which key; no_put: erases, the put failed or is barred
};

struct Key {
  Object stored, near, ghost;  // ghost: what a resurrecting provider may bring back
  Byte version, floor;         // of the backend; least version for a read that starts now
  Byte record, has_record, record_at, running;
  Byte mark;              // 0 none, else 1 + the tick at which it ends (255: the end of the epoch)
  Byte mark_epoch;        // of the last put that it guards against
  Byte leader;            // 1 + the reader that leads the flight, 0 none
  Byte edited, edit_due;  // version made behind the cache, and the tick from which reads must show it
};

struct Subtree {
  Byte has_record, record, running;
};

enum class Late : Byte { kNone, kPut, kPointer, kBackend };

struct LateCall {
  Late kind;
  Byte at;        // key of a put, mutation of a backend call, life of a pointer write
  Object object;  // of a put; for a pointer write `epoch` alone
};

struct Marker {
  Byte state;  // 0 none, 1 under way, 2 there
  Byte life, epoch, old_incarnation, clock, record, has_record, mark;
  std::array<Subtree, 2> subtrees;
};

struct Pointer {
  Byte life, epoch;
};

// What a replica of the provider holds.
struct Replica {
  Byte taken, markers;  // bit n: marker n is there
  Pointer pointer;
  std::array<Object, kMaxKeys> stored;
};

enum class Process : Byte {
  kDown,
  kReadMarker,    // start: reads pointer and marker
  kWritePointer,  // start: writes the pointer, nothing is served
  kUp,
  kRejoin,  // serves from the backend while it writes the pointer of a new epoch
  kBypass,  // serves and mutates without its provider
  kClosing,
  kClosed,  // after an orderly close, and still there
  kOff,     // a life with the cache off
};

struct State {
  Process process;
  Byte epoch;  // current one, 0 none
  Byte clock, now;
  Byte life, attempt;           // this life; the one in the pointer write under way
  Byte old_witness, warm;       // during a start
  Byte witness, noticed;        // noticed: 1 the new incarnation is seen, and not yet acted on
  Byte folding, fold_value;     // between the halves of a fold: 1 of a path's record, 2 of a subtree's; its value
  Byte dropping;                // a new epoch: 1 + the clock value up to which records are still to be dropped
  Byte settling, settle_value;  // 1 + key of the erase that the retry queue has under way, issued for that value
  Byte crashes, closes, failovers, folds, edits;  // left
  std::array<Reader, kReaders> readers;
  std::array<Writer, kMaxMutations> writers;
  std::array<Subtree, 2> subtrees;  // 0: the directory of the keys, 1: the one above it
  std::array<LateCall, kMaxLate> late;
  Pointer pointer;
  std::array<Marker, kMaxMarkers> markers;
  Replica replica;
  std::array<Key, kMaxKeys> keys;
};

static_assert(std::is_trivially_copyable_v<State> && std::has_unique_object_representations_v<State>,
              "states are compared as bytes");

inline constexpr Byte kMarkForEver = 255;

// The moment at which every search begins; with an object of the first version in the provider, or none.
State first_state(const World& world, bool cached);

// Equal for moments that differ only in which of two readers does what.
uint64_t fingerprint(const World& world, const State& state);

}  // namespace ragfs::model
