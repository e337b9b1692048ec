#include "lockstep/data/ocr_batch.h"

#include <ATen/ops/equal.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <numeric>
#include <opencv2/core.hpp>

#include "lockstep/base/philox.h"
#include "lockstep/data/loader.h"
#include "lockstep/error.h"
#include "tests/support/error_of.h"

namespace lockstep {
namespace {

/// Image i: 3 planes of 4 x 6, plane c of value 10 * i + c plus a random number per epoch.
class FakeText final : public OcrSamples {
 public:
  explicit FakeText(std::vector<int64_t> broken = {}, int wide = -1, bool planar = false)
      : broken_(std::move(broken)), wide_(wide), planar_(planar) {}
  int64_t size() const override { return 12; }
  ocr::Sample make(int64_t epoch, int64_t index, int64_t key) const override {
    ocr::Sample sample;
    sample.source = fmt::format("{}.png", index);
    if (std::find(broken_.begin(), broken_.end(), index) != broken_.end()) {
      throw Error(ErrorCode::kCorrupt, sample.source + ": truncated");
    }
    Philox random(7, static_cast<uint32_t>(epoch), static_cast<uint64_t>(key));
    const double noise = random.uniform() / 4;
    const auto base = static_cast<double>(10 * index) + noise;
    const cv::Size size(index == wide_ ? 8 : 6, 4);
    sample.image = cv::Mat(size, CV_32FC3, cv::Scalar(base, base + 1, base + 2));
    if (planar_) sample.image = planes_of(sample.image);
    sample.binary_map = cv::Mat(size, CV_32F, cv::Scalar(1));
    sample.mask = cv::Mat(size, CV_32F, cv::Scalar(2));
    sample.thresh_map = cv::Mat(size, CV_32F, cv::Scalar(3));
    sample.thresh_mask = cv::Mat(size, CV_32F, cv::Scalar(4));
    sample.text_seq = {static_cast<int32_t>(index), 36, 36};
    sample.label = fmt::format("text {}", index);
    return sample;
  }

 private:
  static cv::Mat planes_of(const cv::Mat& image) {
    const int sizes[] = {3, image.rows, image.cols};
    cv::Mat planes(3, sizes, CV_32F);
    for (int c = 0; c < 3; ++c) {
      cv::extractChannel(image, cv::Mat(image.size(), CV_32F, planes.ptr<float>(c)), c);
    }
    return planes;
  }

  std::vector<int64_t> broken_;
  int wide_;
  bool planar_;
};

std::vector<int64_t> all_twelve() {
  std::vector<int64_t> order(12);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

TEST(OcrBatches, CollatesImagesAsPlanesAndMapsInTheLosssOrder) {
  Loader loader(ocr_batches(std::make_shared<FakeText>(), OcrColumns::kDetection, 1),
                {.batch_size = 5});
  loader.start(0, {all_twelve()});
  EXPECT_EQ(loader.num_batches(12), 3);
  const auto batch = loader.next();
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch->images.sizes(), at::IntArrayRef({5, 3, 4, 6}));
  EXPECT_NEAR(batch->images[2][1].min().item<float>(), batch->images[2][0].min().item<float>() + 1,
              1e-4);
  EXPECT_EQ(batch->images[2][0].max().item<float>(), batch->images[2][0].min().item<float>());
  ASSERT_EQ(batch->targets.size(), 4u);
  EXPECT_EQ(batch->targets[0].sizes(), at::IntArrayRef({5, 1, 4, 6}));
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(batch->targets[i].min().item<float>(), static_cast<float>(i + 1));
    EXPECT_EQ(batch->targets[i].size(0), 5);
  }
  EXPECT_EQ(batch->valid, 5);
}

TEST(OcrBatches, TakesImagesThatArePlanesAlready) {
  const std::vector<int64_t> none;
  Loader pixels(ocr_batches(std::make_shared<FakeText>(none, 5), OcrColumns::kRecognition, 1),
                {.batch_size = 4});
  Loader planes(ocr_batches(std::make_shared<FakeText>(none, 5, true), OcrColumns::kRecognition, 1),
                {.batch_size = 4});
  pixels.start(0, {all_twelve()});
  planes.start(0, {all_twelve()});
  EXPECT_TRUE(at::equal(pixels.next()->images, planes.next()->images));
  EXPECT_EQ(std::string(error_of([&] { pixels.next(); }).what()),
            std::string(error_of([&] { planes.next(); }).what()));
}

/// Image i: 4 x 6 pixels of bytes; image `grey` has one channel.
class FakeBytes final : public OcrSamples {
 public:
  explicit FakeBytes(int64_t grey = -1) : grey_(grey) {}
  int64_t size() const override { return 12; }
  ocr::Sample make(int64_t epoch, int64_t index, int64_t key) const override {
    ocr::Sample sample;
    sample.source = fmt::format("{}.png", index);
    if (index == 1) throw Error(ErrorCode::kCorrupt, "1.png: truncated");
    // A part of a larger matrix: its rows are apart.
    const cv::Mat whole(4, 8, index == grey_ ? CV_8UC1 : CV_8UC3);
    cv::RNG(static_cast<uint64_t>(100 * epoch + key + 1)).fill(whole, cv::RNG::UNIFORM, 0, 256);
    sample.image = whole.colRange(1, 7);
    sample.text_seq = {static_cast<int32_t>(index)};
    return sample;
  }

