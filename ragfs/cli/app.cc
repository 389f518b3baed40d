#include "ragfs/cli/app.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <csignal>
#include <functional>

#include "ragfs/cli/commands.h"
#include "ragfs/cli/documents.h"
#include "ragfs/cli/text.h"
#include "ragfs/config/section_parser.h"

namespace ragfs::cli {
namespace {

constexpr const char* kSummary =
    "RAGFS: the file system under an agent context database, with a coherent cache in front of its storage.";

std::string whole_number(const std::string& text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && !text.empty()) return "";
  return "\"" + text + "\" is not a whole number";
}

// The parser with everything a command line can set. One object serves one command line.
class CommandLine {
 public:
  explicit CommandLine(Session& session) : session_(session), app_(kSummary, "ragfs") {
    app_.require_subcommand(1);
    app_.fallthrough();
    app_.set_version_flag("--version", RAGFS_VERSION, "print the version and exit");
    app_.get_formatter()->column_width(32);
    app_.footer(
        "exit codes: 0 yes, 1 no or not found, 2 usage, 3 configuration, 4 permission, 5 input or output,\n"
        "6 cache, 7 lock, 8 conflict, 9 unsupported. `ragfs COMMAND --help` shows examples.");
    add_globals();
    add_listing();
    add_reading();
    add_writing();
    add_moving();
    add_cache();
    add_config();
    add_bench();
    add_rest();
    tidy(app_);
  }

  CLI::App& app() { return app_; }
  const std::function<ExitCode()>& chosen() const { return chosen_; }

 private:
  // Arguments without a type behind their name, and numbers that are not negative.
  static void tidy(CLI::App& app) {
    for (CLI::Option* option : app.get_options()) {
      if (option->get_positional()) option->type_name("");
      const std::string type = option->get_type_name();
      if (type == "N" || type == "BYTES") option->check(whole_number, "");
    }
    for (CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) tidy(*sub);
  }

  CLI::App* command(CLI::App& parent, const char* name, const char* summary, const char* examples,
                    std::function<ExitCode()> run) {
    CLI::App* added = parent.add_subcommand(name, summary);
    added->footer(examples);
    added->callback([this, run = std::move(run)] { chosen_ = run; });
    return added;
  }

  void add_globals() {
    GlobalOptions& options = session_.options();
    app_.add_option("-c,--config", options.config_file, "configuration file")->type_name("FILE");
    app_.add_option("--root", options.root, "show this directory, with the cache in front of it")->type_name("DIR");
    app_.add_flag("--json", options.json, "answer in JSON");
    app_.add_flag("--no-color", options.no_color, "no colours, as with NO_COLOR set");
    app_.add_option("--timeout", options.timeout_s, "longest wait of a command, in seconds; 0: none")
        ->type_name("SECONDS")
        ->check(CLI::Range(0.0, 86400.0).description(""));
    app_.add_flag("--bypass-cache", options.bypass_cache, "ask the backend, not the cache");
  }

  void add_listing() {
    auto* ls = command(app_, "ls", "list a directory, or show one file",
                       "examples:\n  ragfs --root . ls\n  ragfs --root . ls -l /docs\n"
                       "  ragfs --root . ls --json / | jq '.entries[].name'\n  ragfs --root . ls --agent /docs",
                       [this] { return run_ls(session_, ls_); });
    ls->add_option("PATH", ls_.path, "what to list; / when absent");
    ls->add_flag("-l,--long", ls_.long_form, "mode, size and time of each entry");
    ls->add_flag("--human", ls_.human, "with -l: sizes as 1.5 MiB");
    ls->add_flag("--agent", ls_.agent, "each directory with its .abstract.md");

    auto* tree = command(app_, "tree", "show everything below a directory",
                         "examples:\n  ragfs --root . tree -L 2 /\n  ragfs --root . tree -a /docs",
                         [this] { return run_tree(session_, tree_); });
    tree->add_option("PATH", tree_.path, "where to start; / when absent");
    tree->add_flag("-a,--all", tree_.all, "hidden files as well");
    tree->add_option("-L,--levels", tree_.levels, "go this deep")->type_name("N");
    tree->add_option("--limit", tree_.limit, "at most so many entries")->type_name("N");
    tree->add_flag("--agent", tree_.agent, "each directory with its .abstract.md");

    auto* stat = command(app_, "stat", "show kind, size, mode and time",
                         "examples:\n  ragfs --root . stat /a.md\n  ragfs --root . stat --json /a.md /b.md",
                         [this] { return run_stat(session_, stat_); });
    stat->add_option("PATH", stat_.paths, "what to show")->required();

    auto* glob = command(app_, "glob", "find paths by a pattern",
                         "examples:\n  ragfs --root . glob '**/*.md'\n  ragfs --root . glob -a '**/.abstract.md' /docs",
                         [this] { return run_glob(session_, glob_); });
    glob->add_option("PATTERN", glob_.pattern, "* within a name, ** across names, ? one character, [abc]")

        ->required();
    glob->add_option("PATH", glob_.path, "where to start; / when absent");
    glob->add_flag("-a,--all", glob_.all, "hidden files as well");
    glob->add_option("--limit", glob_.limit, "at most so many")->type_name("N");
    glob->add_option("-L,--levels", glob_.levels, "go this deep")->type_name("N");
  }

