// HostServer: serves one engine to one client over a socket, with values in memory that both share.
//
// Each worker takes a frame from the socket and does its work. The last one that is not busy takes all frames that have
// come: so a lone frame is handled by the thread that read it, and gets that came while all workers were busy become
// one call of the engine. Not for: more than one client. Thread-safety: run() is called once; stop() from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ragfs/engine/plugin.h"
#include "ragfs/engine/wire.h"

namespace ragfs::engine {

struct HostServerConfig {
  int socket_fd = -1;
  char* arena = nullptr;
  uint64_t arena_bytes = 0;
  uint32_t workers = 8;
};

class HostServer {
 public:
  HostServer(HostServerConfig config, Plugin& plugin);
  // Until the client has gone, breaks the protocol, or stop().
  void run();
  void stop();

 private:
  struct Request {
    FrameHeader header;
    std::string body;
    RequestView view;  // of `body`
  };
  void work();
  // Adds the next frame. False when there is none (without waiting for it) or no more.
  bool take_frame(bool wait, std::vector<Request>& out);
  void handle(std::vector<Request>& requests);
  void handle_gets(std::vector<Request*>& gets);
  void handle_other(const Request& request);
  std::vector<ragfs_engine_v1_item> items_of(const Request& request) const;
  void answer(const Request& request, int32_t status, std::span<const ragfs_engine_v1_item> items,
              std::string_view message);
  // Asks for the engine's incarnation when a second has gone by or a call has failed since.
  uint64_t incarnation();

  const HostServerConfig config_;
  Plugin& plugin_;
  std::atomic<bool> stopped_{false};
  std::atomic<bool> ask_incarnation_{true};
  std::atomic<int64_t> asked_at_ns_{0};
  std::atomic<uint64_t> incarnation_{0};

  std::atomic<uint32_t> idle_{0};  // workers that wait for a frame
};

}  // namespace ragfs::engine
