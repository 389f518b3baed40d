// The commands of the program, one function each. app.cc parses the command line into these option structs.
//
// Every function prints its answer (JSON with --json) and its errors through the session's console and returns the exit
// code. Thread-safety: one command at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ragfs/cli/exit_code.h"
#include "ragfs/cli/session.h"

namespace ragfs::cli {

struct LsOptions {
  std::string path = "/";
  bool long_form = false;
  bool human = false;
  bool agent = false;  // with the abstracts of the directories in it
};
ExitCode run_ls(Session& session, const LsOptions& options);

struct TreeCommandOptions {
  std::string path = "/";
  bool all = false;
  std::optional<uint64_t> levels;
  std::optional<uint64_t> limit;
  bool agent = false;  // with the abstracts of directories
};
ExitCode run_tree(Session& session, const TreeCommandOptions& options);

// What ls and tree do with --agent.
struct AgentCommandOptions {
  const char* command;  // that was given
  std::string path;
  uint64_t levels = 1;
  std::optional<uint64_t> limit;
  bool all = false;
};
ExitCode run_agent_listing(Session& session, const AgentCommandOptions& options);

struct CatOptions {
  std::vector<std::string> paths;
  uint64_t offset = 0;
  uint64_t size = 0;  // 0 = to the end
};
ExitCode run_cat(Session& session, const CatOptions& options);

struct StatOptions {
  std::vector<std::string> paths;
};
ExitCode run_stat(Session& session, const StatOptions& options);

struct GrepCommandOptions {
  std::string pattern;
  std::string path = "/";
  bool ignore_case = false;
  bool flat = false;  // do not go into sub-directories
  uint64_t before = 0;
  uint64_t after = 0;
  uint64_t context = 0;  // both sides
  std::optional<uint64_t> limit;
  std::optional<uint64_t> levels;
  std::string exclude;
};
ExitCode run_grep(Session& session, const GrepCommandOptions& options);

struct GlobCommandOptions {
  std::string pattern;
  std::string path = "/";
  bool all = false;
  std::optional<uint64_t> limit;
  std::optional<uint64_t> levels;
};
ExitCode run_glob(Session& session, const GlobCommandOptions& options);

struct WriteOptions {
  std::string path;
  std::optional<std::string> text;  // else from_file, else standard input
  std::string from_file;
  bool append = false;
  bool create_new = false;
  std::optional<uint64_t> offset;  // overwrite in place from here
  bool parents = false;
};
ExitCode run_write(Session& session, const WriteOptions& options);

struct RmOptions {
  std::vector<std::string> paths;
  bool recursive = false;
  bool force = false;  // what is not there is fine
};
ExitCode run_rm(Session& session, const RmOptions& options);

struct MvOptions {
  std::string from;
  std::string to;
};
ExitCode run_mv(Session& session, const MvOptions& options);

struct CpOptions {
  std::string from;
  std::string to;
  bool recursive = false;
};
ExitCode run_cp(Session& session, const CpOptions& options);

struct MkdirOptions {
  std::vector<std::string> paths;
  bool parents = false;
};
ExitCode run_mkdir(Session& session, const MkdirOptions& options);

struct TouchOptions {
  std::vector<std::string> paths;
};
ExitCode run_touch(Session& session, const TouchOptions& options);

ExitCode run_cache_stats(Session& session);
ExitCode run_cache_switch(Session& session, bool on);
ExitCode run_cache_flush(Session& session);
ExitCode run_cache_invalidate(Session& session, const std::string& path);
ExitCode run_cache_new_epoch(Session& session);
ExitCode run_cache_rejoin(Session& session);
ExitCode run_cache_verify(Session& session, const std::string& path);
ExitCode run_cache_top(Session& session, const std::string& path, size_t most);
ExitCode run_cache_warm(Session& session, const std::string& path);
ExitCode run_cache_purge(Session& session, const std::string& account);

// `file` "" = the configuration of the session.
ExitCode run_config_check(Session& session, const std::string& file);
ExitCode run_config_show(Session& session);
ExitCode run_config_schema(Session& session);
ExitCode run_config_keys(Session& session);

ExitCode run_doctor(Session& session);

struct TourOptions {
  uint64_t max_files = 100'000;
  uint64_t max_bytes = 1ULL << 30;
};
ExitCode run_tour(Session& session, const TourOptions& options);

struct ServeOptions {
  std::string address;  // "" = as configured; so the others
  std::string access_log;
  std::string tokens_file;
  bool insecure = false;
};
// Until SIGTERM or SIGINT; then drains.
ExitCode run_serve(Session& session, const ServeOptions& options);

struct BenchCoherenceOptions {
  std::vector<std::string> settings;   // of stress::standard_settings(); with no provider either: all of them
  std::vector<std::string> providers;  // engines by name, or "configured"
  uint64_t threads = 8;
  double minutes = 0;                  // of each run; 0 = as many operations as below
  std::optional<uint64_t> operations;  // of each run; absent: 100,000, or no end with minutes
  std::optional<uint64_t> seed;        // absent: drawn, and printed
};
// Exit code negative: an answer was wrong.
ExitCode run_bench_coherence(Session& session, const BenchCoherenceOptions& options);

ExitCode run_version(Session& session);

// Reads command lines from standard input until its end or `exit`.
ExitCode run_shell(Session& session);

}  // namespace ragfs::cli
