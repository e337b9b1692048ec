// An agent that reads changes of the job's status in an order that a real leader rarely writes.

#include <gtest/gtest.h>

#include <optional>
#include <thread>

#include "lockstep/launch/rendezvous/keys.h"
#include "lockstep/launch/rendezvous/messages.h"
#include "lockstep/store/tcp/tcp_store.h"
#include "lockstep/world/worker_env.h"
#include "tests/launch/elastic_job.h"

namespace lockstep::testing {
namespace {

/// Serves at a job's endpoint, and leads the job as the test decides.
class PretendedLeader {
 public:
  explicit PretendedLeader(const ElasticJob& job)
      : server_(TcpStoreServerOptions{"127.0.0.1", job.port(), ""}),
        store_(connect_tcp_store({"127.0.0.1", job.port()}, "", soon())) {
    store_->set(keys::kJob, "", soon());
    store_->set(keys::kLeader, "it", soon());
    say(JobRecord::State::kForming, 0);
  }

  void say(JobRecord::State state, int64_t generation, const std::string& why = "") {
    JobRecord record;
    record.why = why;
    record.state = state;
    record.generation = generation;
    record.by = "it";
    store_->set(keys::kRecord, to_json(record), soon());
  }
  void send_to(const Endpoint& endpoint) { store_->set(keys::kMoved, to_string(endpoint), soon()); }

  /// The only agent's join request, once it has come and satisfies `wanted`.
  template <class Wanted>
  JoinRequest await_request(const Wanted& wanted) {
    while (!deadline_.passed()) {
      const auto agents = store_->list(keys::kAgents, soon());
      const auto text = agents.empty() ? std::nullopt : store_->try_get(agents[0], soon());
      if (text) {
        id_ = agents[0].substr(keys::kAgents.size());
        if (JoinRequest request = join_request_from_json(*text); wanted(request)) return request;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    throw Error(ErrorCode::kTimeout, "no such join request");
  }
  /// The agent has gone.
  void await_nobody() {
    while (!store_->list(keys::kAgents, soon()).empty()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  /// Starts that generation with this agent alone.
  void run_alone(const JoinRequest& request, int64_t generation) {
    HostAssignment assignment;
    assignment.generation = generation;
    assignment.run_id = "pretended";
    assignment.ranks = assign_ranks({{request.host, 1, request.local_size, request.role}})[0];
    assignment.store = {request.address, request.store_port};
    assignment.torch = {request.address, request.torch_port};
    store_->set(keys::assignment(id_), to_json(assignment), soon());
    say(JobRecord::State::kRunning, generation);
  }

 private:
  Deadline soon() const { return deadline_; }

  const Deadline deadline_ = Deadline::after(std::chrono::seconds(60));
  TcpStoreServer server_;
  std::shared_ptr<Store> store_;
  std::string id_;
};

// Nobody serves at the new endpoint, and soon nobody at the first one either.
TEST(ElasticLeader, WhoIsSentToAnEndpointThatDiesComesBack) {
  const ElasticJob job("1:2", {}, kTwoSeconds);
  const HeldPort nobody;
  std::optional<PretendedLeader> leader(job);
  const auto a = job.first("a");
  leader->await_request([](const JoinRequest&) { return true; });
  leader->send_to({"127.0.0.1", nobody.number()});
  leader->await_nobody();
  leader.reset();
  EXPECT_SAYS(a, "world 1 rank 0 restart 0.");
}

// An agent whose workers are done delays nobody. It may see the next generation without the end of
// its own.
TEST(ElasticLeader, WhoIsDoneFollowsIntoAGenerationThatItDidNotSeeComing) {
  const ElasticJob job("1:2");
  PretendedLeader leader(job);
  const auto a =
      job.agent("a", {"/bin/sh", "-c", "echo generation $LOCKSTEP_GENERATION on rank $RANK."});
  const auto done = [](int64_t generation) {
    return [generation](const JoinRequest& request) {
      return request.generation == generation && request.work == HostWork::kDone;
    };
  };
  leader.run_alone(leader.await_request([](const JoinRequest&) { return true; }), 1);
  leader.run_alone(leader.await_request(done(1)), 2);
  leader.await_request(done(2));
  leader.say(JobRecord::State::kForming, 2, "node 1 left");
  leader.await_request([](const JoinRequest& request) { return request.work == HostWork::kIdle; });
  leader.say(JobRecord::State::kEnded, 2);
  EXPECT_EQ(a->wait(), 0) << a->err();
  EXPECT_TRUE(has(a->out(), "generation 1 on rank 0.")) << a->out();
  EXPECT_TRUE(has(a->out(), "generation 2 on rank 0.")) << a->out();
  EXPECT_TRUE(has(a->err(), "node 1 left; all workers start anew")) << a->err();
}

}  // namespace
}  // namespace lockstep::testing
