#include "lockstep/ocr/transforms/byte_form.h"

#include <gtest/gtest.h>

#include <bit>

#include "lockstep/ocr/transforms/pipeline.h"
#include "tests/ocr/transforms/pictures.h"

namespace lockstep::ocr {
namespace {

const NormalizeImage kCrnnNormalize{{127, 127, 127}, {127, 127, 127}, true};

/// Lists of MindOCR's files for DBNet and CRNN.
std::vector<Transform> dbnet_training(NormalizeImage normalize = {}) {
  return {DecodeImage{.img_mode = ImageMode::kRgb},
          DetLabelEncode{},
          RandomColorAdjust{},
          RandomHorizontalFlip{},
          RandomRotate{.expand_canvas = false},
          RandomScale{.scale_range = {0.5, 3}, .p = 1},
          RandomCropWithBBox{.crop_size = {160, 160}, .p = 1},
          ValidatePolygons{},
          ShrinkBinaryMap{},
          BorderMap{},
          normalize,
          ToCHWImage{}};
}
std::vector<Transform> dbnet_evaluation(const DetResize& resize) {
  return {DecodeImage{.img_mode = ImageMode::kRgb}, DetLabelEncode{}, resize, NormalizeImage{},
          ToCHWImage{}};
}
std::vector<Transform> crnn_training(bool padding) {
  return {DecodeImage{},        RecCTCLabelEncode{.characters = {}},
          Rotate90IfVertical{}, RecResizeImg{.padding = padding},
          kCrnnNormalize,       ToCHWImage{}};
}
std::vector<Transform> crnn_evaluation(const RecResizeNormForInfer& resize) {
  return {DecodeImage{.img_mode = ImageMode::kRgb}, RecCTCLabelEncode{.characters = {}}, resize,
          ToCHWImage{}};
}

Sample after(const std::vector<Transform>& transforms, int64_t epoch, int64_t index) {
  Sample sample = scene();
  Pipeline(transforms, 5, true).apply(sample, epoch, index);
  return sample;
}

bool same_map(const cv::Mat& a, const cv::Mat& b) {
  return a.size() == b.size() && a.type() == b.type() && cv::norm(a, b, cv::NORM_INF) == 0;
}

/// Numbers C x H x W, or H x W of C channels.
float number_at(const cv::Mat& image, int channel, int y, int x) {
  return image.dims == 3 ? image.at<float>(channel, y, x) : image.at<cv::Vec3f>(y, x)[channel];
}

/// The byte form gives the same sample, and its bytes stand for the same numbers, bit for bit.
void expect_same_bits(const std::vector<Transform>& transforms) {
  const auto form = as_bytes(transforms);
  ASSERT_TRUE(form);
  ASSERT_TRUE(form->values.size() == cv::Size(256, 3) && form->values.type() == CV_32F);
  for (int64_t index = 0; index < 3; ++index) {
    const Sample floats = after(transforms, 2, index), bytes = after(form->transforms, 2, index);
    ASSERT_EQ(bytes.image.type(), CV_8UC3);
    ASSERT_EQ(floats.image.total() * static_cast<size_t>(floats.image.channels()),
              bytes.image.total() * 3);
    for (int y = 0; y < bytes.image.rows; ++y) {
      for (int x = 0; x < bytes.image.cols; ++x) {
        for (int channel = 0; channel < 3; ++channel) {
          const int byte = bytes.image.at<cv::Vec3b>(y, x)[channel];
          ASSERT_EQ(std::bit_cast<uint32_t>(form->values.at<float>(channel, byte)),
                    std::bit_cast<uint32_t>(number_at(floats.image, channel, y, x)))
              << channel << " " << y << " " << x;
        }
      }
    }
    EXPECT_EQ(bytes.text_seq, floats.text_seq);
    EXPECT_EQ(bytes.valid_ratio, floats.valid_ratio);
    EXPECT_EQ(bytes.resize.has_value(), floats.resize.has_value());
    for (const auto map :
         {&Sample::binary_map, &Sample::mask, &Sample::thresh_map, &Sample::thresh_mask}) {
      EXPECT_TRUE(same_map(bytes.*map, floats.*map));
    }
  }
}

TEST(ByteForm, OfDbnetHasTheSameBits) {
  expect_same_bits(dbnet_training());
  expect_same_bits(
      dbnet_training({.mean = {1, 20, 99.5}, .std = {3, 0.7, 255}, .swap_channels = true}));
  expect_same_bits(dbnet_evaluation({.target_size = {{128, 192}}, .keep_ratio = false}));
  expect_same_bits(dbnet_evaluation({.target_size = {{192, 192}}, .padding = true}));
}

TEST(ByteForm, OfCrnnHasTheSameBits) {
  expect_same_bits(crnn_training(false));
  expect_same_bits(crnn_training(true));
  expect_same_bits(crnn_evaluation({.target_width = 100, .keep_ratio = false}));
  expect_same_bits(
      crnn_evaluation({.target_width = 100, .padding = true}));  // black is added first
  expect_same_bits(crnn_evaluation({.target_width = 100,
                                    .norm_before_pad = true,
                                    .mean = {0.5, 0.4, 0.3},
                                    .std = {0.5, 0.6, 0.7},
                                    .divisor = 255}));
}

TEST(ByteForm, IsOfListsThatEndInOtherOrders) {
  auto rows_first = crnn_training(false);
  rows_first.pop_back();
  expect_same_bits(rows_first);
  expect_same_bits({DecodeImage{}, kCrnnNormalize, RecCTCLabelEncode{.characters = {}},
                    ToCHWImage{}, DetLabelEncode{}});
}

TEST(ByteForm, IsNotOfListsWhoseNumbersAreNoBytes) {
  const RecResizeNormForInfer zeros{.padding = true, .norm_before_pad = true};
  const std::vector<std::vector<Transform>> lists = {
      {},
      {NormalizeImage{}, ToCHWImage{}},
      {DecodeImage{}},
      {DecodeImage{}, ToCHWImage{}},
      {DecodeImage{.to_float32 = true}, NormalizeImage{}, ToCHWImage{}},
      {DecodeImage{.img_mode = ImageMode::kGray}, NormalizeImage{}, ToCHWImage{}},
      {DecodeImage{}, DecodeImage{.to_float32 = true}, NormalizeImage{}},
      {DecodeImage{}, NormalizeImage{}, NormalizeImage{}, ToCHWImage{}},
      {DecodeImage{}, NormalizeImage{}, RecResizeImg{}, ToCHWImage{}},
      {DecodeImage{}, NormalizeImage{}, DetResize{}},
      {DecodeImage{}, NormalizeImage{}, RandomScale{}},
      {DecodeImage{}, NormalizeImage{}, ShrinkBinaryMap{}, ToCHWImage{}},
      {DecodeImage{}, NormalizeImage{}, RecResizeNormForInfer{}},
      {DecodeImage{}, ToCHWImage{}, NormalizeImage{}},
      {DecodeImage{}, NormalizeImage{}, ToCHWImage{}, ToCHWImage{}},
      crnn_evaluation(zeros)};
  for (size_t i = 0; i < lists.size(); ++i) EXPECT_FALSE(as_bytes(lists[i])) << i;
}

}  // namespace
}  // namespace lockstep::ocr
