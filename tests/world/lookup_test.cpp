#include "lockstep/world/addresses.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <utility>
#include <vector>

#include "lockstep/world.h"
#include "tests/support/error_of.h"

namespace lockstep {
namespace {

using namespace std::chrono_literals;
using Names = std::vector<std::string>;

/// A resolver that knows `name` after so many lookups.
class Resolver {
 public:
  Resolver(std::string name, size_t after) : name_(std::move(name)), after_(after) {}
  NameWait wait(std::chrono::milliseconds report_after) {
    const auto ask = [this](const std::string& name) {
      asked.push_back(name);
      return name == name_ && asked.size() > after_;
    };
    return {ask, report_after, 1ms};
  }
  Names asked;

 private:
  const std::string name_;
  const size_t after_;
};

TEST(WaitForName, AsksUntilTheNameIsThereAndSaysOnceThatItWaits) {
  Resolver resolver("pod-0.jobs", 5);
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(wait_for_name("pod-0.jobs", Deadline::after(600s), resolver.wait(0ms)), "pod-0.jobs");
  const std::string said = ::testing::internal::GetCapturedStderr();
  const std::string line = "waits for the name of host 'pod-0.jobs'";
  EXPECT_NE(said.find(line), std::string::npos) << said;
  EXPECT_EQ(said.find(line), said.rfind(line)) << said;
  EXPECT_EQ(resolver.asked.size(), 7U);
}

TEST(WaitForName, IsSilentWhereTheNameIsThereInTime) {
  Resolver resolver("pod-0.jobs", 3);
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(wait_for_name("pod-0.jobs", Deadline::after(600s), resolver.wait(600s)), "pod-0.jobs");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

TEST(WaitForName, TheShortFormDoes) {
  Resolver resolver("host1", 0);
  EXPECT_EQ(wait_for_name("host1.cluster", Deadline::after(600s), resolver.wait(600s)), "host1");
  EXPECT_EQ(resolver.asked, (Names{"host1.cluster", "host1"}));
}

TEST(WaitForName, IsAskedForOnceMoreAtTheEndAndThenNamed) {
  Resolver late("host1", 1);
  EXPECT_EQ(wait_for_name("host1", Deadline::after(20ms), late.wait(600s)), "host1");
  Resolver never("", 0);
  const Error error =
      error_of([&] { wait_for_name("host1", Deadline::after(20ms), never.wait(600s)); });
  EXPECT_EQ(error.code(), ErrorCode::kTimeout);
  EXPECT_NE(std::string(error.what()).find("host 'host1', where the ranks meet, is still unknown"),
            std::string::npos)
      << error.what();
}

/// Sets the variables of an agent's rank during its lifetime.
class AgentsVariables {
 public:
  explicit AgentsVariables(const std::string& store) {
    for (const auto& [name, value] : all_) ::setenv(name, value, 1);
    ::setenv("LOCKSTEP_STORE", store.c_str(), 1);
  }
  ~AgentsVariables() {
    for (const auto& [name, value] : all_) ::unsetenv(name);
    ::unsetenv("LOCKSTEP_STORE");
  }
  AgentsVariables(const AgentsVariables&) = delete;
  AgentsVariables& operator=(const AgentsVariables&) = delete;

 private:
  const std::vector<std::pair<const char*, const char*>> all_ = {
      {"LOCKSTEP_RANK", "1"},       {"LOCKSTEP_WORLD_SIZE", "2"},
      {"LOCKSTEP_LOCAL_RANK", "0"}, {"LOCKSTEP_LOCAL_WORLD_SIZE", "1"},
      {"LOCKSTEP_NODE_RANK", "1"},  {"LOCKSTEP_NUM_NODES", "2"},
      {"LOCKSTEP_RUN_ID", "night"}, {"LOCKSTEP_RESTART_COUNT", "0"},
      {"LOCKSTEP_SECRET", "s"}};
};

// At each start of the ranks DNS may be away for a moment.
TEST(WaitForName, ARankOfAnAgentWaitsForItsStoresName) {
  const std::string name(64, 'x');  // too long to ask a name server for
  const AgentsVariables variables(name + ":1");
  const Error error = error_of([] { World::join(Deadline::after(20ms)); });
  EXPECT_EQ(error.code(), ErrorCode::kTimeout);
  const std::string line = "host '" + name + "', where the ranks meet, is still unknown";
  EXPECT_NE(std::string(error.what()).find(line), std::string::npos) << error.what();
}

TEST(WaitForName, AnAddressIsNoName) {
  for (const char* address : {"10.1.2.3", "fd00::7"})
    EXPECT_EQ(wait_for_name(address, Deadline::after(0s)), address);
}

}  // namespace
}  // namespace lockstep
