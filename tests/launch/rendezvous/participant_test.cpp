// How one agent's thread takes part in a job, at a meeting place of the test's own.

#include "lockstep/launch/rendezvous/participant.h"

#include <gtest/gtest.h>

#include <future>
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

/// A service that any agent may lead at, as etcd.
class TestPlace final : public MeetingPlace {
 public:
  explicit TestPlace(std::shared_ptr<Store> store) : store_(std::move(store)) {}

  std::shared_ptr<Store> open(Deadline) override { return store_; }
  std::shared_ptr<Store> reopen(const Candidates&, const std::atomic<bool>&, Deadline) override {
    return nullptr;
  }
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

 private:
  std::shared_ptr<Store> store_;
};

RunOptions two_nodes(std::chrono::milliseconds interval) {
  RunOptions options;
  options.min_nodes = options.num_nodes = 2;
  options.rdzv_backend = "etcd";
  options.heartbeat_interval = interval;
  options.heartbeat_attempts = 1;
  return options;
}

Offer offer_of(const std::string& host) {
  Offer offer;
  offer.host = host;
  offer.address = "127.0.0.1";
  offer.mark = secret_mark("");
  offer.min_nodes = offer.max_nodes = 2;
  return offer;
}

/// An agent's thread, that of "me".
struct TakingPart {
  TakingPart(const RunOptions& options, std::shared_ptr<Store> store)
      : place(std::move(store)), participant(options, "", &place, &workers, &standing) {
    ended = std::async(std::launch::async, [this] { participant.run(); });
  }

  TestPlace place;
  WorkersStore workers{"127.0.0.1", "", Wire::kPlain};
  Standing standing{"me", offer_of("here")};
  Participant participant;
  std::future<void> ended;
};

// As a process that was stopped for longer than its lease lasts.
TEST(Participant, WhoDoesNotLeadAnyMoreDecidesNothing) {
  const auto store = make_memory_store();
  const auto others = make_memory_client(store);
  TakingPart agent(two_nodes(1h), store);
  others->get(keys::kRecord, in_time());
  others->get(keys::agent("me"), in_time());
  others->set(keys::kLeader, "other", in_time());
  others->set(keys::agent("b"), to_json(offer_of("there")), in_time());
  JobRecord end;
  end.state = JobRecord::State::kEnded;
  end.by = "other";
  // Again and again: one that thinks that it leads would write its own over it.
  do {
    others->set(keys::kRecord, to_json(end), in_time());
  } while (agent.ended.wait_for(5ms) != std::future_status::ready);
  EXPECT_TRUE(agent.participant.saw_end());
  EXPECT_TRUE(others->list(keys::kPlans, in_time()).empty()) << "there is another leader";
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

TEST(Participant, StopDoesNotWaitUntilAPlaceThatHangsIsGivenUp) {
  const auto store = std::make_shared<HangingStore>();
  TakingPart agent(two_nodes(1ms), store);
  while (store->calls < 100) std::this_thread::yield();  // it gives signs of life
  store->hangs = true;
  agent.participant.stop();
  EXPECT_EQ(agent.ended.wait_for(30s), std::future_status::ready);
}

}  // namespace
}  // namespace lockstep::testing
