// SequentialReads: which file of a directory was read last, so that two in a row are noticed.
//
// A fixed table by the directory's hash: a directory that shares a place with another one forgets, so a sequence may be
// noticed one read later. What follows on a name is decided where the listing is. Thread-safety: all methods may be
// called from any thread; short critical sections.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "ragfs/base/sync.h"

namespace ragfs {

class SequentialReads {
 public:
  // Notes a read; the name that was read before it in this directory, "" when that is not known or the same.
  std::string note(uint64_t directory, std::string_view name) {
    Stripe& stripe = stripes_[directory % kStripes];
    MutexLock lock(stripe.mutex);
    Place& place = stripe.places[(directory / kStripes) % kPlaces];
    std::string before;
    if (place.directory == directory && place.name != name) before = std::move(place.name);
    place.directory = directory;
    place.name.assign(name);
    return before;
  }

 private:
  static constexpr size_t kStripes = 16;
  static constexpr size_t kPlaces = 64;
  struct Place {
    uint64_t directory = 0;
    std::string name;
  };
  struct alignas(64) Stripe {
    Mutex mutex;
    std::array<Place, kPlaces> places RAGFS_GUARDED_BY(mutex);
  };
  std::array<Stripe, kStripes> stripes_;
};

}  // namespace ragfs
