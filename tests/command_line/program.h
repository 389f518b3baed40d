// Starts build/.../ragfs as a user would and collects what it says.
//
// For: the tests of this folder. Thread-safety: one test at a time.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace ragfs::test {

struct Outcome {
  int code = -1;  // 128 + signal when one ended it
  std::string out;
  std::string err;
};

struct RunOptions {
  std::string input;                       // of standard input
  std::map<std::string, std::string> env;  // added; the value "-" takes one away
  bool terminal = false;                   // standard output and error are one terminal; all of it comes in `out`
  bool as_nobody = false;                  // run without root's privileges
  std::string out_file;                    // standard output goes there
  std::string directory;                   // working directory
};

namespace detail {

inline void become_child(const std::vector<std::string>& arguments, const RunOptions& options) {
  ::unsetenv("RAGFS_CONFIG");
  ::unsetenv("NO_COLOR");
  ::setenv("TERM", "xterm", 1);
  ::setenv("TZ", "UTC", 1);
  for (const auto& [name, value] : options.env) {
    value == "-" ? ::unsetenv(name.c_str()) : ::setenv(name.c_str(), value.c_str(), 1);
  }
  if (!options.directory.empty() && ::chdir(options.directory.c_str()) != 0) ::_exit(125);
  if (!options.out_file.empty()) {
    const int fd = ::open(options.out_file.c_str(), O_WRONLY | O_CREAT, 0644);
    if (fd < 0 || ::dup2(fd, 1) < 0) ::_exit(125);
  }
  if (options.as_nobody && ::geteuid() == 0 && (::setgid(65534) != 0 || ::setuid(65534) != 0)) ::_exit(125);
  std::vector<char*> argv;
  argv.push_back(const_cast<char*>("ragfs"));
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  ::execv(RAGFS_PROGRAM, argv.data());
  ::_exit(126);
}

inline int finish(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

inline Outcome run_on_terminal(const std::vector<std::string>& arguments, const RunOptions& options) {
  int master = -1;
  const pid_t child = ::forkpty(&master, nullptr, nullptr, nullptr);
  if (child == 0) become_child(arguments, options);
  Outcome outcome;
  std::array<char, 65536> buffer{};
  for (;;) {
    const ssize_t n = ::read(master, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;  // EIO: the other side is closed
    outcome.out.append(buffer.data(), static_cast<size_t>(n));
  }
  ::close(master);
  outcome.code = finish(child);
  return outcome;
}

struct Pipe {
  int read_fd = -1;
  int write_fd = -1;
  Pipe() {
    std::array<int, 2> fds{};
    if (::pipe2(fds.data(), O_CLOEXEC) == 0) {
      read_fd = fds[0];
      write_fd = fds[1];
    }
  }
};

// Feeds and drains the three pipes together, so that no side waits for the other for ever.
inline void exchange(int in, std::string_view input, int out, int err, Outcome& outcome) {
  std::array<char, 65536> buffer{};
  const auto drain = [&](int& fd, std::string& text) {
    const ssize_t n = ::read(fd, buffer.data(), buffer.size());
    if (n > 0) text.append(buffer.data(), static_cast<size_t>(n));
    if (n == 0 || (n < 0 && errno != EINTR)) {
      ::close(fd);
      fd = -1;
    }
  };
  if (input.empty()) {
    ::close(in);
    in = -1;
  }
  while (out >= 0 || err >= 0) {
    std::array<pollfd, 3> fds{{{out, POLLIN, 0}, {err, POLLIN, 0}, {in, POLLOUT, 0}}};
    if (::poll(fds.data(), fds.size(), 60'000) <= 0) break;
    if (out >= 0 && fds[0].revents != 0) drain(out, outcome.out);
    if (err >= 0 && fds[1].revents != 0) drain(err, outcome.err);
    if (in >= 0 && fds[2].revents != 0) {
      const ssize_t n = ::write(in, input.data(), std::min<size_t>(input.size(), 4096));
      if (n > 0) input.remove_prefix(static_cast<size_t>(n));
      if (input.empty() || (n < 0 && errno != EINTR)) {
        ::close(in);
        in = -1;
      }
    }
  }
  if (in >= 0) ::close(in);
}

}  // namespace detail

inline Outcome run(const std::vector<std::string>& arguments, const RunOptions& options = {}) {
  ::signal(SIGPIPE, SIG_IGN);
  if (options.terminal) return detail::run_on_terminal(arguments, options);
  const detail::Pipe in;
  const detail::Pipe out;
  const detail::Pipe err;
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(in.read_fd, 0);
    ::dup2(out.write_fd, 1);
    ::dup2(err.write_fd, 2);
    ::signal(SIGPIPE, SIG_DFL);
    detail::become_child(arguments, options);
  }
  ::close(in.read_fd);
  ::close(out.write_fd);
  ::close(err.write_fd);
  Outcome outcome;
  detail::exchange(in.write_fd, options.input, out.read_fd, err.read_fd, outcome);
  outcome.code = detail::finish(child);
  return outcome;
}

// A directory of its own, gone at the end.
class TempDir {
 public:
  TempDir() {
    std::string name = (std::filesystem::temp_directory_path() / "ragfs_cli_XXXXXX").string();
    path_ = ::mkdtemp(name.data()) == nullptr ? "" : name;
    ::chmod(path_.c_str(), 0755);
  }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  void write(const std::string& name, std::string_view content) const {
    std::filesystem::create_directories(std::filesystem::path(file(name)).parent_path());
    std::ofstream(file(name), std::ios::binary) << content;
  }
  std::string read(const std::string& name) const {
    std::ifstream in(file(name), std::ios::binary);
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
  }

 private:
  std::string path_;
};

// A tree of files and the program over it.
class CommandLineTest : public ::testing::Test {
 protected:
  Outcome ragfs(std::vector<std::string> arguments, const RunOptions& options = {}) const {
    arguments.insert(arguments.begin(), {"--root", dir_.path()});
    return run(arguments, options);
  }
  // Runs commands, a line each, in one `ragfs shell`.
  Outcome shell(const std::string& lines, const RunOptions& options = {}) const {
    RunOptions with_input = options;
    with_input.input = lines;
    return ragfs({"shell"}, with_input);
  }

  TempDir dir_;
};

inline bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

}  // namespace ragfs::test
