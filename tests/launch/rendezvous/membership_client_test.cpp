// One agent's membership thread, with a rendezvous backend of the test.

#include "lockstep/launch/rendezvous/membership_client.h"

#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <optional>
#include <thread>

#include "lockstep/launch/rendezvous/keys.h"
#include "lockstep/store/memory/memory_store.h"
#include "lockstep/store/request_store.h"
#include "lockstep/store/store_state.h"

namespace lockstep::testing {
namespace {

using namespace std::chrono_literals;

Deadline in_time() {
  return Deadline::after(60s);
}

/// A service at which any agent may lead, like etcd.
class TestBackend final : public RendezvousBackend {
 public:
  explicit TestBackend(std::shared_ptr<KeyValueStore> store) : store_(std::move(store)) {}

  std::shared_ptr<KeyValueStore> open(Deadline) override { return store_; }
  std::shared_ptr<KeyValueStore> reopen(const Candidates&, const std::atomic<bool>&,
                                        Deadline) override {
    return nullptr;
  }
  std::shared_ptr<KeyValueStore> rejoin(const std::atomic<bool>&, Deadline) override {
    ++rejoined;
    if (on_rejoin) on_rejoin();
    return comes_back ? store_ : nullptr;
  }
  void remember_addresses() override { ++remembered; }
  bool may_lead() const override { return true; }
  std::string own_address() const override { return "127.0.0.1"; }
  std::string listen_host() const override { return "127.0.0.1"; }
  int own_port() const override { return 0; }
  std::optional<Endpoint> elsewhere() const override { return std::nullopt; }
  Endpoint endpoint() const override { return {}; }
  std::string name() const override { return "test"; }
  std::string loss() const override { return "the test is gone"; }
  std::chrono::milliseconds call_limit() const override { return 60s; }
  void close(Deadline) override {}

  std::atomic<int> rejoined = 0;
  std::atomic<int> remembered = 0;
  bool comes_back = true;
  std::function<void()> on_rejoin;

 private:
  std::shared_ptr<KeyValueStore> store_;
};

RunOptions two_nodes(std::chrono::milliseconds interval) {
  RunOptions options;
  options.min_nodes = options.num_nodes = 2;
  options.rdzv_backend = "etcd";
  options.heartbeat_interval = interval;
  options.heartbeat_attempts = 1;
  return options;
}

JoinRequest request_of(const std::string& host) {
  JoinRequest request;
  request.host = host;
  request.address = "127.0.0.1";
  request.mark = secret_mark("");
  request.min_nodes = request.max_nodes = 2;
  return request;
}

/// The membership thread of the agent "me".
struct TakingPart {
  TakingPart(const RunOptions& options, std::shared_ptr<KeyValueStore> store)
      : backend(std::move(store)), participant(options, "", &backend, &workers, &standing) {
    ended = std::async(std::launch::async, [this] { participant.run(); });
  }

