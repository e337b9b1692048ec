// Jobs whose agents meet at a store that none of them serves: in etcd, or in a folder.

#include <fmt/format.h>
#include <signal.h>

#include <chrono>
#include <cstdio>
#include <set>
#include <sstream>
#include <thread>

#include "lockstep/base/file.h"
#include "lockstep/base/literals.h"
#include "lockstep/launch/rendezvous/rendezvous_backend.h"
#include "lockstep/store/etcd/etcd_store.h"
#include "tests/launch/elastic_job.h"
#include "tests/store/etcd/etcd_server.h"
#include "tests/support/temp_folder.h"

namespace lockstep::testing {
namespace {

/// A job begins, is joined, loses its leader, and ends well.
void live_through(const ElasticJob& job) {
  const auto a = job.first("a");
  EXPECT_SAYS(a, "world 1 rank 0 restart 0.");
  const auto b = job.agent("b");
  EXPECT_SAYS(b, "world 2 rank 1 restart 0.");
  EXPECT_SAYS(a, "world 2 rank 0 restart 0.");
  a->send(SIGKILL);
  EXPECT_SAYS(b, "world 1 rank 0 restart 0.");
  const auto c = job.agent("c");
  EXPECT_SAYS(c, "world 2 rank 1 restart 0.");
  c->send(SIGTERM);
  EXPECT_EQ(c->wait(), 143) << c->err();
  EXPECT_SAYS(b, "world 1 rank 0 restart 0.", 2);
  b->send(SIGTERM);
  EXPECT_EQ(b->wait(), 143) << b->err();
}

/// A job of the same name at the same store begins anew.
void begin_anew(const ElasticJob& job) {
  const Words hello = {"/bin/sh", "-c", "echo rank $RANK of $WORLD_SIZE"};
  for (int i = 0; i < 2; ++i) {
    const auto a = job.agent("a", hello);
    const auto b = job.agent("b", hello);
    EXPECT_EQ(a->wait(), 0) << a->err();
    EXPECT_EQ(b->wait(), 0) << b->err();
  }
}

const std::string& etcd() {
  static const Endpoint kEndpoint = shared_etcd().endpoint();
  static const std::string kText = to_string(kEndpoint);
  return kText;
}

TEST(ElasticEtcd, NodesComeLeaveAndLead) {
  live_through(ElasticJob("1:2", {"--rdzv_id", "etcd-a"}, "etcd", etcd()));
}

TEST(ElasticEtcd, TheNextJobBeginsAnew) {
  begin_anew(ElasticJob("2:2", {"--rdzv_id", "etcd-b"}, "etcd-v2", etcd()));
}

/// The connections to a port of this host, by the other ends' ports.
std::set<int> connections_to(int port) {
  std::set<int> ports;
  std::istringstream lines(read_file("/proc/self/net/tcp"));
  for (std::string line; std::getline(lines, line);) {
    unsigned from = 0, to = 0, state = 0;
    constexpr unsigned kEstablished = 1;
    const int read = std::sscanf(line.c_str(), " %*d: %*x:%x %*x:%x %x", &from, &to, &state);
    if (read == 3 && state == kEstablished && to == static_cast<unsigned>(port)) {
      ports.insert(static_cast<int>(from));
    }
  }
  return ports;
}

struct EtcdLoad {
  explicit EtcdLoad(const EtcdServer& server)
      : connections(connections_to(server.endpoint().port)),
        renewals(server.lease_renewals()),
        proposals(server.committed_proposals()) {}
  std::chrono::steady_clock::time_point at = std::chrono::steady_clock::now();
  std::set<int> connections;
  double renewals;
  double proposals;
};

// Only a window of two leases has to be idle. The first may have writes of the beginning, and on a
// busy machine a leader's two keys may be renewed apart.
TEST(ElasticEtcd, IdleAgentsRenewThreeTimesALeaseOverTheConnectionsTheyHave) {
  const EtcdServer server;
  constexpr auto kLease = 5s;
  const ElasticJob job("2:2", {"--rdzv_id", "etcd-d"}, "etcd", to_string(server.endpoint()),
                       "keep_alive_max_attempt=25");
  const auto a = job.agent("a");
  const auto b = job.agent("b");
  EXPECT_SAYS(a, "world 2");
  EXPECT_SAYS(b, "world 2");
  bool idle = false;
  std::string seen;
  for (int tries = 0; tries < 4 && !idle; ++tries) {
    const EtcdLoad before(server);
    std::this_thread::sleep_for(2 * kLease);
    const EtcdLoad after(server);
    const double leases = std::chrono::duration<double>(after.at - before.at) / kLease;
    const double renewals = after.renewals - before.renewals;
    const double proposals = after.proposals - before.proposals;
    EXPECT_GE(renewals, 4) << "each agent at least once a lease";
    EXPECT_GE(before.connections.size(), 4U) << "each agent's for calls, and its watch";
    idle = renewals <= 2 * (3 * leases + 1) && proposals <= 2 &&
           before.connections == after.connections;
    seen += fmt::format("{} renewals in {} leases of two agents, {} proposals, connections {} {}\n",
                        renewals, leases, proposals, fmt::join(before.connections, " "),
                        fmt::join(after.connections, " "));
  }
  EXPECT_TRUE(idle) << seen;
  for (const auto& agent : {&a, &b}) (*agent)->send(SIGTERM);
  for (const auto& agent : {&a, &b}) (*agent)->wait();
}

TEST(ElasticEtcd, ARestartOfEtcdIsNotNoticed) {
  EtcdServer server;
  const ElasticJob job("1:2", {"--rdzv_id", "etcd-c"}, "etcd", to_string(server.endpoint()));
  const auto a = job.first("a");
  EXPECT_SAYS(a, "world 1");
  server.kill();
  server.start();
  const auto b = job.agent("b");
  EXPECT_SAYS(b, "world 2");
  EXPECT_SAYS(a, "world 2");
}

TEST(ElasticEtcd, AnAgentThatFindsNoneShowsWhereAndWhy) {
  const HeldPort nobody;
  const std::string endpoint = fmt::format("127.0.0.1:{}", nobody.number());
  const auto a = ElasticJob("2:2", {}, "etcd", "http://" + endpoint).agent("a");
  EXPECT_SAYS(a, fmt::format("this host waits for etcd {}: store etcd://{} does not answer ({}: ",
                             endpoint, endpoint, endpoint));
  EXPECT_EQ(a->wait(1s), -1) << text_of(*a);
  EXPECT_EQ(times_in(a->err(), "this host waits"), 1) << text_of(*a);
}

TEST(ElasticEtcd, AnAgentEndsAtOnceIfItsFilesAreWrong) {
  const ElasticJob job("2:2", {}, "etcd", "https://" + etcd(), "ca_cert=/no/authorities.pem");
  const auto a = job.agent("a");
  EXPECT_EQ(a->wait(), 1) << text_of(*a);
  EXPECT_TRUE(has(a->err(), "/no/authorities.pem")) << text_of(*a);
}

TEST(ElasticEtcd, KeysLieBelowThePrefixAndTheRunsName) {
  const HeldPort nobody;
  RunOptions options;
  options.rdzv_backend = "etcd";
  options.rdzv_endpoint = fmt::format("127.0.0.1:{},{}", nobody.number(), etcd());
  options.etcd_prefix = "/some/root";
  options.run_id = "etcd-e";
  options.local_addr = "127.0.0.1";
  const auto in_time = Deadline::after(30s);
  const auto store = make_rendezvous_backend(options, "")->open(in_time);
  store->set("k", "v", in_time);
  EtcdOptions same;
  same.members = {shared_etcd().endpoint()};
  same.root = "some/root/";
  EXPECT_EQ(connect_etcd_store(same, in_time)->try_get("etcd-e/k", in_time), "v");
}

TEST(ElasticFolder, NodesComeLeaveAndLead) {
  const TempFolder folder;
  live_through(ElasticJob("1:2", {}, "file", folder.path() / "meet"));
}

TEST(ElasticFolder, TheNextJobBeginsAnew) {
  const TempFolder folder;
  begin_anew(ElasticJob("2:2", {}, "file", folder.path() / "meet"));
}

}  // namespace
}  // namespace lockstep::testing
