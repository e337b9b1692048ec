#include "lockstep/comm/native/shm/barrier.h"

#include <gtest/gtest.h>

#include <vector>

#include "lockstep/base/literals.h"
#include "lockstep/comm/native/shm/cpu_set.h"
#include "lockstep/comm/native/shm/segment.h"

namespace lockstep::shm {
namespace {

TEST(CpuSet, KnowsTheCpusOfTheLargestHosts) {
  CpuSet one{};
  one.add(std::vector<int>{0, 63, 1023, 1024, kMaxCpus - 1});
  CpuSet two{};
  two.add(std::vector<int>{1, 1024, 4096});
  EXPECT_EQ(one.count(), 5);
  one.add(two);
  EXPECT_EQ(one.count(), 7);
  one.add(two);
  EXPECT_EQ(one.count(), 7);
}

// A wait that times out, looks for late ranks, and finds none any more.
TEST(Barrier, WhoComesAtTheLastMomentIsNotLate) {
  const int64_t bytes = Control::control_bytes(1);
  const UniqueFd fd = make_memory(bytes);
  const Mapping memory(fd.get(), bytes);
  GroupSpec spec;
  spec.world_ranks = {0};
  Barrier barrier(spec, Control(memory.data(), 1));
  SharedEvent event;
  int looks = 0;
  const auto has_come = [&] { return ++looks > 2; };
  EXPECT_TRUE(barrier.wait(
      event, has_come, [] { return std::vector<int>(); },
      [] {
        return WaitReason{[] { return std::string("barrier #1"); }, 1};
      },
      Waiting{Deadline::after(0s), false}));
  EXPECT_GT(looks, 2);
}

}  // namespace
}  // namespace lockstep::shm
