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

using Args = std::map<std::string, std::vector<double>>;

PicturePipeline pipeline_of(const std::vector<TransformSpec>& specs, uint64_t seed = 7) {
  std::vector<PictureStep> steps;
  for (const auto& spec : specs) steps.push_back(make_picture_step(spec));
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

std::string fault_of(const std::string& name, const Args& args) {
  return error_of([&] { make_picture_step({name, args}); }).what();
}

TEST(PicturePipeline, ResizeOfOneNumberIsOfTheShorterSide) {
  const auto pipeline = pipeline_of({{"Resize", {{"size", {8}}}}});
  EXPECT_EQ(result(pipeline, drawn_picture(20, 15)).size(), cv::Size(10, 8));  // 10.67
  EXPECT_EQ(result(pipeline, drawn_picture(15, 20)).size(), cv::Size(8, 10));
  EXPECT_EQ(bytes_of(result(pipeline, drawn_picture(20, 15))),
            bytes_of(resample(drawn_picture(20, 15), {10, 8})));
  EXPECT_FALSE(pipeline.output());
}

TEST(PicturePipeline, ResizeOfTwoNumbersIsExact) {
  const auto pipeline = pipeline_of({{"Resize", {{"size", {6, 9}}}}});
  EXPECT_EQ(result(pipeline, drawn_picture(20, 15)).size(), cv::Size(9, 6));
  EXPECT_EQ(pipeline.output(), cv::Size(9, 6));
}

TEST(PicturePipeline, CenterCropCutsTheMiddleAndPadsWithBlack) {
  const auto pipeline = pipeline_of({{"CenterCrop", {{"size", {4, 6}}}}});
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
  const auto pipeline = pipeline_of(
      {{"RandomResizedCrop", {{"size", {5, 7}}, {"scale", {0.2, 0.6}}, {"ratio", {0.5, 2}}}}});
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
  const auto pipeline = pipeline_of({{"RandomResizedCrop", {{"size", {4}}, {"scale", {0.9, 1}}}}});
  const cv::Mat picture = drawn_picture(100, 3);
  EXPECT_EQ(bytes_of(result(pipeline, picture)),
            bytes_of(resample(picture(cv::Rect(48, 0, 4, 3)), {4, 4})));  // 3 * 4/3 wide
}

TEST(PicturePipeline, FlipsMirrorWithTheirProbability) {
  const cv::Mat picture = drawn_picture(5, 4);
  cv::Mat mirrored;
  cv::flip(picture, mirrored, 0);
  EXPECT_EQ(bytes_of(result(pipeline_of({{"RandomVerticalFlip", {{"p", {1}}}}}), picture)),
            bytes_of(mirrored));
  cv::flip(picture, mirrored, 1);
  EXPECT_EQ(bytes_of(result(pipeline_of({{"RandomHorizontalFlip", {{"prob", {1}}}}}), picture)),
            bytes_of(mirrored));
  EXPECT_EQ(bytes_of(result(pipeline_of({{"RandomVerticalFlip", {{"prob", {0}}}}}), picture)),
            bytes_of(picture));
}

TEST(PicturePipeline, ErasingFillsARectangleAfterNormalize) {
  const auto pipeline = pipeline_of({{"Normalize", {{"mean", {0, 0, 0}}, {"std", {1, 1, 1}}}},
                                     {"RandomErasing", {{"p", {1}}, {"value", {7, 8, 9}}}}});
  const auto plain = pipeline_of({{"Normalize", {{"mean", {0, 0, 0}}, {"std", {1, 1, 1}}}}});
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
  const std::vector<TransformSpec> specs = {
      {"RandomResizedCrop", {{"size", {8}}}},
      {"RandomHorizontalFlip", {}},
      {"ColorJitter", {{"brightness", {0.4}}, {"hue", {0.1}}}},
      {"RandomErasing", {}}};
  const auto one = pipeline_of(specs);
  const cv::Mat picture = drawn_picture(40, 30);
  std::set<std::vector<float>> different;
  for (int64_t epoch = 0; epoch < 2; ++epoch) {
    for (int64_t index = 0; index < 8; ++index) {
      const auto out = floats(one, picture, index, epoch);
      EXPECT_EQ(out, floats(pipeline_of(specs), picture, index, epoch));
      different.insert(out);
    }
  }
  EXPECT_EQ(different.size(), 16U);
  EXPECT_NE(floats(one, picture), floats(pipeline_of(specs, 8), picture));
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
  const std::vector<std::vector<TransformSpec>> lists = {
      {{"RandomResizedCrop", {{"size", {40}}}}, {"RandomHorizontalFlip", {}}},
      {{"Resize", {{"size", {64}}}}, {"CenterCrop", {{"size", {56}}}}},
      {{"RandomVerticalFlip", {}}, {"RandomResizedCrop", {{"size", {40}}}}},
      {}};
  for (const auto& specs : lists) {
    const auto pipeline = pipeline_of(specs);
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
  const auto fault = [](const std::vector<TransformSpec>& specs) -> std::string {
    return error_of([&] { pipeline_of(specs); }).what();
  };
  EXPECT_EQ(fault({{"Normalize", {}}, {"RandomHorizontalFlip", {}}}),
            "transform_pipeline: behind Normalize only RandomErasing may follow");
  EXPECT_EQ(fault({{"RandomErasing", {}}, {"Normalize", {}}}),
            "transform_pipeline: behind RandomErasing nothing may follow");
  EXPECT_NE(fault({{"Normalize", {{"mean", {0}}}}}).find("the images have 3 channels"),
            std::string::npos);
}

TEST(PicturePipeline, ACropThatDoesNotFitNamesThePictureSize) {
  const auto pipeline = pipeline_of({{"RandomCrop", {{"size", {30}}, {"padding", {2}}}}});
  EXPECT_EQ(std::string(error_of([&] { result(pipeline, drawn_picture(40, 25)); }).what()),
            "RandomCrop: size 30 does not fit into a picture of 40 x 25 with padding 2");
  EXPECT_EQ(result(pipeline, drawn_picture(40, 26)).size(), cv::Size(30, 30));
}

TEST(PicturePipeline, ResizeLimitsItsResult) {
  const auto pipeline = pipeline_of({{"Resize", {{"size", {16384}}}}});
  EXPECT_NE(std::string(error_of([&] { result(pipeline, drawn_picture(3000, 1)); }).what())
                .find("Resize: a picture of 3000 x 1 would have 49152000 x 16384 pixels"),
            std::string::npos);
}

TEST(PictureSteps, ImpossibleArgumentsAreOneLine) {
  EXPECT_EQ(fault_of("Resize", {}),
            "Resize: size must be one whole number or [height, width], each from 1 to 16384");
  EXPECT_EQ(fault_of("CenterCrop", {{"size", {0}}}),
            "CenterCrop: size must be one whole number or [height, width], each from 1 to 16384");
  EXPECT_NE(fault_of("CenterCrp", {}).find("did you mean 'CenterCrop'?"), std::string::npos);
  EXPECT_NE(fault_of("Resize", {{"size", {8}}, {"sise", {8}}}).find("did you mean 'size'?"),
            std::string::npos);
  EXPECT_EQ(fault_of("RandomResizedCrop", {{"size", {8}}, {"scale", {0.5, 1.5}}}),
            "RandomResizedCrop: scale must be at most 1: shares of the picture's area");
  EXPECT_EQ(fault_of("RandomResizedCrop", {{"size", {8}}, {"ratio", {2, 1}}}),
            "RandomResizedCrop: ratio must be two numbers from 1e-06, the larger one last");
  EXPECT_EQ(fault_of("RandomErasing", {{"p", {2}}}), "RandomErasing: p is 2; it must be in [0, 1]");
  EXPECT_EQ(fault_of("RandomErasing", {{"value", {1, 2}}}),
            "RandomErasing: value must be one number, or one for each of 3 channels");
  EXPECT_EQ(fault_of("ColorJitter", {{"hue", {0.6}}}),
            "ColorJitter: hue must be one number, or two in ascending order from -0.5 to 0.5");
  EXPECT_EQ(fault_of("ColorJitter", {{"contrast", {-1}}}),
            "ColorJitter: contrast must not be below 0");
}

TEST(PictureSteps, JitterOfOneNumberIsARangeAroundNoChange) {
  const auto step = make_picture_step(
      {"ColorJitter",
       {{"brightness", {0.4}}, {"contrast", {2}}, {"hue", {0.1}}, {"saturation", {0.5, 0.9}}}});
  const auto& jitter = std::get<ColorJitter>(step);
  EXPECT_EQ(jitter.brightness, std::pair(0.6, 1.4));
  EXPECT_EQ(jitter.contrast, std::pair(0.0, 3.0));
  EXPECT_EQ(jitter.saturation, std::pair(0.5, 0.9));
  EXPECT_EQ(jitter.hue, std::pair(-0.1, 0.1));
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

TEST(PictureSteps, HaveTheNamesOfTheConfiguration) {
  for (const auto& name : picture_step_names()) {
    const bool sized = name.ends_with("Crop") || name == "Resize";
    const auto step = make_picture_step({name, sized ? Args{{"size", {4}}} : Args{}});
    EXPECT_EQ(picture_step_name(step), name == "NormalizeImage" ? "Normalize" : name);
  }
}

}  // namespace
}  // namespace lockstep
