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

/// `host`: a numeric address leads to the shortcut beside TCP, a name to TCP itself.
StoreSite served_site(const char* host, Wire wire = Wire::kPlain) {
  TcpStoreServerOptions options;
  options.secret = "secret";
  options.wire = wire;
  const auto server = std::make_shared<TcpStoreServer>(options);
  const Endpoint endpoint{host, server->port()};
  return {server, [endpoint, wire] { return connect_tcp_store(endpoint, "secret", soon(), wire); }};
}

StoreSite tcp_site() {
  return served_site("localhost");
}

StoreSite tls_site() {
  return served_site("localhost", Wire::kTls);
}

StoreSite shortcut_site() {
  return served_site("127.0.0.1");
}

StoreSite file_site() {
  const auto folder = std::make_shared<TempFolder>();
  return {folder, [path = folder->path()] { return join_file_store(path, "secret", soon()); }};
}

}  // namespace

std::vector<StoreKind> store_kinds() {
  return {{"memory", &memory_site},
          {"tcp", &tcp_site},
          {"tls", &tls_site},
          {"shortcut", &shortcut_site},
          {"file", &file_site},
          {"prefixed_memory", [] { return prefixed(memory_site()); }},
          {"prefixed_tcp", [] { return prefixed(tcp_site()); }},
          {"prefixed_file", [] { return prefixed(file_site()); }}};
}

}  // namespace lockstep::testing
