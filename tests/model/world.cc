#include "tests/model/world.h"

#include <algorithm>
#include <cstdlib>

namespace ragfs::model {
namespace {

using Make = World (*)(bool full);

Mutation write_whole() { return {"write of p (put)", {Role::kFile}, 1, false, true}; }
Mutation write_part() { return {"append to p (erase)", {Role::kFile}, 1, false, false}; }
Mutation elsewhere() { return {"mutation of another path", {}, 9, false, false}; }

// Everyday worlds of restarts have one mutation, an append; the full ones have a whole-file write as well.
std::vector<Mutation> one_or_two(bool full) {
  return full ? std::vector<Mutation>{write_part(), write_whole()} : std::vector<Mutation>{write_part()};
}

World one_path(bool full) {
  World w;
  w.name = "one_path";
  w.about = "a file, a whole-file write and an append";
  w.mutations = {write_whole(), write_part()};
  if (full) w.mutations.push_back(write_whole());
  w.late = full ? 2 : 1;
  return w;
}

World late_backend(bool full) {
  World w;
  w.name = "late_backend";
  w.about = "a backend call that timed out lands after the mutation returned";
  w.mutations = {write_whole(), write_part()};
  w.late_backend = true;
  w.late = full ? 2 : 1;
  return w;
}

World resurrect(bool full) {
  World w;
  w.name = "resurrect";
  w.about = "a provider that brings back what it had confirmed as erased or overwritten, until it expires";
  w.mutations = {write_whole()};
  if (full) w.mutations.push_back(write_part());
  w.resurrects = true;
  w.ticks = 2;
  w.ttl = 1;
  return w;
}

World subtree(bool full) {
  World w;
  w.name = "subtree";
  w.about = "remove_all of the directory and a write below it; folding, sweeps, lookups in two steps";
  w.mutations = {{"remove_all(d)", {Role::kBelow}, 2, true, false}, write_whole()};
  w.split_lookup = true;
  w.folds = full ? 2 : 1;
  w.sweeps = true;
  return w;
}

World subtree_flights(bool full) {
  World w = subtree(false);
  w.name = "subtree_flights";
  w.about = "remove_all of the directory and a write below it, with merged reads";
  w.folds = full ? 1 : 0;
  w.sweeps = full;
  w.split_lookup = false;
  w.flights = true;
  return w;
}

World listing(bool full) {
  World w;
  w.name = "listing";
  w.about = "the listing of d, written through two paths; clock and records in two steps";
  const std::array<Role, kMaxKeys> roles{Role::kParentListing};
  w.mutations = {{"write of d/a", roles, 1, false, false}, {"write of d/b", roles, 2, false, false}};
  if (full) w.mutations.push_back(elsewhere());
  w.split_clock = true;
  return w;
}

World grandparent(bool) {
  World w = listing(false);
  w.name = "grandparent";
  w.about = "the listing above d, which shows the times of d, written through two paths of d";
  for (Mutation& mutation : w.mutations) mutation.roles = {Role::kGrandparentListing};
  return w;
}

World both_listings(bool full) {
  World w = listing(false);
  w.name = "both_listings";
  w.about = "the listing of d and the one above it, read by one reader each";
  w.keys = 2;
  w.asks = {Ask::kFirst, Ask::kSecond};
  w.split_clock = !full;
  for (Mutation& mutation : w.mutations) mutation.roles[1] = Role::kGrandparentListing;
  if (!full) w.mutations.pop_back();
  return w;
}

World near_flights(bool full) {
  World w;
  w.name = "near_flights";
  w.about = "near tier and merged reads";
  w.mutations = {write_whole(), write_part()};
  if (full) w.mutations.push_back(write_part());
  w.near = true;
  w.flights = true;
  return w;
}

World restarts(bool full) {
  World w;
  w.name = "restarts";
  w.about = "a crash and an orderly close; pointer, marker and puts may land late";
  w.mutations = one_or_two(full);
  w.crashes = 1;
  w.closes = 1;
  w.late = 2;
  w.restarts = true;
  return w;
}

World bypass(bool full) {
  World w;
  w.name = "bypass";
  w.about = "a start without the provider serves, mutates and joins later; a life with the cache off";
  w.mutations = one_or_two(full);
  w.crashes = 1;
  w.closes = 1;
  w.restarts = true;
  w.bypass = true;
  w.cache_off = true;
  return w;
}

World closed(bool full) {
  World w;
  w.name = "closed";
  w.about = "mutations after an orderly close";
  w.mutations = one_or_two(full);
  w.closes = 1;
  w.crashes = 1;
  w.restarts = true;
  w.mutate_after_close = true;
  return w;
}

World failover(bool full) {
  World w;
  w.name = "failover";
  w.about = "failover of the provider, or of one shard, to a replica that stopped following";
  w.mutations = one_or_two(full);
  w.failovers = 1;
  w.restarts = true;
  return w;
}

World negative_epoch(bool full) {
  World w = failover(false);
  w.name = "negative_epoch";
  w.about = "a negative entry while the provider fails over, which starts a new epoch";
  w.kinds = {KeyKind::kNegative};
  w.mutations = {{"creation of p", {Role::kNegative}, 1, false, false}};
  if (full) w.mutations.push_back({"removal of p", {Role::kNegative}, 1, false, false});
  return w;
}

World failover_restart(bool full) {
  World w;
  w.name = "failover_restart";
  w.about = "failover, a crash and an orderly close";
  w.mutations = {write_part()};
  w.failovers = 1;
  w.crashes = 1;
  w.closes = full ? 2 : 1;
  w.restarts = true;
  return w;
}

World inherited(bool full) {
  World w;
  w.name = "inherited";
  w.about = "objects of an earlier epoch, checked with the backend's version";
  w.mutations = one_or_two(full);
  w.crashes = 1;
  w.restarts = true;
  w.verify_inherited = true;
  return w;
}

World negative(bool full) {
  World w;
  w.name = "negative";
  w.about = "negative entries of a/p and of a, the listing above a; a/p is created, and a on the way";
  w.keys = 3;
  w.kinds = {KeyKind::kNegative, KeyKind::kNegative, KeyKind::kObject};
  w.base_claim_only = {false, true, true};
  const std::array<Role, kMaxKeys> roles{Role::kNegative, Role::kCreatedNegative, Role::kCreatedListing};
  w.mutations = {{"creation of a/p", roles, 1, false, false}};
  if (full) w.mutations.push_back(elsewhere());
  return w;
}

World negative_existing(bool full) {
  World w = negative(false);
  w.name = "negative_existing";
  w.about = "a negative entry of a path that exists, is removed and created again";
  w.keys = 1;
  w.base_claim_only = {};
  w.first_version = 1;
  w.mutations = {{"removal of p", {Role::kNegative}, 1, false, false},
                 {"creation of p", {Role::kNegative}, 1, false, false}};
  if (full) w.mutations.push_back(w.mutations[0]);
  return w;
}

World stat(bool full) {
  World w;
  w.name = "stat";
  w.about = "stat of d/p from the listing of d, which another reader lists";
  w.keys = 2;
  w.asks = {Ask::kStat, Ask::kList};
  const std::array<Role, kMaxKeys> roles{Role::kFile, Role::kParentListing};
  w.mutations = {{"write of d/p", roles, 1, false, false}, {"append to d/p", roles, 1, false, false}};
  if (full) w.mutations.push_back({"write of d/q", {Role::kUntouched, Role::kParentListing}, 2, false, false});
  return w;
}

World stat_of_link(bool) {
  World w = stat(false);
  w.name = "stat_of_link";
  w.about = "stat of a link in d, whose target is written elsewhere";
  w.stat_of_a_link = true;
  w.mutations = {{"write of the target", {Role::kUnseen, Role::kUntouched}, 1, false, false}};
  return w;
}

World ttl(bool full) {
  World w;
  w.name = "ttl";
  w.about = "objects with a logical expiry; marks end with it";
  w.mutations = {write_whole(), write_part()};
  w.ticks = full ? 3 : 2;
  w.ttl = full ? 2 : 1;
  return w;
}

World edits(bool full) {
  World w;
  w.name = "edits";
  w.about = "edits behind the cache must show after the mount's revalidate, however often the object is read";
  w.ticks = full ? 5 : 3;
  w.revalidate = 2;
  w.edits = full ? 2 : 1;
  return w;
}

World revalidate(bool full) {
  World w;
  w.name = "revalidate";
  w.about = "an edit behind the cache and a mutation beside it";
  w.mutations = {write_whole()};
  w.late = full ? 1 : 0;
  w.ticks = full ? 2 : 1;
  w.revalidate = 1;
  w.edits = 1;
  return w;
}

constexpr Make kWorlds[] = {one_path,  late_backend, resurrect,         subtree,        subtree_flights,
                            listing,   grandparent,  both_listings,     near_flights,   restarts,
                            bypass,    closed,       failover,          negative_epoch, failover_restart,
                            inherited, negative,     negative_existing, stat,           stat_of_link,
                            ttl,       edits,        revalidate};

}  // namespace

std::vector<World> worlds(bool full) {
  std::vector<World> all;
  for (const Make make : kWorlds) all.push_back(make(full));
  return all;
}

World world_named(std::string_view name, bool full) {
  for (World& w : worlds(full)) {
    if (w.name == name) return w;
  }
  std::abort();  // a name that no world has is an error of the test itself
}

}  // namespace ragfs::model
