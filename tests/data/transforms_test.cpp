#include "lockstep/data/transforms.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "lockstep/error.h"

namespace lockstep {
namespace {

constexpr ImageShape kCifar{3, 32, 32};

std::vector<uint8_t> test_image(const ImageShape& shape) {
  std::vector<uint8_t> image(static_cast<size_t>(shape.numel()));
  for (size_t i = 0; i < image.size(); ++i) image[i] = static_cast<uint8_t>(1 + (i * 7) % 255);
  return image;
}

std::vector<float> transformed(const ImageTransform& transform, const std::vector<uint8_t>& image,
                               int64_t epoch = 0, int64_t index = 0) {
  std::vector<float> out(static_cast<size_t>(transform.output().numel()), -99.0F);
  transform.apply(image, epoch, index, out);
  return out;
}

/// The expected image after crop and flip, pixel by pixel; bytes, 0 for padding.
std::vector<uint8_t> reference(const std::vector<uint8_t>& image, const ImageShape& shape,
                               int64_t size, int64_t top, int64_t left, bool flip) {
  std::vector<uint8_t> out;
  for (int64_t c = 0; c < shape.channels; ++c) {
    for (int64_t y = 0; y < size; ++y) {
      for (int64_t x = 0; x < size; ++x) {
        const int64_t row = y + top;
        const int64_t column = (flip ? size - 1 - x : x) + left;
        const bool in = row >= 0 && row < shape.height && column >= 0 && column < shape.width;
        const int64_t at = (c * shape.height + row) * shape.width + column;
        out.push_back(in ? image[static_cast<size_t>(at)] : 0);
      }
    }
  }
  return out;
}

std::vector<float> as_floats(const std::vector<uint8_t>& bytes) {
  std::vector<float> out;
  for (const uint8_t byte : bytes) out.push_back(static_cast<float>(byte) / 255.0F);
  return out;
}

TEST(ImageTransform, WithoutStepsScalesToOne) {
  const auto image = test_image(kCifar);
  EXPECT_EQ(transformed(ImageTransform({}, kCifar, 1), image), as_floats(image));
}

TEST(ImageTransform, ResizeIsBilinearBetweenTheMiddlesOfPixels) {
  const ImageShape shape{1, 2, 2};
  const std::vector<uint8_t> image = {0, 255, 51, 204};
  const auto out = transformed(ImageTransform({ResizePicture{0, {4, 4}}}, shape, 1), image);
  const std::vector<float> first_row = {0, 0.25F, 0.75F, 1};
  const std::vector<float> second_row = {0.05F, 0.275F, 0.725F, 0.95F};
  ASSERT_EQ(out.size(), 16U);
  for (size_t x = 0; x < 4; ++x) {
    EXPECT_NEAR(out[x], first_row[x], 1e-6);
    EXPECT_NEAR(out[4 + x], second_row[x], 1e-6);
  }
  EXPECT_NEAR(out[12], 0.2, 1e-6);
  EXPECT_NEAR(out[15], 0.8, 1e-6);
}

TEST(ImageTransform, ResizeToTheSameSizeChangesNothing) {
  const auto image = test_image(kCifar);
  EXPECT_EQ(transformed(ImageTransform({ResizePicture{0, {32, 32}}}, kCifar, 1), image),
            as_floats(image));
}

TEST(ImageTransform, ResizeFollowsCropAndComesBeforeNormalize) {
  const auto image = test_image(kCifar);
  const Normalize normalize{{0.5, 0.4, 0.3}, {0.2, 0.3, 0.4}};
  const ImageTransform whole({RandomCrop{16, 4}, ResizePicture{0, {24, 8}}, normalize}, kCifar, 7);
  EXPECT_EQ(whole.output().height, 8);
  EXPECT_EQ(whole.output().width, 24);
  const auto small =
      transformed(ImageTransform({RandomCrop{16, 4}, normalize}, kCifar, 7), image, 3, 5);
  const auto out = transformed(whole, image, 3, 5);
  // Row 0 is halfway between rows 0 and 1 of the crop.
  EXPECT_NEAR(out[0], (small[0] + small[16]) / 2, 1e-5);
}

TEST(ImageTransform, ResizeOfOneNumberIsOfTheShorterSide) {
  const ImageTransform square({RandomCrop{16, 4}, ResizePicture{24, {}}}, kCifar, 7);
  EXPECT_EQ(square.output(), (ImageShape{3, 24, 24}));
  EXPECT_EQ(ImageTransform({ResizePicture{4, {}}}, {3, 2, 3}, 7).output(), (ImageShape{3, 4, 6}));
}

TEST(ImageTransform, TakesListsOfItsStepsInTheirOrder) {
  const RandomCrop crop;
  const RandomHorizontalFlip flip;
  const ResizePicture resize{40, {}};
  const Normalize normalize;
  const auto takes = [](const std::vector<PictureStep>& steps) {
    return ImageTransform::takes(steps);
  };
  EXPECT_TRUE(takes({}));
  EXPECT_TRUE(takes({crop, flip, normalize}));
  EXPECT_TRUE(takes({flip, crop, flip, resize, normalize}));
  EXPECT_TRUE(takes({resize}));
  EXPECT_FALSE(takes({crop, flip, crop})) << "two crops";
  EXPECT_FALSE(takes({resize, crop}));
  EXPECT_FALSE(takes({resize, flip, normalize}));
  EXPECT_FALSE(takes({resize, resize}));
  EXPECT_FALSE(takes({normalize, flip}));
  EXPECT_FALSE(takes({normalize, normalize}));
  const std::vector<PictureStep> others = {
      CenterCrop{},  RandomResizedCrop{},  RandomVerticalFlip{}, ColorJitter{},
      RandAugment{}, TrivialAugmentWide{}, RandomErasing{}};
  for (const auto& other : others) {
    EXPECT_FALSE(takes({other})) << other.index();
    EXPECT_FALSE(takes({crop, flip, other, normalize})) << other.index();
    EXPECT_FALSE(takes({normalize, other})) << other.index();
  }
}

TEST(ImageTransform, CropAndFlipTakeTheirDrawsInOrder) {
  const ImageShape shape{3, 20, 24};
  const auto image = test_image(shape);
  for (const auto& [size, padding] :
       {std::pair<int64_t, int64_t>{20, 4}, {28, 4}, {5, 0}, {9, 9}}) {
    const ImageTransform transform({RandomCrop{size, padding}, RandomHorizontalFlip{}}, shape, 42);
    for (int64_t index = 0; index < 50; ++index) {
      Philox random(42, 3, static_cast<uint64_t>(index));
      const int64_t top =
          random.below(static_cast<uint32_t>(20 + 2 * padding - size + 1)) - padding;
      const int64_t left =
          random.below(static_cast<uint32_t>(24 + 2 * padding - size + 1)) - padding;
      const bool flip = random.uniform() < 0.5;
      ASSERT_EQ(transformed(transform, image, 3, index),
                as_floats(reference(image, shape, size, top, left, flip)))
          << "size " << size << ", top " << top << ", left " << left << ", flip " << flip;
    }
  }
}

TEST(ImageTransform, FlipMayStandBeforeCrop) {
  const auto image = test_image(kCifar);
  const ImageTransform transform({RandomHorizontalFlip{1.0}, RandomCrop{32, 4}}, kCifar, 9);
  Philox random(9, 0, 0);
  random.next();
  const int64_t top = random.below(9) - 4;
  const int64_t left = random.below(9) - 4;
  // A crop of the mirrored image at `left` equals the mirrored crop at -left.
  EXPECT_EQ(transformed(transform, image),
            as_floats(reference(image, kCifar, 32, top, -left, /*flip=*/true)));
}

TEST(ImageTransform, NormalizeIsFloatArithmeticInTorchsOrder) {
  const auto image = test_image(kCifar);
  const Normalize normalize;
  const auto out = transformed(ImageTransform({normalize}, kCifar, 1), image);
  for (size_t i = 0; i < image.size(); ++i) {
    const size_t c = i / 1024;
    const float expected =
        (static_cast<float>(image[i]) / 255.0F - static_cast<float>(normalize.mean[c])) /
        static_cast<float>(normalize.std[c]);
    ASSERT_EQ(out[i], expected);
  }
}

TEST(ImageTransform, PaddingIsBlackBeforeNormalize) {
  const ImageTransform transform({RandomCrop{40, 4}, Normalize{}}, kCifar, 1);
  const auto out = transformed(transform, test_image(kCifar));
  EXPECT_EQ(out.front(), (0.0F - 0.4914F) / 0.2470F);
  EXPECT_EQ(out.back(), (0.0F - 0.4465F) / 0.2616F);
}

TEST(ImageTransform, DependsOnSeedEpochAndSampleAlone) {
  const auto image = test_image(kCifar);
  const std::vector<PictureStep> steps = {RandomCrop{}, RandomHorizontalFlip{}};
  const ImageTransform one(steps, kCifar, 1);
  const ImageTransform same(steps, kCifar, 1);
  const ImageTransform other(steps, kCifar, 2);
  std::set<std::vector<float>> seen;
  int differ = 0;
  for (int64_t index = 0; index < 40; ++index) {
    EXPECT_EQ(transformed(one, image, 5, index), transformed(same, image, 5, index));
    differ += transformed(one, image, 5, index) != transformed(one, image, 6, index) ? 1 : 0;
    differ += transformed(one, image, 5, index) != transformed(other, image, 5, index) ? 1 : 0;
    seen.insert(transformed(one, image, 5, index));
  }
  EXPECT_GT(differ, 70);
  EXPECT_GT(seen.size(), 30u);
}

TEST(ImageTransform, EveryOffsetAndBothSidesOccur) {
  const auto image = test_image(kCifar);
  const ImageTransform transform({RandomCrop{}, RandomHorizontalFlip{}}, kCifar, 3);
  std::set<std::vector<float>> seen;
  for (int64_t index = 0; index < 3000; ++index)
    seen.insert(transformed(transform, image, 0, index));
  EXPECT_EQ(seen.size(), 9u * 9u * 2u);
}

TEST(ImageTransform, FlipFollowsItsProbability) {
  const auto image = test_image(kCifar);
  const ImageTransform never({RandomHorizontalFlip{0}}, kCifar, 3);
  const ImageTransform often({RandomHorizontalFlip{0.8}}, kCifar, 3);
  int flipped = 0;
  for (int64_t index = 0; index < 1000; ++index) {
    EXPECT_EQ(transformed(never, image, 0, index), as_floats(image));
    flipped += transformed(often, image, 0, index) != as_floats(image) ? 1 : 0;
  }
  EXPECT_NEAR(flipped, 800, 60);
}

std::string error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.what();
  }
  return "no error";
}

TEST(ImageTransform, RefusesStepsThatDoNotFit) {
  const auto make = [](std::vector<PictureStep> steps) {
    return error_of([&] { ImageTransform(steps, kCifar, 0); });
  };
  EXPECT_NE(make({RandomCrop{}, RandomCrop{}}).find("need a PicturePipeline"), std::string::npos);
  EXPECT_NE(make({RandomCrop{41, 4}}).find("does not fit"), std::string::npos);
  EXPECT_NE(make({Normalize{{0.5}, {0.5}}}).find("3 channels"), std::string::npos);
  EXPECT_NE(make({Normalize{{0, 0, 0}, {1, 0, 1}}}).find("std is 0"), std::string::npos);
  EXPECT_EQ(make({RandomCrop{40, 4}}), "no error");
}

}  // namespace
}  // namespace lockstep
