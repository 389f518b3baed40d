// The module ragfs_python: a drop-in for the one that OpenViking uses (docs/python.md).
#include <pybind11/pybind11.h>

#include <nlohmann/json.hpp>

#include "python/bind.h"
#include "python/options.h"

namespace ragfs::python {
namespace {

std::shared_ptr<BoundClient> make_client(py::handle config_path, py::handle config, py::handle git_config_path) {
  const std::string path = optional_text(config_path, "config_path").value_or("");
  const std::string git_path = optional_text(git_config_path, "git_config_path").value_or("");
  nlohmann::json sections;
  if (!config.is_none()) {
    if (!PyDict_Check(config.ptr())) throw_type_error("argument 'config': object cannot be cast as 'dict'");
    const auto dict = py::reinterpret_borrow<py::dict>(config);
    if (dict.contains("service_name")) (void)text_of(dict["service_name"], "service_name");
    sections = config_of(config);
  }
  Options options = value(parse_options(path, sections, git_path));
  auto bound = std::make_shared<BoundClient>();
  Answer<std::unique_ptr<Client>> opened;
  {
    const py::gil_scoped_release release;
    opened = Client::open(std::move(options));
  }
  bound->client = value(std::move(opened));
  bound->async_locks = make_async_locks();
  return bound;
}

}  // namespace
}  // namespace ragfs::python

PYBIND11_MODULE(ragfs_python, module) {
  namespace py = pybind11;
  namespace rp = ragfs::python;
  module.doc() = "RAGFS in C++, with the interface of OpenViking's ragfs_python.";
  rp::ClientClass type(module, "RAGFSBindingClient");
  type.def(py::init(&rp::make_client), py::arg("config_path") = py::none(), py::arg("config") = py::none(),
           py::arg("git_config_path") = py::none());
  rp::bind_files(type);
  rp::bind_mounts(type);
  rp::bind_locks(type);
  module.def("reopen_tracing_file", [] {});
  module.attr("__all__") = py::make_tuple("RAGFSBindingClient", "reopen_tracing_file");
  py::module_::import("atexit").attr("register")(py::cpp_function([] {
    const py::gil_scoped_release release;
    rp::stop_async_locks();
  }));
}
