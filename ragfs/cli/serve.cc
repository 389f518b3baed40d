// serve: the HTTP server in the foreground.
#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "ragfs/cli/command_support.h"
#include "ragfs/cli/commands.h"
#include "ragfs/config/section_parser.h"
#include "ragfs/server/http_server.h"

namespace ragfs::cli {
namespace {

// SIGTERM and SIGINT wait for sigwait() instead of ending the process. Threads made later inherit it.
sigset_t hold_signals() {
  sigset_t ending;
  sigemptyset(&ending);
  sigaddset(&ending, SIGTERM);
  sigaddset(&ending, SIGINT);
  pthread_sigmask(SIG_BLOCK, &ending, nullptr);
  return ending;
}

ServerConfig server_config(const Instance& instance, const ServeOptions& options) {
  ServerConfig config = instance.config().server;
  if (!options.address.empty()) config.address = options.address;
  if (!options.access_log.empty()) config.access_log = resolve_host_path(options.access_log, "./command line");
  if (!options.tokens_file.empty()) {
    config.tokens_env.clear();
    config.tokens_file = resolve_host_path(options.tokens_file, "./command line");
  }
  config.insecure = config.insecure || options.insecure;
  return config;
}

}  // namespace

ExitCode run_serve(Session& session, const ServeOptions& options) {
  const sigset_t ending = hold_signals();
  Console& console = session.console();
  auto instance = session.instance();
  if (!instance) return console.report("serve", instance.error());
  Config whole = (*instance)->config();
  whole.server = server_config(**instance, options);
  // The file was checked when it was read: what is wrong now came by the command line.
  if (auto valid = whole.validate(); !valid) {
    return console.report("serve", ErrorCode::invalid_argument, valid.error().message);
  }
  auto server = server::HttpServer::start(**instance, whole.server, RAGFS_VERSION);
  if (!server) return console.report("serve", server.error());
  for (const std::string& warning : (*instance)->warnings()) console.warn("serve", warning);
  if (console.json()) {
    JsonWriter json;
    json.begin_object().field("url", (*server)->url()).end_object();
    console.line(json.text());
  } else {
    console.line(fmt::format("serving {} at {}", session.source(), (*server)->url()));
  }
  if (const ExitCode code = console.finish(ExitCode::ok); code != ExitCode::ok) return code;
  int signal_number = 0;
  sigwait(&ending, &signal_number);
  // A second signal ends the process at once.
  pthread_sigmask(SIG_UNBLOCK, &ending, nullptr);
  const bool drained = (*server)->stop(Deadline::in_ms(whole.server.drain_timeout_ms));
  if (!drained) console.warn("serve", "some requests were cut off at server.drain_timeout_ms");
  return ExitCode::ok;
}

}  // namespace ragfs::cli
