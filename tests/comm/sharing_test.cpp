#include "lockstep/comm/bootstrap/sharing.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/comm/native/shm/fd_server.h"
#include "lockstep/process_group.h"
#include "lockstep/world/host_id.h"
#include "tests/comm/support/conformance.h"
#include "tests/comm/support/forwarding_store.h"
#include "tests/support/namespaces.h"
#include "tests/support/temp_folder.h"

namespace lockstep::testing {
namespace {

TEST(Sample, IsKnownByItsMark) {
  const Sample one;
  const Sample other;
  EXPECT_EQ(why_not_shared(one.place()), "");
  // As on a machine with the same ids but another process at that place.
  const auto marked =
      other.place().substr(0, other.place().find(' ')) + one.place().substr(one.place().find(' '));
  EXPECT_EQ(why_not_shared(marked), "it is on another machine");
  EXPECT_EQ(why_not_shared(""), "it has none");
}

TEST(Sample, NothingButMemoryIsOpened) {
  const UniqueFd file(::open("/dev/null", O_RDWR | O_CLOEXEC));
  const auto server = shm::start_fd_server();
  const auto why = why_not_shared("1 " + to_string(shm::to_remote(file.get())));
  EXPECT_NE(why.find("No such file"), std::string::npos) << why;
}

TEST(Hosts, WhoIsApartIsAHostOfItsOwn) {
  const std::vector<std::string> ids = {"a", "b", "a", "b", "a"};
  EXPECT_EQ(leaders_of(ids), (std::vector<int>{0, 1, 0, 1, 0}));
  const auto settled = settled_hosts(ids, {2, 4});
  EXPECT_EQ(leaders_of(settled), (std::vector<int>{0, 1, 2, 1, 4}));
}

std::string text_of_file(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

/// Not "nobody", which in a container may be any user.
constexpr uid_t kOther = 60'000;

/// Root can read any process. Any other user stays, and has no access.
void become(uid_t user) {
  if (::geteuid() != 0) return;
  require(::setgroups(0, nullptr) == 0 && ::setgid(user) == 0 && ::setuid(user) == 0, "setuid");
  ::prctl(PR_SET_DUMPABLE, 1);
}

/// An offered message from each rank to the next, if a rank may read another's memory.
void pass_on(ProcessGroup& group, int rank) {
  constexpr int64_t kCount = 1 << 20;
  std::vector<float> sent(kCount, static_cast<float>(rank)), received(kCount);
  auto send = group.send(sent.data(), kCount, DType::kFloat32, (rank + 1) % 3);
  group.recv(received.data(), kCount, DType::kFloat32, (rank + 2) % 3).wait();
  send.wait();
  require(received == std::vector<float>(kCount, static_cast<float>((rank + 2) % 3)), "a message");
}

/// Three ranks use a group in which `num_local` of each share memory; returns their logs. `before`
/// runs before they connect, and may change their state.
std::string share(int num_local, const std::function<void(World& world)>& prepare,
                  const RankBody& before = {}) {
  const TempFolder folder;
  const std::string path = folder / "log";
  const UniqueFd log(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  const auto body = [&](World world) {
    ::dup2(log.get(), STDERR_FILENO);
    prepare(world);
    auto group = ProcessGroup::create(world, {.timeout = std::chrono::seconds(30)});
    require(group.local_size() == num_local, fmt::format("{} share memory", group.local_size()));
    float value = static_cast<float>(world.rank + 1);
    group.all_reduce(&value, 1, DType::kFloat32, ReduceOp::kSum).wait();
    require(value == 6, fmt::format("the sum is {}", value));
    const auto buffer = group.allocate(1 << 20);
    if (world.rank < 2) group.subgroup({0, 1}).barrier();
    pass_on(group, world.rank);
    group.barrier();
  };
  const auto ends = run_rank_processes(HostLayout{3}, body, std::chrono::seconds(60), {}, before);
  EXPECT_EQ(ends, (std::vector<int>{0, 0, 0})) << text_of_file(path);
  return text_of_file(path);
}

void expect_no_warning(const std::string& said) {
  EXPECT_EQ(said.find("cannot share memory"), std::string::npos) << said;
}

// Such as a process with a file capability, or one that has changed its user: only root may read
// its /proc/PID/fd.
TEST(Sharing, ARankWhoseDescriptorsAreClosedHandsThemOut) {
  const auto said = share(3, [](World& world) {
    become(kOther);
    ::prctl(PR_SET_DUMPABLE, world.rank == 0 ? 0 : 1);
  });
  expect_no_warning(said);
}

void expect_one_warning(const std::string& said) {
  const auto first = said.find("ranks 1, 2 cannot share memory");
  ASSERT_NE(first, std::string::npos) << said;
  EXPECT_EQ(said.find("cannot share memory", first + 30), std::string::npos) << said;
}

/// Announces memory that does not exist: ranks of a cloned machine with the same ids find that.
class ClonesStore final : public ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;
  void set(std::string_view key, std::string_view value, Deadline deadline) override {
    std::string card(value);
    const auto sample = card.find("\"sample\":\"");
    const bool is_own = !key.ends_with("/members");  // that key holds copies of all cards
    if (is_own && sample != std::string::npos)
      card[sample + 10] = card[sample + 10] == '1' ? '2' : '1';
    ForwardingStore::set(key, card, deadline);
  }
};

TEST(Sharing, RanksThatCannotShareMemoryTalkByTcp) {
  expect_one_warning(
      share(1, [](World& world) { world.store = std::make_shared<ClonesStore>(world.store); }));
}

TEST(Sharing, RanksOfTwoUsersTalkByTcpAsRoot) {
  if (::geteuid() != 0) GTEST_SKIP() << "root has two users; scripts/test.sh sees to it";
  expect_one_warning(share(1, [](World& world) { become(world.rank == 0 ? kOther : kOther - 1); }));
}

// Root may open the other's memory, but not the reverse.
TEST(Sharing, RanksOfAUserAndOfRootTalkByTcpAsRoot) {
  if (::geteuid() != 0) GTEST_SKIP() << "root has two users; scripts/test.sh sees to it";
  expect_one_warning(share(1, [](World& world) {
    if (world.rank == 0) become(kOther);
  }));
}

class Namespaces : public ::testing::Test {
 protected:
  void SetUp() override { LOCKSTEP_NEED_NAMESPACES(); }
};

void propose_what_is_true(World& world) {
  world.host_id = this_host_id();
}

TEST_F(Namespaces, RanksInUserNamespacesOfTheirOwnShareMemoryAsRoot) {
  expect_no_warning(share(3, propose_what_is_true, [](const World& world) {
    if (world.rank > 0) enter_user_namespace();
  }));
}

TEST_F(Namespaces, TheFirstRankOfAHostMayBeTheOneInAUserNamespaceAsRoot) {
  expect_no_warning(share(3, propose_what_is_true, [](const World& world) {
    if (world.rank == 0) enter_user_namespace();
  }));
}

// Both have pid 1, and their /proc is that of rank 0, or their own.
TEST_F(Namespaces, RanksInPidNamespacesOfTheirOwnShareMemoryAsRoot) {
  expect_no_warning(share(3, propose_what_is_true, [](const World& world) {
    if (world.rank == 0) return;
    enter_user_namespace(CLONE_NEWPID | CLONE_NEWNS);
    enter_pid_namespace();
    // Not allowed in containers that hide parts of /proc.
    if (world.rank == 2) ::mount("proc", "/proc", "proc", 0, nullptr);
  }));
}

// All users without a number in a namespace look alike.
TEST_F(Namespaces, ARankWithoutANumberForItsUserTalksByTcpAsRoot) {
  const auto said = share(1, propose_what_is_true, [](const World& world) {
    if (world.rank > 0) require(::unshare(CLONE_NEWUSER) == 0, "unshare");
  });
  expect_one_warning(said);
}

TEST_F(Namespaces, RanksInNetworkNamespacesOfTheirOwnAreOtherHostsAsRoot) {
  const auto own = this_host_id();
  const pid_t other = ::fork();
  if (other == 0) {
    enter_user_namespace(CLONE_NEWNET);
    ::_exit(this_host_id() == own ? 1 : 0);
  }
  int status = -1;
  ::waitpid(other, &status, 0);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace lockstep::testing
