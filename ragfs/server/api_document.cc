// The OpenAPI document of the API, as it was built in from openapi.json.
#include "ragfs/server/api.h"
#include "ragfs/server/openapi.h"

namespace ragfs::server {

void add_document_routes(Router& router, Services&) {
  const auto show = [](Call&) {
    HttpResponse response;
    response.body = Bytes::from_static(openapi_json());
    return response;
  };
  router.add({"GET", "/openapi.json", Access::open, Place::connection, show});
  router.add({"GET", "/api/v1/openapi.json", Access::open, Place::connection, show});
}

}  // namespace ragfs::server
