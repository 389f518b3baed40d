// Answer: what a call of the binding gives, and how it fails in the original's words.
//
// The core's errors are one type with codes; OpenViking knows exceptions by class and sometimes by text, and its
// backends disagree in both. raised() makes the original's exception of a core error. Thread-safety: pure functions.
#pragma once

#include <expected>
#include <string>
#include <string_view>

#include "ragfs/base/error.h"

namespace ragfs::python {

// A Python exception to be raised: the name of its class, as openviking.pyagfs or builtins has it, and its text.
struct Raised {
  std::string type;
  std::string message;
};

template <typename T>
using Answer = std::expected<T, Raised>;

inline std::unexpected<Raised> raise(std::string type, std::string message) {
  return std::unexpected<Raised>(Raised{std::move(type), std::move(message)});
}

enum class Call : uint8_t {
  read,
  write,
  touch,
  copy,
  list,
  stat,
  make,
  make_dir,
  make_parents,
  remove,
  remove_all,
  rename,
  other
};

// `plugin` is the type of the mount that was asked ("" = none).
Raised raised(const Error& error, std::string_view plugin, Call call);

}  // namespace ragfs::python
