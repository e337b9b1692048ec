#include "tests/store/store_kinds.h"
#include "tests/support/temp_folder.h"

#include "lockstep/store/file/file_store.h"
#include "lockstep/store/memory/memory_store.h"
#include "lockstep/store/tcp/tcp_store.h"
#include "tests/store/helpers.h"
#include "tests/store/tcp/server_process.h"

namespace lockstep::testing {
namespace {

StoreSite<Store> memory_site() {
  const auto store = make_memory_store();
  return {store, [store] { return make_memory_client(store); }};
}

/// `host`: a numeric address leads to the shortcut beside TCP, a name to TCP itself.
StoreSite<Store> served_site(const char* host, Wire wire = Wire::kPlain) {
  TcpStoreServerOptions options;
  options.secret = "secret";
  options.wire = wire;
  const auto server = std::make_shared<TcpStoreServer>(options);
  const Endpoint endpoint{host, server->port()};
  return {server, [endpoint, wire] { return connect_tcp_store(endpoint, "secret", soon(), wire); }};
}

StoreSite<Store> tcp_site() {
  return served_site("localhost");
}

StoreSite<Store> tls_site() {
  return served_site("localhost", Wire::kTls);
}

StoreSite<Store> shortcut_site() {
  return served_site("127.0.0.1");
}

/// Clients whose calls go through shared memory from the first on.
StoreSite<Store> call_slot_site() {
  const auto site = shortcut_site();
  return {site.keeper, [site] { return with_call_slot(site.connect()); }};
}

StoreSite<KeyValueStore> file_site() {
  const auto folder = std::make_shared<TempFolder>();
  return {folder, [path = folder->path()] { return join_file_store(path, "secret", soon()); }};
}

}  // namespace

std::vector<StoreKind<Store>> waiting_store_kinds() {
  return {{"memory", &memory_site},
          {"tcp", &tcp_site},
          {"tls", &tls_site},
          {"shortcut", &shortcut_site},
          {"call_slot", &call_slot_site},
          {"prefixed_memory", [] { return prefixed(memory_site()); }},
          {"prefixed_tcp", [] { return prefixed(tcp_site()); }}};
}

std::vector<StoreKind<KeyValueStore>> store_kinds() {
  std::vector<StoreKind<KeyValueStore>> kinds = {
      {"file", &file_site}, {"prefixed_file", [] { return prefixed(file_site()); }}};
  for (const auto& kind : waiting_store_kinds()) {
    kinds.push_back({kind.name, [make = kind.make] {
                       const auto site = make();
                       return StoreSite<KeyValueStore>{site.keeper, site.connect};
                     }});
  }
  return kinds;
}

}  // namespace lockstep::testing
