// mv and cp: commands with a source and a target.
#include <fmt/format.h>

#include "ragfs/cli/command_support.h"
#include "ragfs/cli/commands.h"
#include "ragfs/cli/progress.h"
#include "ragfs/cli/text.h"

namespace ragfs::cli {
namespace {

// As the shell's mv and cp: an existing directory as target means "into it", but for a directory onto an empty one of
// the same name there is no other way to say it than the full name.
Result<Path> target_of(FileSystem& fs, const Context& context, PathView from, PathView to) {
  const auto there = fs.stat(context, to);
  if (!there && there.error().code != ErrorCode::not_found) return std::unexpected(there.error());
  if (!there || !there->is_dir() || from == to) return Path(to);
  if (from.is_root()) return Path(to);
  return Path::join(to, from.name());
}

struct CopyCounts {
  uint64_t files = 0;
  uint64_t directories = 0;
  uint64_t bytes = 0;
  uint64_t failed = 0;
};

class TreeCopy {
 public:
  TreeCopy(Session& session, FileSystem& fs, const Context& context) : session_(session), fs_(fs), context_(context) {}

  ExitCode run(PathView from, PathView to) {
    if (to.is_within(from)) {
      return session_.console().report(
          "cp", ErrorCode::invalid_operation,
          fmt::format("{} is inside {}: a directory cannot hold its own copy", to.text(), from.text()));
    }
    TreeOptions everything;
    everything.show_hidden = true;
    const auto entries = fs_.tree(context_, from, everything);
    if (!entries) return report_path(session_, "cp", from, entries.error());
    ExitCode code = make_directory(to);
    if (code != ExitCode::ok) return code;
    Progress progress(session_.console(), "copying", entries->size());
    for (const TreeEntry& entry : *entries) {
      const ExitCode one = copy_entry(entry, to);
      if (one != ExitCode::ok) ++counts_.failed;
      code = worse(code, one);
      progress.advance(1, entry.info.is_dir() ? 0 : entry.info.size);
    }
    return code;
  }

  const CopyCounts& counts() const { return counts_; }

  ExitCode copy_file(PathView from, PathView to) {
    const auto done = fs_.copy(context_, from, to);
    if (!done) return report_path(session_, "cp", from, done.error());
    ++counts_.files;
    counts_.bytes += done->bytes;
    return ExitCode::ok;
  }

 private:
  ExitCode make_directory(PathView path) {
    const auto made = fs_.mkdir(context_, path, kDefaultDirMode);
    if (made) {
      ++counts_.directories;
      return ExitCode::ok;
    }
    if (made.error().code == ErrorCode::already_exists) {
      const auto there = fs_.stat(context_, path);
      if (there && there->is_dir()) return ExitCode::ok;
    }
    return report_path(session_, "cp", path, made.error());
  }

  ExitCode copy_entry(const TreeEntry& entry, PathView to) {
    const auto below = Path::parse(entry.rel_path);
    if (!below) return session_.console().report("cp", below.error());
    const auto target = Path::concat(to, *below);
    if (!target) return session_.console().report("cp", target.error());
    if (entry.info.is_dir()) return make_directory(*target);
    const auto source = Path::parse(entry.path);
    if (!source) return session_.console().report("cp", source.error());
    return copy_file(*source, *target);
  }

  Session& session_;
  FileSystem& fs_;
  const Context& context_;
  CopyCounts counts_;
};

// `body(fs, context, from, to)` with both paths checked.
template <typename Body>
ExitCode with_two_paths(Session& session, std::string_view command, const std::string& from_typed,
                        const std::string& to_typed, const Body& body) {
  return with_path(session, command, from_typed, [&](Instance& instance, const Context& context, PathView from) {
    const auto to = Path::parse(to_typed);
    if (!to) return session.console().report(command, to.error());
    const auto target = target_of(instance.fs(), context, from, *to);
    if (!target) return report_path(session, command, *to, target.error());
    return body(instance.fs(), context, from, target->view());
  });
}

}  // namespace

ExitCode run_mv(Session& session, const MvOptions& options) {
  return with_two_paths(session, "mv", options.from, options.to,
                        [&](FileSystem& fs, const Context& context, PathView from, PathView to) {
                          if (auto done = fs.rename(context, from, to); !done) {
                            return report_path(session, "mv", from, done.error());
                          }
                          if (session.console().json()) {
                            JsonWriter json;
                            json.begin_object().name("moved", from.text()).name("to", to.text()).end_object();
                            session.console().line(json.text());
                          }
                          return ExitCode::ok;
                        });
}

ExitCode run_cp(Session& session, const CpOptions& options) {
  return with_two_paths(
      session, "cp", options.from, options.to, [&](FileSystem& fs, const Context& context, PathView from, PathView to) {
        const auto info = fs.stat(context, from);
        if (!info) return report_path(session, "cp", from, info.error());
        TreeCopy copy(session, fs, context);
        ExitCode code = ExitCode::ok;
        if (!info->is_dir()) {
          code = copy.copy_file(from, to);
        } else if (options.recursive) {
          code = copy.run(from, to);
        } else {
          return session.console().report("cp", ErrorCode::is_a_directory, std::string(from.text()));
        }
        if (session.console().json()) {
          JsonWriter json;
          json.begin_object().name("copied", from.text()).name("to", to.text());
          json.field("files", copy.counts().files).field("directories", copy.counts().directories);
          json.field("bytes", copy.counts().bytes).field("failed", copy.counts().failed).end_object();
          session.console().line(json.text());
        } else if (copy.counts().failed > 0) {
          session.console().warn(
              "cp", fmt::format("{} not copied; the rest is", counted(copy.counts().failed, "entry", "entries")));
        }
        return code;
      });
}

}  // namespace ragfs::cli
