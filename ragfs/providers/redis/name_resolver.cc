#include "ragfs/providers/redis/name_resolver.h"

#include <fmt/format.h>
#include <netdb.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <optional>
#include <system_error>
#include <thread>

#include "ragfs/base/sync.h"

namespace ragfs::redis {
namespace {

constexpr int kMostLookups = 8;

using Answer = Result<std::vector<SocketAddress>>;

Answer look_up(const std::string& host, uint16_t port, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | flags;
  addrinfo* list = nullptr;
  const int error = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
  if (error != 0) {
    return fail(ErrorCode::unavailable,
                fmt::format("redis host \"{}\" has no address: {}", host, ::gai_strerror(error)));
  }
  std::vector<SocketAddress> out;
  for (const addrinfo* at = list; at != nullptr; at = at->ai_next) {
    SocketAddress address;
    address.size = at->ai_addrlen;
    std::memcpy(&address.storage, at->ai_addr, at->ai_addrlen);
    out.push_back(address);
  }
  ::freeaddrinfo(list);
  return out;
}

// What the look-up's thread and the caller share; the last one frees it.
struct Lookup {
  Mutex mutex;
  CondVar done;
  std::optional<Answer> answer RAGFS_GUARDED_BY(mutex);
};

std::atomic<int>& lookups_under_way() {
  static std::atomic<int> count{0};
  return count;
}

}  // namespace

Answer resolve(const std::string& host, uint16_t port, Deadline deadline) {
  if (Answer numeric = look_up(host, port, AI_NUMERICHOST)) return numeric;
  if (lookups_under_way().fetch_add(1) >= kMostLookups) {
    lookups_under_way().fetch_sub(1);
    return fail(ErrorCode::unavailable, fmt::format("redis host \"{}\": name servers do not answer", host));
  }
  auto lookup = std::make_shared<Lookup>();
  try {
    std::thread([lookup, host, port] {
      Answer answer = look_up(host, port, 0);
      lookups_under_way().fetch_sub(1);
      MutexLock lock(lookup->mutex);
      lookup->answer = std::move(answer);
      lookup->done.notify_all();
    }).detach();
  } catch (const std::system_error& error) {
    lookups_under_way().fetch_sub(1);
    return fail(ErrorCode::unavailable, fmt::format("no thread to look up \"{}\": {}", host, error.what()));
  }
  MutexLock lock(lookup->mutex);
  while (!lookup->answer) {
    if (!lookup->done.wait_until(lookup->mutex, deadline) && !lookup->answer) {
      return fail(ErrorCode::timeout, fmt::format("redis host \"{}\": no name server answered in time", host));
    }
  }
  return *lookup->answer;
}

}  // namespace ragfs::redis
