#include "lockstep/parallel/kernel_choices.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>

#include <cstdlib>

#include "lockstep/distributed_data_parallel.h"
#include "tests/support/ranks.h"

namespace lockstep {
namespace {

TEST(KernelChoices, OfThisProcess) {
  at::set_num_threads(1);
  const auto choices = kernel_choices();
  EXPECT_EQ(choices.at("intra-op threads"), "1");
  EXPECT_NE(choices.at("libtorch's instruction set"), "unknown");
}

TEST(KernelChoices, DifferencesNameValuesAndRanks) {
  EXPECT_EQ(kernel_difference({}), "");
  EXPECT_EQ(kernel_difference({{{"A", "1"}}, {{"A", "1"}}}), "");
  EXPECT_EQ(kernel_difference({{{"A", "1"}, {"B", "x"}},
                               {{"A", "1"}},
                               {{"A", "2"}, {"B", "x"}},
                               {{"A", "1"}, {"B", "x"}}}),
            "A: 1 on 0, 1, 3, 2 on 2; B: not set on 1, x on 0, 2, 3");
}

/// Standard error of a job of three ranks that makes two models, with `variable` in the environment
/// of the last rank.
std::string said_by_a_job(const char* variable) {
  ::testing::internal::CaptureStderr();
  const auto ends = testing::run_rank_processes(
      {3},
      [&](World world) {
        if (world.rank == 2) ::setenv(variable, "OfTheTest", 1);
        auto group = ProcessGroup::create(world);
        for (int i = 0; i < 2; ++i) {
          const DistributedDataParallel model(torch::nn::Linear(2, 2), group);
        }
      },
      std::chrono::seconds(60));
  for (const int end : ends) EXPECT_EQ(end, 0);
  return ::testing::internal::GetCapturedStderr();
}

TEST(KernelChoices, RanksThatDifferAreToldOfOnce) {
  const std::string log = said_by_a_job("OPENBLAS_CORETYPE");
  const auto at = log.find("ranks compute with different kernels");
  ASSERT_NE(at, std::string::npos) << log;
  EXPECT_NE(log.find("OPENBLAS_CORETYPE: "), std::string::npos) << log;
  EXPECT_NE(log.find("OfTheTest on 2"), std::string::npos) << log;
  EXPECT_EQ(log.find("different kernels", at + 40), std::string::npos) << log;
  EXPECT_EQ(said_by_a_job("LOCKSTEP_OTHER").find("different kernels"), std::string::npos);
}

}  // namespace
}  // namespace lockstep
