// HostSession: one life of an engine host: its process, the socket to it, the memory shared with it, what it owes.
//
// A call that stops waiting leaves its blocks of memory with the host until the late answer comes; they are never
// handed out before. For: HostChannel, which starts the next one. Thread-safety: all methods may be called from any
// thread.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "ragfs/base/one_shot_event.h"
#include "ragfs/base/sync.h"
#include "ragfs/providers/engine/arena.h"
#include "ragfs/providers/engine/channel.h"

namespace ragfs::engine {

class HostSession {
 public:
  // Starts a host and waits for it to reach its engine. Errors: config (trying again cannot help), unavailable,
  // timeout; the process is gone then. `ended` is called, from a thread of the session, when the host has hung up;
  // `given_up` is asked now and then while the host starts, and true ends the wait for it.
  static Result<std::shared_ptr<HostSession>> start(const EngineConfig& config, EngineStats& stats, Deadline deadline,
                                                    std::function<void()> ended, const std::function<bool()>& given_up);
  ~HostSession();
  HostSession(const HostSession&) = delete;
  HostSession& operator=(const HostSession&) = delete;

  // A request under way. The session holds it too until the answer has come, so its memory comes back no sooner.
  struct Sent {
    Sent(std::shared_ptr<Arena> from, std::vector<Arena::Block> taken)
        : arena(std::move(from)), blocks(std::move(taken)) {}
    ~Sent() { arena->give_back(blocks); }
    Sent(const Sent&) = delete;
    Sent& operator=(const Sent&) = delete;
    const std::shared_ptr<Arena> arena;
    const std::vector<Arena::Block> blocks;
    uint64_t id = 0;
    int64_t since_ns = 0;
    // The answer, written before `answered` is set.
    bool lost = false;  // the host is gone
    FrameHeader header;
    std::vector<WireResult> results;
    std::string message;
    OneShotEvent answered;
  };
  // Sends at most kMaxItems items. Errors: unavailable, would_block (no room in the memory until `room`, or kMaxOwed
  // requests are unanswered), timeout.
  static constexpr size_t kMaxOwed = 4096;
  Result<std::shared_ptr<Sent>> send(Op op, std::span<const ChannelItem> items, Deadline room, Deadline deadline);
  // Waits for the answer and writes it into the items. Errors: unavailable (the host is gone), timeout.
  Result<void> receive(Sent& sent, std::span<ChannelItem> items, Deadline deadline);

  const Abilities& abilities() const { return abilities_; }
  const std::string& engine_text() const { return engine_text_; }
  bool ended() const { return ended_.load(); }
  // How long the oldest request has been unanswered; 0 = none.
  int64_t owing_ns() const;
  pid_t pid() const { return pid_; }
  uint64_t used_bytes() const { return arena_->used_bytes(); }
  size_t owed() const;

  // Hangs up, waits for the process to end, and kills it at the deadline. Errors: timeout, when it had to be killed;
  // unavailable, when it ended with a failure, as a host does whose engine did not end. A
  // process that not even that ends within a second (it hangs in the kernel) is left behind.
  Result<void> end(Deadline deadline);

 private:
  HostSession(EngineStats& stats, std::shared_ptr<Arena> arena, std::function<void()> ended);
  Result<void> spawn(const EngineConfig& config);
  Result<void> greet(const EngineConfig& config, Deadline deadline, const std::function<bool()>& given_up);
  Result<void> send_frame(std::string_view frame, Deadline deadline);
  void read_answers();
  void deliver(const Frame& frame);
  void lose_all();
  // Waits for the process to end; false at the deadline.
  bool reap(Deadline deadline) RAGFS_REQUIRES(reaping_);

  EngineStats& stats_;
  const std::shared_ptr<Arena> arena_;
  const std::function<void()> on_end_;
  int socket_ = -1;
  pid_t pid_ = 0;
  Abilities abilities_;
  std::string engine_text_;
  std::atomic<bool> ended_{false};
  std::thread reader_;

  // Held while the process is waited for, by those who end the session alone.
  Mutex reaping_;
  bool reaped_ RAGFS_GUARDED_BY(reaping_) = false;
  int status_ RAGFS_GUARDED_BY(reaping_) = 0;  // as waitpid() tells it
  mutable Mutex mutex_;
  uint64_t last_id_ RAGFS_GUARDED_BY(mutex_) = 0;
  std::map<uint64_t, std::shared_ptr<Sent>> owed_ RAGFS_GUARDED_BY(mutex_);
};

}  // namespace ragfs::engine
