// Evaluation of text over ranks: the figures equal those of one process, to the last bit.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <torch/utils.h>

#include <mutex>
#include <opencv2/core.hpp>
#include <opencv2/imgproc.hpp>

#include "lockstep/base/philox.h"
#include "lockstep/data/loader.h"
#include "lockstep/data/ocr_batch.h"
#include "lockstep/models/loss/ctc_loss.h"
#include "lockstep/models/loss/db_loss.h"
#include "lockstep/train/evaluate.h"
#include "lockstep/train/task/ocr_tasks.h"
#include "lockstep/train/task/text_metrics.h"
#include "tests/support/ranks.h"

namespace lockstep {
namespace {

constexpr int kImages = 11;

/// Returns the first plane of its input: the image is the map of probabilities.
class ShowsItsInput final : public Model {
 public:
  ShowsItsInput() { register_parameter("unused", torch::zeros({1})); }
  at::Tensor forward(at::Tensor input) override { return input.narrow(1, 0, 1); }
};

/// Image i: bright bars at the places of text, but some are missing and some elsewhere. Image 4 is
/// unreadable.
class Bars final : public OcrSamples {
 public:
  int64_t size() const override { return kImages; }
  ocr::Sample make(int64_t, int64_t index, int64_t) const override {
    if (index == 4) throw Error(ErrorCode::kCorrupt, "4.png: truncated");
    ocr::Sample sample;
    sample.image = cv::Mat(96, 128, CV_32FC3, cv::Scalar::all(0));
    Philox random(3, 0, static_cast<uint64_t>(index));
    for (int row = 0; row < 3; ++row) {
      const float y = static_cast<float>(row) * 32 + 6;
      sample.regions.push_back({{{20, y}, {100, y}, {100, y + 20}, {20, y + 20}}, "bar", false});
      const auto shift = static_cast<int>(random.below(3)) * 7;  // 14 is too far
      if (random.below(4) == 0) continue;
      cv::rectangle(sample.image, cv::Rect(26, static_cast<int>(y) + 6 + shift, 68, 9),
                    cv::Scalar::all(0.9), cv::FILLED);
    }
    return sample;
  }
};

std::vector<EvalResult> evaluated_by(int ranks) {
  std::vector<EvalResult> results;
  std::mutex mutex;
  testing::run_rank_threads(ranks, [&](const World& world) {
    auto group = ProcessGroup::create(world);
    ShowsItsInput model;
    DetectionTask task(text_loss(make_db_loss({})), {}, only(det_metric({})));
    Loader loader(ocr_batches(std::make_shared<const Bars>(), OcrColumns::kGroundTruth, 0),
                  {.batch_size = 2});
    const DistributedSampler sampler(kImages, world, {.shuffle = false});
    const auto result = evaluate(model, loader, {&sampler, 1}, group, task);
    const std::lock_guard lock(mutex);
    results.push_back(result.value());
  });
  return results;
}

TEST(OcrEvaluation, FiguresDoNotDependOnTheNumberOfRanks) {
  const auto one = evaluated_by(1).front();
  EXPECT_EQ(one.samples, kImages - 1);
  EXPECT_EQ(one.faults, 1);
  EXPECT_GT(one.metric("f-score"), 0.1);
  EXPECT_LT(one.metric("f-score"), 1);
  for (const int ranks : {2, 3, 4}) {
    for (const auto& result : evaluated_by(ranks)) {
      EXPECT_EQ(result.samples, one.samples);
      EXPECT_EQ(result.faults, one.faults);
      EXPECT_EQ(result.metrics, one.metrics);
    }
  }
}

/// Encodes texts of seven letters, frame after frame; one letter may be wrong.
class Words final : public OcrSamples {
 public:
  int64_t size() const override { return kImages; }
  ocr::Sample make(int64_t, int64_t index, int64_t) const override {
    ocr::Sample sample;
    sample.image = cv::Mat(1, 37, CV_32F, cv::Scalar(0));
    sample.image.at<float>(0, static_cast<int>(index)) = 1;
    sample.label = std::string(1, static_cast<char>(index == 3 ? 'z' : '0' + index % 10));
    if (index % 4 == 0) sample.label += "ab";
    return sample;
  }
};

class FramesOfInput final : public Model {
 public:
  FramesOfInput() { register_parameter("unused", torch::zeros({1})); }
  at::Tensor forward(at::Tensor input) override { return input.select(1, 0); }
};

TEST(OcrEvaluation, DistancesOfWordsAddUpToTheSameBits) {
  std::vector<EvalResult> results;
  for (const int ranks : {1, 2, 3, 4}) {
    std::mutex mutex;
    testing::run_rank_threads(ranks, [&](const World& world) {
      auto group = ProcessGroup::create(world);
      FramesOfInput model;
      RecognitionTask task(text_loss(make_ctc_loss({})), {}, only(rec_metric({})));
      Loader loader(ocr_batches(std::make_shared<const Words>(), OcrColumns::kGroundTruth, 0),
                    {.batch_size = 3});
      const DistributedSampler sampler(kImages, world, {.shuffle = false});
      const auto result = evaluate(model, loader, {&sampler, 1}, group, task);
      const std::lock_guard lock(mutex);
      results.push_back(result.value());
    });
  }
  for (const auto& result : results) EXPECT_EQ(result.metrics, results[0].metrics);
  // 0, 4 and 8 are too long, 3 has another letter, 10 has an 'a' for a '0'.
  EXPECT_EQ(results[0].metric("acc"), 6.0 / 11);
  EXPECT_NEAR(results[0].metric("norm_edit_distance"), 1 - (3 * 2.0 / 3 + 2) / 11, 1e-6);
}

}  // namespace
}  // namespace lockstep
