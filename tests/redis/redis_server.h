// RedisServer: a real redis-server of a test's own, on a loopback port and a Unix socket in a fresh directory.
//
// Ended by its process id when the object goes, with its directory. Not for: anything but tests. Thread-safety: none.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace ragfs::redis_test {

// A directory that goes with the object.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// A TCP port of 127.0.0.1 that nobody listened on a moment ago.
uint16_t free_port();
// Starts a program, its output in `log`; its process id.
pid_t start_program(const std::vector<std::string>& arguments, const std::string& log);
// Signals it and waits for its end.
void end_program(pid_t pid);
// The exit status of a program that is run to its end; its output in *out.
int run_program(const std::vector<std::string>& arguments, std::string* out = nullptr);

// The path of a valkey-server; fetched when there is none. Throws what keeps it away.
std::string valkey_server();

class RedisServer {
 public:
  struct Options {
    std::string program = "redis-server";
    std::vector<std::string> arguments;  // more of it
    uint16_t port = 0;                   // 0 = a free one
    bool tls = false;                    // serves TLS on the port, with make_certificates() of `directory`
    std::string certificates_of;         // a directory that has them already
    bool sentinel = false;
    std::string sentinel_lines;  // of its configuration file
  };
  explicit RedisServer(Options options);
  RedisServer() : RedisServer(Options{}) {}
  ~RedisServer();
  RedisServer(const RedisServer&) = delete;
  RedisServer& operator=(const RedisServer&) = delete;

  uint16_t port() const { return port_; }
  std::string endpoint() const;
  std::string unix_endpoint() const { return "unix://" + (dir_ / "s"); }
  const TempDir& dir() const { return dir_; }
  pid_t pid() const { return pid_; }

  void start();  // the same port and directory
  void start_without_waiting();
  void kill();   // SIGKILL
  void pause();  // SIGSTOP
  void resume();
  bool running() const { return pid_ > 0; }
  // What redis-cli prints for a command, without its last line end.
  std::string cli(const std::vector<std::string>& command) const;
  // Waits until `command` prints something that contains `expected`; false after 20 s.
  bool wait_for(const std::vector<std::string>& command, const std::string& expected) const;

 private:
  const Options options_;
  TempDir dir_;
  uint16_t port_;
  pid_t pid_ = 0;
};

// ca.crt, server.crt/.key (for 127.0.0.1 and localhost), other.crt/.key (for example.org), in `dir`; made by openssl.
void make_certificates(const std::string& dir);

}  // namespace ragfs::redis_test
