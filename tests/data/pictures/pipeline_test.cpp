#include "lockstep/data/pictures/pipeline.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <stdexcept>

#include "lockstep/data/pictures/resample.h"
#include "tests/data/pictures/drawn.h"
#include "tests/support/error_of.h"

namespace lockstep {
namespace {

PicturePipeline pipeline_of(const std::vector<PictureStep>& steps, uint64_t seed = 7) {
  return {steps, seed};
}

cv::Mat result(const PicturePipeline& pipeline, const cv::Mat& picture, int64_t index = 0,
               int64_t epoch = 0) {
  return pipeline.apply(picture, epoch, index).pixels;
}

std::vector<float> floats(const PicturePipeline& pipeline, const cv::Mat& picture,
                          int64_t index = 0, int64_t epoch = 0) {
  const auto made = pipeline.apply(picture, epoch, index);
  std::vector<float> planes(3 * made.pixels.total(), -99.0F);
  pipeline.write(made, planes.data());
  return planes;
}

TEST(PicturePipeline, ResizeOfOneNumberIsOfTheShorterSide) {
  const auto pipeline = pipeline_of({ResizePicture{8, {}}});
  EXPECT_EQ(result(pipeline, drawn_picture(20, 15)).size(), cv::Size(10, 8));  // 10.67
  EXPECT_EQ(result(pipeline, drawn_picture(15, 20)).size(), cv::Size(8, 10));
  EXPECT_EQ(bytes_of(result(pipeline, drawn_picture(20, 15))),
            bytes_of(resample(drawn_picture(20, 15), {10, 8})));
  EXPECT_FALSE(pipeline.output());
}

TEST(PicturePipeline, ResizeOfTwoNumbersIsExact) {
  const auto pipeline = pipeline_of({ResizePicture{0, {9, 6}}});
  EXPECT_EQ(result(pipeline, drawn_picture(20, 15)).size(), cv::Size(9, 6));
  EXPECT_EQ(pipeline.output(), cv::Size(9, 6));
}

TEST(PicturePipeline, CenterCropCutsTheMiddleAndPadsWithBlack) {
  const auto pipeline = pipeline_of({CenterCrop{{6, 4}}});
  const cv::Mat large = drawn_picture(11, 9);
  // (9 - 4) / 2 and (11 - 6) / 2 are 2.5, which Python rounds to 2.
  EXPECT_EQ(bytes_of(result(pipeline, large)), bytes_of(large(cv::Rect(2, 2, 6, 4))));
  const cv::Mat out = result(pipeline, drawn_picture(3, 9));
  EXPECT_EQ(out.size(), cv::Size(6, 4));
  EXPECT_EQ(out.at<cv::Vec3b>(0, 0), cv::Vec3b(0, 0, 0));  // one column, and two on the right
  EXPECT_EQ(out.at<cv::Vec3b>(0, 1), drawn_picture(3, 9).at<cv::Vec3b>(2, 0));
  EXPECT_EQ(out.at<cv::Vec3b>(3, 4), cv::Vec3b(0, 0, 0));
}

// The contract that PNG files train as the binary files do.
TEST(PicturePipeline, CropFlipAndNormalizeHaveTheBitsOfImageTransform) {
  const Normalize normalize{{0.4914, 0.4822, 0.4465}, {0.2470, 0.2435, 0.2616}};
  const PicturePipeline pipeline({RandomCrop{32, 4}, RandomHorizontalFlip{}, normalize}, 42);
  const ImageTransform transform({RandomCrop{32, 4}, RandomHorizontalFlip{}, normalize},
                                 {3, 32, 32}, 42);
  for (int index = 0; index < 40; ++index) {
    const cv::Mat picture = drawn_picture(32, 32, index);
    std::vector<uint8_t> planes;
    for (int c = 0; c < 3; ++c) {
      for (size_t i = 0; i < picture.total(); ++i)
        planes.push_back(picture.data[i * 3 + static_cast<size_t>(c)]);
    }
    std::vector<float> expected(planes.size());
    transform.apply(planes, 5, index, expected);
    ASSERT_EQ(floats(pipeline, picture, index, 5), expected) << index;
  }
}

TEST(PicturePipeline, ResizedCropTakesItsPartFromItsDraws) {
  const auto pipeline = pipeline_of({RandomResizedCrop{{7, 5}, {0.2, 0.6}, {0.5, 2}}});
  EXPECT_EQ(pipeline.output(), cv::Size(7, 5));
  const cv::Mat picture = drawn_picture(40, 30);
  for (int64_t index = 0; index < 30; ++index) {
    Philox random(7, 2, static_cast<uint64_t>(index));
    cv::Rect part;
    while (part.empty()) {
      const double area = 1200 * (0.2 + 0.4 * random.uniform());
      const double ratio = std::exp(std::log(0.5) + std::log(4) * random.uniform());
      const auto width = static_cast<int>(std::lround(std::sqrt(area * ratio)));
      const auto height = static_cast<int>(std::lround(std::sqrt(area / ratio)));
      if (width > 40 || height > 30) continue;
      const auto row = random.below(static_cast<uint32_t>(30 - height + 1));
      const auto column = random.below(static_cast<uint32_t>(40 - width + 1));
      part = {static_cast<int>(column), static_cast<int>(row), width, height};
    }
    EXPECT_EQ(bytes_of(result(pipeline, picture, index, 2)),
              bytes_of(resample(picture(part), {7, 5})))
        << index;
  }
}

TEST(PicturePipeline, ResizedCropOfANarrowPictureTakesItsMiddle) {
  const auto pipeline = pipeline_of({RandomResizedCrop{{4, 4}, {0.9, 1}}});
  const cv::Mat picture = drawn_picture(100, 3);
  EXPECT_EQ(bytes_of(result(pipeline, picture)),
            bytes_of(resample(picture(cv::Rect(48, 0, 4, 3)), {4, 4})));  // 3 * 4/3 wide
}

TEST(PicturePipeline, FlipsMirrorWithTheirProbability) {
  const cv::Mat picture = drawn_picture(5, 4);
  cv::Mat mirrored;
  cv::flip(picture, mirrored, 0);
  EXPECT_EQ(bytes_of(result(pipeline_of({RandomVerticalFlip{1}}), picture)), bytes_of(mirrored));
  cv::flip(picture, mirrored, 1);
  EXPECT_EQ(bytes_of(result(pipeline_of({RandomHorizontalFlip{1}}), picture)), bytes_of(mirrored));
  EXPECT_EQ(bytes_of(result(pipeline_of({RandomVerticalFlip{0}}), picture)), bytes_of(picture));
}

TEST(PicturePipeline, ErasingFillsARectangleAfterNormalize) {
  const Normalize to_one{{0, 0, 0}, {1, 1, 1}};
  const auto pipeline =
      pipeline_of({to_one, RandomErasing{1, {0.02, 0.33}, {0.3, 3.3}, {7, 8, 9}}});
  const auto plain = pipeline_of({to_one});
  const cv::Mat picture = drawn_picture(20, 10);
  const auto erased = pipeline.apply(picture, 0, 3).erased;
  ASSERT_TRUE(erased);
  EXPECT_GE(erased->area(), 2);  // 0.02 of 200, but for rounding
  EXPECT_LE(erased->area(), 75);
  const auto out = floats(pipeline, picture, 3);
  const auto expected = floats(plain, picture, 3);
  for (int c = 0; c < 3; ++c) {
    for (int y = 0; y < 10; ++y) {
      for (int x = 0; x < 20; ++x) {
        const auto at = static_cast<size_t>(c * 200 + y * 20 + x);
        const bool inside = erased->contains({x, y});
        EXPECT_EQ(out[at], inside ? static_cast<float>(7 + c) : expected[at]) << c << y << x;
      }
    }
  }
}

TEST(PicturePipeline, ASampleDependsOnSeedEpochAndIndexAlone) {
  const std::vector<PictureStep> steps = {RandomResizedCrop{{8, 8}}, RandomHorizontalFlip{},
                                          ColorJitter{{0.6, 1.4}, {1, 1}, {1, 1}, {-0.1, 0.1}},
                                          RandomErasing{}};
  const auto one = pipeline_of(steps);
  const cv::Mat picture = drawn_picture(40, 30);
  std::set<std::vector<float>> different;
  for (int64_t epoch = 0; epoch < 2; ++epoch) {
    for (int64_t index = 0; index < 8; ++index) {
      const auto out = floats(one, picture, index, epoch);
      EXPECT_EQ(out, floats(pipeline_of(steps), picture, index, epoch));
      different.insert(out);
    }
  }
  EXPECT_EQ(different.size(), 16U);
  EXPECT_NE(floats(one, picture), floats(pipeline_of(steps, 8), picture));
}

std::vector<uint8_t> photo_like_jpeg() {
  cv::Mat bgr;
  cv::resize(drawn_picture(12, 9), bgr, {400, 300}, 0, 0, cv::INTER_CUBIC);
  std::vector<uint8_t> bytes;
  EXPECT_TRUE(cv::imencode(".jpg", bgr, bytes));
  return bytes;
}

TEST(PicturePipeline, AnUndecodedPictureGivesTheSame) {
  const auto bytes = photo_like_jpeg();
  const auto decode = [&](const ocr::ChoosePart& choose) {
    return ocr::decode_part(bytes, choose);
  };
  const cv::Mat whole = ocr::decode_jpeg(bytes, ocr::ImageMode::kRgb, true).value();
  const std::vector<std::vector<PictureStep>> lists = {
      {RandomResizedCrop{{40, 40}}, RandomHorizontalFlip{}},
      {ResizePicture{64, {}}, CenterCrop{{56, 56}}},
      {RandomVerticalFlip{}, RandomResizedCrop{{40, 40}}},
      {}};
  for (const auto& steps : lists) {
    const auto pipeline = pipeline_of(steps);
    for (int64_t index = 0; index < 20; ++index) {
      EXPECT_EQ(bytes_of(pipeline.apply(decode, 1, index).pixels),
                bytes_of(pipeline.apply(whole, 1, index).pixels))
          << index;
    }
  }
}

TEST(PicturePipeline, AReducedPictureHasAtLeastItsResult) {
  const auto bytes = photo_like_jpeg();
  std::vector<int> denominators;
  const auto decode = [&](const ocr::ChoosePart& choose) {
    return ocr::decode_part(bytes, [&](cv::Size size) {
      const auto part = choose(size);
      denominators.push_back(part.denominator);
      return part;
    });
  };
  const cv::Mat whole = ocr::decode_jpeg(bytes, ocr::ImageMode::kRgb, true).value();
  const auto expect_near = [&](const PictureStep& step, int64_t index) {
    const cv::Mat out = PicturePipeline({step}, 7, true).apply(decode, 1, index).pixels;
    const cv::Mat exact = PicturePipeline({step}, 7).apply(whole, 1, index).pixels;
    ASSERT_EQ(out.size(), exact.size());
    EXPECT_LT(cv::norm(out, exact, cv::NORM_L1) / static_cast<double>(3 * exact.total()), 6);
  };
  expect_near(ResizePicture{75, {}}, 0);        // 300 / 4
  expect_near(ResizePicture{76, {}}, 0);        // 300 / 2
  expect_near(ResizePicture{37, {}}, 0);        // 300 / 8
  expect_near(ResizePicture{0, {400, 20}}, 0);  // not at all
  EXPECT_EQ(denominators, (std::vector<int>{4, 2, 8, 1}));
  for (int64_t index = 0; index < 20; ++index) {
    expect_near(RandomResizedCrop{{40, 40}, {0.3, 1}}, index);
  }
  EXPECT_EQ(*std::max_element(denominators.end() - 20, denominators.end()), 4);
}

TEST(PicturePipeline, RefusesStepsInTheWrongOrder) {
  const auto fault = [](const std::vector<PictureStep>& steps) -> std::string {
    return error_of([&] { pipeline_of(steps); }).what();
  };
  EXPECT_EQ(fault({Normalize{}, RandomHorizontalFlip{}}),
            "transform_pipeline: behind Normalize only RandomErasing may follow");
  EXPECT_EQ(fault({RandomErasing{}, Normalize{}}),
            "transform_pipeline: behind RandomErasing nothing may follow");
  EXPECT_NE(fault({Normalize{{0.5}, {1, 1, 1}}}).find("the images have 3 channels"),
            std::string::npos);
}

TEST(PicturePipeline, ACropThatDoesNotFitNamesThePictureSize) {
  const auto pipeline = pipeline_of({RandomCrop{30, 2}});
  EXPECT_EQ(std::string(error_of([&] { result(pipeline, drawn_picture(40, 25)); }).what()),
            "RandomCrop: size 30 does not fit into a picture of 40 x 25 with padding 2");
  EXPECT_EQ(result(pipeline, drawn_picture(40, 26)).size(), cv::Size(30, 30));
}

TEST(PicturePipeline, ResizeLimitsItsResult) {
  const auto pipeline = pipeline_of({ResizePicture{16384, {}}});
  EXPECT_NE(std::string(error_of([&] { result(pipeline, drawn_picture(3000, 1)); }).what())
                .find("Resize: a picture of 3000 x 1 would have 49152000 x 16384 pixels"),
            std::string::npos);
}

TEST(PicturePipeline, AnExceptionThatIsNoErrorHasTheStepsName) {
  const PicturePipeline pipeline({CenterCrop{{2, 2}}, RandomHorizontalFlip{1}}, 7);
  const Undecoded short_of_memory = [](const ocr::ChoosePart&) -> cv::Mat {
    throw std::length_error("no room");
  };
  try {
    pipeline.apply(short_of_memory, 0, 0);
    ADD_FAILURE() << "no failure";
  } catch (const TransformFailed& failure) {
    EXPECT_STREQ(failure.what(), "the transform CenterCrop failed: no room");
  }
}

TEST(PicturePipeline, StepsHaveTheNamesOfTheConfiguration) {
  const std::vector<std::pair<const char*, PictureStep>> named = {
      {"Resize", ResizePicture{}},
      {"CenterCrop", CenterCrop{}},
      {"RandomCrop", RandomCrop{}},
      {"RandomResizedCrop", RandomResizedCrop{}},
      {"RandomHorizontalFlip", RandomHorizontalFlip{}},
      {"RandomVerticalFlip", RandomVerticalFlip{}},
      {"ColorJitter", ColorJitter{}},
      {"RandAugment", RandAugment{}},
      {"TrivialAugmentWide", TrivialAugmentWide{}},
      {"Normalize", Normalize{}},
      {"RandomErasing", RandomErasing{}},
      {"Mine", OwnTransform{"Mine", PlainTransform([](Picture&) {})}}};
  for (const auto& [name, step] : named) EXPECT_EQ(picture_step_name(step), name);
}

}  // namespace
}  // namespace lockstep
