#include "ragfs/engine/host_server.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <thread>

#include "ragfs/base/clock.h"
#include "ragfs/base/hash.h"

namespace ragfs::engine {
namespace {

constexpr int64_t kSecond_ns = 1'000'000'000;
constexpr size_t kMostFrames = 64;  // that one worker takes at once

}  // namespace

HostServer::HostServer(HostServerConfig config, Plugin& plugin) : config_(config), plugin_(plugin) {}

void HostServer::run() {
  std::vector<std::jthread> threads;
  threads.reserve(config_.workers);
  for (uint32_t i = 0; i < config_.workers; ++i) threads.emplace_back([this] { work(); });
}

void HostServer::stop() {
  stopped_ = true;
  ::shutdown(config_.socket_fd, SHUT_RDWR);
}

void HostServer::work() {
  std::vector<Request> requests;
  while (!stopped_) {
    requests.clear();
    ++idle_;
    const bool taken = take_frame(true, requests);
    const bool last = --idle_ == 0;
    if (!taken) break;
    while (last && requests.size() < kMostFrames && take_frame(false, requests)) {
    }
    if (!stopped_) handle(requests);
  }
  stop();
}

bool HostServer::take_frame(bool wait, std::vector<Request>& out) {
  thread_local std::array<char, sizeof(FrameHeader) + kMaxBodyBytes> packet;
  ssize_t got = 0;
  do {
    got = ::recv(config_.socket_fd, packet.data(), packet.size(), wait ? 0 : MSG_DONTWAIT);
  } while (got < 0 && errno == EINTR);
  if (got <= 0) return false;
  const auto frame = read_frame({packet.data(), static_cast<size_t>(got)});
  out.push_back({});
  if (frame) {
    out.back().header = frame->header;
    out.back().body = frame->body;
    auto view = read_request({out.back().header, out.back().body}, config_.arena_bytes);
    if (view) {
      out.back().view = *std::move(view);
      return true;
    }
  }
  out.clear();
  stop();  // a client that breaks the protocol is served no more
  return false;
}

void HostServer::handle(std::vector<Request>& requests) {
  std::vector<Request*> gets;
  for (Request& request : requests) {
    if (static_cast<Op>(request.header.op) == Op::get) gets.push_back(&request);
  }
  handle_gets(gets);
  for (const Request& request : requests) {
    if (static_cast<Op>(request.header.op) != Op::get) handle_other(request);
  }
}

std::vector<ragfs_engine_v1_item> HostServer::items_of(const Request& request) const {
  std::vector<ragfs_engine_v1_item> items;
  items.reserve(request.view.items.size());
  for (size_t i = 0; i < request.view.items.size(); ++i) {
    const WireItem& item = request.view.items[i];
    items.push_back({.key = request.view.keys[i].data(),
                     .key_size = item.key_size,
                     .status = RAGFS_ENGINE_INTERNAL,
                     .data = config_.arena + item.offset,
                     .capacity = item.capacity,
                     .size = item.size,
                     .ttl_ms = item.ttl_ms,
                     .engine_code = 0,
                     .flags = item.flags});
  }
  return items;
}

void HostServer::handle_gets(std::vector<Request*>& gets) {
  if (gets.empty()) return;
  std::vector<ragfs_engine_v1_item> all;
  int64_t timeout_ms = 0;
  for (const Request* request : gets) {
    const auto items = items_of(*request);
    all.insert(all.end(), items.begin(), items.end());
    timeout_ms = std::max(timeout_ms, request->header.timeout_ms);
  }
  if (plugin_.call(Op::get, all, Deadline::in_ms(timeout_ms))) ask_incarnation_ = true;
  const std::string message = plugin_.last_error();
  size_t at = 0;
  for (const Request* request : gets) {
    const size_t count = request->view.items.size();
    answer(*request, RAGFS_ENGINE_OK, std::span(all).subspan(at, count), message);
    at += count;
  }
}

void HostServer::handle_other(const Request& request) {
  const Op op = static_cast<Op>(request.header.op);
  const Deadline deadline = Deadline::in_ms(request.header.timeout_ms);
  auto items = items_of(request);
  int32_t status = RAGFS_ENGINE_OK;
  std::string message;
  switch (op) {
    case Op::put:
    case Op::erase:
    case Op::put_if_absent_tx:
      if (plugin_.call(op, items, deadline)) ask_incarnation_ = true;
      message = plugin_.last_error();
      break;
    case Op::health:
      status = plugin_.health(deadline);
      if (status != RAGFS_ENGINE_OK) message = plugin_.last_error();
      if (engine_failed(status)) ask_incarnation_ = true;
      break;
    case Op::warnings:
      for (const std::string& line : plugin_.warnings()) message += line + "\n";
      break;
    case Op::ping: break;
    default: status = RAGFS_ENGINE_NOT_SUPPORTED; break;
  }
  answer(request, status, items, message);
}

uint64_t HostServer::incarnation() {
  const int64_t now_ns = Clock::system().monotonic_ns();
  if (ask_incarnation_.exchange(false) || now_ns - asked_at_ns_.load() > kSecond_ns) {
    incarnation_ = hash64(plugin_.incarnation());
    asked_at_ns_ = now_ns;
  }
  return incarnation_;
}

void HostServer::answer(const Request& request, int32_t status, std::span<const ragfs_engine_v1_item> items,
                        std::string_view message) {
  std::vector<WireResult> results;
  results.reserve(items.size());
  for (const ragfs_engine_v1_item& item : items) {
    results.push_back({item.status, static_cast<uint32_t>(item.size), item.engine_code, 0});
  }
  FrameHeader header;
  header.op = request.header.op | kAnswerBit;
  header.id = request.header.id;
  header.incarnation = incarnation();
  header.count = static_cast<uint32_t>(results.size());
  header.status = status;
  const std::string frame = make_frame(header, answer_body(results, message));
  ssize_t sent = 0;
  do {
    sent = ::send(config_.socket_fd, frame.data(), frame.size(), MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  if (sent < 0) stop();
}

}  // namespace ragfs::engine
