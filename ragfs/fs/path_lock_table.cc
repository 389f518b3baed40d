// How it works.
//
// Every acquire gets a ticket. It waits exactly while an earlier ticket that it conflicts with is still in the table,
// held or waiting; that alone gives the fair order. A ticket in the table is linked into a trie of path components
// (only nodes with something at or below them exist):
// - at its own node, into the list of its kind (`exact`, `shared`, `subtree`);
// - at its own node and every ancestor, into the list `below`.
// Tickets grow under the table's mutex, so every list is in ticket order, and all questions are answered by a list's
// front or by an element's predecessor, in O(depth):
// - exact(p):   an earlier exact or shared at p, an earlier subtree at p or an ancestor;
// - shared(p):  an earlier exact at p, an earlier subtree at p or an ancestor;
// - subtree(p): an earlier anything in `below` of p, an earlier subtree at an ancestor.
// A waiter watches ONE ticket that blocks it. Only when that one leaves (release or timeout) does it look again, and
// is granted or watches another. A queue of N waiters on one path is thus a chain: a release wakes one of them.
//
// acquire_more() joins the ticket of its owner: equal tickets never conflict, and it takes its place in the lists
// before those who wait since the owner came. Such a group is also blocked by later tickets that are granted already,
// so it looks through whole lists.
//
// Cost: O(depth) for acquire and release (acquire_more: and the requests that are near). Nodes and batches are
// recycled, so a steady state allocates nothing.
#include "ragfs/fs/path_lock_table.h"

#include <cassert>
#include <string>
#include <utility>

#include "ragfs/base/hash.h"
#include "ragfs/base/sync.h"

namespace ragfs {

namespace {

struct Group;
struct Node;

// One element of one list.
struct Link {
  Link* prev = nullptr;
  Link* next = nullptr;
  Group* group = nullptr;
  Node* node = nullptr;
};

struct LinkList {
  Link* head = nullptr;
  Link* tail = nullptr;

  bool empty() const { return head == nullptr; }
  // After the last element of `ticket` or an earlier one: at the end, unless the group joined an owner's ticket.
  void insert(Link& link, uint64_t ticket);
  void remove(Link& link) {
    (link.prev == nullptr ? head : link.prev->next) = link.next;
    (link.next == nullptr ? tail : link.next->prev) = link.prev;
  }
};

// One component of a path. Lives while something is at or below it.
struct Node {
  Node* parent = nullptr;
  Node* next_in_bucket = nullptr;
  uint64_t hash = 0;
  std::string name;
  LinkList exact;
  LinkList shared;
  LinkList subtree;
  LinkList below;

  LinkList& of(PathLockKind kind) {
    if (kind == PathLockKind::exact) return exact;
    return kind == PathLockKind::shared ? shared : subtree;
  }
};

// One request of a batch. `chain` runs from the root to the request's own node.
struct Entry {
  PathLockKind kind = PathLockKind::exact;
  Link at;
  std::vector<Link> chain;
};

// A batch: everything that is granted together.
struct Group {
  uint64_t ticket = 0;
  bool joined = false;  // the ticket is an owner's
  bool granted = false;
  size_t used = 0;             // entries in use; the vector keeps its memory when recycled
  std::vector<Entry> entries;  // never resized while linked
  CondVar wakeup;