  void add_reading() {
    auto* cat = command(app_, "cat", "print files",
                        "examples:\n  ragfs --root . cat /a.md\n  ragfs --root . cat --offset 100 --size 20 /a.md",
                        [this] { return run_cat(session_, cat_); });
    cat->add_option("PATH", cat_.paths, "what to print")->required();
    cat->add_option("--offset", cat_.offset, "start at this byte")->type_name("BYTES");
    cat->add_option("--size", cat_.size, "print so many bytes; 0: to the end")->type_name("BYTES");

    auto* grep =
        command(app_, "grep", "find lines by a regular expression",
                "examples:\n  ragfs --root . grep urgent\n  ragfs --root . grep -i -C 2 'cache (hit|miss)' /docs\n"
                "exit code 1: no line matches",
                [this] { return run_grep(session_, grep_); });
    grep->add_option("PATTERN", grep_.pattern, "regular expression (RE2)")->required();
    grep->add_option("PATH", grep_.path, "file or directory, with all below it; / when absent");
    grep->add_flag("-i,--ignore-case", grep_.ignore_case, "upper and lower case are the same");
    grep->add_flag("--flat", grep_.flat, "do not go into sub-directories");
    grep->add_option("-B,--before", grep_.before, "lines before each match")->type_name("N");
    grep->add_option("-A,--after", grep_.after, "lines after each match")->type_name("N");
    grep->add_option("-C,--context", grep_.context, "lines on both sides")->type_name("N");
    grep->add_option("--limit", grep_.limit, "stop after so many matches")->type_name("N");
    grep->add_option("-L,--levels", grep_.levels, "go this deep")->type_name("N");
    grep->add_option("--exclude", grep_.exclude, "leave out this path and all below it")->type_name("PATH");
  }

  void add_writing() {
    auto* write = command(app_, "write", "write a file: a text, another file, or standard input",
                          "examples:\n  ragfs --root . write /a.md 'hello'\n  ragfs --root . write /a.md < a.md\n"
                          "  ragfs --root . write --append /log.txt --from today.txt\n"
                          "The file is replaced as a whole: readers see the old bytes or the new ones.",
                          [this] { return run_write(session_, write_); });
    write->add_option("PATH", write_.path, "what to write")->required();
    write->add_option("TEXT", write_.text, "the content; else --from, else standard input");
    write->add_option("--from", write_.from_file, "a file of this machine with the content")->type_name("FILE");
    write->add_flag("--append", write_.append, "add to the end; the file is made when missing");
    write->add_flag("--create-new", write_.create_new, "fail when the file is there already");
    write->add_option("--offset", write_.offset, "overwrite in place from this byte; the file must exist")
        ->type_name("BYTES");
    write->add_flag("-p,--parents", write_.parents, "make missing directories above it");

    auto* mkdir = command(app_, "mkdir", "make directories",
                          "examples:\n  ragfs --root . mkdir /new\n  ragfs --root . mkdir -p /a/b/c",
                          [this] { return run_mkdir(session_, mkdir_); });
    mkdir->add_option("PATH", mkdir_.paths, "what to make")->required();
    mkdir->add_flag("-p,--parents", mkdir_.parents, "make missing directories above; existing ones are fine");

    auto* touch = command(app_, "touch", "make an empty file, or set a file's time to now",
                          "examples:\n  ragfs --root . touch /a.md", [this] { return run_touch(session_, touch_); });
    touch->add_option("PATH", touch_.paths, "what to touch")->required();

    auto* rm = command(app_, "rm", "remove files, empty directories, or whole trees",
                       "examples:\n  ragfs --root . rm /a.md\n  ragfs --root . rm -r /old",
                       [this] { return run_rm(session_, rm_); });
    rm->add_option("PATH", rm_.paths, "what to remove")->required();
    rm->add_flag("-r,--recursive", rm_.recursive, "a directory with everything below it");
    rm->add_flag("-f,--force", rm_.force, "what is not there is fine");
  }

