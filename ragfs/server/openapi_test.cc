#include "ragfs/server/openapi.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "ragfs/server/dispatcher_fixture.h"

namespace ragfs::server {
namespace {

using testing::ElementsAreArray;
using testing::HasSubstr;
using testing::IsEmpty;

class OpenApi : public DispatcherFixture {
 protected:
  OpenApi() : DispatcherFixture("/") {}

  const Router& router() const { return dispatcher_->router(); }
  Json document(bool with_tokens = false) const { return openapi_document(router(), "1.2.3", with_tokens); }
};

std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(c));
  return text;
}

// Calls `look(operation's name, operation)` for each of the document.
template <typename Look>
void each_operation(const Json& document, const Look& look) {
  for (const auto& [path, item] : document["paths"].items()) {
    for (const auto& [method, operation] : item.items()) look(upper(method) + " " + path, operation);
  }
}

TEST_F(OpenApi, ShowsEveryRouteAndNothingElse) {
  std::set<std::string> routes;
  for (const Route& route : router().routes()) routes.insert(route.method + " " + route.path);
  std::set<std::string> described;
  for (const OperationDoc& doc : described_operations()) {
    EXPECT_TRUE(described.insert(doc.method + " " + doc.path).second) << doc.path << " is described twice";
  }
  std::set<std::string> shown;
  each_operation(document(), [&](const std::string& name, const Json&) { shown.insert(name); });
  EXPECT_THAT(described, ElementsAreArray(routes)) << "descriptions and routes";
  EXPECT_THAT(shown, ElementsAreArray(routes)) << "the document and routes";
}

TEST_F(OpenApi, ParametersOfPathsAreThoseOfTheRoute) {
  const Json whole = document();
  each_operation(whole, [&](const std::string& name, const Json& operation) {
    bool takes_id = false;
    if (operation.contains("parameters")) {
      for (const Json& parameter : operation["parameters"]) {
        takes_id = takes_id || parameter.value("$ref", "") == "#/components/parameters/id";
      }
    }
    EXPECT_EQ(takes_id, name.find("{id}") != std::string::npos) << name;
  });
}

// Every reference leads somewhere; the one it leads to is answered.
const Json& followed(const Json& document, const Json& schema) {
  if (!schema.contains("$ref")) return schema;
  const std::string at = schema["$ref"].get<std::string>();
  EXPECT_THAT(at, HasSubstr("#/"));
  return document.at(Json::json_pointer(at.substr(1)));
}

void expect_closed(const Json& document, const Json& schema, const std::string& where) {
  const Json& real = followed(document, schema);
  if (real.contains("properties") || real.value("type", Json()) == "object") {
    EXPECT_EQ(real.value("additionalProperties", Json()), Json(false)) << where;
  }
  if (!real.contains("properties")) return;
  for (const auto& [name, property] : real["properties"].items()) {
    expect_closed(document, property, where + "." + name);
    if (property.contains("items")) expect_closed(document, property["items"], where + "." + name + "[]");
  }
}

TEST_F(OpenApi, EverySuccessfulAnswerIsClosed) {
  const Json whole = document();
  size_t schemas = 0;
  each_operation(whole, [&](const std::string& name, const Json& operation) {
    size_t good = 0;
    for (const auto& [status, answer] : operation["responses"].items()) {
      if (!status.starts_with("2")) continue;
      ++good;
      ASSERT_TRUE(answer.contains("content")) << name;
      for (const auto& [type, content] : answer["content"].items()) {
        if (type != "application/json") continue;
        ++schemas;
        ASSERT_TRUE(content["schema"].contains("$ref")) << name;
        expect_closed(whole, content["schema"], name);
      }
    }
    EXPECT_GT(good, 0U) << name;
  });
  EXPECT_GT(schemas, 40U);
}

TEST_F(OpenApi, NamesAreUniqueAndReferencesLeadSomewhere) {
  const Json whole = document();
  std::set<std::string> ids;
  each_operation(whole, [&](const std::string& name, const Json& operation) {
    EXPECT_TRUE(ids.insert(operation["operationId"].get<std::string>()).second) << name;
    if (!operation.contains("parameters")) return;
    for (const Json& parameter : operation["parameters"]) {
      EXPECT_TRUE(followed(whole, parameter).contains("name")) << name;
    }
  });
}

TEST_F(OpenApi, RightsAreThoseOfTheRoutes) {
  const Json with = document(true);
  for (const Route& route : router().routes()) {
    std::string method = route.method;
    for (char& c : method) c = static_cast<char>(std::tolower(c));
    const Json& security = with["paths"][route.path][method]["security"];
    EXPECT_EQ(security.empty(), route.access == Access::open) << route.method << " " << route.path;
  }
  each_operation(document(false), [](const std::string& name, const Json& operation) {
    EXPECT_FALSE(operation.contains("security")) << name << ": no tokens, nothing to show";
  });
}

TEST_F(OpenApi, IsServed) {
  for (const char* path : {"/openapi.json", "/api/v1/openapi.json"}) {
    HttpRequest request;
    request.method = "GET";
    request.target = path;
    request.headers = {{"host", "localhost"}};
    const Admission admission = dispatcher_->admit(request);
    ASSERT_FALSE(admission.refusal) << path;
    const HttpResponse response = dispatcher_->handle(admission, request);
    EXPECT_EQ(response.status, 200U);
    EXPECT_EQ(Json::parse(response.body.view()), document()) << path;
  }
}

}  // namespace
}  // namespace ragfs::server
