#pragma once
// Every kind of store, for the tests of what all of them must do.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/store.h"

namespace lockstep::testing {

/// A new, empty store and the way to it.
struct StoreSite {
  std::shared_ptr<void> keeper;                     ///< Whatever has to live as long.
  std::function<std::shared_ptr<Store>()> connect;  ///< A client, as each process has one.
};

struct StoreKind {
  std::string name;
  std::function<StoreSite()> make;
};

/// The site seen below a prefix, beside neighbours that must never show.
StoreSite prefixed(const StoreSite& site);

/// Those that a test program is about, each by itself and below a prefix.
std::vector<StoreKind> store_kinds();

}  // namespace lockstep::testing
