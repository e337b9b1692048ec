// Transforms of a program's own on pictures of text.

#include "lockstep/ocr/transforms/own_pixels.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "lockstep/base/transform_failed.h"
#include "lockstep/ocr/transforms/pipeline.h"
#include "tests/data/errors.h"
#include "tests/ocr/transforms/pictures.h"

namespace lockstep::ocr {
namespace {

using testing::error_of;

Sample made_by(const std::vector<Transform>& transforms) {
  Sample sample = scene();
  Pipeline(transforms, 9, true).apply(sample, 3, 5);
  return sample;
}

TEST(OwnPixels, AreRgbWhateverTheOrderOfThePicture) {
  for (const bool bgr : {true, false}) {
    const OwnPixels mark{"Mark", bgr,
                         [](std::span<uint8_t> pixels, int width, int height, Philox&) {
                           EXPECT_EQ(width, 320);
                           EXPECT_EQ(height, 240);
                           EXPECT_EQ(pixels.size(), 3U * 320 * 240);
                           pixels[3 * (320 + 2)] = 7;  // red of column 2, row 1
                         }};
    const DecodeImage decode{.img_mode = bgr ? ImageMode::kBgr : ImageMode::kRgb};
    cv::Mat expected = made_by({decode}).image;
    expected.at<cv::Vec3b>(1, 2)[bgr ? 2 : 0] = 7;
    const Sample marked = made_by({decode, DetLabelEncode{}, mark});
    EXPECT_EQ(cv::norm(marked.image, expected, cv::NORM_INF), 0);
    EXPECT_EQ(marked.regions.size(), 3U);
  }
}

TEST(OwnPixels, OfAPartOfAPictureAreWithoutGaps) {
  const OwnPixels count{"Count", false,
                        [](std::span<uint8_t> pixels, int width, int height, Philox&) {
                          EXPECT_EQ(pixels.size(), static_cast<size_t>(3 * width * height));
                          for (uint8_t& byte : pixels) byte = 1;
                        }};
  const cv::Mat whole = gradient(8, 8);
  Sample sample;
  sample.image = whole(cv::Rect(2, 1, 5, 4));
  Philox draws(1, 2, 3);
  change_pixels(count, sample, draws);
  EXPECT_EQ(cv::norm(sample.image, cv::Mat(4, 5, CV_8UC3, cv::Scalar::all(1)), cv::NORM_INF), 0);
  EXPECT_EQ(cv::norm(whole, gradient(8, 8), cv::NORM_INF), 0) << "the rest stays";
}

TEST(OwnPixels, DrawFromTheStreamOfTheirPlace) {
  std::vector<uint32_t> words;
  const OwnPixels draws{"Draws", true, [&](std::span<uint8_t>, int, int, Philox& stream) {
                          words.push_back(stream.next());
                        }};
  made_by({DecodeImage{}, draws, RandomColorAdjust{}, draws});
  const SampleDraws expected{9, 3, 5};
  EXPECT_EQ(words, (std::vector<uint32_t>{expected.at(1).next(), expected.at(3).next()}));
}

TEST(OwnPixels, NeedBytes) {
  const OwnPixels nothing{"Nothing", true, [](std::span<uint8_t>, int, int, Philox&) {}};
  EXPECT_EQ(error_of(ErrorCode::kInvalidArgument,
                     [&] {
                       made_by({DecodeImage{}, NormalizeImage{}, nothing});
                     }),
            "scene.jpg: Nothing: needs a picture of 8-bit colours");
}

TEST(Pipeline, AnExceptionNamesSampleAndTransform) {
  const OwnPixels failing{"Mine", true, [](std::span<uint8_t>, int, int, Philox&) {
                            throw std::out_of_range("no such row");
                          }};
  Sample sample = scene();
  sample.label_source = "gt.txt:17";
  try {
    Pipeline({DecodeImage{}, failing}, 9, true).apply(sample, 3, 5);
    ADD_FAILURE() << "no failure";
  } catch (const TransformFailed& failure) {
    EXPECT_STREQ(failure.what(), "gt.txt:17 (scene.jpg): the transform Mine failed: no such row");
  }
  const auto without_image = [](const std::vector<Transform>& transforms) {
    return error_of(ErrorCode::kCorrupt, [&] { made_by(transforms); });
  };
  const RecResizeImg resize{.padding = false};
  EXPECT_EQ(without_image({resize}).find("scene.jpg: RecResizeImg: OpenCV: "), 0U);
  EXPECT_EQ(without_image({resize, NormalizeImage{}, ToCHWImage{}})
                .find("scene.jpg: RecResizeImg, NormalizeImage, ToCHWImage: OpenCV: "),
            0U);
}

TEST(Pipeline, ErrorsHaveTheNamesOfTheConfiguration) {
  const RandomRotate turn{.degrees = {9, 10}, .expand_canvas = false, .name = "IaaAugment.Affine"};
  const RandomHorizontalFlip flip{.p = 1, .name = "IaaAugment.Fliplr"};
  const auto turned = [](const std::vector<Transform>& transforms) {
    Sample sample = scene();
    sample.image = cv::Mat(8, 8, CV_32SC3, cv::Scalar::all(1));  // OpenCV turns no such picture
    return error_of(ErrorCode::kCorrupt,
                    [&] { Pipeline(transforms, 9, true).apply(sample, 3, 5); });
  };
  EXPECT_EQ(turned({turn}).find("scene.jpg: IaaAugment.Affine: OpenCV: "), 0U);
  EXPECT_EQ(turned({turn, flip, RandomCropWithBBox{}})
                .find("scene.jpg: IaaAugment.Affine, IaaAugment.Fliplr, RandomCropWithBBox: "),
            0U);
  const DetResize grid{
      .target_size = std::array{65536, 65536}, .keep_ratio = false, .name = "GridResize"};
  const auto enlarged = error_of(ErrorCode::kInvalidArgument, [&] {
    made_by({DecodeImage{}, grid});
  });
  EXPECT_EQ(enlarged.find("scene.jpg: GridResize: 320 x 240 pixels would become "), 0U) << enlarged;
}

TEST(Pipeline, TransformsHaveTheNamesOfTheConfiguration) {
  EXPECT_EQ(transform_name(DecodeImage{}), "DecodeImage");
  EXPECT_EQ(transform_name(RandomColorAdjust{}), "RandomColorAdjust");
  EXPECT_EQ(transform_name(RandomCropWithBBox{}), "RandomCropWithBBox");
  EXPECT_EQ(transform_name(DetResize{}), "DetResize");
  EXPECT_EQ(transform_name(RandomRotate{}), "RandomRotate");
  EXPECT_EQ(transform_name(RandomHorizontalFlip{}), "RandomHorizontalFlip");
  EXPECT_EQ(transform_name(RecCTCLabelEncode{}), "RecCTCLabelEncode");
  EXPECT_EQ(transform_name(Rotate90IfVertical{}), "Rotate90IfVertical");
  EXPECT_EQ(transform_name(OwnPixels{.name = "Mine", .change = {}}), "Mine");
}

}  // namespace
}  // namespace lockstep::ocr
