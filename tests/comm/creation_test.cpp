// What making a group takes: descriptors, requests to the store and keys in it.

#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <thread>

#include "lockstep/base/log_sink.h"
#include "lockstep/base/mutex.h"
#include "lockstep/comm/process_group.h"
#include "tests/comm/support/conformance.h"
#include "tests/comm/support/forwarding_store.h"
#include "tests/comm/support/wires.h"

namespace lockstep::testing {
namespace {

class CountingStore final : public ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;
  std::atomic<int> requests = 0;

 private:
  void succeeded() override { ++requests; }
};

struct Requests {
  int first = 0;     ///< For the group of the world.
  int subgroup = 0;  ///< For one of all its ranks.
};

/// The most that a rank asks the store.
Requests requests_for(const HostLayout& hosts) {
  Mutex mutex;
  Requests most;
  run_rank_threads(hosts, [&](World world) {
    const auto store = std::make_shared<CountingStore>(world.store);
    world.store = store;
    Requests own;
    const auto group = ProcessGroup::create(world);
    own.first = store->requests.exchange(0);
    std::vector<int> all;
    for (int rank = 0; rank < world.size; ++rank) all.push_back(rank);
    const auto part = group.subgroup(all);
    own.subgroup = store->requests;
    const MutexLock lock(mutex);
    most.first = std::max(most.first, own.first);
    most.subgroup = std::max(most.subgroup, own.subgroup);
  });
  return most;
}

// The last that comes through has some more to do than the others.
TEST(Creation, RequestsOfARankDoNotGrowWithTheirNumber) {
  for (const auto& [few, many] : {std::pair{HostLayout{3}, HostLayout{12}},
                                  {HostLayout(3, 1), HostLayout(12, 1)},
                                  {HostLayout(2, 2), HostLayout(2, 6)}}) {
    const Requests one = requests_for(few);
    const Requests other = requests_for(many);
    const auto text = fmt::format("hosts of {} and of {} ranks", few, many);
    EXPECT_LE(other.first, one.first + 6) << text;
    EXPECT_LE(other.subgroup, one.subgroup + 6) << text;
    EXPECT_LE(other.first, 30) << text;
  }
}

TEST(Creation, NoKeyOfAGroupIsLeft) {
  for (const HostLayout& hosts : {HostLayout{3}, HostLayout{1, 1, 1}, HostLayout{2, 1}}) {
    run_rank_threads(hosts, [](const World& world) {
      const auto soon = Deadline::after(20s);
      auto group = ProcessGroup::create(world);
      group.barrier();  // all have made it
      const auto keys = world.store->list("comm/", soon);
      std::vector<std::string> expected;  // how many groups each rank has made
      for (int rank = 0; rank < world.size; ++rank) {
        expected.push_back(fmt::format("comm/groups/{}", rank));
      }
      require(keys == expected, fmt::format("after create(): {}", fmt::join(keys, " ")));
      group.barrier();
      {
        auto part = group.subgroup({2, 0, 1});
        part.barrier();
      }
      group.barrier();
      const auto later = world.store->list("comm/", soon);
      require(later == expected, fmt::format("after a sub-group: {}", fmt::join(later, " ")));
      group.barrier();
    });
  }
}

TEST(Creation, WhoHasNotComeIsSaidAfterAWhile) {
  const auto ends = run_rank_processes(2, [](const World& world) {
    std::string said;
    if (world.rank == 0) set_log_sink([&](const std::string& line) { said += line; });
    if (world.rank == 1) std::this_thread::sleep_for(std::chrono::seconds(6));
    auto group = ProcessGroup::create(world);
    group.barrier();
    set_log_sink(nullptr);
    require(said == (world.rank == 0 ? "lockstep: waits for rank 1 to come\n" : ""), said);
  });
  EXPECT_EQ(ends, (std::vector<int>{0, 0}));
}

/// Connections with other hosts, and ports at which this rank listens.
struct Sockets {
  int connections = 0;
  int listeners = 0;
  bool operator==(const Sockets&) const = default;
};

Sockets sockets() {
  Sockets all{static_cast<int>(wires().size()), 0};
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    int listens = 0;
    socklen_t size = sizeof listens;
    const int fd = std::stoi(entry.path().filename().string());
    ::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size);
    int domain = 0;
    ::getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size);
    all.listeners += listens != 0 && domain == AF_INET ? 1 : 0;
  }
  return all;
}

/// Three hosts of two ranks: a rank has one fellow on each other host.
TEST(Creation, ARankHasAConnectionForEachHostAndMoreOnlyForRanksItTalksTo) {
  const auto ends = run_rank_processes(HostLayout{2, 2, 2}, [](const World& world) {
    const Sockets before = sockets();
    const auto expect = [&](ProcessGroup& group, int least, int most, const std::string& when) {
      group.barrier();  // what others make comes here, too
      const Sockets now = sockets();
      const int connections = now.connections - before.connections;
      require(least <= connections && connections <= most,
              fmt::format("{}: {} connections", when, connections));
      require(now.listeners - before.listeners == 1,
              fmt::format("{}: {} listeners", when, now.listeners - before.listeners));
      group.barrier();
    };
    auto group = ProcessGroup::create(world);
    std::vector<float> data(6000);
    group.all_reduce(data.data(), 6000, DType::kFloat32, ReduceOp::kSum).wait();
    group.broadcast(data.data(), 6000, DType::kFloat32, 3).wait();
    expect(group, 2, 2, "collectives");
    {
      auto here = group.subgroup(world.rank % 2 == 0 ? std::vector{world.rank, world.rank + 1}
                                                     : std::vector{world.rank - 1, world.rank});
      here.barrier();
      expect(group, 2, 2, "with a group of this host");
      auto columns = group.split(world.rank % 2, world.rank);
      columns->barrier();
      expect(group, 4, 4, "with a group of one rank a host");
    }
    expect(group, 2, 2, "those groups have ended");
    if (world.rank == 0) group.send(data.data(), 10, DType::kFloat32, 3).wait();
    if (world.rank == 3) group.recv(data.data(), 10, DType::kFloat32, 0).wait();
    // One for the letter, and one by which who had to wait for it knew that the peer lives.
    const bool talks = world.rank == 0 || world.rank == 3;
    expect(group, talks ? 3 : 2, talks ? 4 : 2, "a letter");
    std::vector<float> out(6000);
    group.all_to_all(data.data(), out.data(), 1000, DType::kFloat32).wait();
    expect(group, (talks ? 3 : 2) + 4, (talks ? 4 : 2) + 4, "all_to_all");
    group.destroy();
    const Sockets after = sockets();
    require(after == before, fmt::format("left: {} connections, {} listeners",
                                         after.connections - before.connections,
                                         after.listeners - before.listeners));
  });
  EXPECT_EQ(ends, (std::vector<int>(6, 0)));
}

TEST(Creation, RanksMayOpenAsManyFilesAsTheHardLimitAllows) {
  const auto ends = run_rank_processes(2, [](const World& world) {
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = 64;
    require(::setrlimit(RLIMIT_NOFILE, &limit) == 0, "setrlimit");
    const auto group = ProcessGroup::create(world);
    ::getrlimit(RLIMIT_NOFILE, &limit);
    require(limit.rlim_cur == limit.rlim_max, "the soft limit is below the hard one");
  });
  EXPECT_EQ(ends, (std::vector<int>{0, 0}));
}

}  // namespace
}  // namespace lockstep::testing
