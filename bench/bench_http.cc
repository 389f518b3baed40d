// 64 keep-alive clients that read cached files of 4 KiB over HTTP, beside nginx with the same files on the same CPUs.
//
// Starts `ragfs serve` and an nginx of its own on free loopback ports; wrk is the client of both, in turn. Server and
// client share the CPUs, as on the machine of one agent.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "bench/support.h"

namespace ragfs::bench {
namespace {

constexpr int kFiles = 1'000;
constexpr size_t kFileBytes = 4096;
constexpr int kClients = 64;

[[noreturn]] void give_up(const std::string& why) {
  fmt::print(stderr, "bench_http: {}\n", why);
  std::exit(1);
}

uint16_t free_port() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  const bool bound = ::bind(fd, reinterpret_cast<sockaddr*>(&at), size) == 0 &&
                     ::getsockname(fd, reinterpret_cast<sockaddr*>(&at), &size) == 0;
  ::close(fd);
  if (!bound) give_up("no free port");
  return ntohs(at.sin_port);
}

bool listens(uint16_t port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  at.sin_port = htons(port);
  const bool up = ::connect(fd, reinterpret_cast<sockaddr*>(&at), sizeof at) == 0;
  ::close(fd);
  return up;
}

// A folder with the files, which goes with the benchmark.
class Folder {
 public:
  Folder() {
    char name[] = "/tmp/ragfs-bench-http-XXXXXX";
    if (::mkdtemp(name) == nullptr) give_up("no temporary directory");
    path_ = name;
    std::filesystem::create_directory(path_ / "files");
    for (int i = 0; i < kFiles; ++i) {
      std::ofstream(path_ / "files" / fmt::format("f{}.md", i))
          << std::string(kFileBytes, static_cast<char>('a' + i % 26));
    }
  }
  ~Folder() {
    std::error_code ec;
    std::filesystem::remove_all(path_, ec);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::filesystem::path at(const char* name) const { return path_ / name; }
  std::string write(const char* name, const std::string& text) const {
    std::ofstream(at(name)) << text;
    return at(name).string();
  }

 private:
  std::filesystem::path path_;
};

// A server process on a port; told to end with the object.
class Process {
 public:
  Process(std::vector<std::string> arguments, uint16_t port) : port_(port) {
    pid_ = ::fork();
    if (pid_ < 0) give_up("no process can be started");
    if (pid_ == 0) {
      std::vector<char*> argv;
      for (std::string& argument : arguments) argv.push_back(argument.data());
      argv.push_back(nullptr);
      if (std::freopen("/dev/null", "w", stdout) == nullptr) ::_exit(127);
      ::execvp(argv[0], argv.data());
      ::_exit(127);
    }
    const int64_t end_ns = now_ns() + 10'000'000'000;
    while (!listens(port_)) {
      if (now_ns() > end_ns || ::waitpid(pid_, nullptr, WNOHANG) == pid_) give_up(arguments[0] + " does not start");
    }
  }
  ~Process() {
    ::kill(pid_, SIGTERM);
    ::waitpid(pid_, nullptr, 0);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  uint16_t port() const { return port_; }

 private:
  const uint16_t port_;
  pid_t pid_ = -1;
};

// What a well set up nginx for small static files looks like.
std::string nginx_config(const Folder& folder, uint16_t port) {
  return fmt::format(
      "daemon off; user root; worker_processes auto; pid {0}/nginx.pid; error_log {0}/nginx.log;\n"
      "events {{ worker_connections 1024; }}\n"
      "http {{ access_log off; sendfile on; tcp_nopush on; tcp_nodelay on; keepalive_requests 1000000000;\n"
      "  open_file_cache max=10000 inactive=600s; open_file_cache_valid 600s; types {{ }}\n"
      "  default_type application/octet-stream; client_body_temp_path {0}/t1; proxy_temp_path {0}/t2;\n"
      "  fastcgi_temp_path {0}/t3; uwsgi_temp_path {0}/t4; scgi_temp_path {0}/t5;\n"
      "  server {{ listen 127.0.0.1:{1}; root {0}/files; }} }}\n",
      folder.at("").string(), port);
}

struct Load {
  double requests_per_s = 0;
  double p50_us = 0;
  double p99_us = 0;
};

// "1.23ms", "456.00us", "1.02s".
double to_us(const char* text) {
  char* unit = nullptr;
  const double value = std::strtod(text, &unit);
  if (std::strncmp(unit, "us", 2) == 0) return value;
  return std::strncmp(unit, "ms", 2) == 0 ? value * 1e3 : value * 1e6;
}

Load load(const Folder& folder, const Process& server, const char* prefix, int seconds) {
  const std::string script = folder.write(
      "load.lua", fmt::format("local requests, n = {{}}, 0\n"
                              "init = function()\n"
                              "  for i = 0, {} do requests[i] = wrk.format('GET', '{}f' .. i .. '.md') end\n"
                              "  n = math.random(0, {})\nend\n"
                              "request = function() n = (n + 7) % {}; return requests[n] end\n",
                              kFiles - 1, prefix, kFiles - 1, kFiles));
  const std::string command =
      fmt::format("wrk -t2 -c{} -d{}s --latency -s {} http://127.0.0.1:{}", kClients, seconds, script, server.port());
  FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) give_up("wrk cannot be started");
  Load out;
  char line[512];
  while (std::fgets(line, sizeof line, pipe) != nullptr) {
    if (std::strncmp(line, "Requests/sec:", 13) == 0) out.requests_per_s = std::atof(line + 13);
    if (std::strncmp(line, "     50%", 8) == 0) out.p50_us = to_us(line + 8);
    if (std::strncmp(line, "     99%", 8) == 0) out.p99_us = to_us(line + 8);
    if (std::strstr(line, "Non-2xx") != nullptr || std::strstr(line, "Socket errors") != nullptr) give_up(line);
  }
  if (::pclose(pipe) != 0 || out.requests_per_s == 0) give_up("wrk failed: " + command);
  return out;
}

struct Figures {
  std::vector<double> p50_us;
  std::vector<double> p99_us;
};

int run(int argc, char** argv) {
  cpu_set_t all;
  const bool known = ::sched_getaffinity(0, sizeof all, &all) == 0;
  const Options options = start(argc, argv);
  if (known) ::sched_setaffinity(0, sizeof all, &all);  // what is started here may use every CPU
  const Folder folder;
  const uint16_t port = free_port();
  const Process ours(
      {RAGFS_PROGRAM, "--root", folder.at("files").string(), "serve", "--address", fmt::format("127.0.0.1:{}", port)},
      port);
  const uint16_t nginx_port = free_port();
  const std::string config = folder.write("nginx.conf", nginx_config(folder, nginx_port));
  const Process nginx({"nginx", "-e", folder.at("nginx.log").string(), "-p", folder.at("").string(), "-c", config},
                      nginx_port);
  const int seconds = options.quick ? 3 : 6;
  const int passes = options.quick ? 5 : 10;
  Figures mine;
  Figures theirs;
  const auto side = [&](const Process& server, const char* prefix, Figures& figures) {
    const Load measured = load(folder, server, prefix, seconds);
    figures.p50_us.push_back(measured.p50_us);
    figures.p99_us.push_back(measured.p99_us);
    return measured.requests_per_s;
  };
  const auto rates = alternate(
      passes, {[&] { return side(nginx, "/", theirs); }, [&] { return side(ours, "/api/v1/files?path=/", mine); }});
  Report report("http");
  report.add("clients", kClients);
  report.add("file_bytes", static_cast<double>(kFileBytes));
  report.add("requests_per_s", median(rates[1]));
  report.add("p50_us", median(mine.p50_us));
  report.add("p99_us", median(mine.p99_us));
  report.add("nginx_requests_per_s", median(rates[0]));
  report.add("nginx_p50_us", median(theirs.p50_us));
  report.add("nginx_p99_us", median(theirs.p99_us));
  report.add("ratio_nginx", median_ratio(rates[0], rates[1]));
  report.print();
  return 0;
}

}  // namespace
}  // namespace ragfs::bench

int main(int argc, char** argv) { return ragfs::bench::run(argc, argv); }
