// write, mkdir, touch, rm: commands that change one path at a time.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "ragfs/cli/command_support.h"
#include "ragfs/cli/commands.h"
#include "ragfs/cli/text.h"

namespace ragfs::cli {
namespace {

// A write replaces the file as a whole, so all of it is held in memory once.
constexpr uint64_t kMaxInputBytes = 2ULL << 30;

Result<std::string> read_all(int fd, const std::string& what) {
  std::string text;
  std::string buffer(1 << 20, '\0');
  for (;;) {
    const ssize_t n = ::read(fd, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(ErrorCode::io, fmt::format("{}: {}", what, std::strerror(errno)), errno);
    if (n == 0) return text;
    text.append(buffer.data(), static_cast<size_t>(n));
    if (text.size() > kMaxInputBytes) {
      return fail(ErrorCode::too_large, fmt::format("{}: more than {}", what, human_bytes(kMaxInputBytes)));
    }
  }
}

Result<std::string> input_of(const WriteOptions& options, bool in_shell) {
  if (options.text) return *options.text;
  if (options.from_file.empty()) {
    if (in_shell) return fail(ErrorCode::invalid_argument, "in the shell a TEXT or --from FILE is needed");
    return read_all(STDIN_FILENO, "standard input");
  }
  const int fd = ::open(options.from_file.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return fail(ErrorCode::io, fmt::format("{}: {}", options.from_file, std::strerror(errno)), errno);
  auto text = read_all(fd, options.from_file);
  ::close(fd);
  return text;
}

// Append creates the file when it is missing, as `>>` does; two that do so at once both get their bytes in.
Result<WriteResult> append(FileSystem& fs, const Context& context, PathView path, std::string_view data) {
  auto done = fs.write(context, path, data, 0, WriteFlag::append);
  if (done || done.error().code != ErrorCode::not_found) return done;
  done = fs.write(context, path, data, 0, WriteFlag::create_new);
  if (done || done.error().code != ErrorCode::already_exists) return done;
  return fs.write(context, path, data, 0, WriteFlag::append);
}

Result<WriteResult> write_with(FileSystem& fs, const Context& context, PathView path, std::string_view data,
                               const WriteOptions& options) {
  if (options.parents) {
    if (auto made = fs.ensure_parent_dirs(context, path, kDefaultDirMode); !made) {
      return std::unexpected(made.error());
    }
  }
  if (options.append) return append(fs, context, path, data);
  if (options.create_new) return fs.write(context, path, data, 0, WriteFlag::create_new);
  if (options.offset) return fs.write(context, path, data, *options.offset, WriteFlag::none);
  return fs.write(context, path, data, 0, WriteFlag::create);
}

// "done" for commands whose answer is only that they worked: nothing for people, one object for programs.
void print_done(Console& console, std::string_view verb, PathView path) {
  if (console.json()) console.line(JsonWriter().begin_object().name(verb, path.text()).end_object().text());
}

}  // namespace

ExitCode run_write(Session& session, const WriteOptions& options) {
  Console& console = session.console();
  if (options.append + options.create_new + options.offset.has_value() > 1) {
    return console.report("write", ErrorCode::invalid_argument,
                          "--append, --create-new and --offset exclude each other");
  }
  if (options.text && !options.from_file.empty()) {
    return console.report("write", ErrorCode::invalid_argument, "give a TEXT or --from FILE, not both");
  }
  return with_path(session, "write", options.path, [&](Instance& instance, const Context&, PathView path) {
    const auto data = input_of(options, session.in_shell());
    if (!data) return console.report("write", data.error());
    const Context context = session.context();  // the wait for standard input does not count
    const auto done = write_with(instance.fs(), context, path, *data, options);
    if (!done) return report_path(session, "write", path, done.error());
    if (console.json()) {
      JsonWriter json;
      json.begin_object().name("written", path.text()).field("bytes", done->bytes).field("size", done->meta.size);
      console.line(json.field("mtime_ns", done->meta.mtime_ns).end_object().text());
    }
    return ExitCode::ok;
  });
}

ExitCode run_mkdir(Session& session, const MkdirOptions& options) {
  ExitCode code = ExitCode::ok;
  for (const std::string& typed : options.paths) {
    const ExitCode one =
        with_path(session, "mkdir", typed, [&](Instance& instance, const Context& context, PathView path) {
          FileSystem& fs = instance.fs();
          if (options.parents) {
            if (auto made = fs.ensure_parent_dirs(context, path, kDefaultDirMode); !made) {
              return report_path(session, "mkdir", path, made.error());
            }
          }
          auto made = path.is_root() && options.parents ? Result<void>() : fs.mkdir(context, path, kDefaultDirMode);
          if (!made && options.parents && made.error().code == ErrorCode::already_exists) {
            const auto there = fs.stat(context, path);
            if (there && there->is_dir()) made = {};
          }
          if (!made) return report_path(session, "mkdir", path, made.error());
          print_done(session.console(), "created", path);
          return ExitCode::ok;
        });
    code = worse(code, one);
  }
  return code;
}

ExitCode run_touch(Session& session, const TouchOptions& options) {
  ExitCode code = ExitCode::ok;
  for (const std::string& typed : options.paths) {
    const ExitCode one =
        with_path(session, "touch", typed, [&](Instance& instance, const Context& context, PathView path) {
          if (auto done = instance.fs().touch(context, path); !done) {
            return report_path(session, "touch", path, done.error());
          }
          print_done(session.console(), "touched", path);
          return ExitCode::ok;
        });
    code = worse(code, one);
  }
  return code;
}

ExitCode run_rm(Session& session, const RmOptions& options) {
  ExitCode code = ExitCode::ok;
  for (const std::string& typed : options.paths) {
    const ExitCode one =
        with_path(session, "rm", typed, [&](Instance& instance, const Context& context, PathView path) {
          FileSystem& fs = instance.fs();
          const auto done = options.recursive ? fs.remove_all(context, path) : fs.remove(context, path);
          if (!done && options.force && done.error().code == ErrorCode::not_found) return ExitCode::ok;
          if (!done) return report_path(session, "rm", path, done.error());
          print_done(session.console(), "removed", path);
          return ExitCode::ok;
        });
    code = worse(code, one);
  }
  return code;
}

}  // namespace ragfs::cli
