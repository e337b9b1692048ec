// A pause does not end a job.

#include <signal.h>

#include <fstream>
#include <thread>

#include "tests/launch/elastic_job.h"
#include "tests/store/etcd/etcd_server.h"

namespace lockstep::testing {
namespace {

using namespace std::chrono_literals;

/// Two agents whose workers run until they are told to stop. Their allowed silence is the default.
class TwoAgents {
 public:
  explicit TwoAgents(const Words& options) {
    for (const char* host : {"a", "b"}) {
      Words words = {"run"};
      words.insert(words.end(), options.begin(), options.end());
      if (const auto rank = std::find(words.begin(), words.end(), "RANK"); rank != words.end())
        *rank = std::to_string(agents.size());
      const std::string script =
          "echo at work $RANK.; until [ -e " + go_ + " ]; do sleep 0.05; done";
      for (const char* word : {"--", "/bin/sh", "-c"}) words.emplace_back(word);
      words.push_back(script);
      agents.push_back(std::make_unique<Launched>(
          words, std::map<std::string, std::string>{{"LOCKSTEP_HOST_ID", host}}));
    }
    for (const auto& agent : agents) EXPECT_SAYS(agent, "at work");
  }
  void end_well() {
    std::ofstream(go_).put('\n');
    for (const auto& agent : agents) {
      EXPECT_EQ(agent->wait(), 0) << text_of(*agent);
      EXPECT_EQ(times_in(agent->out(), "at work"), 1) << text_of(*agent);
    }
  }

  std::vector<std::unique_ptr<Launched>> agents;

 private:
  TempFolder folder_;
  const std::string go_ = folder_ / "go";
};

Words fixed_nodes(const HeldPort& port) {
  return {"--nnodes",      "2",         "--node_rank",   "RANK",
          "--master_addr", "127.0.0.1", "--master_port", std::to_string(port.number())};
}

TEST(Patience, AStoppedAgentDoesNotEndAJobThatCannotReplaceIt) {
  const HeldPort port;
  TwoAgents job(fixed_nodes(port));
  for (const auto& agent : job.agents) {
    agent->send(SIGSTOP);
    std::this_thread::sleep_for(3500ms);
    agent->send(SIGCONT);
    EXPECT_EQ(agent->wait(1s), -1) << text_of(*agent);
  }
  job.end_well();
}

// The agent that thaws first gets no heartbeat from the other for some seconds, less than the
// allowed silence. Its own standstill does not count.
TEST(Patience, AJobThatIsStoppedAsAWholeGoesOn) {
  const HeldPort ports[2];
  std::vector<std::unique_ptr<TwoAgents>> jobs;
  for (const auto& port : ports) {
    auto words = fixed_nodes(port);
    const Words silence = {"--rdzv_conf", kTenSeconds};
    words.insert(words.end(), silence.begin(), silence.end());
    jobs.push_back(std::make_unique<TwoAgents>(words));
  }
  // In one job the serving agent goes on first, in the other it goes on last.
  const auto send = [&](size_t agent, int signal) {
    jobs[0]->agents[agent]->send(signal);
    jobs[1]->agents[1 - agent]->send(signal);
  };
  for (const size_t agent : {0, 1}) send(agent, SIGSTOP);
  std::this_thread::sleep_for(13s);
  send(0, SIGCONT);
  std::this_thread::sleep_for(3500ms);
  send(1, SIGCONT);
  // An agent that would end because of it has ended by now.
  for (const auto& job : jobs) EXPECT_EQ(job->agents[0]->wait(1s), -1) << text_of(*job->agents[0]);
  for (const auto& job : jobs) job->end_well();
}

TEST(Patience, AKilledAgentStillEndsItSoon) {
  const HeldPort port;
  for (const size_t victim : {0, 1}) {
    TwoAgents job(fixed_nodes(port));
    job.agents[victim]->send(SIGKILL);
    // Far less than the allowed silence.
    EXPECT_EQ(job.agents[1 - victim]->wait(20s), 1) << text_of(*job.agents[1 - victim]);
    EXPECT_TRUE(has(job.agents[1 - victim]->err(), "died or cannot be reached"))
        << text_of(*job.agents[1 - victim]);
  }
}

TEST(Patience, AnEtcdThatStallsEndsNoGeneration) {
  EtcdServer server;
  for (const char* nodes : {"2", "1:2"}) {
    TwoAgents job({"--nnodes", nodes, "--rdzv_backend", "etcd", "--rdzv_endpoint",
                   to_string(server.endpoint()), "--rdzv_id", std::string("stall-") + nodes,
                   "--local_addr", "127.0.0.1"});
    server.stop();
    std::this_thread::sleep_for(5s);
    server.go_on();
    // If keys were gone by now, the generation would be too.
    std::this_thread::sleep_for(2s);
    job.end_well();
  }
}

}  // namespace
}  // namespace lockstep::testing
