#pragma once
// Every kind of store, for tests of their common rules.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/store.h"
#include "tests/store/helpers.h"

namespace lockstep::testing {

/// A new, empty store, and a way to connect to it. `AnyStore`: KeyValueStore or Store.
template <class AnyStore>
struct StoreSite {
  std::shared_ptr<void> keeper;                        ///< Objects that must live as long.
  std::function<std::shared_ptr<AnyStore>()> connect;  ///< A client, as each process has one.
};

template <class AnyStore>
struct StoreKind {
  std::string name;
  std::function<StoreSite<AnyStore>()> make;
};

/// The site seen below a prefix, beside neighbours that must never appear.
template <class AnyStore>
StoreSite<AnyStore> prefixed(const StoreSite<AnyStore>& site) {
  const auto store = site.connect();
  for (const char* key : {"jo", "job", "jobs/a"}) store->set(key, "neighbour", soon());
  return {site.keeper, [site] { return with_prefix(site.connect(), "job"); }};
}

/// The kinds that a test program covers, each by itself and below a prefix.
std::vector<StoreKind<KeyValueStore>> store_kinds();

/// Those in memory and over TCP alone, which have all calls; for store_test.
std::vector<StoreKind<Store>> waiting_store_kinds();

}  // namespace lockstep::testing
