#include "ragfs/config/loader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ragfs/config/fields.h"
#include "ragfs/config/node.h"
#include "ragfs/config/ov_conf.h"
#include "ragfs/config/section_parser.h"

namespace ragfs {

Result<Config> parse_config(std::string_view text, const std::string& file, MountsNeeded mounts) {
  auto document = parse_document(text, file);
  if (!document) return std::unexpected(document.error());
  ParseReport report;
  report.file = file;
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && text[first] == '{') {
    *document = translate_ov_conf(*document, report);
  } else if (document->kind == Node::Kind::null) {
    return fail(ErrorCode::config, fmt::format("{}:1: the file is empty; it must name at least one mount under "
                                               "storage.agfs.mounts",
                                               file));
  }
  Config config;
  config.mounts_come_later = mounts == MountsNeeded::no;
  parse_section(config_section(), *document, "", &config, report);
  config.source = file;
  config.places = std::move(report.places);
  config.warnings = std::move(report.warnings);
  // Rules between fields are checked on sound fields only: else one mistake would be reported twice.
  if (report.errors.empty()) {
    if (auto valid = config.validate(); !valid) return std::unexpected(valid.error());
    return config;
  }
  return fail(ErrorCode::config, fmt::format("{}", fmt::join(report.errors, "\n")));
}

Result<Config> load_config(const std::string& file, MountsNeeded mounts) {
  auto text = read_config_text(file);
  if (!text) return std::unexpected(text.error());
  return parse_config(*text, file, mounts);
}

}  // namespace ragfs
