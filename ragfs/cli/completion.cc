// Completion scripts, made from the program's own description. Paths of the tree come from the hidden command
// `complete-paths`, asked with the --root, --config or -c that stands on the line.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ragfs/cli/app.h"
#include "ragfs/cli/documents.h"

namespace ragfs::cli {
namespace {

// "-l,--long" and "--root DIR" as {"-l", "--long"} and {"--root"}.
std::vector<std::string> flag_names(const OptionDescription& option) {
  std::vector<std::string> names;
  const std::string text = option.names.substr(0, option.names.find(' '));
  for (size_t from = 0; from <= text.size();) {
    const size_t end = std::min(text.find(',', from), text.size());
    names.push_back(text.substr(from, end - from));
    from = end + 1;
  }
  return names;
}

std::vector<std::string> flags_of(const CommandDescription& command) {
  std::vector<std::string> flags;
  for (const OptionDescription& option : command.options) {
    if (option.positional) continue;
    for (std::string& name : flag_names(option)) flags.push_back(std::move(name));
  }
  return flags;
}

struct Words {
  std::vector<std::string> globals;   // options of every command
  std::vector<std::string> commands;  // first words
  std::vector<std::string> groups;    // those of them that a second word must follow
  std::string cases;                  // bash: `  "cache stats") flags="...";;`
  std::vector<CommandDescription> all;
};

Words words() {
  Words out;
  out.all = describe_commands();
  for (const CommandDescription& command : out.all) {
    if (command.name.empty()) {
      out.globals = flags_of(command);
      out.globals.emplace_back("--help");
      continue;
    }
    const std::string first = command.name.substr(0, command.name.find(' '));
    if (out.commands.empty() || out.commands.back() != first) {
      out.commands.push_back(first);
      if (first != command.name) out.groups.push_back(first);
    }
    const auto flags = flags_of(command);
    if (!flags.empty()) {
      out.cases += fmt::format("    {}) flags=\"{}\" ;;\n", command.name.substr(command.name.rfind(' ') + 1),
                               fmt::join(flags, " "));
    }
  }
  return out;
}

std::string second_words(const Words& all, const std::string& first) {
  std::vector<std::string> seconds;
  for (const CommandDescription& command : all.all) {
    if (command.name.starts_with(first + " ")) seconds.push_back(command.name.substr(first.size() + 1));
  }
  return fmt::format("{}", fmt::join(seconds, " "));
}

std::string bash_script() {
  const Words all = words();
  std::string seconds;
  for (const std::string& group : all.groups) {
    seconds += fmt::format("      {}) mapfile -t COMPREPLY < <(compgen -W \"{}\" -- \"$word\"); return ;;\n", group,
                           second_words(all, group));
  }
  return fmt::format(R"(# bash completion for ragfs: source <(ragfs completion bash)
_ragfs() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}"
  local command="" sub="" flags="" i
  local -a where=()
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "${{COMP_WORDS[i]}}" in
      -c | --config | --root) where+=("${{COMP_WORDS[i]}}" "${{COMP_WORDS[i+1]}}"); ((i++)) ;;
      --timeout) ((i++)) ;;
      -*) ;;
      *)
        if [ -n "$command" ] && [ -z "$sub" ]; then sub="${{COMP_WORDS[i]}}"; fi
        if [ -z "$command" ]; then command="${{COMP_WORDS[i]}}"; fi
        ;;
    esac
  done
  case "$before" in
    -c | --config | --from) mapfile -t COMPREPLY < <(compgen -f -- "$word"); return ;;
    --root) mapfile -t COMPREPLY < <(compgen -d -- "$word"); return ;;
  esac
  if [ -z "$command" ]; then
    mapfile -t COMPREPLY < <(compgen -W "{0} {1}" -- "$word")
    return
  fi
  if [ -z "$sub" ]; then
    case "$command" in
{2}      completion) mapfile -t COMPREPLY < <(compgen -W "bash zsh fish" -- "$word"); return ;;
    esac
  fi
  case "$command" in {3}) command="$sub" ;; esac
  case "$command" in
{4}  esac
  if [[ "$word" == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$flags {1}" -- "$word")
    return
  fi
  if [ "$command" = check ]; then mapfile -t COMPREPLY < <(compgen -f -- "$word"); return; fi
  mapfile -t COMPREPLY < <(ragfs "${{where[@]}}" complete-paths "$word" 2>/dev/null)
  [[ "${{COMPREPLY[0]}}" == */ ]] && compopt -o nospace
}}
complete -F _ragfs ragfs
)",
                     fmt::join(all.commands, " "), fmt::join(all.globals, " "), seconds, fmt::join(all.groups, " | "),
                     all.cases);
}

std::string zsh_script() {
  // zsh runs the bash function by its own compatibility layer: one script to keep right.
  return "#compdef ragfs\nautoload -U +X bashcompinit && bashcompinit\n"
         "mapfile() { shift; local name=\"$1\"; shift; local -a lines; lines=(\"${(@f)$(cat)}\"); "
         "[[ ${#lines} -eq 1 && -z \"$lines[1]\" ]] && lines=(); eval \"$name=(\\\"\\${lines[@]}\\\")\"; }\n" +
         bash_script();
}

std::string fish_quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + "'";
}

std::string fish_script() {
  const Words all = words();
  std::string out = "# fish completion for ragfs: ragfs completion fish > ~/.config/fish/completions/ragfs.fish\n";
  out += fmt::format("set -l commands {}\ncomplete -c ragfs -f\n", fmt::join(all.commands, " "));
  out +=
      "function __ragfs_paths\n"
      "  set -l words (commandline -opc)\n  set -l where\n"
      "  for i in (seq 2 (count $words))\n"
      "    if contains -- $words[$i] -c --config --root; set -a where $words[$i] $words[(math $i + 1)]; end\n"
      "  end\n"
      "  ragfs $where complete-paths (commandline -ct) 2>/dev/null\nend\n";
  for (const CommandDescription& command : all.all) {
    const std::string first = command.name.substr(0, command.name.find(' '));
    const bool two = first != command.name;
    std::string when = "-n '__fish_seen_subcommand_from " + first + "'";
    if (two) {
      out += fmt::format("complete -c ragfs {} -a {} -d {}\n", when, command.name.substr(first.size() + 1),
                         fish_quoted(command.summary));
    } else if (!command.name.empty()) {
      out += fmt::format("complete -c ragfs -n \"not __fish_seen_subcommand_from $commands\" -a {} -d {}\n", first,
                         fish_quoted(command.summary));
    }
    if (command.name.empty()) when.clear();
    for (const OptionDescription& option : command.options) {
      if (option.positional) continue;
      std::string names;
      for (const std::string& name : flag_names(option)) {
        names += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      }
      out += fmt::format("complete -c ragfs {}{}{} -d {}\n", when, names, option.takes_value ? " -r -F" : "",
                         fish_quoted(option.meaning));
    }
  }
  out += "complete -c ragfs -n \"__fish_seen_subcommand_from $commands\" -a '(__ragfs_paths)'\n";
  out += "complete -c ragfs -n '__fish_seen_subcommand_from completion' -a 'bash zsh fish'\n";
  return out;
}

}  // namespace

std::string completion_script(const std::string& shell) {
  if (shell == "zsh") return zsh_script();
  return shell == "fish" ? fish_script() : bash_script();
}

}  // namespace ragfs::cli
