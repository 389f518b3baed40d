#include "tests/redis/redis_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <stdexcept>
#include <thread>

namespace ragfs::redis_test {
namespace {

// A Sentinel takes its time to make a returned primary a replica, more so on a busy machine.
constexpr auto kPatience = std::chrono::seconds(60);

std::vector<char*> argv_of(const std::vector<std::string>& arguments) {
  std::vector<char*> out;
  for (const std::string& at : arguments) out.push_back(const_cast<char*>(at.c_str()));
  out.push_back(nullptr);
  return out;
}

// Another process's state is what is waited for: there is nothing to be notified by.
void pause_briefly() { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }

bool can_listen(int port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  const bool free = ::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  ::close(fd);
  return free;
}

}  // namespace

TempDir::TempDir() {
  std::string pattern = (std::filesystem::temp_directory_path() / "ragfs_redis_XXXXXX").string();
  path_ = ::mkdtemp(pattern.data());
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

uint16_t free_port() {
  // Below the ports that the system gives to clients, and with the port that a cluster node uses beside it.
  constexpr int kFirst = 12'000;
  constexpr int kCount = 9'000;
  constexpr int kClusterOffset = 10'000;
  std::minstd_rand random(std::random_device{}());
  for (int attempt = 0; attempt < 1'000; ++attempt) {
    const int port = kFirst + static_cast<int>(random() % kCount);
    if (can_listen(port) && can_listen(port + kClusterOffset)) return static_cast<uint16_t>(port);
  }
  throw std::runtime_error("no free port");
}

pid_t start_program(const std::vector<std::string>& arguments, const std::string& log) {
  const std::vector<char*> argv = argv_of(arguments);
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // a test that dies takes its servers along
  const int out = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  if (out < 0) ::_exit(126);
  ::dup2(out, 1);
  ::dup2(out, 2);
  ::execvp(argv[0], argv.data());
  ::_exit(127);
}

void end_program(pid_t pid) {
  if (pid <= 0) return;
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
}

int run_program(const std::vector<std::string>& arguments, std::string* out) {
  const std::vector<char*> argv = argv_of(arguments);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return -1;
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::dup2(ends[1], 1);
    ::dup2(ends[1], 2);
    ::execvp(argv[0], argv.data());
    ::_exit(127);
  }
  ::close(ends[1]);
  char buffer[4096];
  for (ssize_t got = 0; (got = ::read(ends[0], buffer, sizeof buffer)) > 0;) {
    if (out != nullptr) out->append(buffer, static_cast<size_t>(got));
  }
  ::close(ends[0]);
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::string valkey_server() {
  std::string out;
  const int status = run_program({"python3", RAGFS_SOURCE_DIR "/scripts/testing/valkey.py"}, &out);
  while (out.ends_with('\n')) out.pop_back();
  if (status != 0) throw std::runtime_error("no valkey-server: " + out);
  return out;
}

RedisServer::RedisServer(Options options)
    : options_(std::move(options)), port_(options_.port != 0 ? options_.port : free_port()) {
  if (options_.tls && options_.certificates_of.empty()) make_certificates(dir_.path());
  if (options_.tls && !options_.certificates_of.empty()) {
    for (const char* name : {"ca.crt", "server.crt", "server.key"}) {
      std::filesystem::copy_file(options_.certificates_of + "/" + name, dir_ / name);
    }
  }
  start();
}

RedisServer::~RedisServer() { kill(); }

std::string RedisServer::endpoint() const {
  return (options_.tls ? "rediss://127.0.0.1:" : "redis://127.0.0.1:") + std::to_string(port_);
}

void RedisServer::start_without_waiting() {
  std::vector<std::string> arguments = {options_.program};
  if (options_.sentinel) {
    const std::string file = dir_ / "sentinel.conf";
    if (!std::filesystem::exists(file)) std::ofstream(file) << options_.sentinel_lines;
    arguments.push_back(file);
    arguments.push_back("--sentinel");
  }
  const std::string port = std::to_string(port_);
  const std::vector<std::string> common = {"--bind", "127.0.0.1", "--dir", dir_.path(), "--daemonize", "no"};
  arguments.insert(arguments.end(), common.begin(), common.end());
  if (options_.tls) {
    const std::vector<std::string> tls = {"--port",
                                          "0",
                                          "--tls-port",
                                          port,
                                          "--tls-cert-file",
                                          dir_ / "server.crt",
                                          "--tls-key-file",
                                          dir_ / "server.key",
                                          "--tls-ca-cert-file",
                                          dir_ / "ca.crt",
                                          "--tls-auth-clients",
                                          "optional",
                                          "--tls-replication",
                                          "yes",
                                          "--tls-cluster",
                                          "yes"};
    arguments.insert(arguments.end(), tls.begin(), tls.end());
  } else {
    arguments.insert(arguments.end(), {"--port", port});
  }
  if (!options_.sentinel) arguments.insert(arguments.end(), {"--unixsocket", dir_ / "s", "--save", ""});
  arguments.insert(arguments.end(), options_.arguments.begin(), options_.arguments.end());
  pid_ = start_program(arguments, dir_ / "log");
}

void RedisServer::start() {
  start_without_waiting();
  // With a password PING is refused, which is an answer too.
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (std::chrono::steady_clock::now() < until) {
    const std::string answer = cli({"PING"});
    if (answer.find("PONG") != std::string::npos || answer.find("NOAUTH") != std::string::npos) return;
    pause_briefly();
  }
  std::string log;
  run_program({"tail", "-n", "5", dir_ / "log"}, &log);
  throw std::runtime_error("redis-server does not start: " + log);
}

void RedisServer::kill() {
  end_program(pid_);
  pid_ = 0;
}

void RedisServer::pause() { ::kill(pid_, SIGSTOP); }
void RedisServer::resume() { ::kill(pid_, SIGCONT); }

std::string RedisServer::cli(const std::vector<std::string>& command) const {
  std::vector<std::string> arguments = {"redis-cli", "-p", std::to_string(port_)};
  if (options_.tls) arguments.insert(arguments.end(), {"--tls", "--cacert", dir_ / "ca.crt"});
  arguments.insert(arguments.end(), command.begin(), command.end());
  std::string out;
  run_program(arguments, &out);
  while (out.ends_with('\n')) out.pop_back();
  return out;
}

bool RedisServer::wait_for(const std::vector<std::string>& command, const std::string& expected) const {
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (std::chrono::steady_clock::now() < until) {
    if (cli(command).find(expected) != std::string::npos) return true;
    pause_briefly();
  }
  return false;
}

void make_certificates(const std::string& dir) {
  const std::string script = R"(set -e
cd "$1"
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj "/CN=test authority" \
  -keyout ca.key -out ca.crt
make() {
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=$1" -keyout "$1.key" -out "$1.csr"
  printf 'subjectAltName=%s\n' "$2" > "$1.ext"
  openssl x509 -req -in "$1.csr" -CA ca.crt -CAkey ca.key -CAcreateserial -days "$3" -extfile "$1.ext" -out "$1.crt"
}
make server IP:127.0.0.1,DNS:localhost 30
make other DNS:example.org 30
)";
  std::string out;
  if (run_program({"bash", "-c", script, "bash", dir}, &out) != 0) throw std::runtime_error("openssl: " + out);
}

}  // namespace ragfs::redis_test
