#include "lockstep/comm/sharing.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>

#include "lockstep/comm/process_group.h"
#include "tests/comm/support/conformance.h"
#include "tests/comm/support/forwarding_store.h"
#include "tests/support/temp_folder.h"

namespace lockstep::testing {
namespace {

TEST(Sample, IsKnownByItsMark) {
  const Sample one;
  const Sample other;
  EXPECT_EQ(why_not_shared(one.place()), "");
  // As on a machine with the same ids, which has something else in that place.
  const auto marked = one.place().substr(0, one.place().rfind(' ')) +
                      other.place().substr(other.place().rfind(' '));
  EXPECT_EQ(why_not_shared(marked), "it is on another machine");
  EXPECT_EQ(why_not_shared(""), "it has none");
}

TEST(Sample, NothingButMemoryIsOpened) {
  const UniqueFd file(::open("/dev/null", O_RDWR | O_CLOEXEC));
  EXPECT_EQ(why_not_shared(fmt::format("{} {} 1", ::getpid(), file.get())),
            "it is on another machine");
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

constexpr uid_t kNobody = 65534;

/// Root looks into every process. Another than root stays, and cannot look as it is.
void become(uid_t user) {
  if (::geteuid() != 0) return;
  require(::setgroups(0, nullptr) == 0 && ::setgid(user) == 0 && ::setuid(user) == 0, "setuid");
  ::prctl(PR_SET_DUMPABLE, 1);
}

/// Three ranks use a group in which `num_local` of each share memory; returns what they logged.
std::string share(int num_local, const std::function<void(World& world)>& prepare) {
  const TempFolder folder;
  const std::string path = folder / "log";
  const UniqueFd log(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  const auto ends = run_rank_processes(3, [&](World world) {
    ::dup2(log.get(), STDERR_FILENO);
    prepare(world);
    auto group = ProcessGroup::create(world, {.timeout = std::chrono::seconds(30)});
    require(group.local_size() == num_local, fmt::format("{} share memory", group.local_size()));
    float value = static_cast<float>(world.rank + 1);
    group.all_reduce(&value, 1, DType::kFloat32, ReduceOp::kSum).wait();
    require(value == 6, fmt::format("the sum is {}", value));
    const auto buffer = group.allocate(1 << 20);
    if (world.rank < 2) group.subgroup({0, 1}).barrier();
    group.barrier();
  });
  EXPECT_EQ(ends, (std::vector<int>{0, 0, 0})) << text_of_file(path);
  return text_of_file(path);
}

// A process with a file capability, or one that has changed its user, is such a one: nobody but
// root may look into its /proc/PID/fd.
TEST(Sharing, ARankWhoseDescriptorsAreClosedHandsThemOut) {
  const auto said = share(3, [](World& world) {
    become(kNobody);
    ::prctl(PR_SET_DUMPABLE, world.rank == 0 ? 0 : 1);
  });
  EXPECT_EQ(said.find("cannot share memory"), std::string::npos) << said;
}

void expect_one_warning(const std::string& said) {
  const auto first = said.find("ranks 1, 2 cannot share memory");
  ASSERT_NE(first, std::string::npos) << said;
  EXPECT_EQ(said.find("cannot share memory", first + 30), std::string::npos) << said;
}

/// Tells of other memory than there is: what ranks of a machine with the same ids, a clone, find.
class ClonesStore final : public ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;
  void set(std::string_view key, std::string_view value, Deadline deadline) override {
    std::string card(value);
    const auto sample = card.find("\"sample\":\"");
    if (sample != std::string::npos) card.insert(card.find('"', sample + 10), "0");
    ForwardingStore::set(key, card, deadline);
  }
};

TEST(Sharing, RanksThatCannotShareMemoryTalkByTcp) {
  expect_one_warning(
      share(1, [](World& world) { world.store = std::make_shared<ClonesStore>(world.store); }));
}

TEST(Sharing, RanksOfTwoUsersTalkByTcpAsRoot) {
  if (::geteuid() != 0) GTEST_SKIP() << "root has two users; scripts/test.sh sees to it";
  expect_one_warning(
      share(1, [](World& world) { become(world.rank == 0 ? kNobody : kNobody - 1); }));
}

}  // namespace
}  // namespace lockstep::testing
