// The cost of making a group: descriptors, requests to the store and keys in it.

#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <map>
#include <numeric>
#include <system_error>
#include <thread>

#include "lockstep/base/literals.h"
#include "lockstep/base/log_sink.h"
#include "lockstep/base/mutex.h"
#include "lockstep/deadline.h"
#include "lockstep/error.h"
#include "lockstep/process_group.h"
#include "tests/comm/support/conformance.h"
#include "tests/comm/support/forked.h"
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

/// The largest number of requests of any rank.
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

// The last rank to come sends a few requests more.
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
      std::vector<std::string> expected;  // number of groups made by each rank
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
  const Shared<std::atomic<bool>> has_said;
  const auto ends = run_rank_processes(2, [&](const World& world) {
    std::string said;
    const auto take = [&](const std::string& line) {
      said += line;
      *has_said = true;
    };
    if (world.rank == 0) set_log_sink(take);
    const auto limit = Deadline::after(std::chrono::seconds(30));
    while (world.rank == 1 && !*has_said && !limit.passed())
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    auto group = ProcessGroup::create(world);
    group.barrier();
    set_log_sink(nullptr);
    require(said == (world.rank == 0 ? "lockstep: waits for rank 1 to come\n" : ""), said);
  });
  EXPECT_EQ(ends, (std::vector<int>{0, 0}));
}

/// Connections with other hosts, and listening ports of this rank.
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

/// Elements of an all_reduce in which each rank of a host carries a part.
constexpr int64_t kCarriedByAll = 60'000;