  TestBackend backend;
  WorkersStore workers{"127.0.0.1", "", Wire::kPlain, true};
  AgentStatus standing{"me", request_of("here")};
  MembershipClient participant;
  std::future<void> ended;
};

/// The agent has written its join request in that term.
void await_request(const std::string& term, const TakingPart& agent, Store& store) {
  while (join_request_from_json(store.get(keys::agent("me"), in_time())).term != term) {
    ASSERT_EQ(agent.ended.wait_for(1ms), std::future_status::timeout);
  }
}

// As for a process that was stopped for longer than its lease.
TEST(MembershipClient, WhoDoesNotLeadAnyMoreDecidesNothing) {
  const auto store = make_memory_store();
  const auto others = make_memory_client(store);
  TakingPart agent(two_nodes(1h), store);
  others->get(keys::kRecord, in_time());
  others->get(keys::agent("me"), in_time());
  others->set(keys::kLeader, "other", in_time());
  others->set(keys::agent("b"), to_json(request_of("there")), in_time());
  JobRecord end;
  end.state = JobRecord::State::kEnded;
  end.by = "other";
  // Repeated: an agent that still leads would overwrite it with its own record.
  do {
    others->set(keys::kRecord, to_json(end), in_time());
  } while (agent.ended.wait_for(5ms) != std::future_status::ready);
  EXPECT_TRUE(agent.participant.saw_end());
  EXPECT_TRUE(others->list(keys::kAssignments, in_time()).empty()) << "there is another leader";
}

TEST(MembershipClient, AnAgentWritesAgainInEachNewTerm) {
  const auto store = make_memory_store();
  const auto others = make_memory_client(store);
  others->set(keys::kLeader, "first", in_time());
  TakingPart agent(two_nodes(1h), store);
  const auto appoint = [&](const std::string& term) {
    others->set(keys::kLeader, term, in_time());
    JobRecord forming;
    forming.by = term;
    others->set(keys::kRecord, to_json(forming), in_time());
    await_request(term, agent, *others);  // a heartbeat would come only in an hour
  };
  appoint("first");
  appoint("second");
  agent.participant.stop();
  others->set(keys::kLeader, "third", in_time());  // wakes it
  agent.ended.get();
}

// The agent b wrote in the first term, and is killed before the second, which the same agent leads.
TEST(MembershipClient, WhoLeadsAgainCountsNoAgentOfItsEarlierTerm) {
  const auto store = make_memory_store();
  const auto others = make_memory_client(store);
  RunOptions options = two_nodes(1h);
  options.max_restarts = 3;
  TakingPart agent(options, store);
  const std::string first = others->get(keys::kLeader, in_time());
  await_request(first, agent, *others);
  others->set(keys::kLeader, "other", in_time());
  await_request("other", agent, *others);
  JoinRequest killed = request_of("there");
  killed.term = first;
  killed.generation = 6;
  killed.last_rank = 1;
  killed.num_nodes = 2;
  killed.restart_count = 2;
  others->set(keys::agent("b"), to_json(killed), in_time());
  others->erase(keys::kLeader, in_time());
  const std::string second = others->get(keys::kLeader, in_time());
  EXPECT_NE(second, first);
  await_request(second, agent, *others);
  others->erase(keys::agent("b"), in_time());
  JoinRequest next = request_of("elsewhere");
  next.term = second;
  next.node_rank = 0;
  others->set(keys::agent("c"), to_json(next), in_time());
  const auto text = others->get(keys::assignment("c"), in_time());
  EXPECT_EQ(host_assignment_from_json(text).restart_count, 0) << "the job of b has ended with it";
  EXPECT_FALSE(others->try_get(keys::assignment("b"), in_time())) << "b may be dead";
  agent.participant.stop();
  others->set(keys::kLeader, "third", in_time());  // wakes it
  agent.ended.get();
}

/// Answers nothing while it hangs.
class HangingStore final : public RequestStore {
 public:
  std::atomic<bool> hangs = false;
  std::atomic<int> calls = 0;

 private:
  StoreReply call(StoreRequest request, Deadline deadline) override {
    ++calls;
    const StoreTicket own{1, ++last_};
    if (hangs && request.op != StoreOp::kWatch) {
      std::this_thread::sleep_until(deadline.when());
      throw Error(ErrorCode::kTimeout, "the store does not answer");
    }
    auto answers = store_.submit(own, std::move(request));
    if (!answers.empty()) return std::move(answers.front().reply);
    std::this_thread::sleep_until(deadline.when());
    return store_.cancel(own).value();
  }
  std::string name() const override { return "store"; }

  StoreState store_;
  uint64_t last_ = 0;
};

TEST(MembershipClient, StopDoesNotWaitUntilAStoreThatHangsIsGivenUp) {
  const auto store = std::make_shared<HangingStore>();
  TakingPart agent(two_nodes(1ms), store);
  while (store->calls < 100) std::this_thread::yield();  // it sends heartbeats
  store->hangs = true;
  agent.participant.stop();
  EXPECT_EQ(agent.ended.wait_for(30s), std::future_status::ready);
}

/// A client of another store, whose connection can end.
class LosingStore final : public KeyValueStore {
 public:
  explicit LosingStore(std::shared_ptr<KeyValueStore> to) : to_(std::move(to)) {}
  std::atomic<bool> lost = false;

