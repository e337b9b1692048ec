// Samples of a real pipeline, made by many threads at once; a bad one affects no other.

#include "lockstep/data/ocr_reader.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <numeric>
#include <opencv2/imgcodecs.hpp>
#include <opencv2/imgproc.hpp>

#include "lockstep/base/file.h"
#include "lockstep/data/prefetcher.h"
#include "lockstep/error.h"
#include "lockstep/ocr/data/label_file_dataset.h"
#include "lockstep/ocr/transforms/pipeline.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_folder.h"

namespace lockstep {
namespace {

constexpr int kScenes = 9;
constexpr int kBroken = 4;     // no image
constexpr int kIllegible = 2;  // has a polygon of two corners

/// A detector's pictures, and a pipeline that draws, rotates, crops and makes maps.
class Scenes final : public OcrSamples {
 public:
  explicit Scenes(const std::filesystem::path& dir)
      : data_(std::make_unique<ocr::LabelFileDataset>(write(dir))),
        pipeline_({ocr::DecodeImage{}, ocr::DetLabelEncode{}, ocr::RandomColorAdjust{},
                   ocr::RandomHorizontalFlip{}, ocr::RandomRotate{},
                   ocr::RandomCropWithBBox{.crop_size = {64, 64}, .p = 1}, ocr::ValidatePolygons{},
                   ocr::ShrinkBinaryMap{.min_text_size = 2}, ocr::BorderMap{},
                   ocr::NormalizeImage{}, ocr::ToCHWImage{}},
                  11, true) {}
  int64_t size() const override { return data_->size(); }
  ocr::Sample make(int64_t epoch, int64_t index, int64_t key) const override {
    auto sample = data_->load(index);
    pipeline_.apply(sample, epoch, key);
    return sample;
  }

 private:
  static ocr::LabelFiles write(const std::filesystem::path& dir) {
    std::string labels;
    for (int i = 0; i < kScenes; ++i) {
      const auto name = fmt::format("{}.png", i);
      cv::Mat image(80, 96, CV_8UC3, cv::Scalar(20 * i, 90, 30));
      cv::rectangle(image, {20, 20, 50, 24}, cv::Scalar(250, 20 * i, 9), cv::FILLED);
      cv::imwrite((dir / name).string(), image);
      if (i == kBroken) write_file_atomically(dir / name, "no picture");
      labels +=
          name + R"(	[{"transcription": "a", "points": [[20,20],[70,20],[70,44],[20,44]]})";
      if (i == kIllegible) labels += R"(, {"transcription": "b", "points": [[2,2],[9,9]]})";
      labels += "]\n";
    }
    write_file_atomically(dir / "gt.txt", labels);
    return {.data_dirs = {dir}, .label_files = {dir / "gt.txt"}};
  }

  std::unique_ptr<ocr::LabelFileDataset> data_;
  ocr::Pipeline pipeline_;
};

/// Sums that show any different bit.
std::vector<double> sums_of(const OcrRows& rows) {
  std::vector<double> sums;
  for (const auto& sample : rows.samples) {
    for (const auto* mat : {&sample.image, &sample.binary_map, &sample.mask, &sample.thresh_map}) {
      const cv::Mat flat = mat->reshape(1, 1);
      sums.push_back(cv::sum(flat)[0]);
      sums.push_back(cv::norm(flat));
    }
  }
  return sums;
}

class OcrReaderTest : public ::testing::Test {
 protected:
  OcrReaderTest() { cv::setNumThreads(1); }
  TempFolder folder_;
  std::shared_ptr<const Scenes> scenes_ = std::make_shared<const Scenes>(folder_.path());
  std::vector<int64_t> order_ = [] {
    std::vector<int64_t> order(kScenes);
    std::iota(order.begin(), order.end(), 0);
    return order;
  }();
};

TEST_F(OcrReaderTest, ThreadsDoNotShow) {
  const OcrReader reader(scenes_, BadSample::kReplaced, 3);
  Prefetcher<OcrRows> threads(4, 3);
  for (const int64_t epoch : {0, 1}) {
    threads.start(kScenes / 3, [&](int64_t batch) {
      return reader.read(epoch, std::span(order_).subspan(static_cast<size_t>(3 * batch), 3));
    });
    for (size_t begin = 0; begin < kScenes; begin += 3) {
      const auto alone = reader.read(epoch, std::span(order_).subspan(begin, 3));
      const auto rows = threads.next(Deadline::after(std::chrono::minutes(5)));
      ASSERT_TRUE(rows);
      EXPECT_EQ(sums_of(*rows), sums_of(alone));
      EXPECT_EQ(rows->faults, alone.faults);
      EXPECT_EQ(rows->remarks, alone.remarks);
    }
    EXPECT_FALSE(threads.next(Deadline::after(std::chrono::minutes(5))));
  }
}

TEST_F(OcrReaderTest, ASampleWithAnotherKeyLooksDifferent) {
  const OcrReader reader(scenes_, BadSample::kReplaced, 3);
  const std::vector<int64_t> sample = {1}, key = {8};
  const auto sums = sums_of(reader.read(2, sample, key));
  EXPECT_EQ(sums_of(reader.read(2, sample, key)), sums);
  EXPECT_NE(sums_of(reader.read(2, sample)), sums);
  EXPECT_EQ(sums_of(reader.read(2, sample)), sums_of(reader.read(2, sample, sample)));
}

TEST_F(OcrReaderTest, ABadSampleIsReplacedOrLeftOut) {
  const OcrReader replaces(scenes_, BadSample::kReplaced, 3);
  const auto rows = replaces.read(0, order_);
  EXPECT_EQ(rows.samples.size(), size_t{kScenes});
  ASSERT_EQ(rows.faults.size(), 1u);
  EXPECT_EQ(rows.faults[0].find("sample 4 cannot be used: "), 0u) << rows.faults[0];
  EXPECT_NE(rows.faults[0].find("stands in its place"), std::string::npos) << rows.faults[0];
  EXPECT_EQ(replaces.read(0, order_).faults, rows.faults);

  const auto left = OcrReader(scenes_, BadSample::kLeftOut, 3).read(0, order_);
  EXPECT_EQ(left.samples.size(), size_t{kScenes - 1});
  ASSERT_EQ(left.faults.size(), 1u);
  EXPECT_EQ(left.faults[0].find("in its place"), std::string::npos);
}

TEST_F(OcrReaderTest, RemarksNameTheLabel) {
  const auto rows = OcrReader(scenes_, BadSample::kLeftOut, 3).read(0, {{kIllegible}});
  ASSERT_EQ(rows.remarks.size(), 1u);
  EXPECT_NE(rows.remarks[0].find("gt.txt:3"), std::string::npos) << rows.remarks[0];
}

TEST_F(OcrReaderTest, OnlyBadSamplesAreAnError) {
  std::filesystem::remove_all(folder_.path());
  const OcrReader reader(scenes_, BadSample::kReplaced, 3);
  const auto error = error_of([&] { reader.read(0, {{1}}); });
  EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
  EXPECT_NE(std::string(error.what()).find("nor could 10 others, drawn in its place"),
            std::string::npos);
}

}  // namespace
}  // namespace lockstep