/// Three hosts of two ranks: a rank has one fellow on each other host.
TEST(Creation, ARankHasAConnectionForEachHostAndMoreOnlyForRanksItTalksTo) {
  const auto ends = run_rank_processes(HostLayout{2, 2, 2}, [](const World& world) {
    const Sockets before = sockets();
    const auto expect = [&](ProcessGroup& group, int least, int most, const std::string& when) {
      group.barrier();  // others' connections arrive here, too
      const Sockets now = sockets();
      const int connections = now.connections - before.connections;
      require(least <= connections && connections <= most,
              fmt::format("{}: {} connections", when, connections));
      require(now.listeners - before.listeners == 1,
              fmt::format("{}: {} listeners", when, now.listeners - before.listeners));
      group.barrier();
    };
    auto group = ProcessGroup::create(world);
    const bool first = world.rank % 2 == 0;  // on its host
    expect(group, first ? 2 : 0, first ? 2 : 0, "a barrier");
    std::vector<float> data(kCarriedByAll);
    group.all_reduce(data.data(), kCarriedByAll, DType::kFloat32, ReduceOp::kSum).wait();
    group.broadcast(data.data(), kCarriedByAll, DType::kFloat32, 3).wait();
    expect(group, 2, 2, "collectives");
    {
      auto here = group.subgroup(world.rank % 2 == 0 ? std::vector{world.rank, world.rank + 1}
                                                     : std::vector{world.rank - 1, world.rank});
      here.barrier();
      expect(group, 2, 2, "with a group of this host");
      auto columns = group.split(world.rank % 2, world.rank);
      expect(group, 2, 2, "with a group of one rank a host that is not used");
      columns->barrier();
      expect(group, 4, 4, "with a group of one rank a host");
    }
    expect(group, 2, 2, "those groups have ended");
    if (world.rank == 0) group.send(data.data(), 10, DType::kFloat32, 3).wait();
    if (world.rank == 3) group.recv(data.data(), 10, DType::kFloat32, 0).wait();
    // One for the message, and one by which the waiting rank saw that the peer lived.
    const bool talks = world.rank == 0 || world.rank == 3;
    expect(group, talks ? 3 : 2, talks ? 4 : 2, "a message");
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

/// Fails while it makes a sub-group, once the others have connected to this rank for it.
class FailsWhenOthersHaveConnected final : public ForwardingStore {
 public:
  explicit FailsWhenOthersHaveConnected(std::shared_ptr<Store> inner)
      : ForwardingStore(std::move(inner)), before_(wires().size()) {}
  std::string get(std::string_view key, Deadline deadline) override {
    if (!key.ends_with("/arrivals")) return ForwardingStore::get(key, deadline);
    const auto limit = Deadline::after(30s);
    while (wires().size() == before_ && !limit.passed()) ::usleep(1000);
    require(wires().size() > before_, "nobody connects");
    throw Error(ErrorCode::kInternal, "no more");
  }

 private:
  const size_t before_;
};

TEST(Creation, AGroupThatCannotBeMadeKeepsNoConnectionOfThoseThatMadeIt) {
  const auto ends = run_rank_processes(HostLayout{1, 1}, [](World world) {
    const size_t before = wires().size();
    if (world.rank == 1) world.store = std::make_shared<FailsWhenOthersHaveConnected>(world.store);
    const auto group = ProcessGroup::create(world, {.timeout = 20s});
    EXPECT_THROW(group.subgroup({0, 1}).barrier(), Error);
    const auto limit = Deadline::after(10s);
    while (wires().size() > before && !limit.passed()) ::usleep(1000);
    require(wires().size() == before, "a connection is kept");
  });
  EXPECT_EQ(ends, (std::vector<int>{0, 0}));
}

/// The targets of this process's descriptors, counted by kind: "socket", "[eventpoll]".
std::map<std::string, int> descriptors() {
  std::map<std::string, int> kinds;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;  // the descriptor that reads the folder
    const auto target = std::filesystem::read_symlink(entry.path(), gone).string();
    if (gone) continue;
    const auto kind = target.substr(target.find("anon_inode:") == 0 ? 11 : 0);
    ++kinds[kind.substr(0, kind.find(":["))];
  }
  return kinds;
}

/// Descriptors opened and closed since `before`; "" if there are none.
std::string changes(const std::map<std::string, int>& before) {
  std::map<std::string, int> since = descriptors();
  for (const auto& [kind, count] : before) since[kind] -= count;
  std::erase_if(since, [](const auto& item) { return item.second == 0; });
  std::vector<std::string> texts;
  for (const auto& [kind, count] : since) texts.push_back(fmt::format("{:+} {}", count, kind));
  return fmt::format("{}", fmt::join(texts, ", "));
}

/// Threads of the group's ranks may still release resources for a moment.
void expect_changes(ProcessGroup& group, const std::map<std::string, int>& before,
                    const std::string& expected, const std::string& when) {
  group.barrier();
  const auto limit = Deadline::after(10s);
  while (changes(before) != expected && !limit.passed()) std::this_thread::yield();
  const std::string now = changes(before);
  require(now == expected, fmt::format("{}: '{}', not '{}'", when, now, expected));
  group.barrier();
}

/// A sub-group has no descriptor before its first use, and within a host none at all.
TEST(Creation, ASubgroupThatIsNotUsedCostsNoDescriptor) {
  constexpr int kGroups = 8;
  const std::string of_links = fmt::format("+{} [eventpoll], +{} socket", kGroups, 2 * kGroups);
  for (const auto& [hosts, used] : {std::pair{HostLayout{3}, std::string()},
                                    {HostLayout{1, 1, 1}, of_links},
                                    {HostLayout{2, 2, 2}, of_links}}) {
    const auto ends = run_rank_processes(hosts, [&, &used = used](const World& world) {
      auto group = ProcessGroup::create(world);
      std::vector<int> all(static_cast<size_t>(world.size));
      std::iota(all.begin(), all.end(), 0);
      {
        auto first = group.subgroup(all);  // state that all groups share exists after it
        first.barrier();
      }
      group.barrier();
      const auto before = descriptors();
      group.barrier();
      std::vector<ProcessGroup> made;
      for (int i = 0; i < kGroups; ++i) {
        made.push_back(i % 2 == 0 ? group.subgroup(all) : *group.split(0, -world.rank));
      }
      expect_changes(group, before, "", "made");
      std::vector<float> data(kCarriedByAll);
      for (auto& part : made) {
        part.all_reduce(data.data(), kCarriedByAll, DType::kFloat32, ReduceOp::kSum).wait();
      }
      expect_changes(group, before, used, "used");
      made.clear();
      expect_changes(group, before, "", "ended");
    });
    EXPECT_EQ(ends, std::vector<int>(ends.size(), 0)) << hosts.size() << " host(s)";
  }
}

/// A rank opens the flight recorders of its host once, for all its groups.
TEST(Creation, AnotherGroupOfTheWorldCostsNoDescriptor) {
  for (const HostLayout& hosts : {HostLayout{3}, HostLayout{1, 1}, HostLayout{2, 2}}) {
    const auto ends = run_rank_processes(hosts, [](const World& world) {
      auto group = ProcessGroup::create(world);
      group.barrier();
      const auto before = descriptors();
      group.barrier();
      {
        const auto other = ProcessGroup::create(world);
        expect_changes(group, before, "", "made");
      }
      expect_changes(group, before, "", "ended");
    });
    EXPECT_EQ(ends, std::vector<int>(ends.size(), 0)) << hosts.size() << " host(s)";
  }
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