  void add_moving() {
    auto* mv = command(app_, "mv", "rename or move a file or directory",
                       "examples:\n  ragfs --root . mv /a.md /b.md\n  ragfs --root . mv /a.md /docs\n"
                       "An existing file is replaced by a file; an existing directory takes it in.",
                       [this] { return run_mv(session_, mv_); });
    mv->add_option("FROM", mv_.from, "what to move")->required();
    mv->add_option("TO", mv_.to, "its new path, or a directory to put it into")->required();

    auto* cp = command(app_, "cp", "copy a file, or with -r a whole tree",
                       "examples:\n  ragfs --root . cp /a.md /b.md\n  ragfs --root . cp -r /docs /docs-old",
                       [this] { return run_cp(session_, cp_); });
    cp->add_option("FROM", cp_.from, "what to copy")->required();
    cp->add_option("TO", cp_.to, "the copy's path, or a directory to put it into")->required();
    cp->add_flag("-r,--recursive", cp_.recursive, "a directory with everything below it");
  }

  void add_cache() {
    CLI::App* cache = app_.add_subcommand("cache", "look at and control the cache of this process");
    cache->require_subcommand(1);
    cache->footer(
        "A run of `ragfs` is a process of its own, and so is its cache: `ragfs shell` runs many commands in one.");
    command(*cache, "stats", "hits, misses and all other counts",
            "examples:\n  printf 'cat /a.md\\ncat /a.md\\ncache stats\\n' | ragfs --root . shell",
            [this] { return run_cache_stats(session_); });
    command(*cache, "off", "ask the backends for everything", "examples (in `ragfs shell`):\n  cache off",
            [this] { return run_cache_switch(session_, false); });
    command(*cache, "on", "use the cache again; nothing stale is served", "examples (in `ragfs shell`):\n  cache on",
            [this] { return run_cache_switch(session_, true); });
    command(*cache, "flush", "forget everything that is cached", "examples (in `ragfs shell`):\n  cache flush",
            [this] { return run_cache_flush(session_); });
    auto* invalidate = command(*cache, "invalidate", "forget one path and all below it",
                               "examples (in `ragfs shell`):\n  cache invalidate /docs",
                               [this] { return run_cache_invalidate(session_, invalidate_path_); });
    invalidate->add_option("PATH", invalidate_path_, "what to forget")->required();
    add_cache_lives(*cache);
  }