 private:
  int64_t grey_;
};

/// The numbers of FakeBytes by a table.
class LookedUp final : public OcrSamples {
 public:
  explicit LookedUp(cv::Mat values) : values_(std::move(values)) {}
  int64_t size() const override { return 12; }
  ocr::Sample make(int64_t epoch, int64_t index, int64_t key) const override {
    auto sample = FakeBytes().make(epoch, index, key);
    cv::Mat numbers(sample.image.size(), CV_32FC3);
    for (int y = 0; y < numbers.rows; ++y) {
      for (int x = 0; x < numbers.cols; ++x) {
        for (int c = 0; c < 3; ++c) {
          numbers.at<cv::Vec3f>(y, x)[c] =
              values_.at<float>(c, sample.image.at<cv::Vec3b>(y, x)[c]);
        }
      }
    }
    sample.image = numbers;
    return sample;
  }

 private:
  cv::Mat values_;
};

cv::Mat some_values() {
  cv::Mat values(3, 256, CV_32F);
  cv::RNG(9).fill(values, cv::RNG::NORMAL, 0, 1);
  return values;
}

TEST(OcrBatches, AsBytesBecomeTheSameFloats) {
  const auto values = some_values();
  const auto order = all_twelve();
  for (const auto columns : {OcrColumns::kRecognition, OcrColumns::kGroundTruth}) {
    const auto floats =
        ocr_batches(std::make_shared<LookedUp>(values), columns, 1)->make({2, order, 10});
    auto bytes =
        ocr_batches(std::make_shared<FakeBytes>(), columns, 1, values)->make({2, order, 10});
    EXPECT_EQ(bytes.images.scalar_type(), at::kByte);
    EXPECT_EQ(bytes.images.sizes(), at::IntArrayRef({floats.images.size(0), 4, 6, 3}));
    EXPECT_TRUE(at::equal(bytes.inputs_on(at::kCPU).front(), floats.images));
    bytes.move_to(at::kCPU);
    EXPECT_TRUE(at::equal(bytes.images, floats.images) && bytes.images.is_contiguous());
    EXPECT_FALSE(bytes.byte_values.defined());
    EXPECT_EQ(bytes.valid, floats.valid);
    EXPECT_EQ(bytes.faults, floats.faults);
    EXPECT_EQ(bytes.faults.size(), 1U);
    EXPECT_EQ(bytes.targets.size(), floats.targets.size());
    if (columns == OcrColumns::kRecognition) {
      EXPECT_TRUE(at::equal(bytes.targets[0], floats.targets[0]));
    }
  }
}

TEST(OcrBatches, AsBytesMayBeEmpty) {
  const int64_t bad = 1;
  const auto made =
      ocr_batches(std::make_shared<FakeBytes>(), OcrColumns::kGroundTruth, 1, some_values())
          ->make({0, {&bad, 1}, 1});
  EXPECT_EQ(made.valid, 0);
  EXPECT_EQ(made.inputs_on(at::kCPU).front().sizes(), at::IntArrayRef({0, 3, 1, 1}));
}

TEST(OcrBatches, AsBytesTakeNothingElse) {
  const int64_t grey = 3;
  const auto batches =
      ocr_batches(std::make_shared<FakeBytes>(grey), OcrColumns::kRecognition, 1, some_values());
  EXPECT_EQ(error_of([&] { batches->make({0, {&grey, 1}, 1}); }).code(), ErrorCode::kInternal);
}

TEST(OcrBatches, TextsAreClassesAndThreadsDoNotShow) {
  const auto samples = std::make_shared<FakeText>(std::vector<int64_t>{3, 8});
  Loader one(ocr_batches(samples, OcrColumns::kRecognition, 1), {.batch_size = 4});
  Loader many(ocr_batches(samples, OcrColumns::kRecognition, 1),
              {.batch_size = 4, .threads = 4, .prefetch = 3});
  one.start(2, {all_twelve()});
  many.start(2, {all_twelve()});
  int batches = 0;
  while (const auto batch = one.next()) {
    const auto other = many.next();
    ASSERT_TRUE(other);
    EXPECT_TRUE(at::equal(batch->images, other->images));
    EXPECT_TRUE(at::equal(batch->targets[0], other->targets[0]));
    EXPECT_EQ(batch->targets[0].scalar_type(), at::kInt);
    EXPECT_EQ(batch->faults, other->faults);
    ++batches;
  }
  EXPECT_EQ(batches, 3);
}

TEST(OcrBatches, DrawsOfOneSampleDifferByTheirKeys) {
  Loader loader(ocr_batches(std::make_shared<FakeText>(), OcrColumns::kRecognition, 1),
                {.batch_size = 3});
  loader.start(0, {{4, 4, 4}, {0, 1, 0}});
  const auto images = loader.next().value().images;
  EXPECT_FALSE(at::equal(images[0], images[1]));
  EXPECT_TRUE(at::equal(images[0], images[2]));
}

TEST(OcrBatches, ABadSampleIsReplacedByTheSameOneAgainAndAgain) {
  Loader loader(
      ocr_batches(std::make_shared<FakeText>(std::vector<int64_t>{1}), OcrColumns::kRecognition, 1),
      {.batch_size = 4});
  std::vector<std::string> lines;
  for (int round = 0; round < 2; ++round) {
    loader.start(0, {all_twelve()});
    const auto batch = loader.next();
    ASSERT_TRUE(batch);
    EXPECT_EQ(batch->images.size(0), 4);
    EXPECT_EQ(batch->valid, 4);
    ASSERT_EQ(batch->faults.size(), 1u);
    lines.push_back(batch->faults[0]);
    const auto replacement = batch->targets[0][1][0].item<int>();
    EXPECT_NE(replacement, 1);
    EXPECT_EQ(batch->faults[0],
              fmt::format("sample 1 cannot be used: 1.png: truncated; sample {0} ({0}.png) stands "
                          "in its place",
                          replacement));
  }
  EXPECT_EQ(lines[0], lines[1]);
}

TEST(OcrBatches, OnlyBadSamplesAreAnError) {
  Loader loader(ocr_batches(std::make_shared<FakeText>(all_twelve()), OcrColumns::kRecognition, 1),
                {.batch_size = 4});
  loader.start(0, {all_twelve()});
  const auto error = error_of([&] { loader.next(); });
  EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
  EXPECT_NE(std::string(error.what()).find("0.png: truncated; nor could 10 others"),
            std::string::npos)
      << error.what();
}

TEST(OcrBatches, EvaluationLeavesOutBadSamplesAndPadding) {
  Loader loader(
      ocr_batches(std::make_shared<FakeText>(std::vector<int64_t>{1}), OcrColumns::kGroundTruth, 1),
      {.batch_size = 2});
  loader.start(0, {{0, 1, 2, 3, 0, 1}}, /*num_counted=*/3);
  std::vector<std::string> texts;
  int64_t faults = 0;
  while (const auto batch = loader.next()) {
    ASSERT_TRUE(batch->ground_truth);
    EXPECT_EQ(batch->valid, std::ssize(batch->ground_truth->samples));
    EXPECT_EQ(batch->images.size(0), batch->valid);
    for (const auto& sample : batch->ground_truth->samples) {
      texts.push_back(sample.label);
      EXPECT_TRUE(sample.image.empty());
    }
    faults += std::ssize(batch->faults);
  }
  EXPECT_EQ(texts, (std::vector<std::string>{"text 0", "text 2"}));
  EXPECT_EQ(faults, 1);
}

TEST(OcrBatches, SizesThatDifferAreAnErrorOfTheBatchOnly) {
  Loader two(ocr_batches(std::make_shared<FakeText>(std::vector<int64_t>{}, 1),
                         OcrColumns::kGroundTruth, 1),
             {.batch_size = 2});
  two.start(0, {all_twelve()});
  const auto error = error_of([&] { two.next(); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(std::string(error.what()),
            "one batch has images of 3 x 4 x 6 (0.png) and 3 x 4 x 8 (1.png): choose "
            "loader.batch_size 1, or transforms that bring all to one size");
  Loader one(ocr_batches(std::make_shared<FakeText>(std::vector<int64_t>{}, 1),
                         OcrColumns::kGroundTruth, 1),
             {.batch_size = 1});
  one.start(0, {all_twelve()});
  int batches = 0;
  while (one.next()) ++batches;
  EXPECT_EQ(batches, 12);
}

}  // namespace
}  // namespace lockstep
