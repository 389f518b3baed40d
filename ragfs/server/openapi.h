// The OpenAPI 3.1 document of the API.
//
// The table of routes says which operations there are and who may call them, the descriptions (openapi_operations.cc)
// what they take and answer. A test compares the two both ways, and another calls the server by the document.
// Not for: checking requests; handlers do that. Thread-safety: pure functions.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "ragfs/server/reply.h"
#include "ragfs/server/router.h"

namespace ragfs::server {

// One operation as the document shows it, but for what its route knows.
struct OperationDoc {
  std::string method;
  std::string path;  // as in Route
  std::string id;
  std::string summary;
  Json parameters = Json::array();
  Json body;  // null = none
  Json answers = Json::object();
};

std::vector<OperationDoc> described_operations();
// Schemas, parameters and answers that operations refer to.
Json openapi_components();

// `with_tokens`: callers need one, as their route says. Routes without a description are left out.
Json openapi_document(const Router& router, std::string_view version, bool with_tokens);

// GET /openapi.json and /api/v1/openapi.json; the last routes to be added, because the document shows them all.
void add_openapi_routes(Router& router, std::string_view version, bool with_tokens);

}  // namespace ragfs::server