  void add_cache_lives(CLI::App& cache) {
    command(cache, "new-epoch", "refuse all that was ever cached, by this run and by earlier ones",
            "examples:\n  ragfs -c ragfs.yaml cache new-epoch\n"
            "After a backup of the files was restored. Stop the server first, or use its API.",
            [this] { return run_cache_new_epoch(session_); });
    command(cache, "rejoin", "use the cache again after another process wrote beside this one",
            "examples (in `ragfs shell`):\n  cache rejoin\n"
            "Stop the other one first. A server takes POST /api/v1/cache/rejoin.",
            [this] { return run_cache_rejoin(session_); });
    auto* verify = command(cache, "verify", "compare what is cached with the backends",
                           "examples:\n  ragfs -c ragfs.yaml cache verify\n  ragfs -c ragfs.yaml cache verify /docs\n"
                           "exit code 1: something was wrong; it is refused from then on",
                           [this] { return run_cache_verify(session_, verify_path_); });
    verify->add_option("PATH", verify_path_, "what to compare, with all below it; / when absent");
    auto* top =
        command(cache, "top", "what is read most",
                "examples:\n  ragfs -c ragfs.yaml cache top\n  ragfs -c ragfs.yaml cache top /local/acct -n 50\n"
                "Estimated from samples: by this run, and faintly by the last one that closed in order.",
                [this] { return run_cache_top(session_, top_path_, top_most_); });
    top->add_option("PATH", top_path_, "only at and below it; / when absent");
    top->add_option("-n,--number", top_most_, "so many")->check(CLI::Range(1, 100'000));
    auto* warm = command(cache, "warm", "read into the cache what is read most",
                         "examples:\n  ragfs -c ragfs.yaml cache warm\n  ragfs -c ragfs.yaml cache warm /local/acct\n"
                         "For a cache that outlives this run, such as Redis; a server takes POST /api/v1/cache/warm.",
                         [this] { return run_cache_warm(session_, warm_path_); });
    warm->add_option("PATH", warm_path_, "only at and below it; / when absent");
    auto* purge = command(cache, "purge", "remove what is cached of one account, bytes and all",
                          "examples:\n  ragfs -c ragfs.yaml cache purge --account acct1\n"
                          "From memory, disks and Redis, for good. The account is the first name below a mount; its "
                          "files are not touched, and what is read of them later is cached anew.",
                          [this] { return run_cache_purge(session_, purge_account_); });
    purge->add_option("--account", purge_account_, "whose objects")->required();
  }

  void add_config() {
    CLI::App* config = app_.add_subcommand("config", "check and show the configuration");
    config->require_subcommand(1);
    auto* check = command(*config, "check", "say what is wrong with it; nothing is opened",
                          "examples:\n  ragfs config check ragfs.yaml\n  ragfs config check ~/.openviking/ov.conf",
                          [this] { return run_config_check(session_, check_file_); });
    check->add_option("FILE", check_file_, "the file; else --config");
    command(*config, "show", "print it with every default filled in", "examples:\n  ragfs -c ragfs.yaml config show",
            [this] { return run_config_show(session_); });
    command(*config, "schema", "print its JSON Schema, for editors",
            "examples:\n  ragfs config schema > ragfs.schema.json", [this] { return run_config_schema(session_); });
    command(*config, "keys", "print all keys as a table, as in docs/config.md",
            "examples:\n  ragfs config keys\nWith --json: the schema.", [this] { return run_config_keys(session_); });
  }

  void add_bench() {
    CLI::App* bench = app_.add_subcommand("bench", "try an engine hard: is every answer right?");
    bench->require_subcommand(1);
    auto* coherence = command(
        *bench, "coherence", "threads read and mutate while everything fails; each answer is judged",
        "examples:\n  ragfs bench coherence\n  ragfs bench coherence --setting remote-like --seed 7\n"
        "  ragfs -c ragfs.yaml bench coherence --provider redis --minutes 10 --json\n"
        "Works in memory and in a namespace of its own: no mount is touched. Exit code 1: an answer was wrong;\n"
        "the seed repeats the run.",
        [this] { return run_bench_coherence(session_, bench_coherence_); });
    coherence->add_option("--setting", bench_coherence_.settings, "one of the settings of the tests; may be repeated")
        ->type_name("NAME");
    coherence
        ->add_option("--provider", bench_coherence_.providers,
                     "an engine, set up as in --config; \"configured\": the one chosen there")
        ->type_name("NAME");
    coherence->add_option("--threads", bench_coherence_.threads, "1 to 32; 8 when absent")->type_name("N");
    coherence->add_option("--minutes", bench_coherence_.minutes, "run each so long")
        ->type_name("MINUTES")
        ->check(CLI::Range(0.0, 10080.0).description(""));
    coherence->add_option("--operations", bench_coherence_.operations, "run each for so many; 100000 when absent")
        ->type_name("N");
    coherence->add_option("--seed", bench_coherence_.seed, "draw the same operations and faults again")->type_name("N");
  }

  void add_rest() {
    auto* serve = command(app_, "serve", "serve the tree over HTTP until SIGTERM or Ctrl-C",
                          "examples:\n  ragfs --root . serve\n  ragfs -c ragfs.yaml serve --address 127.0.0.1:0\n"
                          "docs/http.md has the API. Another address than loopback needs tokens and TLS.",
                          [this] { return run_serve(session_, serve_); });
    serve->add_option("--address", serve_.address, "listen here instead of at server.address")->type_name("HOST:PORT");
    serve->add_option("--access-log", serve_.access_log, "a JSON line for each request; - for standard error")
        ->type_name("FILE");
    serve->add_option("--tokens-file", serve_.tokens_file, "bearer tokens, one a line")->type_name("FILE");
    serve->add_flag("--insecure", serve_.insecure, "listen anywhere without tokens or TLS all the same");
    command(app_, "doctor", "check configuration, backends and provider", "examples:\n  ragfs -c ragfs.yaml doctor",
            [this] { return run_doctor(session_); });
    auto* tour = command(app_, "tour", "a first look: what is there, read twice, cold and warm",
                         "examples:\n  ragfs --root ~/notes tour", [this] { return run_tour(session_, tour_); });
    tour->add_option("--max-files", tour_.max_files, "read at most so many")->type_name("N");
    tour->add_option("--max-bytes", tour_.max_bytes, "read at most so many")->type_name("BYTES");
    command(app_, "shell", "run commands from standard input in one process",
            "examples:\n  ragfs --root . shell\n  printf 'ls /\\ncache stats\\n' | ragfs --root . shell",
            [this] { return run_shell(session_); });
    command(app_, "version", "print the version and what this build has", "examples:\n  ragfs version --json",
            [this] { return run_version(session_); });
    auto* completion = command(app_, "completion", "print a completion script for a shell",
                               "examples:\n  source <(ragfs completion bash)\n"
                               "  ragfs completion fish > ~/.config/fish/completions/ragfs.fish",
                               [this] { return run_completion(session_, shell_); });
    completion->add_option("SHELL", shell_, "bash, zsh or fish")
        ->required()
        ->check(CLI::IsMember({"bash", "zsh", "fish"}));
    // Not shown in help: for completion scripts and for the pages of the manual.
    auto* paths = command(app_, "complete-paths", "", "", [this] { return run_complete_paths(session_, prefix_); });
    paths->add_option("PREFIX", prefix_);
    paths->group("");
    auto* page = command(app_, "page", "", "", [this] { return run_page(session_, format_); });
    page->add_option("FORMAT", format_)->required()->check(CLI::IsMember({"markdown", "man"}));
    page->group("");
  }

  Session& session_;
  CLI::App app_;
  std::function<ExitCode()> chosen_;
  LsOptions ls_;
  TreeCommandOptions tree_;
  StatOptions stat_;
  GlobCommandOptions glob_;
  CatOptions cat_;
  GrepCommandOptions grep_;
  WriteOptions write_;
  MkdirOptions mkdir_;
  TouchOptions touch_;
  RmOptions rm_;
  MvOptions mv_;
  CpOptions cp_;
  TourOptions tour_;
  ServeOptions serve_;
  BenchCoherenceOptions bench_coherence_;
  std::string invalidate_path_;
  std::string verify_path_ = "/";
  std::string top_path_ = "/";
  size_t top_most_ = 20;
  std::string warm_path_ = "/";
  std::string purge_account_;
  std::string check_file_;
  std::string shell_;
  std::string prefix_;
  std::string format_;
};

// The command a wrong word probably meant; "" when none is near.
std::string nearest_command(const CLI::App& app, const std::string& word) {
  std::vector<std::string> names;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App* a) { return !a->get_group().empty(); })) {
    names.push_back(sub->get_name());
  }
  return nearest_word(word, names);
}

