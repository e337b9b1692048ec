#pragma once
// Every kind of store, for tests of their common rules.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/store.h"

namespace lockstep::testing {

/// A new, empty store, and a way to connect to it.
struct StoreSite {
  std::shared_ptr<void> keeper;                     ///< Objects that must live as long.
  std::function<std::shared_ptr<Store>()> connect;  ///< A client, as each process has one.
};

struct StoreKind {
  std::string name;
  std::function<StoreSite()> make;
};

/// The site seen below a prefix, beside neighbours that must never appear.
StoreSite prefixed(const StoreSite& site);

/// The kinds that a test program covers, each by itself and below a prefix.
std::vector<StoreKind> store_kinds();

}  // namespace lockstep::testing