  // Those that wait for this group to leave, and the place of this one among those that wait for another.
  Group* watchers = nullptr;
  Group* watching = nullptr;
  Group* prev_watcher = nullptr;
  Group* next_watcher = nullptr;
};

void LinkList::insert(Link& link, uint64_t ticket) {
  Link* before = tail;
  while (before != nullptr && before->group->ticket > ticket) before = before->prev;
  link.prev = before;
  link.next = before == nullptr ? head : before->next;
  (link.next == nullptr ? tail : link.next->prev) = &link;
  (before == nullptr ? head : before->next) = &link;
}

// An earlier ticket at the front of `list`, which is in ticket order.
Group* earlier_front(const LinkList& list, uint64_t ticket) {
  return !list.empty() && list.head->group->ticket < ticket ? list.head->group : nullptr;
}

// The last of the earlier tickets before `link` in its list.
Group* predecessor(const Link& link) {
  const Link* before = link.prev;
  while (before != nullptr && before->group->ticket == link.group->ticket) before = before->prev;
  return before == nullptr ? nullptr : before->group;
}

// For a group that joined a ticket: one in `list` that is earlier, or granted already.
Group* in_the_way(const LinkList& list, uint64_t ticket) {
  for (const Link* link = list.head; link != nullptr; link = link->next) {
    Group* const group = link->group;
    if (group->ticket < ticket || (group->ticket > ticket && group->granted)) return group;
  }
  return nullptr;
}

Group* blocker_of_joined(const Entry& entry, uint64_t ticket) {
  const Node* own = entry.at.node;
  Group* blocker = nullptr;
  if (entry.kind == PathLockKind::subtree) {
    blocker = in_the_way(own->below, ticket);
  } else {
    blocker = in_the_way(own->exact, ticket);
    if (blocker == nullptr && entry.kind == PathLockKind::exact) blocker = in_the_way(own->shared, ticket);
    if (blocker == nullptr) blocker = in_the_way(own->subtree, ticket);
  }
  for (const Node* node = own->parent; blocker == nullptr && node != nullptr; node = node->parent) {
    blocker = in_the_way(node->subtree, ticket);
  }
  return blocker;
}

Group* blocker_of(const Entry& entry, uint64_t ticket) {
  const Node* own = entry.at.node;
  Group* blocker = nullptr;
  if (entry.kind == PathLockKind::subtree) {
    blocker = predecessor(entry.chain.back());
  } else {
    // The direct predecessor first: it leaves last, so the waiter looks again less often.
    blocker = entry.kind == PathLockKind::exact ? predecessor(entry.at) : earlier_front(own->exact, ticket);
    if (blocker == nullptr && entry.kind == PathLockKind::exact) blocker = earlier_front(own->shared, ticket);
    if (blocker == nullptr) blocker = earlier_front(own->subtree, ticket);
  }
  for (const Node* node = own->parent; blocker == nullptr && node != nullptr; node = node->parent) {
    blocker = earlier_front(node->subtree, ticket);
  }
  return blocker;
}

Group* blocker_of(const Group& group) {
  for (size_t i = 0; i < group.used; ++i) {
    const Entry& entry = group.entries[i];
    Group* blocker = group.joined ? blocker_of_joined(entry, group.ticket) : blocker_of(entry, group.ticket);
    if (blocker != nullptr) return blocker;
  }
  return nullptr;
}

void watch(Group& waiter, Group& blocker) {
  waiter.watching = &blocker;
  waiter.prev_watcher = nullptr;
  waiter.next_watcher = blocker.watchers;
  if (blocker.watchers != nullptr) blocker.watchers->prev_watcher = &waiter;
  blocker.watchers = &waiter;
}

void unwatch(Group& waiter) {
  if (waiter.watching == nullptr) return;
  (waiter.prev_watcher == nullptr ? waiter.watching->watchers : waiter.prev_watcher->next_watcher) =
      waiter.next_watcher;
  if (waiter.next_watcher != nullptr) waiter.next_watcher->prev_watcher = waiter.prev_watcher;
  waiter.watching = nullptr;
}

// The nodes that exist, by parent and name. Recycles nodes. Not synchronised.
class NodeTable {
 public:
  NodeTable() : buckets_(kFirstBuckets) {}
  ~NodeTable() {
    for (Node* node : buckets_) free_chain(node);
    free_chain(free_);
  }
  NodeTable(const NodeTable&) = delete;
  NodeTable& operator=(const NodeTable&) = delete;

  Node& root() { return root_; }

  Node& child(Node& parent, std::string_view name) {
    const uint64_t hash = hash64(name, parent.hash + 1);
    for (Node* node = bucket(hash); node != nullptr; node = node->next_in_bucket) {
      if (node->hash == hash && node->parent == &parent && node->name == name) return *node;
    }
    if (count_ >= buckets_.size()) grow();
    Node* node = take_free();
    node->parent = &parent;
    node->hash = hash;
    node->name.assign(name);
    node->next_in_bucket = bucket(hash);
    bucket(hash) = node;
    ++count_;
    return *node;
  }

  void drop(Node& node) {
    Node** at = &bucket(node.hash);
    while (*at != &node) at = &(*at)->next_in_bucket;
    *at = node.next_in_bucket;
    --count_;
    if (free_count_ >= kMostFree) {
      free_chain_of_one(&node);
      return;
    }
    node.next_in_bucket = free_;
    free_ = &node;
    ++free_count_;
  }

  size_t count() const { return count_; }

