#include "python/convert.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace ragfs::python {
namespace {

using Json = nlohmann::json;

std::string type_name(py::handle object) { return Py_TYPE(object.ptr())->tp_name; }

[[noreturn]] void throw_cast_error(py::handle object, const char* argument, const char* wanted) {
  throw_type_error(
      fmt::format("argument '{}': '{}' object cannot be cast as '{}'", argument, type_name(object), wanted));
}

// Days since 1970-01-01 as a date of the Gregorian calendar (H. Hinnant's algorithm).
struct Date {
  int64_t year;
  unsigned month;
  unsigned day;
};
Date date_of(int64_t days) {
  days += 719'468;
  const int64_t era = (days >= 0 ? days : days - 146'096) / 146'097;
  const auto of_era = static_cast<unsigned>(days - era * 146'097);
  const unsigned year = (of_era - of_era / 1460 + of_era / 36'524 - of_era / 146'096) / 365;
  const unsigned of_year = of_era - (365 * year + year / 4 - year / 100);
  const unsigned month = (5 * of_year + 2) / 153;
  const unsigned day = of_year - (153 * month + 2) / 5 + 1;
  const unsigned calendar_month = month < 10 ? month + 3 : month - 9;
  return {static_cast<int64_t>(year) + era * 400 + (calendar_month <= 2 ? 1 : 0), calendar_month, day};
}

void two_digits(char* at, unsigned number) {
  at[0] = static_cast<char>('0' + number / 10);
  at[1] = static_cast<char>('0' + number % 10);
}

py::object time_text(int64_t mtime_ns) {
  constexpr int64_t kNsPerSec = 1'000'000'000;
  constexpr int64_t kDay = 86'400;
  int64_t secs = mtime_ns / kNsPerSec;
  if (mtime_ns % kNsPerSec < 0) --secs;
  int64_t days = secs / kDay;
  if (secs % kDay < 0) --days;
  const auto of_day = static_cast<unsigned>(secs - days * kDay);
  const Date date = date_of(days);
  char text[] = "0000-00-00T00:00:00Z";
  two_digits(text, static_cast<unsigned>(date.year / 100));
  two_digits(text + 2, static_cast<unsigned>(date.year % 100));
  two_digits(text + 5, date.month);
  two_digits(text + 8, date.day);
  two_digits(text + 11, of_day / 3600);
  two_digits(text + 14, of_day / 60 % 60);
  two_digits(text + 17, of_day % 60);
  return py::reinterpret_steal<py::object>(PyUnicode_FromStringAndSize(text, sizeof(text) - 1));
}

PyObject* interned(const char* text) {
  PyObject* object = PyUnicode_InternFromString(text);
  if (object == nullptr) throw py::error_already_set();
  return object;
}

py::object exception_class(const std::string& type) {
  if (type.ends_with("Error") && !type.starts_with("AGFS") && type != "LockAcquisitionError") {
    return py::module_::import("builtins").attr(type.c_str());
  }
  const char* module = type == "LockAcquisitionError" ? "openviking.storage.errors" : "openviking.pyagfs";
  return py::module_::import(module).attr(type.c_str());
}

bool is_sequence(py::handle object) {
  return PyList_Check(object.ptr()) || PyTuple_Check(object.ptr()) ||
         (PySequence_Check(object.ptr()) && !PyDict_Check(object.ptr()));
}

}  // namespace

void throw_type_error(const std::string& text) {
  PyErr_SetString(PyExc_TypeError, text.c_str());
  throw py::error_already_set();
}

void throw_raised(const Raised& raised) {
  py::object type;
  try {
    type = exception_class(raised.type);
  } catch (const py::error_already_set&) {
    type = py::reinterpret_borrow<py::object>(PyExc_RuntimeError);
  }
  // A backend's text may hold bytes of a file name that are no UTF-8.
  const auto text = py::reinterpret_steal<py::object>(
      PyUnicode_DecodeUTF8(raised.message.data(), static_cast<Py_ssize_t>(raised.message.size()), "replace"));
  PyErr_SetObject(type.ptr(), text.ptr());
  throw py::error_already_set();
}

std::string_view text_of(py::handle object, const char* argument) {
  if (!PyUnicode_Check(object.ptr())) throw_cast_error(object, argument, "str");
  Py_ssize_t size = 0;
  const char* text = PyUnicode_AsUTF8AndSize(object.ptr(), &size);
  if (text == nullptr) throw py::error_already_set();
  return {text, static_cast<size_t>(size)};
}

std::optional<std::string> optional_text(py::handle object, const char* argument) {
  if (object.is_none()) return std::nullopt;
  return std::string(text_of(object, argument));
}

bool flag_of(py::handle object, const char* argument) {
  if (!PyBool_Check(object.ptr())) throw_cast_error(object, argument, "bool");
  return object.ptr() == Py_True;
}

int64_t number_of(py::handle object, const char* argument) {
  if (!PyIndex_Check(object.ptr())) {
    throw_type_error(
        fmt::format("argument '{}': '{}' object cannot be interpreted as an integer", argument, type_name(object)));
  }
  const auto index = py::reinterpret_steal<py::object>(PyNumber_Index(object.ptr()));
  if (!index) throw py::error_already_set();
  const long number = PyLong_AsLong(index.ptr());
  if (number == -1 && PyErr_Occurred() != nullptr) throw py::error_already_set();
  return number;
}

std::optional<uint64_t> limit_of(py::handle object, const char* argument) {
  if (object.is_none()) return std::nullopt;
  return static_cast<uint64_t>(std::max<int64_t>(number_of(object, argument), 0));
}

double seconds_of(py::handle object, const char* argument) {
  const double number = PyFloat_AsDouble(object.ptr());
  if (number == -1.0 && PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    throw_type_error(fmt::format("argument '{}': must be real number, not {}", argument, type_name(object)));
  }
  return number;
}

std::vector<std::string> texts_of(py::handle object, const char* argument) {
  if (PyUnicode_Check(object.ptr()) || !is_sequence(object)) throw_cast_error(object, argument, "Sequence");
  std::vector<std::string> texts;
  for (const py::handle item : py::reinterpret_borrow<py::sequence>(object)) {
    texts.emplace_back(text_of(item, argument));
  }
  return texts;
}

Context context_of(py::handle ctx) {
  Context out;
  if (ctx.is_none()) return out;
  if (!PyDict_Check(ctx.ptr())) throw_cast_error(ctx, "ctx", "dict");
  PyObject* key = nullptr;
  PyObject* item = nullptr;
  for (Py_ssize_t at = 0; PyDict_Next(ctx.ptr(), &at, &key, &item) != 0;) {
    const std::string_view name = text_of(key, "ctx");
    const std::string_view text = text_of(item, "ctx");
    if (name == "account_id") out.account = text;
    if (name == "lease_ref") out.lease_ref = text;
    if (name == "disable_auto_pathlock") out.disable_auto_pathlock = text == "true";
    if (name == "bypass_cache") out.bypass_cache = text == "true";
  }
  return out;
}

nlohmann::json config_of(py::handle object) {
  if (object.is_none()) return nullptr;
  if (PyBool_Check(object.ptr())) return object.ptr() == Py_True;
  if (PyLong_Check(object.ptr())) return number_of(object, "config");
  if (PyFloat_Check(object.ptr())) return PyFloat_AsDouble(object.ptr());
  if (PyUnicode_Check(object.ptr())) return std::string(text_of(object, "config"));
  if (PyBytes_Check(object.ptr())) {
    const char* data = PyBytes_AsString(object.ptr());
    return Json::binary(std::vector<uint8_t>(data, data + PyBytes_Size(object.ptr())));
  }
  if (PyDict_Check(object.ptr())) {
    Json out = Json::object();
    PyObject* key = nullptr;
    PyObject* item = nullptr;
    for (Py_ssize_t at = 0; PyDict_Next(object.ptr(), &at, &key, &item) != 0;) {
      out[std::string(text_of(key, "config"))] = config_of(item);
    }
    return out;
  }
  if (PyList_Check(object.ptr()) || PyTuple_Check(object.ptr())) {
    Json out = Json::array();
    for (const py::handle item : py::reinterpret_borrow<py::sequence>(object)) out.push_back(config_of(item));
    return out;
  }
  return std::string(py::str(object));
}

nlohmann::json parameters_of(py::handle dict) {
  if (dict.is_none()) return Json::object();
  if (!PyDict_Check(dict.ptr())) throw_cast_error(dict, "config", "dict");
  Json out = Json::object();
  PyObject* key = nullptr;
  PyObject* item = nullptr;
  for (Py_ssize_t at = 0; PyDict_Next(dict.ptr(), &at, &key, &item) != 0;) {
    const bool kept =
        PyBool_Check(item) || PyLong_Check(item) || PyUnicode_Check(item) || PyDict_Check(item) || PyList_Check(item);
    out[std::string(text_of(key, "config"))] = kept ? config_of(item) : Json(std::string(py::str(py::handle(item))));
  }
  return out;
}

WriteData::WriteData(py::handle data) {
  if (PyUnicode_Check(data.ptr())) throw_type_error("argument 'data': Can't extract `str` to `Vec`");
  if (PyBytes_Check(data.ptr())) {
    view_ = {PyBytes_AS_STRING(data.ptr()), static_cast<size_t>(PyBytes_GET_SIZE(data.ptr()))};
    return;
  }
  if (PyObject_CheckBuffer(data.ptr()) != 0) {
    if (PyObject_GetBuffer(data.ptr(), &buffer_, PyBUF_SIMPLE) != 0) throw py::error_already_set();
    has_buffer_ = true;
    view_ = {static_cast<const char*>(buffer_.buf), static_cast<size_t>(buffer_.len)};
    return;
  }
  if (!PySequence_Check(data.ptr()) || PyDict_Check(data.ptr())) throw_cast_error(data, "data", "Sequence");
  for (const py::handle item : py::reinterpret_borrow<py::sequence>(data)) {
    const int64_t number = number_of(item, "data");
    if (number < 0 || number > UINT8_MAX) {
      PyErr_SetString(PyExc_OverflowError,
                      number < 0 ? "number too small to fit in target type" : "number too large to fit in target type");
      throw py::error_already_set();
    }
    storage_.push_back(static_cast<char>(number));
  }
  view_ = storage_;
}

WriteData::~WriteData() {
  if (has_buffer_) PyBuffer_Release(&buffer_);
}

py::object bytes_object(std::string_view data) {
  PyObject* made = PyBytes_FromStringAndSize(data.data(), static_cast<Py_ssize_t>(data.size()));
  if (made == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(made);
}

py::object file_dict(const FileInfo& info) {
  static PyObject* const kName = interned("name");
  static PyObject* const kSize = interned("size");
  static PyObject* const kMode = interned("mode");
  static PyObject* const kTime = interned("modTime");
  static PyObject* const kIsDir = interned("isDir");
  auto dict = py::reinterpret_steal<py::object>(PyDict_New());
  const auto set = [&](PyObject* key, PyObject* item) {
    const int failed = item == nullptr ? -1 : PyDict_SetItem(dict.ptr(), key, item);
    Py_XDECREF(item);
    if (failed != 0) throw py::error_already_set();
  };
  set(kName, PyUnicode_DecodeUTF8(info.name.data(), static_cast<Py_ssize_t>(info.name.size()), "replace"));
  set(kSize, PyLong_FromUnsignedLongLong(info.size));
  set(kMode, PyLong_FromLong(info.mode));
  set(kTime, time_text(info.mtime_ns).release().ptr());
  set(kIsDir, PyBool_FromLong(info.is_dir() ? 1 : 0));
  return dict;
}

py::object lease_dict(const LeaseRef& lease, bool owned) {
  py::dict out;
  out["lease_ref"] = lease.lease_ref;
  out["owner_id"] = lease.owner_id;
  py::list paths;
  for (const std::string& path : lease.lock_paths) paths.append(path);
  out["lock_paths"] = paths;
  if (owned) out["ownership_ref"] = lease.ownership_ref;
  out["owned"] = owned;
  return out;
}

LeaseArgument owned_lease_of(py::handle object) {
  const auto refuse = [](const char* text) { throw_raised({"ValueError", text}); };
  if (!PyDict_Check(object.ptr())) throw_cast_error(object, "owned_lease_ref", "dict");
  const auto dict = py::reinterpret_borrow<py::dict>(object);
  if (!dict.contains("owned") || dict["owned"].ptr() != Py_True) {
    refuse("lease ref is not owned; release/refresh/handoff require an owned lease");
  }
  LeaseArgument out;
  if (!dict.contains("lease_ref")) refuse("owned_lease_ref.lease_ref required");
  out.lease_ref = text_of(dict["lease_ref"], "lease_ref");
  if (!dict.contains("ownership_ref")) refuse("owned_lease_ref.ownership_ref required");
  out.ownership_ref = text_of(dict["ownership_ref"], "ownership_ref");
  return out;
}

}  // namespace ragfs::python
