// InflightTable: at most one backend read of a key at a time.
//
// A miss leads or joins. The leader reads the backend; followers share its result or its error. A flight may be joined
// only by readers that saw no record newer than its start: a mutation that returned before a reader began is newer than
// every flight that read the backend before it, so nobody gets bytes from before it. A flight that may not be joined
// any more is replaced by a new one; its followers keep the old one's result, which is right for them.
//
// A leader that is late (past `leader_timeout_ms`) loses its entry and the next reader leads. A follower that has
// waited out its own deadline gets a timeout and never starts a second read. A leader that ends without a result (an
// exception in a backend) fails its followers with `internal`. Bounds: at most `max_flights` keys; past it the role is
// `overflow` and the reader goes through a gate of its own. Thread-safety: all methods may be called from any thread.
// No lock is held while a leader reads.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "ragfs/base/error.h"
#include "ragfs/base/latency_histogram.h"
#include "ragfs/base/one_shot_event.h"
#include "ragfs/base/pause_point.h"
#include "ragfs/base/sync.h"
#include "ragfs/cache/key.h"
#include "ragfs/cache/rules.h"

namespace ragfs {

struct InflightLimits {
  size_t max_flights = 4096;
  int64_t leader_timeout_ms = 30'000;    // a leader older than this is replaced
  int64_t follower_timeout_ms = 30'000;  // longest wait of a follower whose call has no deadline of its own
};

struct InflightCounts {
  LatencyHistogram waits;  // of followers
  std::atomic<uint64_t> leaders{0};
  std::atomic<uint64_t> followers{0};
  std::atomic<uint64_t> follower_timeouts{0};
  std::atomic<uint64_t> leaders_replaced{0};
  std::atomic<uint64_t> leaders_aborted{0};
  std::atomic<uint64_t> overflows{0};
};

// One backend read and those who wait for it. T is what the read returns; it is copied to every follower (Bytes and
// shared pointers copy cheaply).
template <typename T>
class Flight {
 public:
  Flight(uint64_t start, uint64_t epoch) : start_(start), epoch_(epoch), began_ns_(Clock::system().monotonic_ns()) {}

  // The first call counts. By the leader alone.
  void publish(const Result<T>& result) {
    if (done_.is_set()) return;
    result_ = std::make_unique<const Result<T>>(result);
    done_.set();
  }
  // True when the result is there; false when the deadline passed before.
  bool wait(Deadline deadline) { return done_.wait_until(deadline); }
  // After a wait() that was true.
  const Result<T>& result() const { return *result_; }

  uint64_t start() const { return start_; }
  uint64_t epoch() const { return epoch_; }
  int64_t began_ns() const { return began_ns_; }

 private:
  const uint64_t start_;
  const uint64_t epoch_;
  const int64_t began_ns_;
  OneShotEvent done_;
  std::unique_ptr<const Result<T>> result_;  // made before done_ is set, constant afterwards
};

template <typename T>
class InflightTable {
 public:
  enum class Role : uint8_t { leader, follower, overflow };

  // A leader's hold on its entry. Destroyed without publish(), it fails the followers.
  class Lead {
   public:
    Lead(InflightTable* table, CacheKey key, std::shared_ptr<Flight<T>> flight)
        : table_(table), key_(key), flight_(std::move(flight)) {}
    Lead(Lead&& other) noexcept
        : table_(std::exchange(other.table_, nullptr)), key_(other.key_), flight_(std::move(other.flight_)) {}
    Lead(const Lead&) = delete;
    Lead& operator=(const Lead&) = delete;
    Lead& operator=(Lead&&) = delete;
    ~Lead() {
      if (table_ == nullptr) return;
      if (!published_) {
        table_->counts_.leaders_aborted.fetch_add(1, std::memory_order_relaxed);
        flight_->publish(fail(ErrorCode::internal, "the read that this one had joined was aborted"));
      }
      table_->remove(key_, flight_.get());
    }
    // Gives followers the result at once; the entry stays until this object goes.
    void publish(const Result<T>& result) {
      published_ = true;
      flight_->publish(result);
    }

   private:
    InflightTable* table_;
    CacheKey key_;
    std::shared_ptr<Flight<T>> flight_;
    bool published_ = false;
  };

