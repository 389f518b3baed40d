// The methods of the Python class for many paths.
#include <utility>

#include "python/bind.h"

namespace ragfs::python {
namespace {

using py::arg;

// The exception that the single call would raise, as an object.
py::object exception_object(const Raised& raised) {
  try {
    throw_raised(raised);
  } catch (py::error_already_set& error) {
    return error.value();
  }
}

py::object text_object(std::string_view text) {
  return py::reinterpret_steal<py::object>(
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
}

py::object read_many(BoundClient& self, py::handle paths, py::handle ctx) {
  const std::vector<std::string> texts = texts_of(paths, "paths");
  const Context context = context_of(ctx);
  const auto answers = unlocked([&] { return self.client->read_many(context, texts); });
  py::list out;
  for (const Answer<Bytes>& answer : answers) {
    out.append(answer ? bytes_object(answer->view()) : exception_object(answer.error()));
  }
  return out;
}

py::object stat_many(BoundClient& self, py::handle paths, py::handle ctx) {
  const std::vector<std::string> texts = texts_of(paths, "paths");
  const Context context = context_of(ctx);
  const auto answers = unlocked([&] { return self.client->stat_many(context, texts); });
  py::list out;
  for (const Answer<FileInfo>& answer : answers) {
    out.append(answer ? file_dict(*answer) : exception_object(answer.error()));
  }
  return out;
}

py::object list_with_abstracts(BoundClient& self, py::handle path, py::handle levels, py::handle node_limit,
                               py::handle show_hidden, py::handle ctx) {
  const std::string_view text = text_of(path, "path");
  const Context context = context_of(ctx);
  AgentListingOptions options;
  options.levels = limit_of(levels, "levels").value_or(AgentListingOptions::kMostLevels);
  options.node_limit = limit_of(node_limit, "node_limit").value_or(options.node_limit);
  options.show_hidden = flag_of(show_hidden, "show_hidden");
  const auto entries = value(unlocked([&] { return self.client->list_with_abstracts(context, text, options); }));
  py::list out;
  for (const AgentEntry& entry : entries) {
    py::dict one;
    one["path"] = text_object(entry.path);
    one["rel_path"] = text_object(entry.rel_path);
    one["info"] = file_dict(entry.info);
    one["abstract"] = entry.abstract ? text_object(entry.abstract->view()) : py::object(py::none());
    if (entry.error) one["error"] = text_object(entry.error->text());
    out.append(std::move(one));
  }
  return out;
}

py::object write_context(BoundClient& self, py::handle path, py::handle content, py::handle abstract,
                         py::handle overview, py::handle content_name, py::handle ctx) {
  const std::string_view text = text_of(path, "path");
  const Context context = context_of(ctx);
  ContextFiles files;
  files.content_name = text_of(content_name, "content_name");
  std::optional<WriteData> bytes;
  if (!content.is_none()) {
    bytes.emplace(content);
    files.content = bytes->view();
  }
  const auto abstract_text = optional_text(abstract, "abstract");
  const auto overview_text = optional_text(overview, "overview");
  if (abstract_text) files.abstract = *abstract_text;
  if (overview_text) files.overview = *overview_text;
  const auto written = value(unlocked([&] { return self.client->write_context(context, text, files); }));
  py::list out;
  for (const Client::WrittenPart& part : written) {
    py::dict one;
    one["path"] = text_object(part.path);
    one["bytes"] = part.bytes ? py::object(py::int_(*part.bytes)) : py::object(py::none());
    one["error"] = part.bytes ? py::object(py::none()) : exception_object(part.bytes.error());
    out.append(std::move(one));
  }
  return out;
}

}  // namespace

void bind_batches(ClientClass& type) {
  const py::none none;
  type.def("read_many", read_many, arg("paths"), arg("ctx") = none);
  type.def("stat_many", stat_many, arg("paths"), arg("ctx") = none);
  type.def("list_with_abstracts", list_with_abstracts, arg("path"), arg("levels") = 1, arg("node_limit") = none,
           arg("show_hidden") = false, arg("ctx") = none);
  type.def("write_context", write_context, arg("path"), arg("content") = none, arg("abstract") = none,
           arg("overview") = none, arg("content_name") = "content.md", arg("ctx") = none);
}

}  // namespace ragfs::python
