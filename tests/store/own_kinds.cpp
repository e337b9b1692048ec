#include "tests/store/store_kinds.h"
#include "tests/support/temp_folder.h"

#include "lockstep/store/file/file_store.h"
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

StoreSite file_site() {
  const auto folder = std::make_shared<TempFolder>();
  return {folder, [path = folder->path()] { return join_file_store(path, "secret", soon()); }};
}

}  // namespace

std::vector<StoreKind> store_kinds() {
  return {{"memory", &memory_site},
          {"tcp", &tcp_site},
          {"file", &file_site},
          {"prefixed_memory", [] { return prefixed(memory_site()); }},
          {"prefixed_tcp", [] { return prefixed(tcp_site()); }},
          {"prefixed_file", [] { return prefixed(file_site()); }}};
}

}  // namespace lockstep::testing
