// FaultProxy: a TCP proxy on a loopback port that does to replies what bad networks and bad proxies do.
//
// For: tests of anything that speaks over TCP (Redis here; HTTP as well, it looks at no byte). Faults work on what the
// server sends, in the pieces in which it arrives. Not for: anything but tests.
// Thread-safety: all methods may be called from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "ragfs/base/sync.h"

namespace ragfs::redis_test {

class FaultProxy {
 public:
  enum class Fault : uint8_t {
    none,
    delay,    // every piece later by delay_ms
    swallow,  // one piece in `one_in` is lost
    cut,      // one piece in `one_in` ends the connection, half of it sent
    reorder,  // one piece in `one_in` is held back until after the next
    silence,  // accepts, and never answers
    refuse,   // closes at once, what is open too
  };
  explicit FaultProxy(uint16_t server_port);
  ~FaultProxy();
  FaultProxy(const FaultProxy&) = delete;
  FaultProxy& operator=(const FaultProxy&) = delete;

  uint16_t port() const { return port_; }
  std::string endpoint(bool tls = false) const {
    return (tls ? "rediss://127.0.0.1:" : "redis://127.0.0.1:") + std::to_string(port_);
  }
  void set(Fault fault, int one_in = 1, int delay_ms = 0);
  uint64_t accepted() const { return accepted_.load(); }

 private:
  void serve();
  void relay(int client);
  // Sends a piece of the server's to the client, with the fault of the moment. False ends the connection.
  bool pass(int client, std::string piece, std::string& held);

  const uint16_t server_port_;
  uint16_t port_ = 0;
  int listener_;
  std::atomic<Fault> fault_{Fault::none};
  std::atomic<int> one_in_{1};
  std::atomic<int> delay_ms_{0};
  std::atomic<uint64_t> pieces_{0};
  std::atomic<uint64_t> accepted_{0};
  std::atomic<bool> stop_{false};
  Mutex mutex_;
  std::vector<std::thread> relays_ RAGFS_GUARDED_BY(mutex_);
  std::thread server_;
};

// A loopback port that takes no connection and refuses none: its queue is full, so the system drops what comes.
class BlackHole {
 public:
  BlackHole();
  ~BlackHole();
  BlackHole(const BlackHole&) = delete;
  BlackHole& operator=(const BlackHole&) = delete;
  uint16_t port() const { return port_; }

 private:
  static constexpr int kFillers = 3;
  uint16_t port_ = 0;
  int listener_;
  std::vector<int> fillers_;
};

// A loopback port where whoever connects is told the same bytes, whatever is asked.
class ParrotServer {
 public:
  explicit ParrotServer(std::string answer);
  ~ParrotServer();
  ParrotServer(const ParrotServer&) = delete;
  ParrotServer& operator=(const ParrotServer&) = delete;
  uint16_t port() const { return port_; }

 private:
  void serve();
  const std::string answer_;
  uint16_t port_ = 0;
  int listener_;
  std::atomic<bool> stop_{false};
  std::thread server_;
};

}  // namespace ragfs::redis_test
