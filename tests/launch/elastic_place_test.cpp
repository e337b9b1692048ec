// Jobs whose agents meet at a place that none of them serves: in etcd, or in a folder.

#include <signal.h>

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

/// A job of the same name at the same place begins anew.
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
