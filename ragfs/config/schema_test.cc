#include "ragfs/config/schema.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "ragfs/config/config.h"
#include "ragfs/config/field_text.h"
#include "ragfs/config/fields.h"

#ifndef RAGFS_SOURCE_DIR
#error "RAGFS_SOURCE_DIR must name the top of the source tree"
#endif

namespace ragfs {
namespace {

std::string source_text(const std::string& name) {
  std::ifstream in(std::string(RAGFS_SOURCE_DIR) + "/" + name);
  std::stringstream out;
  out << in.rdbuf();
  return out.str();
}

TEST(ConfigSchema, TheCopyInTheTreeIsWhatTheTableMakes) {
  EXPECT_TRUE(source_text("ragfs/config/schema.json") == config_schema_json())
      << "run: build/debug/ragfs config schema > ragfs/config/schema.json";
}

TEST(ConfigSchema, HasEveryKeyOfTheParserAndNoOther) {
  const auto schema = nlohmann::json::parse(config_schema_json());
  Config one;
  one.mounts.emplace_back();
  size_t fields = 0;
  visit_fields(config_section(), &one, "", [&](const std::string& path, const Field&, const void*) {
    const nlohmann::json* at = &schema;
    std::stringstream parts(path);
    for (std::string part; std::getline(parts, part, '.');) {
      const bool list = part.ends_with("[0]");
      if (list) part.resize(part.size() - 3);
      EXPECT_FALSE(at->value("additionalProperties", true)) << path;
      ASSERT_TRUE(at->at("properties").contains(part)) << path;
      at = &at->at("properties").at(part);
      if (list) at = &at->at("items");
    }
    EXPECT_TRUE(at->contains("description")) << path;
    ++fields;
  });
  size_t leaves = 0;
  const std::function<void(const nlohmann::json&)> count = [&](const nlohmann::json& node) {
    if (node.contains("items") && node["items"].contains("properties")) return count(node["items"]);
    if (!node.contains("properties")) return void(++leaves);
    for (const auto& child : node["properties"]) count(child);
  };
  count(schema);
  EXPECT_EQ(leaves, fields);
}

TEST(ConfigPage, ListsEveryKey) {
  const std::string page = source_text("docs/config.md");
  const std::string begin = "<!-- keys: made by `ragfs config keys` -->\n";
  const size_t at = page.find(begin);
  ASSERT_NE(at, std::string::npos);
  EXPECT_TRUE(page.substr(at + begin.size()) == config_as_markdown())
      << "replace what follows the marker by the output of: build/debug/ragfs config keys";
}

}  // namespace
}  // namespace ragfs
