// A backend by its plugin name and the parameters of a mount() call. Thread-safety: pure functions.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "ragfs/base/error.h"
#include "ragfs/fs/file_system.h"

namespace ragfs::python {

// Errors: plugin (unknown name, bad directory), config (bad parameters), not_supported (not in this build).
Result<std::shared_ptr<FileSystem>> open_plugin(const std::string& type, const nlohmann::json& parameters);

}  // namespace ragfs::python
