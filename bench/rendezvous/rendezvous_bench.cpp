// A job of thousands of simulated agents passes its first generation, a failure, the loss of a host
// and a newcomer. It includes the leader's decisions, the messages both ways, and the store's
// state, in one process without sockets. Prints seconds for each, and memory per agent.
//
//   bench_rendezvous [AGENTS [RANKS_PER_AGENT]]          (10000 8)

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>

#include "lockstep/error.h"
#include "lockstep/launch/rendezvous/keys.h"
#include "lockstep/launch/rendezvous/leader.h"
#include "lockstep/store/memory/memory_store.h"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;

int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  int64_t size = 0;
  int64_t resident = 0;
  file >> size >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

class SimulatedAgents {
 public:
  SimulatedAgents(int count, int ranks) : requests_(static_cast<size_t>(count)) {
    rules_.min_nodes = rules_.max_nodes = count;
    rules_.max_restarts = 1;
    rules_.endpoint = "here";
    for (JoinRequest& request : requests_) {
      request.host = request.address = "host.example";
      request.local_size = ranks;
      request.role = "default";
      request.min_nodes = request.max_nodes = count;
    }
  }

  void begin() {
    leader_.emplace(store_, rules_);
    leader_->begin(new_changes());
  }
  /// All agents join, in any number of batches.
  void come() {
    for (size_t i = 0; i < requests_.size(); ++i) say(i);
    leader_->take(new_changes());
  }
  /// Each reads its assignment and reports that its workers run.
  int64_t read_assignments() {
    int64_t world = 0;
    for (size_t i = 0; i < requests_.size(); ++i) {
      const HostAssignment assignment =
          host_assignment_from_json(store_->get(keys::assignment(id(i)), soon()));
      world = assignment.world_size;
      JoinRequest& request = requests_[i];
      request.generation = assignment.generation;
      request.last_rank = assignment.node_rank;
      request.num_nodes = assignment.num_nodes;
      request.work = HostWork::kBusy;
      say(i);
    }
    leader_->take(new_changes());
    return world;
  }
  void fail() {
    Failure failure;
    failure.status.code = 1;
    store_->set(keys::failure(requests_[0].generation), to_json(failure), soon());
    leader_->take(new_changes());
  }
  void end_workers() {
    for (size_t i = 0; i < requests_.size(); ++i) {
      requests_[i].work = HostWork::kIdle;
      say(i);
    }
    leader_->take(new_changes());
  }
  void lose_one() {
    store_->erase(keys::agent(id(0)), soon());
    leader_->take(new_changes());
  }
  void replace_one() {
    requests_[0].generation = 0;
    requests_[0].work = HostWork::kIdle;
    say(0);
    leader_->take(new_changes());
  }
  int64_t generation() const {
    return job_record_from_json(store_->get(keys::kRecord, soon())).generation;
  }

 private:
  static Deadline soon() { return Deadline::after(std::chrono::seconds(60)); }
  static std::string id(size_t agent) { return fmt::format("{:016x}", agent); }
  void say(size_t i) { store_->set(keys::agent(id(i)), to_json(requests_[i]), soon()); }
  std::vector<Store::Change> new_changes() {
    const auto changes =
        store_->watch(keys::kLive, version_, Deadline::after(std::chrono::milliseconds(1)));
    version_ = changes.version;
    return changes.changes;
  }

  std::shared_ptr<Store> store_ = make_memory_store();
  MembershipRules rules_;
  std::vector<JoinRequest> requests_;
  std::optional<Leader> leader_;
  uint64_t version_ = 0;
};

template <class Body>
double timed(const char* what, const Body& body) {
  const auto start = Clock::now();
  body();
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  fmt::print("{:<44} {:8.3f} s\n", what, seconds);
  return seconds;
}

int run(int argc, char** argv) {
  const int count = argc > 1 ? std::atoi(argv[1]) : 10000;
  const int ranks = argc > 2 ? std::atoi(argv[2]) : 8;
  if (count < 2 || ranks < 1) throw Error(ErrorCode::kInvalidArgument, "AGENTS RANKS_PER_AGENT");
  const int64_t before = resident_bytes();
  SimulatedAgents agents(count, ranks);
  double total = 0;
  int64_t world = 0;
  agents.begin();
  total += timed("all join, first generation published", [&] { agents.come(); });
  total +=
      timed("all read and confirm their assignments", [&] { world = agents.read_assignments(); });
  const int64_t bytes = (resident_bytes() - before) / count;
  total += timed("a failure; all end their workers; next", [&] {
    agents.fail();
    agents.end_workers();
  });
  total += timed("all read and confirm their assignments", [&] { agents.read_assignments(); });
  total += timed("a host lost; all end their workers", [&] {
    agents.lose_one();
    agents.end_workers();
  });
  total += timed("another joins; next", [&] { agents.replace_one(); });
  fmt::print("{} agents, {} ranks, generation {}: {:.3f} s, {} bytes of memory an agent\n", count,
             world, agents.generation(), total, bytes);
  return 0;
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  return lockstep::run_main("bench_rendezvous", lockstep::run, argc, argv);
}
