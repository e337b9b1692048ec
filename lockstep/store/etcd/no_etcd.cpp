// The etcd store of builds without the part ETCD.

#include "lockstep/error.h"
#include "lockstep/store/etcd/etcd_store.h"

namespace lockstep::inline internal {

std::shared_ptr<KeyValueStore> connect_etcd_store(const EtcdOptions&, Deadline) {
  throw Error(ErrorCode::kUnavailable,
              "this Lockstep was built without etcd; configure with -DLOCKSTEP_WITH_ETCD=ON");
}

}  // namespace lockstep::inline internal
