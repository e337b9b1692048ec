#include "tests/store/store_kinds.h"

#include "lockstep/store/memory/memory_store.h"
#include "lockstep/store/tcp/tcp_store.h"
#include "tests/store/helpers.h"

namespace lockstep::testing {
namespace {

StoreSite memory_site() {
  const auto store = make_memory_store();
  return {store, [store] { return make_memory_client(store); }};
}

StoreSite tcp_site() {
  TcpStoreServerOptions options;
  options.secret = "secret";
  const auto server = std::make_shared<TcpStoreServer>(options);
  const Endpoint endpoint{"127.0.0.1", server->port()};
  return {server, [endpoint] { return connect_tcp_store(endpoint, "secret", soon()); }};
}

StoreSite prefixed(const StoreSite& site) {
  const auto store = site.connect();
  for (const char* key : {"jo", "job", "jobs/a"}) store->set(key, "neighbour", soon());
  return {site.keeper, [site] { return with_prefix(site.connect(), "job"); }};
}

}  // namespace

std::vector<StoreKind> store_kinds() {
  std::vector<StoreKind> kinds = {{"memory", &memory_site}, {"tcp", &tcp_site}};
  for (size_t i = 0, plain = kinds.size(); i < plain; ++i) {
    const auto make = kinds[i].make;
    kinds.push_back({"prefixed_" + kinds[i].name, [make] { return prefixed(make()); }});
  }
  return kinds;
}

}  // namespace lockstep::testing
