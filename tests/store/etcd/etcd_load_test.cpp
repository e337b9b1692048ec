// The load of an idle client on an etcd that others share.

#include <gtest/gtest.h>

#include "lockstep/base/literals.h"
#include "tests/store/etcd/etcd_server.h"
#include "tests/store/helpers.h"

namespace lockstep {
namespace {

using testing::shared_etcd;
using testing::soon;

double watches() {
  return shared_etcd().counter("grpc_server_started_total{grpc_method=\"Watch\"");
}

TEST(EtcdLoad, HeartbeatsWriteNothing) {
  const auto store = connect_etcd_store(shared_etcd().new_root(), soon());
  EXPECT_TRUE(store->set_with_lease("k", "v", 10s, soon()));
  EXPECT_TRUE(store->set_with_lease("other", "v", 10s, soon()));
  const double before = shared_etcd().committed_proposals();
  const double renewals = shared_etcd().lease_renewals();
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(store->set_with_lease("k", "v", 10s, soon()));
    EXPECT_TRUE(store->set_with_lease("other", "v", 10s, soon()));
  }
  EXPECT_LE(shared_etcd().committed_proposals() - before, 2);
  EXPECT_LE(shared_etcd().lease_renewals() - renewals, 20) << "one is enough for both keys";
  EXPECT_TRUE(store->set_with_lease("k", "new", 10s, soon()));
  EXPECT_EQ(store->try_get("k", soon()), "new");
}

TEST(EtcdLoad, WhoseKeyIsAnothersIsToldSo) {
  const auto options = shared_etcd().new_root();
  const auto store = connect_etcd_store(options, soon());
  const auto other = connect_etcd_store(options, soon());
  EXPECT_TRUE(store->set_with_lease("k", "v", 10s, soon()));
  other->set("k", "v", soon());
  EXPECT_FALSE(store->set_with_lease("k", "v", 10s, soon()));
  other->erase("k", soon());
  EXPECT_TRUE(store->set_with_lease("k", "v", 10s, soon()));
}

TEST(EtcdLoad, OneStreamServesWatchAfterWatch) {
  const auto options = shared_etcd().new_root();
  const auto store = connect_etcd_store(options, soon());
  const auto other = connect_etcd_store(options, soon());
  other->set("w/0", "v", soon());
  uint64_t version = store->watch("w/", 0, soon()).version;
  const double before = watches();
  for (int i = 1; i <= 10; ++i) {
    EXPECT_TRUE(store->watch("w/", version, Deadline::after(5ms)).changes.empty());
    other->set("aside", std::to_string(i), soon());
    other->set("w/k", std::to_string(i), soon());
    auto changes = store->watch("w/", version, soon());
    ASSERT_EQ(changes.changes.size(), 1U);
    EXPECT_EQ(changes.changes[0].value, std::to_string(i));
    version = changes.version;
    other->erase("w/k", soon());
    changes = store->watch("w/", version, soon());
    ASSERT_EQ(changes.changes.size(), 1U);
    EXPECT_FALSE(changes.changes[0].value);
    version = changes.version;
    // However late it is.
    other->set("w/late", std::to_string(i), soon());
    changes = store->watch("w/", version, Deadline::after(0ms));
    ASSERT_EQ(changes.changes.size(), 1U);
    version = changes.version;
  }
  EXPECT_LE(watches() - before, 2);
}

}  // namespace
}  // namespace lockstep
