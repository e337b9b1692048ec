#include "tests/store/store_kinds.h"

#include "tests/store/helpers.h"

namespace lockstep::testing {

StoreSite prefixed(const StoreSite& site) {
  const auto store = site.connect();
  for (const char* key : {"jo", "job", "jobs/a"}) store->set(key, "neighbour", soon());
  return {site.keeper, [site] { return with_prefix(site.connect(), "job"); }};
}

}  // namespace lockstep::testing
