#include "ragfs/base/memory_limit.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>
#include <sstream>
#include <string_view>

namespace ragfs {
namespace {

constexpr uint64_t kNone = UINT64_MAX;

std::optional<uint64_t> number(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end == text.data()) return std::nullopt;
  return value;
}

// The number in a file of one line; "max" and what cannot be read are no limit.
uint64_t limit_in(const std::string& file) {
  std::ifstream in(file);
  std::string word;
  if (!(in >> word)) return kNone;
  return number(word).value_or(kNone);
}

// The least limit of the group at `path` below `root` and of all above it. In a container the path may be that of the
// host, and not be there: then what is mounted at the root is the container's own.
uint64_t least_limit(const std::string& root, std::string path, const char* file) {
  uint64_t least = limit_in(root + "/" + file);
  while (!path.empty() && path != "/") {
    least = std::min(least, limit_in(root + path + "/" + file));
    path.resize(path.rfind('/'));
  }
  return least;
}

uint64_t machine_bytes(const std::string& proc) {
  std::ifstream in(proc + "/meminfo");
  std::string name;
  uint64_t kib = 0;
  std::string unit;
  while (in >> name >> kib) {
    if (name == "MemTotal:") return kib * 1024;
    std::getline(in, unit);
  }
  return kNone;
}

bool names_memory(const std::string& controllers) {
  std::istringstream list(controllers);
  for (std::string one; std::getline(list, one, ',');) {
    if (one == "memory") return true;
  }
  return false;
}

}  // namespace

uint64_t memory_limit_bytes(const std::string& proc, const std::string& cgroups) {
  uint64_t least = machine_bytes(proc);
  std::ifstream in(proc + "/self/cgroup");
  // "HIERARCHY:CONTROLLERS:/PATH"; of the second version "0::/PATH".
  for (std::string line; std::getline(in, line);) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos || line.compare(second + 1, 1, "/") != 0) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    if (controllers.empty()) least = std::min(least, least_limit(cgroups, path, "memory.max"));
    if (names_memory(controllers)) {
      least = std::min(least, least_limit(cgroups + "/memory", path, "memory.limit_in_bytes"));
    }
  }
  return least;
}

}  // namespace ragfs
