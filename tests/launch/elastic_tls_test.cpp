// Agents with encrypted links.

#include "tests/launch/elastic_job.h"
#include "tests/support/relay.h"

namespace lockstep::testing {
namespace {

/// An agent of a job of two that meet at `endpoint`; its ranks meet by name, so over TCP.
std::unique_ptr<Launched> one_of_two(const std::string& host, const Endpoint& endpoint, bool serves,
                                     const char* tls, const Words& command) {
  Words words = {"run",
                 "--nnodes",
                 "2:2",
                 "--rdzv_backend",
                 "c10d",
                 "--local_addr",
                 "localhost",
                 "--rdzv_endpoint",
                 to_string(endpoint),
                 "--rdzv_conf",
                 serves ? "is_host=1" : "is_host=0",
                 "--"};
  words.insert(words.end(), command.begin(), command.end());
  return std::make_unique<Launched>(
      words,
      std::map<std::string, std::string>{
          {"LOCKSTEP_HOST_ID", host}, {"LOCKSTEP_SECRET", "between-us"}, {"LOCKSTEP_TLS", tls}});
}

/// Runs a job whose second agent connects to the first through an eavesdropper; returns the record.
std::string heard_between_agents(const char* tls) {
  const HeldPort port;
  const Endpoint endpoint{"127.0.0.1", port.number()};
  const Relay relay(endpoint);
  const Words worker = {built_program("world_worker")};
  const auto a = one_of_two("a", endpoint, true, tls, worker);
  const auto b = one_of_two("b", {"127.0.0.1", relay.port()}, false, tls, worker);
  EXPECT_EQ(a->wait(), 0) << a->err();
  EXPECT_EQ(b->wait(), 0) << b->err();
  EXPECT_TRUE(has(a->out() + b->out(), "rank 1/2 local 0/1 node 1/2 by lockstep")) << text_of(*b);
  return relay.seen();
}

TEST(ElasticTls, NobodyOnTheWayHearsWhatAgentsSay) {
  EXPECT_TRUE(has(heard_between_agents("0"), "live/agent/"));
  const std::string heard = heard_between_agents("1");
  EXPECT_GT(heard.size(), 1000U);
  EXPECT_FALSE(has(heard, "live/") || has(heard, "local_size") || has(heard, "between-us"));
}

TEST(ElasticTls, WhoMeansAnotherWireIsRefusedAndDisturbsNobody) {
  const Words worker = {"/bin/sh", "-c", "echo rank $RANK of $WORLD_SIZE"};
  for (const char* tls : {"0", "1"}) {
    const HeldPort port;
    const Endpoint endpoint{"127.0.0.1", port.number()};
    const Endpoint by_name{"localhost", port.number()};
    const auto a = one_of_two("a", endpoint, true, tls, worker);
    const bool is_tls = *tls == '1';
    for (const Endpoint& way : {endpoint, by_name}) {  // a unix socket, TCP
      const auto stranger = one_of_two("b", way, false, is_tls ? "0" : "1", worker);
      EXPECT_EQ(stranger->wait(), 2) << stranger->err();
      EXPECT_TRUE(has(stranger->err(), is_tls ? "uses TLS only: set LOCKSTEP_TLS=1"
                                              : "does not use TLS, as LOCKSTEP_TLS=1 demands"))
          << stranger->err();
      EXPECT_EQ(lines_of(stranger->err()).size(), 1U) << stranger->err();
    }
    const auto b = one_of_two("b", by_name, false, tls, worker);
    EXPECT_EQ(a->wait(), 0) << a->err();
    EXPECT_EQ(b->wait(), 0) << b->err();
    EXPECT_TRUE(has(a->err(), is_tls ? "does not use TLS" : "uses TLS only")) << a->err();
  }
}

TEST(ElasticTls, NeedsASecretAndAYesOrNo) {
  const Words words = {"run", "--nnodes", "2", "--node_rank", "0", "--master_port", "1", "true"};
  for (const auto& [value, says] : {std::pair{"1", "LOCKSTEP_TLS=1 needs a secret"},
                                    std::pair{"yes", "LOCKSTEP_TLS: 'yes' is not 0 or 1"}}) {
    Launched run(words, {{"LOCKSTEP_SECRET", ""}, {"LOCKSTEP_TLS", value}});
    EXPECT_EQ(run.wait(), 2) << run.err();
    EXPECT_TRUE(has(run.err(), says)) << run.err();
  }
}

}  // namespace
}  // namespace lockstep::testing