 private:
  static constexpr size_t kFirstBuckets = 256;
  static constexpr size_t kMostFree = 1024;

  Node*& bucket(uint64_t hash) { return buckets_[hash & (buckets_.size() - 1)]; }

  Node* take_free() {
    if (free_ == nullptr) return std::make_unique<Node>().release();
    --free_count_;
    return std::exchange(free_, free_->next_in_bucket);
  }

  void grow() {
    std::vector<Node*> old(buckets_.size() * 2);
    old.swap(buckets_);
    for (Node* node : old) {
      while (node != nullptr) {
        Node* next = node->next_in_bucket;
        node->next_in_bucket = std::exchange(bucket(node->hash), node);
        node = next;
      }
    }
  }

  static void free_chain_of_one(Node* node) { std::unique_ptr<Node> owned(node); }
  static void free_chain(Node* node) {
    while (node != nullptr) free_chain_of_one(std::exchange(node, node->next_in_bucket));
  }

  Node root_;
  std::vector<Node*> buckets_;
  size_t count_ = 0;
  Node* free_ = nullptr;
  size_t free_count_ = 0;
};

}  // namespace

struct PathLockTable::Batch : Group {};

struct PathLockTable::State {
  explicit State(PathLockLimits wanted) : limits(wanted) {}

  const PathLockLimits limits;
  mutable Mutex mutex;
  NodeTable nodes RAGFS_GUARDED_BY(mutex);
  uint64_t last_ticket RAGFS_GUARDED_BY(mutex) = 0;
  PathLockCounts counts RAGFS_GUARDED_BY(mutex);
  std::vector<std::unique_ptr<Batch>> free_batches RAGFS_GUARDED_BY(mutex);

