// Invariants of a job under any events in any order.

#include <gtest/gtest.h>
#include <signal.h>

#include <random>
#include <set>

#include "tests/launch/rendezvous/simulated_job.h"

namespace lockstep::testing {
namespace {

using namespace std::chrono_literals;

class RandomJob {
 public:
  explicit RandomJob(unsigned seed) : random_(seed), rules_(make_rules()), job_(rules_) {}

  void step() {
    const auto& nodes = job_.nodes;
    const int64_t before = job_.record.generation;
    act();
    check(before);
    EXPECT_LE(nodes.size(), 12U);
  }

  /// From now on workers only end: with enough nodes, a generation must come.
  void settle() {
    if (job_.ended()) return;
    while (static_cast<int>(usable().size()) < rules_.min_nodes) job_.come(new_id());
    for (int i = 0; i < 5 && !job_.ended(); ++i) {
      job_.end_workers();
      job_.pass(10s);
    }
    EXPECT_TRUE(job_.running() || job_.ended()) << "no progress";
  }
  bool ended() const { return job_.ended(); }

 private:
  int below(int limit) { return std::uniform_int_distribution<int>(0, limit - 1)(random_); }

  MembershipRules make_rules() {
    MembershipRules rules;
    rules.max_nodes = 1 + below(6);
    rules.min_nodes = 1 + below(rules.max_nodes);
    rules.max_restarts = below(4);
    return rules;
  }

  std::string new_id() { return "n" + std::to_string(++ids_); }

  std::vector<std::string> usable() const {
    std::vector<std::string> ids;
    for (const auto& [id, node] : job_.nodes) {
      if (node.request.leaving == 0) ids.push_back(id);
    }
    return ids;
  }
  std::vector<std::string> busy() const {
    std::vector<std::string> ids;
    for (const auto& [id, node] : job_.nodes) {
      if (node.request.work == HostWork::kBusy) ids.push_back(id);
    }
    return ids;
  }

  void act() {
    const int what = below(12);
    const auto pick = [this](const std::vector<std::string>& ids) {
      return ids[static_cast<size_t>(below(static_cast<int>(ids.size())))];
    };
    std::vector<std::string> all;
    for (const auto& [id, node] : job_.nodes) all.push_back(id);
    if (what < 4 && all.size() < 12) return come();
    if (what == 4 && !all.empty()) return job_.lose(pick(all));
    if (what == 5 && !all.empty()) return job_.stop_by_user(pick(all), SIGTERM);
    if (what == 6 && !busy().empty() && job_.running()) return job_.fail(pick(busy()));
    if (what == 7 && !busy().empty() && below(8) == 0) return job_.done(pick(busy()));
    if (what <= 9) return job_.end_workers();
    job_.pass(std::chrono::milliseconds(below(4000)));
  }

  void come() {
    const std::string id = new_id();
    if (below(2) == 0) return job_.come(id);
    job_.come_ranked(id, below(8));
  }

  void check(int64_t before) {
    const JobRecord& record = job_.record;
    EXPECT_GE(record.generation, before);
    EXPECT_LE(record.restart_count, rules_.max_restarts);
    if (record.generation == before || !job_.running()) return;
    EXPECT_EQ(job_.num_overlaps, 0) << "two generations at once";
    std::set<int> node_ranks;
    int world = 0;
    for (const auto& [id, node] : job_.nodes) {
      if (!job_.runs(node)) continue;
      EXPECT_EQ(node.request.leaving, 0);
      EXPECT_TRUE(node_ranks.insert(node.assignment->node_rank).second) << "a rank twice";
      EXPECT_EQ(node.assignment->restart_count, record.restart_count);
      world = node.assignment->num_nodes;
    }
    EXPECT_EQ(static_cast<int>(node_ranks.size()), world);
    EXPECT_EQ(*node_ranks.rbegin(), world - 1);
    EXPECT_GE(world, rules_.min_nodes);
    EXPECT_LE(world, rules_.max_nodes);
  }

  std::mt19937 random_;
  MembershipRules rules_;
  SimulatedJob job_;
  int ids_ = 0;
};

TEST(Membership, HoldsItsPromisesWhateverHappens) {
  int64_t steps = 0;
  for (unsigned seed = 0; seed < 3000; ++seed) {
    RandomJob job(seed);
    for (int i = 0; i < 60 && !job.ended(); ++i, ++steps) job.step();
    job.settle();
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
  EXPECT_GT(steps, 30000) << "most jobs end too early to show anything";
}

// Ten thousand agents of eight workers: the cost of an event must not depend on their number.
TEST(Membership, TenThousandAgentsGoThroughThreeGenerations) {
  MembershipRules rules;
  rules.min_nodes = rules.max_nodes = 10000;
  rules.max_restarts = 1;
  SimulatedJob job(rules);
  for (int i = 0; i < 10000; ++i) {
    job.come("agent" + std::to_string(i), [](JoinRequest* request) { request->local_size = 8; });
  }
  ASSERT_TRUE(job.running());
  EXPECT_EQ(job.nodes.at("agent9999").assignment->ranks.first_rank, 79992);
  job.fail("agent77");
  job.end_workers();
  EXPECT_EQ(job.record.generation, 2);
  job.lose("agent0");
  job.end_workers();
  EXPECT_TRUE(job.forming());
  job.come("agent10000", [](JoinRequest* request) { request->local_size = 8; });
  EXPECT_EQ(job.record.generation, 3);
  EXPECT_EQ(job.nodes.at("agent10000").assignment->node_rank, 0);
  EXPECT_EQ(job.nodes.at("agent9999").assignment->world_size, 80000);
}

}  // namespace
}  // namespace lockstep::testing