// The option a wrong one probably meant, of the command or of all commands; "" when none is near.
std::string nearest_option(const CLI::App& command, const CLI::App& program, const std::string& word) {
  std::vector<std::string> names;
  for (const CLI::App* app : {&command, &program}) {
    for (const CLI::Option* option : app->get_options()) {
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    }
  }
  return nearest_word(word.substr(0, word.find('=')), names);
}

// What was given and nobody takes, an option rather than a word; "" when there is nothing.
std::string unexpected(const CLI::App& command, const CLI::App& program, const std::vector<std::string>& left) {
  const auto option = std::ranges::find_if(left, [](const std::string& w) { return w.size() > 1 && w[0] == '-'; });
  if (option == left.end()) return left.empty() ? "" : fmt::format("unexpected argument \"{}\"", left.front());
  const std::string near = nearest_option(command, program, *option);
  return fmt::format("unknown option \"{}\"{}", *option, near.empty() ? "" : "; did you mean \"" + near + "\"?");
}

ExitCode report_usage(Session& session, CommandLine& line, const CLI::ParseError& error) {
  const CLI::App* at = &line.app();
  while (!at->get_subcommands().empty()) at = at->get_subcommands().front();
  std::string command = at->get_name();
  if (at->get_parent() != nullptr && at->get_parent()->get_parent() != nullptr) {
    command = at->get_parent()->get_name() + " " + command;
  }
  const bool inside = at != &line.app();
  std::string what = error.what();
  const std::vector<std::string> left = line.app().remaining(true);
  const auto word = std::find_if(left.begin(), left.end(), [](const std::string& w) { return !w.starts_with('-'); });
  const bool incomplete = at->get_require_subcommand_min() > 0;
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr || (incomplete && word == left.end() && !left.empty())) {
    what = unexpected(*at, line.app(), left);
  } else if (incomplete && word != left.end()) {
    const std::string near = nearest_command(*at, *word);
    what = fmt::format("unknown command \"{}\"{}", *word, near.empty() ? "" : "; did you mean \"" + near + "\"?");
  } else if (incomplete) {
    what = "say which command to run";
  }
  what += fmt::format("; see `ragfs {}--help`", inside ? command + " " : "");
  if (session.options().json) session.console().set_json(true);
  return session.console().report(inside ? command : "usage", ErrorCode::invalid_argument, what);
}

