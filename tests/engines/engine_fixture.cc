#include "tests/engines/engine_fixture.h"

#include <signal.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

namespace ragfs::engine_test {

std::string built(std::string_view name) {
  return (std::filesystem::path(RAGFS_PROGRAM).parent_path() / name).string();
}

double metric(const CacheProvider& provider, std::string_view name) {
  for (const ProviderMetric& one : provider.metrics()) {
    if (one.full_name() == name) return one.value;
  }
  return -1;
}

bool eventually(const std::function<bool()>& condition) {
  const Deadline until = Deadline::in_ms(20'000);
  while (!condition()) {
    if (until.expired()) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));  // another process's state has no event
  }
  return true;
}

namespace {

// As in /proc/PID/stat: the letter behind the program's name.
char process_state(pid_t pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  const size_t end = text.rfind(") ");
  return end == std::string::npos ? '?' : text[end + 2];
}

}  // namespace

void signal_host(const CacheProvider& provider, int signal) {
  const auto pid = static_cast<pid_t>(metric(provider, "host_pid"));
  if (pid <= 1) return;
  ::kill(pid, signal);
  // A thread that runs on another CPU stops a moment later.
  if (signal == SIGSTOP) eventually([&] { return process_state(pid) == 'T'; });
}

ExampleEngine::ExampleEngine() { bring_back(); }

void ExampleEngine::take_away() const { std::filesystem::remove(dir_ / "engine.so"); }

void ExampleEngine::bring_back() const {
  if (std::filesystem::exists(dir_ / "engine.so")) return;
  std::filesystem::create_symlink(built("libragfs_engine_example.so"), dir_ / "engine.so");
}

engine::EngineConfig ExampleEngine::config(bool in_process) const {
  engine::EngineConfig config;
  config.name = "example";
  config.in_process = in_process;
  config.plugin = dir_ / "engine.so";
  config.command = {built("ragfs-engine-host"), dir_ / "engine.so"};
  config.first_pause_ms = 10;
  config.max_pause_ms = 100;
  config.start_wait_ms = 20'000;
  return config;
}

}  // namespace ragfs::engine_test
