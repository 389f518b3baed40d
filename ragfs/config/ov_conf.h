// translate_ov_conf(): OpenViking's ov.conf as a document of our own configuration.
//
// Reads service_name, cache, storage.workspace, storage.agfs.{backend, path, cachefs, pathlock} and log.level;
// everything else in the file belongs to OpenViking and is left alone. Moved values keep the line and the name they
// have in ov.conf, so that messages speak of the operator's file. Thread-safety: pure function.
#pragma once

#include <string>

#include "ragfs/config/node.h"
#include "ragfs/config/section_parser.h"

namespace ragfs {

// Problems go to `report`; the result is what could be understood.
Node translate_ov_conf(const Node& root, ParseReport& report);

}  // namespace ragfs
