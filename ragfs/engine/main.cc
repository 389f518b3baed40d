// ragfs-engine-host PLUGIN: serves an engine's client, loaded from a plug-in, to the program that started this one.
//
// Descriptor 3 is a socket to that program, descriptor 4 the memory in which values lie. The first frame is a hello
// with the options. Ends when the other side of the socket does, or by SIGTERM, and gives the engine a bounded time for
// it.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "ragfs/base/one_shot_event.h"
#include "ragfs/engine/host_server.h"
#include "ragfs/engine/plugin.h"
#include "ragfs/engine/wire.h"

namespace ragfs::engine {
namespace {

constexpr int kSocket = 3;
constexpr int kArena = 4;
constexpr int64_t kClose_ms = 3'000;
constexpr int kHung = 3;  // exit status: the engine did not end in time

struct Arena {
  char* memory = nullptr;
  uint64_t size = 0;
};

Arena map_arena() {
  struct stat about{};
  if (::fstat(kArena, &about) != 0 || about.st_size <= 0) return {};
  void* memory = ::mmap(nullptr, static_cast<size_t>(about.st_size), PROT_READ | PROT_WRITE, MAP_SHARED, kArena, 0);
  if (memory == MAP_FAILED) return {};
  return {static_cast<char*>(memory), static_cast<uint64_t>(about.st_size)};
}

// The frame that begins a conversation, with its body kept in *body.
bool read_hello(FrameHeader* header, std::string* body) {
  std::string packet(sizeof(FrameHeader) + kMaxBodyBytes, '\0');
  ssize_t got = 0;
  do {
    got = ::recv(kSocket, packet.data(), packet.size(), 0);
  } while (got < 0 && errno == EINTR);
  const auto frame = read_frame({packet.data(), got > 0 ? static_cast<size_t>(got) : 0});
  if (!frame || frame->op() != Op::hello) return false;
  *header = frame->header;
  *body = frame->body;
  return true;
}

std::vector<std::string> options_in(std::string_view body) {
  std::vector<std::string> out;
  while (!body.empty()) {
    const size_t end = body.find('\0');
    out.emplace_back(body.substr(0, end));
    body.remove_prefix(end == std::string_view::npos ? body.size() : end + 1);
  }
  return out;
}

void answer_hello(const FrameHeader& request, int32_t status, const HelloAnswer& hello, std::string_view message) {
  FrameHeader header;
  header.op = request.op | kAnswerBit;
  header.id = request.id;
  header.status = status;
  std::string body(reinterpret_cast<const char*>(&hello), sizeof hello);
  body += message;
  const std::string frame = make_frame(header, body);
  (void)!::send(kSocket, frame.data(), frame.size(), MSG_NOSIGNAL);
}

int32_t status_of(const Error& error) {
  if (error.code == ErrorCode::config) return RAGFS_ENGINE_INVALID_ARGUMENT;
  return error.code == ErrorCode::timeout ? RAGFS_ENGINE_TIMEOUT : RAGFS_ENGINE_UNAVAILABLE;
}

int serve(const std::string& file) {
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  sigaddset(&ends, SIGUSR1);
  ::pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  const Arena arena = map_arena();
  FrameHeader request;
  std::string body;
  if (arena.memory == nullptr || !read_hello(&request, &body)) {
    std::fputs("ragfs-engine-host: is started by ragfs, with a socket and its memory\n", stderr);
    return 2;
  }
  auto plugin = Plugin::open(file, options_in(body));
  if (!plugin) {
    answer_hello(request, status_of(plugin.error()), {}, plugin.error().message);
    return 1;
  }
  const ragfs_engine_v1_abilities& can = (*plugin)->abilities();
  const ragfs_engine_v1& table = (*plugin)->table();
  if (table.register_memory != nullptr) (void)table.register_memory((*plugin)->handle(), arena.memory, arena.size);
  const HelloAnswer hello{kWireVersion,       can.native_ttl,       can.atomic_put,     can.whole_values,
                          can.may_resurrect,  can.outlives_process, can.max_batch_keys, 0,
                          can.max_value_bytes};
  answer_hello(request, RAGFS_ENGINE_OK, hello, std::string(table.name) + "\n" + table.engine);

  HostServer server({.socket_fd = kSocket, .arena = arena.memory, .arena_bytes = arena.size}, **plugin);
  const pid_t self = ::getpid();
  OneShotEvent ended;
  std::thread([&server, &ended, self] {
    server.run();
    ended.set();
    ::kill(self, SIGUSR1);
  }).detach();
  std::thread([self] {  // noticed even while every worker hangs in the engine
    char byte = 0;
    while (::recv(kSocket, &byte, 1, MSG_PEEK | MSG_DONTWAIT) != 0) ::poll(nullptr, 0, 200);
    ::kill(self, SIGUSR1);
  })
      .detach();
  int signal = 0;
  ::sigwait(&ends, &signal);
  server.stop();
  // An engine is ended when nobody is inside it any more, or not at all: the process ends without its workers.
  const Deadline deadline = Deadline::in_ms(kClose_ms);
  if (!ended.wait_until(deadline)) return kHung;
  return (*plugin)->close(deadline) ? 0 : kHung;
}

}  // namespace
}  // namespace ragfs::engine

int main(int argc, char** argv) {
  if (argc != 2 || argv[1][0] == '-') {
    std::fputs("usage: ragfs-engine-host PLUGIN.so   (started by ragfs)\n", stderr);
    return 2;
  }
  // What still hangs in an SDK's exit handlers would keep the process: its descriptors and memory go with it anyway.
  ::_exit(ragfs::engine::serve(argv[1]));
}
