#include "tests/store/etcd/etcd_server.h"
#include "tests/store/helpers.h"
#include "tests/store/store_kinds.h"

namespace lockstep::testing {
namespace {

StoreSite<KeyValueStore> etcd_site() {
  const EtcdOptions options = shared_etcd().new_root();
  return {nullptr, [options] { return connect_etcd_store(options, soon()); }};
}

}  // namespace

std::vector<StoreKind<KeyValueStore>> store_kinds() {
  return {{"etcd", &etcd_site}, {"prefixed_etcd", [] { return prefixed(etcd_site()); }}};
}

}  // namespace lockstep::testing
