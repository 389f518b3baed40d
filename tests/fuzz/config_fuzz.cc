// parse_config against any text, YAML or ov.conf: no crash, and what is accepted holds its own rules.
#include <cstdlib>
#include <string_view>

#include "ragfs/config/loader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto config = ragfs::parse_config(text, "fuzz.yaml");
  if (!config) {
    if (config.error().code != ragfs::ErrorCode::config || config.error().message.empty()) std::abort();
    return 0;
  }
  if (!config->validate()) std::abort();
  if (config->cache.effective_operation_timeout_ms() <= 0) std::abort();
  return 0;
}
