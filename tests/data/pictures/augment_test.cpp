#include "lockstep/data/pictures/augment.h"

#include <map>
#include <set>

#include "lockstep/data/pictures/pipeline.h"
#include "tests/data/pictures/augment_expected.h"
#include "tests/data/pictures/drawn.h"

namespace lockstep {
namespace {

const cv::Size kSizes[] = {{53, 37}, {20, 64}};

/// As augment_reference.py draws it.
cv::Mat narrow_picture(size_t which) {
  cv::Mat picture =
      drawn_picture(kSizes[which].width, kSizes[which].height, static_cast<int>(which));
  for (int y = 0; y < picture.rows; ++y) {
    for (int i = 0; i < picture.cols * 3; ++i) {
      auto& value = picture.ptr(y)[i];
      value = static_cast<uint8_t>(value / 2 + 40);
    }
  }
  return picture;
}

uint64_t fnv_of(const cv::Mat& picture) {
  uint64_t hash = 0xCBF29CE484222325;
  for (const int byte : bytes_of(picture)) {
    hash = (hash ^ static_cast<uint64_t>(byte)) * 0x100000001B3;
  }
  return hash;
}

TEST(Augment, StrengthsAreTorchvisions) {
  for (const auto& row : kExpectedAugments) {
    const auto kind = static_cast<Augment>(row.kind);
    const double strength =
        augment_strength(row.table, kind, row.bin, 31, kSizes[static_cast<size_t>(row.picture)]);
    EXPECT_NEAR(strength, row.strength, 1e-6 * std::max(1.0, row.strength))
        << row.kind << " bin " << row.bin;
    EXPECT_EQ(std::trunc(strength), std::trunc(row.strength)) << row.kind << " bin " << row.bin;
    EXPECT_EQ(has_strength(kind), row.kind >= 1 && row.kind <= 11);
    EXPECT_TRUE(row.sign > 0 || has_sign(kind)) << row.kind;
  }
}

// Every byte is Pillow's: the tolerance is 0.
TEST(Augment, PicturesArePillows) {
  std::set<uint64_t> results;
  for (const auto& row : kExpectedAugments) {
    const auto out = with_augment(static_cast<Augment>(row.kind), row.sign * row.strength,
                                  narrow_picture(static_cast<size_t>(row.picture)));
    EXPECT_EQ(fnv_of(out), row.hash) << "kind " << row.kind << " picture " << row.picture << " bin "
                                     << row.bin << " strength " << row.sign * row.strength;
    results.insert(row.hash);
  }
  EXPECT_GT(results.size(), 150U);
}

TEST(Augment, APartOfALargerPictureWillDo) {
  const cv::Mat large = drawn_picture(40, 30);
  const cv::Mat part = large(cv::Rect(3, 4, 20, 15));
  for (int kind = 0; kind < kNumAugments; ++kind) {
    const double strength = kind == static_cast<int>(Augment::kPosterize) ? 5 : 0.2;
    EXPECT_EQ(bytes_of(with_augment(static_cast<Augment>(kind), strength, part)),
              bytes_of(with_augment(static_cast<Augment>(kind), strength, part.clone())))
        << kind;
  }
}

TEST(Augment, RandAugmentDrawsOperationsAndSigns) {
  const RandAugment augment{3, 12, 31};
  const cv::Mat picture = narrow_picture(0);
  std::map<Augment, int> kinds;
  for (uint64_t index = 0; index < 300; ++index) {
    Philox random(2, 1, index);
    StreamNumbers numbers(random);
    const auto out = augmented(augment, numbers, picture);
    Philox again(2, 1, index);
    cv::Mat expected = picture;
    for (int i = 0; i < 3; ++i) {
      const auto kind = static_cast<Augment>(again.below(14));
      double strength = augment_strength(AugmentTable::kRand, kind, 12, 31, picture.size());
      if (has_sign(kind) && again.below(2) == 1) strength = -strength;
      expected = with_augment(kind, strength, expected);
      ++kinds[kind];
    }
    ASSERT_EQ(bytes_of(out), bytes_of(expected)) << index;
  }
  EXPECT_EQ(kinds.size(), 14U);
}

TEST(Augment, TrivialAugmentDrawsItsStrength) {
  const cv::Mat picture = narrow_picture(1);
  std::set<int64_t> bins;
  for (uint64_t index = 0; index < 300; ++index) {
    Philox random(2, 1, index);
    StreamNumbers numbers(random);
    const auto out = augmented(TrivialAugmentWide{}, numbers, picture);
    Philox again(2, 1, index);
    const auto kind = static_cast<Augment>(again.below(14));
    const int64_t bin = has_strength(kind) ? again.below(31) : 0;
    double strength = augment_strength(AugmentTable::kTrivialWide, kind, bin, 31, picture.size());
    if (has_sign(kind) && again.below(2) == 1) strength = -strength;
    ASSERT_EQ(bytes_of(out), bytes_of(with_augment(kind, strength, picture))) << index;
    bins.insert(bin);
  }
  EXPECT_GT(bins.size(), 25U);
}

TEST(Augment, IsAStepOfThePipeline) {
  const cv::Mat picture = narrow_picture(0);
  for (const auto& step : {PictureStep(RandAugment{}), PictureStep(TrivialAugmentWide{})}) {
    const PicturePipeline pipeline({step}, 5);
    std::set<std::vector<int>> different;
    for (int64_t index = 0; index < 12; ++index) {
      const auto one = bytes_of(pipeline.apply(picture, 1, index).pixels);
      EXPECT_EQ(one, bytes_of(pipeline.apply(picture, 1, index).pixels));
      different.insert(one);
    }
    EXPECT_GT(different.size(), 6U) << picture_step_name(step);
  }
}

}  // namespace
}  // namespace lockstep