  struct Entry {
    Role role = Role::overflow;
    std::shared_ptr<Flight<T>> flight;  // follower: wait on it
    std::optional<Lead> lead;           // leader
  };

  explicit InflightTable(InflightLimits limits = {}) : limits_(limits) {}

  // `bound` is the newest record that the reader saw over the key; nothing may have been running. `start` and `epoch`
  // are those of the fill that the reader registered in case it leads.
  Entry enter(const CacheKey& key, uint64_t bound, uint64_t start, uint64_t epoch) {
    Shard& shard = shard_of(key);
    MutexLock lock(shard.mutex);
    auto found = shard.flights.find(key.text());
    if (found != shard.flights.end()) {
      const std::shared_ptr<Flight<T>>& flight = found->second;
      const bool fresh = flight->start() >= bound || !rule_enabled(Rule::kFlightRecords);
      const bool late = Clock::system().monotonic_ns() - flight->began_ns() > limits_.leader_timeout_ms * 1'000'000;
      if (fresh && flight->epoch() == epoch && !late) {
        counts_.followers.fetch_add(1, std::memory_order_relaxed);
        return {Role::follower, flight, std::nullopt};
      }
      if (late) counts_.leaders_replaced.fetch_add(1, std::memory_order_relaxed);
      auto next = std::make_shared<Flight<T>>(start, epoch);
      found->second = next;
      return lead(key, std::move(next));
    }
    if (size_.load(std::memory_order_relaxed) >= limits_.max_flights) {
      counts_.overflows.fetch_add(1, std::memory_order_relaxed);
      return {};
    }
    auto flight = std::make_shared<Flight<T>>(start, epoch);
    shard.flights.emplace(std::string(key.text()), flight);
    size_.fetch_add(1, std::memory_order_relaxed);
    return lead(key, std::move(flight));
  }

  // A follower's wait, within the call's deadline and the table's own.
  Result<T> follow(Flight<T>& flight, Deadline deadline) {
    const Deadline until = Deadline::earlier(deadline, Deadline::in_ms(limits_.follower_timeout_ms));
    const LatencyTimer timer(&counts_.waits);
    if (flight.wait(until)) return flight.result();
    counts_.follower_timeouts.fetch_add(1, std::memory_order_relaxed);
    return fail(ErrorCode::timeout, "another caller's read of the same path did not end in time");
  }

  // Takes the key's flight out, so that no later reader joins it: a mutation of the key does this.
  void forget(const CacheKey& key) {
    if (size_.load(std::memory_order_seq_cst) == 0) return;
    Shard& shard = shard_of(key);
    MutexLock lock(shard.mutex);
    const auto found = shard.flights.find(key.text());
    if (found == shard.flights.end()) return;
    shard.flights.erase(found);
    size_.fetch_sub(1, std::memory_order_relaxed);
  }

  size_t active() const { return size_.load(std::memory_order_relaxed); }
  const InflightCounts& counts() const { return counts_; }

 private:
  struct TextHash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return hash64(text); }
    size_t operator()(const std::string& text) const { return hash64(text); }
  };
  struct Shard {
    Mutex mutex;
    std::unordered_map<std::string, std::shared_ptr<Flight<T>>, TextHash, std::equal_to<>> flights
        RAGFS_GUARDED_BY(mutex);
  };
  static constexpr size_t kShards = 64;

  Shard& shard_of(const CacheKey& key) { return shards_[key.hash() % kShards]; }

  Entry lead(const CacheKey& key, std::shared_ptr<Flight<T>> flight) {
    counts_.leaders.fetch_add(1, std::memory_order_relaxed);
    Entry entry;
    entry.role = Role::leader;
    entry.lead.emplace(this, key, std::move(flight));
    return entry;
  }

  void remove(const CacheKey& key, const Flight<T>* flight) {
    Shard& shard = shard_of(key);
    MutexLock lock(shard.mutex);
    const auto found = shard.flights.find(key.text());
    if (found == shard.flights.end() || found->second.get() != flight) return;
    shard.flights.erase(found);
    size_.fetch_sub(1, std::memory_order_relaxed);
  }

  const InflightLimits limits_;
  std::atomic<size_t> size_{0};
  InflightCounts counts_;
  std::array<Shard, kShards> shards_;
};

}  // namespace ragfs
