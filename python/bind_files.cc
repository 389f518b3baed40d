// The file methods of the Python class.
#include <fmt/format.h>

#include <utility>

#include "python/bind.h"

namespace ragfs::python {
namespace {

using py::arg;

constexpr const char* kNoStream = "Streaming not supported in binding mode";

py::dict message(const char* text) {
  py::dict out;
  out["message"] = text;
  return out;
}

uint64_t non_negative(py::handle object, const char* argument) {
  return static_cast<uint64_t>(std::max<int64_t>(number_of(object, argument), 0));
}

py::object read(BoundClient& self, py::handle path, py::handle offset, py::handle size, py::handle stream,
                py::handle ctx) {
  const std::string_view text = text_of(path, "path");
  const uint64_t from = non_negative(offset, "offset");
  const uint64_t most = non_negative(size, "size");
  if (flag_of(stream, "stream")) throw_raised({"RuntimeError", kNoStream});
  const Context context = context_of(ctx);
  // A hit in this process's memory is over before another thread could have taken the GIL.
  if (const auto hit = self.client->read_at_once(context, text, from, most)) return bytes_object(hit->view());
  return bytes_object(value(unlocked([&] { return self.client->read(context, text, from, most); })).view());
}

py::object stat(BoundClient& self, py::handle path, py::handle ctx) {
  const std::string_view text = text_of(path, "path");
  const Context context = context_of(ctx);
  const auto known = self.client->stat_at_once(context, text);
  if (known) return file_dict(*known);
  return file_dict(value(unlocked([&] { return self.client->stat(context, text); })));
}

py::object write(BoundClient& self, py::handle path, py::handle data, py::handle max_retries, py::handle ctx) {
  const std::string_view text = text_of(path, "path");
  const WriteData bytes(data);
  (void)number_of(max_retries, "max_retries");
  const Context context = context_of(ctx);
  const uint64_t written = value(unlocked([&] { return self.client->write(context, text, bytes.view()); }));
  return py::str(fmt::format("Written {} bytes", written));
}

uint32_t mode_of(py::handle mode) {
  const std::string text(text_of(mode, "mode"));
  const auto refuse = [&](const char* why) {
    throw_raised({"RuntimeError", fmt::format("Invalid mode '{}': {}", text, why)});
  };
  if (text.empty()) refuse("cannot parse integer from empty string");
  uint64_t number = 0;
  for (const char c : text) {
    if (c < '0' || c > '7') refuse("invalid digit found in string");
    number = number * 8 + static_cast<uint64_t>(c - '0');
    if (number > UINT32_MAX) refuse("number too large to fit in target type");
  }
  return static_cast<uint32_t>(number);
}

SortBy sort_by_of(py::handle sort_by) {
  const auto text = optional_text(sort_by, "sort_by");
  if (!text) return SortBy::none;
  if (*text == "name") return SortBy::name;
  if (*text != "mtime") {
    throw_raised({"ValueError", fmt::format("sort_by must be 'name' or 'mtime', got \"{}\"", *text)});
  }
  return SortBy::mtime;
}

bool descending_of(py::handle sort_order) {
  const auto text = optional_text(sort_order, "sort_order");
  if (!text || *text == "asc") return false;
  if (*text != "desc") {
    throw_raised({"ValueError", fmt::format("sort_order must be 'asc' or 'desc', got \"{}\"", *text)});
  }
  return true;
}

uint64_t offset_of(py::handle offset) {
  const int64_t number = number_of(offset, "offset");
  if (number < 0) throw_raised({"ValueError", "offset must be non-negative"});
  return static_cast<uint64_t>(number);
}

py::object list(BoundClient& self, py::handle path, py::handle ctx, py::handle offset, py::handle limit,
                py::handle sort_by, py::handle sort_order) {
  const std::string_view text = text_of(path, "path");
  const Context context = context_of(ctx);
  ListOptions options;
  options.offset = offset_of(offset);
  if (!limit.is_none()) {
    const int64_t number = number_of(limit, "limit");
    if (number <= 0) throw_raised({"ValueError", "limit must be positive"});
    options.limit = static_cast<uint64_t>(number);
  }
  options.sort_by = sort_by_of(sort_by);
  options.descending = descending_of(sort_order);
  const auto entries = value(unlocked([&] { return self.client->list(context, text, options); }));
  py::list out(entries.size());
  for (size_t i = 0; i < entries.size(); ++i) {
    PyList_SET_ITEM(out.ptr(), static_cast<Py_ssize_t>(i), file_dict(entries[i]).release().ptr());
  }
  return out;
}

py::object text_object(std::string_view text) {
  return py::reinterpret_steal<py::object>(
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
}

py::object tree(BoundClient& self, py::handle path, py::handle show_hidden, py::handle node_limit,
                py::handle level_limit, py::handle ctx, py::handle offset, py::handle sort_by, py::handle sort_order,
                py::handle directories_only) {
  const std::string_view text = text_of(path, "path");
  const Context context = context_of(ctx);
  TreeQuery query;
  query.options.show_hidden = flag_of(show_hidden, "show_hidden");
  query.options.node_limit = limit_of(node_limit, "node_limit");
  query.options.level_limit = limit_of(level_limit, "level_limit");
  query.offset = offset_of(offset);
  query.sort_by = sort_by_of(sort_by);
  query.descending = descending_of(sort_order);
  query.directories_only = flag_of(directories_only, "directories_only");
  const auto entries = value(unlocked([&] { return self.client->tree(context, text, query); }));
  const py::str path_key("path");
  const py::str rel_key("rel_path");
  const py::str info_key("info");
  const py::str extra_key("extra");
  py::list out(entries.size());
  for (size_t i = 0; i < entries.size(); ++i) {
    py::dict entry;
    entry[path_key] = text_object(entries[i].path);
    entry[rel_key] = text_object(entries[i].rel_path);
    entry[info_key] = file_dict(entries[i].info);
    entry[extra_key] = py::dict();
    PyList_SET_ITEM(out.ptr(), static_cast<Py_ssize_t>(i), entry.release().ptr());
  }
  return out;
}

py::object glob(BoundClient& self, py::handle path, py::handle pattern, py::handle show_hidden, py::handle page_size,
                py::handle level_limit, py::handle token, py::handle ctx) {
  const std::string_view text = text_of(path, "path");
  const std::string_view wanted = text_of(pattern, "pattern");
  const Context context = context_of(ctx);
  GlobOptions options;
  options.show_hidden = flag_of(show_hidden, "show_hidden");
  options.page_size = limit_of(page_size, "page_size");
  options.level_limit = limit_of(level_limit, "level_limit");
  const auto given = optional_text(token, "continuation_token");
  options.token = given.value_or("");
  const auto page =
      value(unlocked([&] { return self.client->glob(context, text, wanted, options, given.has_value()); }));
  const py::str path_key("path");
  const py::str rel_key("rel_path");
  const py::str name_key("name");
  const py::str is_dir_key("is_dir");
  py::list entries(page.entries.size());
  for (size_t i = 0; i < page.entries.size(); ++i) {
    const GlobEntry& entry = page.entries[i];
    py::dict item;
    item[path_key] = text_object(entry.path);
    item[rel_key] = text_object(entry.rel_path);
    item[name_key] = text_object(entry.name);
    item[is_dir_key] = entry.is_dir;
    PyList_SET_ITEM(entries.ptr(), static_cast<Py_ssize_t>(i), item.release().ptr());
  }
  py::dict out;
  out["entries"] = entries;
  out["next_token"] = page.next_token.empty() ? py::object(py::none()) : py::object(py::str(page.next_token));
  return out;
}

py::list context_lines(const std::vector<GrepLine>& lines) {
  py::list out;
  for (const GrepLine& line : lines) {
    py::dict item;
    item["line"] = line.line;
    item["content"] = text_object(line.content);
    out.append(std::move(item));
  }
  return out;
}

py::object grep(BoundClient& self, py::handle path, py::handle pattern, py::handle recursive,
                py::handle case_insensitive, py::handle stream, py::handle node_limit, py::handle exclude_path,
                py::handle level_limit, py::handle ctx, py::handle before_context, py::handle after_context) {
  const std::string_view text = text_of(path, "path");
  const Context context = context_of(ctx);
  GrepOptions options;
  options.pattern = text_of(pattern, "pattern");
  options.recursive = flag_of(recursive, "recursive");
  options.case_insensitive = flag_of(case_insensitive, "case_insensitive");
  if (flag_of(stream, "stream")) throw_raised({"RuntimeError", kNoStream});
  options.node_limit = limit_of(node_limit, "node_limit");
  options.level_limit = limit_of(level_limit, "level_limit");
  options.exclude_path = optional_text(exclude_path, "exclude_path").value_or("");
  options.before_context = non_negative(before_context, "before_context");
  options.after_context = non_negative(after_context, "after_context");
  const bool with_before = options.before_context > 0;
  const bool with_after = options.after_context > 0;
  const auto matches = value(unlocked([&] { return self.client->grep(context, text, std::move(options)); }));
  py::list found;
  for (const GrepMatch& match : matches) {
    py::dict item;
    item["file"] = text_object(match.file);
    item["line"] = match.line;
    item["content"] = text_object(match.content);
    if (with_before) item["before_context"] = context_lines(match.before);
    if (with_after) item["after_context"] = context_lines(match.after);
    found.append(std::move(item));
  }
  py::dict out;
  out["matches"] = found;
  out["count"] = matches.size();
  return out;
}

// One path, one context, a message: most mutations.
template <typename Call>
py::dict mutate(py::handle path, py::handle ctx, const char* done, const Call& call) {
  const std::string_view text = text_of(path, "path");
  const Context context = context_of(ctx);
  value(unlocked([&] { return call(context, text); }));
  return message(done);
}

void bind_mutations(ClientClass& type) {
  const py::none none;
  type.def("write", write, arg("path"), arg("data"), arg("max_retries") = 3, arg("ctx") = none);
  type.def(
      "create",
      [](BoundClient& self, py::handle path, py::handle ctx) {
        return mutate(path, ctx, "created", [&](auto& c, auto text) { return self.client->create(c, text); });
      },
      arg("path"), arg("ctx") = none);
  type.def(
      "touch",
      [](BoundClient& self, py::handle path, py::handle ctx) {
        return mutate(path, ctx, "touched", [&](auto& c, auto text) { return self.client->touch(c, text); });
      },
      arg("path"), arg("ctx") = none);
  type.def(
      "mkdir",
      [](BoundClient& self, py::handle path, py::handle mode, py::handle ctx) {
        (void)text_of(path, "path");
        (void)context_of(ctx);
        const uint32_t bits = mode_of(mode);
        return mutate(path, ctx, "created", [&](auto& c, auto text) { return self.client->mkdir(c, text, bits); });
      },
      arg("path"), arg("mode") = "755", arg("ctx") = none);
  type.def(
      "ensure_parent_dirs",
      [](BoundClient& self, py::handle path, py::handle mode, py::handle ctx) {
        (void)text_of(path, "path");
        (void)context_of(ctx);
        const uint32_t bits = mode_of(mode);
        return mutate(path, ctx, "parent directories ensured",
                      [&](auto& c, auto text) { return self.client->ensure_parent_dirs(c, text, bits); });
      },
      arg("path"), arg("mode") = "755", arg("ctx") = none);
  type.def(
      "rm",
      [](BoundClient& self, py::handle path, py::handle recursive, py::handle ctx) {
        (void)text_of(path, "path");
        const bool all = flag_of(recursive, "recursive");
        return mutate(path, ctx, "deleted", [&](auto& c, auto text) { return self.client->remove(c, text, all); });
      },
      arg("path"), arg("recursive") = false, arg("ctx") = none);
  type.def(
      "chmod",
      [](BoundClient& self, py::handle path, py::handle mode, py::handle ctx) {
        (void)text_of(path, "path");
        const int64_t bits = number_of(mode, "mode");
        if (bits < 0 || bits > UINT32_MAX) {
          throw_raised({"OverflowError", bits < 0 ? "number too small to fit in target type"
                                                  : "number too large to fit in target type"});
        }
        return mutate(path, ctx, "chmod ok",
                      [&](auto& c, auto text) { return self.client->chmod(c, text, static_cast<uint32_t>(bits)); });
      },
      arg("path"), arg("mode"), arg("ctx") = none);
}

void bind_moves(ClientClass& type) {
  const py::none none;
  type.def(
      "mv",
      [](BoundClient& self, py::handle from, py::handle to, py::handle ctx) {
        const std::string_view target = text_of(to, "new_path");
        return mutate(from, ctx, "renamed", [&](auto& c, auto text) { return self.client->rename(c, text, target); });
      },
      arg("old_path"), arg("new_path"), arg("ctx") = none);
  type.def(
      "copy_within_mount",
      [](BoundClient& self, py::handle from, py::handle to, py::handle ctx) {
        const std::string_view source = text_of(from, "src_path");
        const std::string_view target = text_of(to, "dst_path");
        const Context context = context_of(ctx);
        py::dict out;
        out["performed"] = value(unlocked([&] { return self.client->copy_within_mount(context, source, target); }));
        return out;
      },
      arg("src_path"), arg("dst_path"), arg("ctx") = none);
}

}  // namespace

void bind_files(ClientClass& type) {
  const py::none none;
  for (const char* name : {"read", "cat"}) {
    type.def(name, read, arg("path"), arg("offset") = 0, arg("size") = -1, arg("stream") = false, arg("ctx") = none);
  }
  type.def("stat", stat, arg("path"), arg("ctx") = none);
  type.def("ls", list, arg("path"), arg("ctx") = none, py::kw_only(), arg("offset") = 0, arg("limit") = none,
           arg("sort_by") = none, arg("sort_order") = none);
  type.def("tree_directory", tree, arg("path"), arg("show_hidden") = false, arg("node_limit") = none,
           arg("level_limit") = none, arg("ctx") = none, py::kw_only(), arg("offset") = 0, arg("sort_by") = none,
           arg("sort_order") = none, arg("directories_only") = false);
  type.def("glob_directory", glob, arg("path"), arg("pattern"), arg("show_hidden") = false, arg("page_size") = none,
           arg("level_limit") = none, arg("continuation_token") = none, arg("ctx") = none);
  type.def("grep", grep, arg("path"), arg("pattern"), arg("recursive") = false, arg("case_insensitive") = false,
           arg("stream") = false, arg("node_limit") = none, arg("exclude_path") = none, arg("level_limit") = none,
           arg("ctx") = none, arg("before_context") = 0, arg("after_context") = 0);
  bind_mutations(type);
  bind_moves(type);
  bind_batches(type);
}

}  // namespace ragfs::python
