#include "ragfs/providers/engine/engine_config.h"

#include <fmt/format.h>

#include <bit>

namespace ragfs::engine {
namespace {

// Keys of the cache are at most 128 characters; openYuanrong takes 255.
constexpr size_t kMaxPrefixBytes = 64;

Result<void> in_range(std::string_view field, int64_t value, int64_t least, int64_t most) {
  if (value >= least && value <= most) return {};
  return fail(ErrorCode::config, fmt::format("{}: {} is not allowed; it must be {} to {}", field, value, least, most));
}

}  // namespace

Result<void> EngineConfig::validate() const {
  if (in_process ? plugin.empty() : command.empty()) {
    return fail(ErrorCode::config, fmt::format("{}: is missing", in_process ? "plugin" : "command"));
  }
  constexpr std::string_view kAllowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-:";
  if (key_prefix.size() > kMaxPrefixBytes || key_prefix.find_first_not_of(kAllowed) != std::string::npos) {
    return fail(ErrorCode::config, fmt::format("key_prefix: \"{}\" is not allowed; it has at most {} of [A-Za-z0-9:_-]",
                                               key_prefix, kMaxPrefixBytes));
  }
  constexpr int64_t kMiB = 1 << 20;
  if (!std::has_single_bit(arena_bytes)) {
    return fail(ErrorCode::config,
                fmt::format("arena_bytes: {} is not allowed; it must be a power of two", arena_bytes));
  }
  if (auto ok = in_range("arena_bytes", static_cast<int64_t>(arena_bytes), kMiB, 4096 * kMiB); !ok) return ok;
  const auto most_value = static_cast<int64_t>(arena_bytes / 8);
  if (auto ok = in_range("max_value_bytes", static_cast<int64_t>(max_value_bytes), 4096, most_value); !ok) return ok;
  if (auto ok = in_range("connect_timeout_ms", connect_timeout_ms, 1, 600'000); !ok) return ok;
  if (auto ok = in_range("first_pause_ms", first_pause_ms, 1, 60'000); !ok) return ok;
  if (auto ok = in_range("max_pause_ms", max_pause_ms, first_pause_ms, 600'000); !ok) return ok;
  if (auto ok = in_range("start_wait_ms", start_wait_ms, 0, 60'000); !ok) return ok;
  return in_range("hang_ms", hang_ms, 1'000, 3'600'000);
}

}  // namespace ragfs::engine