  void set(std::string_view key, std::string_view value, Deadline by) override {
    there().set(key, value, by);
  }
  void set_many(std::span<const KeyValue> items, Deadline by) override {
    there().set_many(items, by);
  }
  std::optional<std::string> try_get(std::string_view key, Deadline by) override {
    return there().try_get(key, by);
  }
  void set_if_missing(std::string_view key, std::string_view value, Deadline by) override {
    there().set_if_missing(key, value, by);
  }
  bool set_with_lease(std::string_view key, std::string_view value, std::chrono::milliseconds ttl,
                      Deadline by) override {
    return there().set_with_lease(key, value, ttl, by);
  }
  bool erase(std::string_view key, Deadline by) override { return there().erase(key, by); }
  std::vector<std::string> list(std::string_view prefix, Deadline by) override {
    return there().list(prefix, by);
  }
  Changes watch(std::string_view prefix, uint64_t since, Deadline by) override {
    return there().watch(prefix, since, by);
  }

 private:
  KeyValueStore& there() const {
    if (lost) throw Error(ErrorCode::kPeerLost, "the connection ended");
    return *to_;
  }
  std::shared_ptr<KeyValueStore> to_;
};

JobRecord record_by_other(JobRecord::State state) {
  JobRecord record;
  record.state = state;
  record.generation = 1;
  record.by = "other";
  return record;
}

/// An agent in generation 1 of a job that another leads.
struct Follower {
  Follower() {
    store->set(keys::kLeader, "other", in_time());
    HostAssignment assignment;
    assignment.generation = 1;
    assignment.num_nodes = assignment.world_size = 2;
    assignment.node_rank = assignment.ranks.first_rank = 1;
    assignment.ranks.local_size = 1;
    assignment.ranks.role_size = 2;
    store->set(keys::assignment("me"), to_json(assignment), in_time());
    store->set(keys::kRecord, to_json(record_by_other(JobRecord::State::kRunning)), in_time());
    agent.emplace(two_nodes(1ms), connection);
    EXPECT_TRUE(agent->standing.wait_for_assignment());
  }
  std::shared_ptr<Store> store = make_memory_store();
  std::shared_ptr<LosingStore> connection =
      std::make_shared<LosingStore>(make_memory_client(store));
  std::optional<TakingPart> agent;
};

TEST(MembershipClient, AConnectionThatEndsIsNotTheEndOfAJobThatCannotChange) {
  Follower one;
  one.agent->backend.on_rejoin = [&] { one.connection->lost = false; };
  one.connection->lost = true;
  while (one.agent->backend.rejoined == 0) std::this_thread::yield();
  // It publishes its key again by itself.
  one.store->erase(keys::agent("me"), in_time());
  one.store->get(keys::agent("me"), in_time());
  const JobStatus status = one.agent->standing.job_status();
  EXPECT_FALSE(status.leave || status.end);
  one.store->set(keys::kRecord, to_json(record_by_other(JobRecord::State::kEnded)), in_time());
  one.agent->ended.get();
  ASSERT_TRUE(one.agent->standing.job_status().end);
  EXPECT_FALSE(one.agent->standing.job_status().end->failure);
}

TEST(MembershipClient, TheServersAddressesAreKnownBeforeAnyWorkerRuns) {
  Follower one;
  EXPECT_EQ(one.agent->backend.remembered.load(), 1);
  one.store->set(keys::kRecord, to_json(record_by_other(JobRecord::State::kEnded)), in_time());
  one.agent->ended.get();
}

TEST(MembershipClient, AStoreThatIsGoneIsTheEndOfAJobThatCannotChange) {
  Follower one;
  one.agent->backend.comes_back = false;
  one.connection->lost = true;
  one.agent->ended.get();
  const JobStatus status = one.agent->standing.job_status();
  ASSERT_TRUE(status.end && status.end->failure);
  EXPECT_EQ(status.end->failure->cause, "the test is gone");
}

}  // namespace
}  // namespace lockstep::testing
