#include "ragfs/server/openapi.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

namespace ragfs::server {
namespace {

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c; });
  return text;
}

std::string_view rights_of(Access access) {
  switch (access) {
    case Access::open: return "Needs no token.";
    case Access::read: return "Any token will do.";
    case Access::write: return "Not with a read-only token.";
    case Access::control: return "An operator's token (root=/) that is not read-only.";
    case Access::inspect: return "An operator's token (root=/).";
  }
  return "";
}

Json operation_of(const OperationDoc& doc, Access access, bool with_tokens) {
  Json operation;
  operation["operationId"] = doc.id;
  operation["summary"] = doc.summary;
  operation["description"] = rights_of(access);
  if (!doc.parameters.empty()) operation["parameters"] = doc.parameters;
  if (!doc.body.is_null()) operation["requestBody"] = doc.body;
  operation["responses"] = doc.answers;
  if (with_tokens) operation["security"] = access == Access::open ? Json::array() : Json::parse(R"([{"bearer": []}])");
  return operation;
}

}  // namespace

Json openapi_document(const Router& router, std::string_view version, bool with_tokens) {
  Json document;
  document["openapi"] = "3.1.0";
  document["info"] = {{"title", "RAGFS"},
                      {"version", version},
                      {"description", "A tree of files for AI agents, with the API of AGFS."},
                      {"license", {{"name", "Apache-2.0"}, {"identifier", "Apache-2.0"}}}};
  document["jsonSchemaDialect"] = "https://json-schema.org/draft/2020-12/schema";
  Json paths = Json::object();
  const std::vector<OperationDoc> docs = described_operations();
  for (const Route& route : router.routes()) {
    const auto same = [&](const OperationDoc& doc) { return doc.method == route.method && doc.path == route.path; };
    const auto doc = std::ranges::find_if(docs, same);
    if (doc != docs.end()) paths[route.path][lower(route.method)] = operation_of(*doc, route.access, with_tokens);
  }
  document["paths"] = std::move(paths);
  document["components"] = openapi_components();
  if (with_tokens) document["components"]["securitySchemes"]["bearer"] = {{"type", "http"}, {"scheme", "bearer"}};
  return document;
}

void add_openapi_routes(Router& router, std::string_view version, bool with_tokens) {
  const auto text = std::make_shared<Bytes>();
  const Handler handler = [text](Call&) {
    HttpResponse response;
    response.body = *text;
    return response;
  };
  router.add({"GET", "/openapi.json", Access::read, Place::connection, handler});
  router.add({"GET", "/api/v1/openapi.json", Access::read, Place::connection, handler});
  *text = Bytes::from_string(dump(openapi_document(router, version, with_tokens)) + "\n");
}

}  // namespace ragfs::server
