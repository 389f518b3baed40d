// The table of all keys. Thread-safety: immutable, built at the first use.
#pragma once

#include "ragfs/config/field.h"

namespace ragfs {

// The Section of `Config` itself.
const Section& config_section();

}  // namespace ragfs
