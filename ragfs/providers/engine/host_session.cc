#include "ragfs/providers/engine/host_session.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "ragfs/engine/ragfs_engine_v1.h"

extern char** environ;

namespace ragfs::engine {
namespace {

constexpr int kHostSocket = 3;
constexpr int kHostArena = 4;
constexpr int kOutOfTheWay = 10;  // descriptors from here on are not those that a host gets
constexpr int kReap_ms = 2;
constexpr int64_t kKilled_ms = 1'000;  // for a process to end once it is killed
constexpr int64_t kAskGivenUp_ms = 50;

int poll_timeout_ms(Deadline deadline) {
  constexpr int64_t kMost_ms = 1'000;
  return static_cast<int>(std::min<int64_t>(kMost_ms, deadline.remaining_ns() / 1'000'000 + 1));
}

// Waits for `events`; false at the deadline.
bool wait_for(int fd, short events, Deadline deadline) {
  while (true) {
    pollfd one{fd, events, 0};
    const int ready = ::poll(&one, 1, poll_timeout_ms(deadline));
    if (ready > 0) return true;
    if (deadline.expired()) return false;
  }
}

struct SpawnActions {
  SpawnActions() { ::posix_spawn_file_actions_init(&actions); }
  ~SpawnActions() { ::posix_spawn_file_actions_destroy(&actions); }
  SpawnActions(const SpawnActions&) = delete;
  SpawnActions& operator=(const SpawnActions&) = delete;
  posix_spawn_file_actions_t actions;
};
struct SpawnAttributes {
  SpawnAttributes() { ::posix_spawnattr_init(&attributes); }
  ~SpawnAttributes() { ::posix_spawnattr_destroy(&attributes); }
  SpawnAttributes(const SpawnAttributes&) = delete;
  SpawnAttributes& operator=(const SpawnAttributes&) = delete;
  posix_spawnattr_t attributes;
};

ErrorCode code_of_hello(int32_t status) {
  if (status == RAGFS_ENGINE_INVALID_ARGUMENT) return ErrorCode::config;
  return status == RAGFS_ENGINE_TIMEOUT ? ErrorCode::timeout : ErrorCode::unavailable;
}

}  // namespace

HostSession::HostSession(EngineStats& stats, std::shared_ptr<Arena> arena, std::function<void()> ended)
    : stats_(stats), arena_(std::move(arena)), on_end_(std::move(ended)) {}

HostSession::~HostSession() {
  (void)end(Deadline::in_ms(0));
  if (reader_.joinable()) reader_.join();
  if (socket_ >= 0) ::close(socket_);
}

Result<std::shared_ptr<HostSession>> HostSession::start(const EngineConfig& config, EngineStats& stats,
                                                        Deadline deadline, std::function<void()> ended,
                                                        const std::function<bool()>& given_up) {
  auto arena = Arena::create(config.arena_bytes);
  if (!arena) return std::unexpected(arena.error());
  std::unique_ptr<HostSession> made(new HostSession(stats, *std::move(arena), std::move(ended)));
  const std::shared_ptr<HostSession> session = std::move(made);
  if (auto spawned = session->spawn(config); !spawned) return std::unexpected(spawned.error());
  if (auto greeted = session->greet(config, deadline, given_up); !greeted) return std::unexpected(greeted.error());
  session->reader_ = std::thread([raw = session.get()] { raw->read_answers(); });
  return session;
}

Result<void> HostSession::spawn(const EngineConfig& config) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return fail(ErrorCode::unavailable, "a socket for the engine host", errno);
  }
  socket_ = ends[0];
  const int theirs = ::fcntl(ends[1], F_DUPFD_CLOEXEC, kOutOfTheWay);
  const int arena = ::fcntl(arena_->fd(), F_DUPFD_CLOEXEC, kOutOfTheWay);
  ::close(ends[1]);
  const SpawnActions files;
  auto* actions = const_cast<posix_spawn_file_actions_t*>(&files.actions);
  ::posix_spawn_file_actions_addopen(actions, 0, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(actions, 2, 1);  // what an SDK prints is no output of ours
  ::posix_spawn_file_actions_adddup2(actions, theirs, kHostSocket);
  ::posix_spawn_file_actions_adddup2(actions, arena, kHostArena);
  // Signals of the terminal are for this process, which ends its hosts itself.
  SpawnAttributes spawn;
  sigset_t none;
  sigemptyset(&none);
  ::posix_spawnattr_setsigmask(&spawn.attributes, &none);
  ::posix_spawnattr_setpgroup(&spawn.attributes, 0);
  ::posix_spawnattr_setflags(&spawn.attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  std::vector<char*> argv;
  for (const std::string& word : config.command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const int error = ::posix_spawnp(&pid_, argv[0], actions, &spawn.attributes, argv.data(), environ);
  ::close(theirs);
  ::close(arena);
  if (error == 0) return {};
  pid_ = 0;
  return fail(ErrorCode::unavailable, fmt::format("{}: cannot be started", config.command[0]), error);
}

Result<void> HostSession::greet(const EngineConfig& config, Deadline deadline, const std::function<bool()>& given_up) {
  std::string body;
  for (const std::string& option : config.options) body.append(option).push_back('\0');
  FrameHeader header;
  header.op = static_cast<uint16_t>(Op::hello);
  header.timeout_ms = deadline.remaining_ns() / 1'000'000;
  if (auto sent = send_frame(make_frame(header, body), deadline); !sent) return sent;
  while (!wait_for(socket_, POLLIN, Deadline::earlier(deadline, Deadline::in_ms(kAskGivenUp_ms)))) {
    if (given_up()) return fail(ErrorCode::unavailable, "the provider was closed while its engine host started");
    if (deadline.expired()) return fail(ErrorCode::timeout, "the engine host did not answer in time");
  }
  std::string packet(sizeof(FrameHeader) + kMaxBodyBytes, '\0');
  const ssize_t got = ::recv(socket_, packet.data(), packet.size(), 0);
  if (got <= 0) return fail(ErrorCode::unavailable, fmt::format("{} ended at once", fmt::join(config.command, " ")));
  const auto frame = read_frame({packet.data(), static_cast<size_t>(got)});
  if (!frame || !frame->is_answer() || frame->op() != Op::hello || frame->body.size() < sizeof(HelloAnswer)) {
    return fail(ErrorCode::config, fmt::format("{} speaks another version of the protocol than this program",
                                               fmt::join(config.command, " ")));
  }
  HelloAnswer hello;
  std::memcpy(&hello, frame->body.data(), sizeof hello);
  const std::string message(frame->body.substr(sizeof hello));
  if (frame->header.status != RAGFS_ENGINE_OK) return fail(code_of_hello(frame->header.status), message);
  engine_text_ = message;
  std::ranges::replace(engine_text_, '\n', ' ');
  abilities_ = {.native_ttl = hello.native_ttl != 0,
                .whole_values = hello.whole_values != 0,
                .may_resurrect = hello.may_resurrect != 0,
                .outlives_process = hello.outlives_process != 0,
                .atomic_put = hello.atomic_put,
                .max_batch_keys = std::clamp(hello.max_batch_keys, 1U, kMaxItems),
                .max_value_bytes = hello.max_value_bytes};
  return {};
}

Result<void> HostSession::send_frame(std::string_view frame, Deadline deadline) {
  while (true) {
    if (::send(socket_, frame.data(), frame.size(), MSG_NOSIGNAL | MSG_DONTWAIT) >= 0) return {};
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return fail(ErrorCode::unavailable, "the engine host is gone", errno);
    if (!wait_for(socket_, POLLOUT, deadline)) return fail(ErrorCode::timeout, "the engine host takes no requests");
  }
}

Result<std::shared_ptr<HostSession::Sent>> HostSession::send(Op op, std::span<const ChannelItem> items, Deadline room,
                                                             Deadline deadline) {
  if (ended_) return fail(ErrorCode::unavailable, "the engine host is gone");
  std::vector<uint64_t> sizes;
  if (op != Op::erase) {
    for (const ChannelItem& item : items) sizes.push_back(op == Op::get ? item.capacity : item.put_bytes());
  }
  auto blocks = arena_->take(sizes, room);
  if (!blocks) return fail(ErrorCode::would_block, "no room in the memory shared with the engine host");
  const auto sent = std::make_shared<Sent>(arena_, *std::move(blocks));
  sent->since_ns = Clock::system().monotonic_ns();
  std::vector<WireItem> wire(items.size());
  std::vector<std::string_view> keys(items.size());
  for (size_t i = 0; i < items.size(); ++i) {
    const ChannelItem& item = items[i];
    keys[i] = item.key;
    wire[i] = {.ttl_ms = item.ttl_ms,
               .flags = item.preferred ? RAGFS_ENGINE_PREFERRED : 0,
               .key_size = static_cast<uint32_t>(item.key.size())};
    if (op == Op::erase) continue;
    wire[i].offset = sent->blocks[i].offset;
    if (op == Op::get) {
      wire[i].capacity = static_cast<uint32_t>(sent->blocks[i].size);
      continue;
    }
    wire[i].size = static_cast<uint32_t>(item.put_bytes());
    char* to = arena_->at(wire[i].offset);
    for (const std::string_view part : item.parts) to = std::copy(part.begin(), part.end(), to);
  }
  FrameHeader header;
  header.op = static_cast<uint16_t>(op);
  header.timeout_ms = std::max<int64_t>(1, deadline.is_never() ? INT32_MAX : deadline.remaining_ns() / 1'000'000);
  header.count = static_cast<uint32_t>(items.size());
  {
    const MutexLock lock(mutex_);
    if (owed_.size() >= kMaxOwed) return fail(ErrorCode::would_block, "the engine host owes too many answers");
    sent->id = header.id = ++last_id_;
    owed_.emplace(sent->id, sent);
  }
  auto done = send_frame(make_frame(header, request_body(wire, keys)), deadline);
  if (ended_ && done) {  // maybe after its reader had given everything up
    lose_all();
    return sent;
  }
  if (done) return sent;
  const MutexLock lock(mutex_);
  owed_.erase(sent->id);
  return std::unexpected(done.error());
}

Result<void> HostSession::receive(Sent& sent, std::span<ChannelItem> items, Deadline deadline) {
  if (!sent.answered.wait_until(deadline)) return fail(ErrorCode::timeout, "the engine did not answer in time");
  if (sent.lost) return fail(ErrorCode::unavailable, "the engine host went away during the call");
  if (sent.results.size() != items.size()) {
    return fail(ErrorCode::invalid_data, "the engine host answered for another number of keys");
  }
  for (size_t i = 0; i < items.size(); ++i) {
    const WireResult& result = sent.results[i];
    items[i].status = result.status;
    items[i].engine_code = result.engine_code;
    items[i].size = result.size;
    const bool has_value = items[i].capacity > 0 && result.status == RAGFS_ENGINE_OK;
    if (!has_value) continue;
    if (result.size > sent.blocks[i].size) {
      items[i].status = RAGFS_ENGINE_INVALID_DATA;
      continue;
    }
    items[i].value = Bytes::copy({arena_->at(sent.blocks[i].offset), result.size});
  }
  return {};
}

void HostSession::read_answers() {
  std::string packet(sizeof(FrameHeader) + kMaxBodyBytes, '\0');
  while (true) {
    const ssize_t got = ::recv(socket_, packet.data(), packet.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    const auto frame = read_frame({packet.data(), static_cast<size_t>(got)});
    if (!frame || !frame->is_answer()) break;  // nothing that it says is believed any more
    deliver(*frame);
  }
  ended_ = true;
  ::shutdown(socket_, SHUT_RDWR);
  lose_all();
  on_end_();
}

void HostSession::deliver(const Frame& frame) {
  std::shared_ptr<Sent> sent;
  {
    const MutexLock lock(mutex_);
    const auto found = owed_.find(frame.header.id);
    if (found == owed_.end()) return;
    sent = std::move(found->second);
    owed_.erase(found);
  }
  if (sent.use_count() == 1) stats_.add(Event::late_answers);  // whoever waited has gone
  sent->header = frame.header;
  if (auto answer = read_answer(frame)) {
    sent->results = std::move(answer->results);
    sent->message = answer->message;
  }
  sent->answered.set();
}

void HostSession::lose_all() {
  std::map<uint64_t, std::shared_ptr<Sent>> lost;
  {
    const MutexLock lock(mutex_);
    lost.swap(owed_);
  }
  for (auto& [id, sent] : lost) {
    sent->lost = true;
    sent->answered.set();
  }
}

int64_t HostSession::owing_ns() const {
  const MutexLock lock(mutex_);
  return owed_.empty() ? 0 : Clock::system().monotonic_ns() - owed_.begin()->second->since_ns;
}

size_t HostSession::owed() const {
  const MutexLock lock(mutex_);
  return owed_.size();
}

bool HostSession::reap(Deadline deadline) {
  while (true) {
    const pid_t ended = ::waitpid(pid_, &status_, WNOHANG);
    reaped_ = ended == pid_ || (ended < 0 && errno != EINTR);
    if (reaped_ || deadline.expired()) return reaped_;
    ::poll(nullptr, 0, kReap_ms);  // no descriptor tells of a child's end on every kernel
  }
}

Result<void> HostSession::end(Deadline deadline) {
  ::shutdown(socket_, SHUT_RDWR);
  const MutexLock lock(reaping_);
  if (reaped_ || pid_ <= 0) return {};
  if (reap(deadline)) {
    if (WIFEXITED(status_) && WEXITSTATUS(status_) == 0) return {};
    return fail(ErrorCode::unavailable, fmt::format("the engine host failed as it ended (wait status {})", status_));
  }
  ::kill(pid_, SIGKILL);
  return fail(ErrorCode::timeout, reap(Deadline::in_ms(kKilled_ms)) ? "the engine host had to be killed"
                                                                    : "the engine host hangs and is left behind");
}

}  // namespace ragfs::engine
