// The API: all routes of /api/v1 and beside it. Each function adds those of one subject.
//
// Handlers answer with an HttpResponse whatever happens; they may block and run on a worker unless the route says
// otherwise. Thread-safety: the functions are for the start; the handlers may be called from any thread.
#pragma once

#include "ragfs/server/router.h"
#include "ragfs/server/services.h"

namespace ragfs::server {

void add_file_routes(Router& router, Services& services);    // files, directories, stat, rename, ...
void add_batch_routes(Router& router, Services& services);   // read_many, stat_many, abstracts, context
void add_search_routes(Router& router, Services& services);  // grep, glob, tree, digest
void add_handle_routes(Router& router, Services& services);  // handles
void add_mount_routes(Router& router, Services& services);   // mounts, plugins
void add_status_routes(Router& router, Services& services);  // health, ready, version, metrics, cache

// The Prometheus text of everything that is counted.
std::string metrics_text(Services& services);

}  // namespace ragfs::server
