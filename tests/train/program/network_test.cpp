// Training of a network by name.

#include <gtest/gtest.h>

#include "tests/train/program/program.h"

namespace lockstep {
namespace {

class NetworkProgram : public Program {
 protected:
  void SetUp() override {
    Program::SetUp();
    write_file_atomically(folder_ / "c.yaml", config_of("network: {name: efficientnet_b0}"));
  }
  std::string weights_of(const std::string& run) const {
    return read_file(folder_ / run / "latest/model.safetensors");
  }
};

// Dropout and stochastic depth draw random numbers in each step.
TEST_F(NetworkProgram, HasTheSameBitsOnOneRankAndOnTwo) {
  const std::string args = "-o parallel.virtual_ranks=2 train.max_steps=2 train.ckpt_save_dir=";
  for (const int ranks : {1, 2}) {
    const auto outcome = train(args + std::to_string(ranks), ranks);
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_NE(outcome.out.find("Model: efficientnet_b0"), std::string::npos) << outcome.out;
  }
  EXPECT_EQ(weights_of("1"), weights_of("2"));
}

TEST_F(NetworkProgram, IsNamedRight) {
  const auto outcome = train("-o model.network.name=efficientnet_b1");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_NE(outcome.err.find("not 'efficientnet_b1', did you mean 'efficientnet_b0'?"),
            std::string::npos)
      << outcome.err;
}

}  // namespace
}  // namespace lockstep
