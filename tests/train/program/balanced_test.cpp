// Training with `sampler: balanced`.

#include <gtest/gtest.h>

#include "tests/train/program/pictures.h"

namespace lockstep {
namespace {

class BalancedProgram : public PicturesProgram {
 protected:
  /// On one rank, on two, and in parts on both: the steps are the same.
  void expect_same_steps(const std::string& args) const {
    const std::string balanced = args + "train.loader.sampler=balanced ";
    const auto one = train(balanced + "train.ckpt_save_dir=one");
    ASSERT_EQ(one.status, 0) << one.err;
    const auto two = train(balanced + "train.ckpt_save_dir=two", 2);
    ASSERT_EQ(two.status, 0) << two.err;
    const auto steps = steps_of("one");
    EXPECT_EQ(steps_of("two"), steps);
    const auto random = train(args + "train.ckpt_save_dir=random");
    ASSERT_EQ(random.status, 0) << random.err;
    EXPECT_EQ(steps_of("random").size(), steps.size()) << "an epoch has as many samples";
    EXPECT_NE(steps_of("random"), steps);

    const auto begun = train(balanced + "train.ckpt_save_dir=parts train.max_steps=2", 2);
    ASSERT_EQ(begun.status, 0) << begun.err;
    const auto rest = train(balanced + "train.ckpt_save_dir=parts model.resume=True");
    ASSERT_EQ(rest.status, 0) << rest.err;
    EXPECT_EQ(rest.out.find(kChanged), std::string::npos) << rest.out;
    EXPECT_EQ(steps_of("parts"), steps);
  }

  static constexpr auto kChanged =
      "training samples have other names, labels, weights or another order";
};

constexpr auto kArgs =
    "-o scheduler.num_epochs=1 parallel.virtual_ranks=2 system.val_while_train=False ";

TEST_F(BalancedProgram, SmallImagesTrainAndResumeOnAnyNumberOfRanks) {
  expect_same_steps(kArgs);
}

TEST_F(BalancedProgram, AFolderTrainsAndResumesOnAnyNumberOfRanks) {
  write_class_folders(Split::kTrain, "kinds");
  const std::string folder = "    type: ImageFolderDataset\n    data_dir: kinds\n";
  configure(folder, folder);
  expect_same_steps(kArgs);

  // Another sampler within an epoch.
  const std::string args = std::string(kArgs) + "train.ckpt_save_dir=other ";
  const auto before = train(args + "train.loader.sampler=balanced train.max_steps=2");
  ASSERT_EQ(before.status, 0) << before.err;
  const auto after = train(args + "train.max_steps=3 model.resume=True");
  ASSERT_EQ(after.status, 0) << after.err;
  EXPECT_NE(after.out.find(kChanged), std::string::npos) << after.out;
}

TEST_F(BalancedProgram, TheSamplerIsOneOfTwo) {
  const auto refused = train("-o train.loader.sampler=balance");
  EXPECT_EQ(refused.status, 2);
  EXPECT_NE(refused.err.find("train.loader.sampler must be one of random, balanced, not 'balance', "
                             "did you mean 'balanced'?"),
            std::string::npos)
      << refused.err;
}

}  // namespace
}  // namespace lockstep