std::vector<std::string> example_lines(const CLI::App& app) {
  std::vector<std::string> lines;
  std::string text = app.get_footer();
  for (size_t from = 0; from < text.size();) {
    const size_t end = std::min(text.find('\n', from), text.size());
    lines.push_back(text.substr(from, end - from));
    from = end + 1;
  }
  return lines;
}

void describe(const CLI::App& app, const std::string& name, std::vector<CommandDescription>& out) {
  CommandDescription description;
  description.name = name;
  description.summary = app.get_description();
  description.examples = example_lines(app);
  description.usage = name.empty() ? "ragfs [OPTIONS] COMMAND" : "ragfs " + name + " [OPTIONS]";
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty() || (option == app.get_help_ptr() && !name.empty())) continue;
    OptionDescription one;
    one.positional = option->get_positional();
    one.names = option->get_name(one.positional, !one.positional);
    one.takes_value = !one.positional && option->get_type_size() != 0 && !option->get_type_name().empty();
    one.meaning = option->get_description();
    if (one.takes_value) one.names += " " + option->get_type_name();
    if (one.positional) {
      const bool many = option->get_items_expected_max() > 1;
      const std::string shown = one.names + (many ? "..." : "");
      description.usage += option->get_required() ? " " + shown : " [" + shown + "]";
    }
    description.options.push_back(std::move(one));
  }
  const auto subs = app.get_subcommands([](const CLI::App* sub) { return !sub->get_group().empty(); });
  if (subs.empty() || name.empty()) out.push_back(std::move(description));
  for (const CLI::App* sub : subs) describe(*sub, name.empty() ? sub->get_name() : name + " " + sub->get_name(), out);
}

}  // namespace

ExitCode run_command_line(Session& session, std::vector<std::string> arguments) {
  CommandLine line(session);
  if (!arguments.empty() && arguments.front() == "help") {  // `help ls` is `ls --help`
    arguments.erase(arguments.begin());
    arguments.emplace_back("--help");
  }
  std::reverse(arguments.begin(), arguments.end());  // the parser takes them from the back
  try {
    line.app().parse(std::move(arguments));
  } catch (const CLI::CallForHelp&) {
    session.console().out(line.app().help());
    return ExitCode::ok;
  } catch (const CLI::CallForVersion&) {
    session.console().line(RAGFS_VERSION);
    return ExitCode::ok;
  } catch (const CLI::ParseError& error) {
    return report_usage(session, line, error);
  }
  session.console().set_json(session.options().json);
  if (session.options().no_color) session.console().forbid_color();
  if (!session.options().root.empty() && !session.options().config_file.empty()) {
    return session.console().report("usage", ErrorCode::invalid_argument, "give --root or --config, not both");
  }
  return line.chosen()();
}

std::vector<CommandDescription> describe_commands() {
  Console nowhere(-1, -1);
  Session session(nowhere);
  CommandLine line(session);
  std::vector<CommandDescription> out;
  describe(line.app(), "", out);
  return out;
}

int run_program(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a reader that goes away is seen by write()
  Console console(1, 2);
  ExitCode code = ExitCode::io;
  try {
    Session session(console, argc > 0 ? argv[0] : "ragfs");
    code = run_command_line(session, std::vector<std::string>(argv + 1, argv + argc));
  } catch (const std::bad_alloc&) {
    code = console.report("start", ErrorCode::full, "not enough memory");
  } catch (const std::exception& e) {
    code = console.report("start", ErrorCode::internal, e.what());
  }
  return static_cast<int>(console.finish(code));
}

}  // namespace ragfs::cli
