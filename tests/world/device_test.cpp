#include "lockstep/world/device.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(Device, CountsAsCudaDoes) {
  const auto count = [](const char* value) {
    return visible_devices({{"CUDA_VISIBLE_DEVICES", value}}).count;
  };
  EXPECT_EQ(count("0,1,2"), 3);
  EXPECT_EQ(count("4, 5"), 2);
  EXPECT_EQ(count(""), 0);
  EXPECT_EQ(count("-1"), 0);
  EXPECT_EQ(count("0,-1,2"), 1);
  EXPECT_EQ(count("NoDevFiles"), 0);
  EXPECT_EQ(count("GPU-8932f937,MIG-2c1"), 2);
  EXPECT_EQ(visible_devices({{"ASCEND_RT_VISIBLE_DEVICES", "4,5,6,7"}}).count, 4);
  EXPECT_EQ(visible_devices({{"PATH", "/bin"}}).variable, "");
}

TEST(Device, IsTheLocalRankAmongTheVisible) {
  const auto index = [](const Environment& environment, int local_rank) {
    return choose_device(visible_devices(environment), local_rank, std::nullopt).index;
  };
  EXPECT_EQ(index({}, 3), 3);
  EXPECT_EQ(index({{"CUDA_VISIBLE_DEVICES", "4,5"}}, 1), 1);
  EXPECT_EQ(index({{"CUDA_VISIBLE_DEVICES", "5"}}, 3), 0);  // srun --gpus-per-task=1
  EXPECT_EQ(index({{"CUDA_VISIBLE_DEVICES", ""}}, 3), -1);
  EXPECT_EQ(index({{"SLURM_STEP_GPUS", "6,7"}}, 1), 1);
}

TEST(Device, SharingIsSaid) {
  const auto shared = choose_device(visible_devices({{"CUDA_VISIBLE_DEVICES", "0,1"}}), 2, {});
  EXPECT_EQ(shared.index, 0);
  EXPECT_NE(shared.warning.find("local rank 2 shares device 0"), std::string::npos);
  EXPECT_EQ(choose_device(visible_devices({{"CUDA_VISIBLE_DEVICES", "0,1"}}), 1, {}).warning, "");
}

TEST(Device, OfTheLauncherWins) {
  EXPECT_EQ(choose_device(visible_devices({}), 0, 4).index, 4);
}

}  // namespace
}  // namespace lockstep