  std::unique_ptr<Batch> take_batch() RAGFS_REQUIRES(mutex);
  // `ticket` 0 takes a new one.
  void link(Batch& batch, uint64_t ticket, std::span<const PathLockRequest> requests) RAGFS_REQUIRES(mutex);
  void link_entry(Entry& entry, Group& group, const PathLockRequest& request) RAGFS_REQUIRES(mutex);
  // Takes the batch out of the table and lets those go that it blocked.
  void leave(std::unique_ptr<Batch> batch) RAGFS_REQUIRES(mutex);
  void unlink(Batch& batch) RAGFS_REQUIRES(mutex);
  Result<void> wait(Batch& batch, Deadline deadline) RAGFS_REQUIRES(mutex);
};

namespace {
constexpr size_t kMostFreeBatches = 256;
constexpr size_t kMostRecycledEntries = 16;
}  // namespace

std::unique_ptr<PathLockTable::Batch> PathLockTable::State::take_batch() {
  if (free_batches.empty()) return std::make_unique<Batch>();
  std::unique_ptr<Batch> batch = std::move(free_batches.back());
  free_batches.pop_back();
  return batch;
}

void PathLockTable::State::link(Batch& batch, uint64_t ticket, std::span<const PathLockRequest> requests) {
  batch.joined = ticket != 0;
  batch.ticket = ticket != 0 ? ticket : ++last_ticket;
  batch.granted = false;
  batch.used = requests.size();
  if (batch.entries.size() < requests.size()) batch.entries.resize(requests.size());
  for (size_t i = 0; i < requests.size(); ++i) link_entry(batch.entries[i], batch, requests[i]);
}

void PathLockTable::State::link_entry(Entry& entry, Group& group, const PathLockRequest& request) {
  entry.kind = request.kind;
  entry.chain.resize(request.path.depth() + 1);
  Node* node = &nodes.root();
  std::string_view rest = request.path.is_root() ? std::string_view{} : request.path.text().substr(1);
  for (Link& link : entry.chain) {
    link.group = &group;
    link.node = node;
    node->below.insert(link, group.ticket);
    if (&link == &entry.chain.back()) break;
    const size_t slash = rest.find('/');
    node = &nodes.child(*node, rest.substr(0, slash));
    rest = slash == std::string_view::npos ? std::string_view{} : rest.substr(slash + 1);
  }
  entry.at.group = &group;
  entry.at.node = node;
  node->of(entry.kind).insert(entry.at, group.ticket);
}

void PathLockTable::State::unlink(Batch& batch) {
  for (size_t i = 0; i < batch.used; ++i) {
    Entry& entry = batch.entries[i];
    entry.at.node->of(entry.kind).remove(entry.at);
    for (size_t depth = entry.chain.size(); depth-- > 0;) {
      Link& link = entry.chain[depth];
      link.node->below.remove(link);
      if (depth > 0 && link.node->below.empty()) nodes.drop(*link.node);
    }
  }
}

void PathLockTable::State::leave(std::unique_ptr<Batch> batch) {
  unwatch(*batch);
  unlink(*batch);
  while (batch->watchers != nullptr) {
    Group& waiter = *batch->watchers;
    unwatch(waiter);
    if (Group* blocker = blocker_of(waiter)) {
      watch(waiter, *blocker);
      continue;
    }
    waiter.granted = true;
    counts.waiting -= waiter.used;
    counts.held += waiter.used;
    waiter.wakeup.notify_one();
  }
  if (batch->entries.size() <= kMostRecycledEntries && free_batches.size() < kMostFreeBatches) {
    free_batches.push_back(std::move(batch));
  }
}

Result<void> PathLockTable::State::wait(Batch& batch, Deadline deadline) {
  while (!batch.granted) {
    if (batch.wakeup.wait_until(mutex, deadline) || batch.granted) continue;
    counts.waiting -= batch.used;
    ++counts.timeouts_total;
    return fail(ErrorCode::timeout, "path lock");
  }
  return {};
}

PathLockTable::PathLockTable(PathLockLimits limits) : state_(std::make_unique<State>(limits)) {}

PathLockTable::~PathLockTable() {
  const MutexLock lock(state_->mutex);
  assert(state_->counts.held == 0 && state_->counts.waiting == 0 && "a path lock outlives its table");
}

Result<PathLockTable::Held> PathLockTable::acquire(std::span<const PathLockRequest> requests, Deadline deadline) {
  return acquire_with(0, requests, deadline);
}

Result<PathLockTable::Held> PathLockTable::acquire_more(const Held& owner, std::span<const PathLockRequest> requests,
                                                        Deadline deadline) {
  assert(owner.batch_ != nullptr && owner.state_ == state_.get());
  return acquire_with(owner.batch_->ticket, requests, deadline);
}

Result<PathLockTable::Held> PathLockTable::acquire_with(uint64_t ticket, std::span<const PathLockRequest> requests,
                                                        Deadline deadline) {
  State& state = *state_;
  const MutexLock lock(state.mutex);
  std::unique_ptr<Batch> batch = state.take_batch();
  state.link(*batch, ticket, requests);
  Group* const blocker = blocker_of(*batch);
  const uint64_t used_of_bound = blocker == nullptr ? state.counts.held : state.counts.waiting;
  const uint64_t bound = blocker == nullptr ? state.limits.max_held : state.limits.max_waiting;
  if (used_of_bound + requests.size() > bound) {
    state.leave(std::move(batch));
    ++state.counts.refused_total;
    return fail(ErrorCode::would_block,
                blocker == nullptr ? "too many path locks are held" : "too many requests wait for path locks");
  }
  if (blocker == nullptr) {
    state.counts.held += requests.size();
    batch->granted = true;
    return Held(&state, std::move(batch));
  }
  if (deadline.expired()) {
    state.leave(std::move(batch));
    ++state.counts.timeouts_total;
    return fail(ErrorCode::would_block, "path lock");
  }
  state.counts.waiting += requests.size();
  watch(*batch, *blocker);
  if (Result<void> granted = state.wait(*batch, deadline); !granted) {
    state.leave(std::move(batch));
    return std::unexpected(std::move(granted.error()));
  }
  return Held(&state, std::move(batch));
}

PathLockCounts PathLockTable::counts() const {
  const MutexLock lock(state_->mutex);
  return state_->counts;
}

PathLockTable::Held::Held() noexcept : state_(nullptr) {}
PathLockTable::Held::Held(State* state, std::unique_ptr<Batch> batch) noexcept
    : state_(state), batch_(std::move(batch)) {}
PathLockTable::Held::Held(Held&& other) noexcept = default;

PathLockTable::Held& PathLockTable::Held::operator=(Held&& other) noexcept {
  if (this != &other) {
    release();
    state_ = other.state_;
    batch_ = std::move(other.batch_);
  }
  return *this;
}

PathLockTable::Held::~Held() { release(); }

void PathLockTable::Held::release() noexcept {
  if (batch_ == nullptr) return;
  const MutexLock lock(state_->mutex);
  state_->counts.held -= batch_->used;
  state_->leave(std::move(batch_));
}

}  // namespace ragfs
