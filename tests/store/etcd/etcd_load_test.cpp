// The load of an idle client on an etcd that others share.

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "lockstep/base/literals.h"
#include "lockstep/base/socket.h"
#include "tests/store/etcd/etcd_server.h"
#include "tests/store/helpers.h"

namespace lockstep {
namespace {

using testing::shared_etcd;
using testing::soon;

/// The first of etcd's counters whose line begins with `name`.
double counter(const std::string& name) {
  const Endpoint server = shared_etcd().endpoint();
  const UniqueFd fd = tcp_connect(server, soon());
  const std::string request = "GET /metrics HTTP/1.0\r\n\r\n";
  send_all(fd.get(), request.data(), request.size(), soon(), "etcd");
  std::string page;
  char buffer[1 << 16];
  for (ssize_t got = 0; (got = ::read(fd.get(), buffer, sizeof buffer)) > 0;)
    page.append(buffer, static_cast<size_t>(got));
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(name)) return std::stod(line.substr(line.rfind(' ')));
  }
  ADD_FAILURE() << "etcd counts no " << name;
  return 0;
}

double proposals() {
  return counter("etcd_server_proposals_committed_total");
}
double watches() {
  return counter("grpc_server_started_total{grpc_method=\"Watch\"");
}

TEST(EtcdLoad, SignsOfLifeWriteNothing) {
  const auto store = connect_etcd_store(shared_etcd().new_root(), soon());
  EXPECT_TRUE(store->hold("k", "v", 10s, soon()));
  EXPECT_TRUE(store->hold("other", "v", 10s, soon()));
  const double before = proposals();
  const double renewals = counter("grpc_server_msg_received_total{grpc_method=\"LeaseKeepAlive\"");
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(store->hold("k", "v", 10s, soon()));
    EXPECT_TRUE(store->hold("other", "v", 10s, soon()));
  }
  EXPECT_LE(proposals() - before, 2);
  EXPECT_LE(counter("grpc_server_msg_received_total{grpc_method=\"LeaseKeepAlive\"") - renewals, 20)
      << "one is enough for both keys";
  EXPECT_TRUE(store->hold("k", "new", 10s, soon()));
  EXPECT_EQ(store->get("k", soon()), "new");
}

TEST(EtcdLoad, WhoseKeyIsAnothersIsToldSo) {
  const auto options = shared_etcd().new_root();
  const auto store = connect_etcd_store(options, soon());
  const auto other = connect_etcd_store(options, soon());
  EXPECT_TRUE(store->hold("k", "v", 10s, soon()));
  other->set("k", "v", soon());
  EXPECT_FALSE(store->hold("k", "v", 10s, soon()));
  other->erase("k", soon());
  EXPECT_TRUE(store->hold("k", "v", 10s, soon()));
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
