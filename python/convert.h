// Between Python objects and ours, with the checks and exceptions of the original.
//
// Thread-safety: every function needs the GIL. Failures are thrown as pybind11::error_already_set, the way through
// pybind11 that costs nothing when there is none. Not for: calling the file system.
#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "python/answer.h"
#include "python/lock_book.h"
#include "ragfs/base/bytes.h"
#include "ragfs/base/context.h"
#include "ragfs/fs/file_system.h"

namespace ragfs::python {

namespace py = pybind11;

// Throws the Python exception. Its class is looked up at this moment, as the original does.
[[noreturn]] void throw_raised(const Raised& raised);
[[noreturn]] void throw_type_error(const std::string& text);

template <typename T>
T value(Answer<T> answer) {
  if (!answer) throw_raised(answer.error());
  if constexpr (!std::is_void_v<T>) return std::move(*answer);
}

// The UTF-8 of a str; it lives as long as the object. Errors: TypeError; UnicodeEncodeError for lone surrogates.
std::string_view text_of(py::handle object, const char* argument);
std::optional<std::string> optional_text(py::handle object, const char* argument);
bool flag_of(py::handle object, const char* argument);
// Errors: TypeError; OverflowError beyond 64 bits.
int64_t number_of(py::handle object, const char* argument);
// None is absent; a negative number is 0.
std::optional<uint64_t> limit_of(py::handle object, const char* argument);
double seconds_of(py::handle object, const char* argument);
std::vector<std::string> texts_of(py::handle object, const char* argument);
Context context_of(py::handle ctx);
// What mount() makes of its parameters: None, floats and other objects become their str().
nlohmann::json parameters_of(py::handle dict);
// A configuration: dict, list, str, int, float, bool, None, bytes.
nlohmann::json config_of(py::handle object);
// The bytes of a write's data: bytes-like, or a sequence of ints. Borrowed where it can be; `storage` holds the rest.
class WriteData {
 public:
  explicit WriteData(py::handle data);
  ~WriteData();
  WriteData(const WriteData&) = delete;
  WriteData& operator=(const WriteData&) = delete;
  std::string_view view() const { return view_; }

 private:
  Py_buffer buffer_{};
  bool has_buffer_ = false;
  std::string storage_;
  std::string_view view_;
};

py::object bytes_object(std::string_view data);
py::object file_dict(const FileInfo& info);
py::object lease_dict(const LeaseRef& lease, bool owned);
// What a lease dict says; the texts of errors name `what`.
struct LeaseArgument {
  std::string lease_ref;
  std::string ownership_ref;
  std::vector<std::string> lock_paths;
};
LeaseArgument owned_lease_of(py::handle object);

}  // namespace ragfs::python
