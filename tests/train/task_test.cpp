#include "lockstep/train/task/task.h"

#include <gtest/gtest.h>
#include <torch/utils.h>

#include <opencv2/core.hpp>

#include "lockstep/data/ocr_batch.h"
#include "lockstep/models/loss/ctc_loss.h"
#include "lockstep/models/loss/db_loss.h"
#include "lockstep/train/task/ocr_tasks.h"
#include "lockstep/train/task/text_metrics.h"
#include "tests/support/error_of.h"

namespace lockstep {
namespace {

constexpr int kSide = 128;

ocr::TextRegion box(float x, float y, float width, float height) {
  return {{{x, y}, {x + width, y}, {x + width, y + height}, {x, y + height}}, "text", false};
}

/// Text at two places; the map is DBNet's target: the shrunk boxes.
ocr::Sample two_boxes() {
  ocr::Sample sample;
  sample.regions = {box(20, 20, 60, 24), box(20, 80, 80, 24)};
  return sample;
}

void paint(const at::Tensor& map, const ocr::TextRegion& region) {
  const auto& corner = region.polygon[0];
  const auto& opposite = region.polygon[2];
  const auto width = static_cast<int64_t>(opposite.x - corner.x);
  const auto height = static_cast<int64_t>(opposite.y - corner.y);
  const int64_t inset = height / 4;
  map.narrow(0, static_cast<int64_t>(corner.y) + inset, height - 2 * inset)
      .narrow(1, static_cast<int64_t>(corner.x) + inset, width - 2 * inset)
      .fill_(0.9);
}

Batch batch_of(std::vector<ocr::Sample> samples) {
  Batch batch;
  batch.valid = std::ssize(samples);
  auto ground_truth = std::make_shared<OcrGroundTruth>();
  ground_truth->samples = std::move(samples);
  batch.ground_truth = ground_truth;
  return batch;
}

TEST(DetectionTask, SumsOfBatchesGiveTheFiguresOfAll) {
  DetectionTask task(text_loss(make_db_loss({})), {}, only(det_metric({})));
  auto maps = torch::zeros({3, 1, kSide, kSide});
  const auto truth = two_boxes();
  paint(maps[0][0], truth.regions[0]);  // one of two
  paint(maps[1][0], truth.regions[0]);  // both
  paint(maps[1][0], truth.regions[1]);
  paint(maps[2][0], box(20, 50, 70, 24));  // elsewhere
  auto sums = task.sums({maps.narrow(0, 0, 2)}, batch_of({truth, truth}));
  const auto rest = task.sums({maps.narrow(0, 2, 1)}, batch_of({truth}));
  ASSERT_EQ(sums.size(), task.num_sums());
  for (size_t i = 0; i < sums.size(); ++i) sums[i] += rest[i];
  const auto result = task.result(sums);
  EXPECT_EQ(result.samples, 3);
  EXPECT_EQ(result.metric("recall"), 3.0 / 6);
  EXPECT_EQ(result.metric("precision"), 3.0 / 4);
  EXPECT_EQ(result.metric("f-score"), 0.6);
  EXPECT_EQ(result.metrics.size(), task.metric_names().size());
  EXPECT_EQ(task.sums({torch::zeros({0, 1, 1, 1})}, batch_of({})),
            std::vector<double>(task.num_sums()));
}

TEST(DetectionTask, ItsLossComparesFourColumns) {
  DetectionTask task(text_loss(make_db_loss({})), {}, only(det_metric({})));
  const auto ones = torch::ones({1, 8, 8});
  const std::vector<at::Tensor> columns = {ones.unsqueeze(1), ones, ones, ones};
  const auto right = torch::ones({1, 3, 8, 8});
  const auto wrong = torch::full({1, 3, 8, 8}, 0.5).requires_grad_();
  EXPECT_LT(task.loss({right}, columns).item<double>(), 1e-3);
  const auto loss = task.loss({wrong}, columns);
  EXPECT_GT(loss.item<double>(), 1);
  loss.backward();
  EXPECT_TRUE(wrong.grad().defined());
}

/// Frames that encode `text` with the classes of 0-9 and a-z, each letter once and a blank behind
/// it.
at::Tensor frames_of(const std::string& text, int64_t frames) {
  const std::string letters = "0123456789abcdefghijklmnopqrstuvwxyz";
  auto values = torch::zeros({frames, 37});
  for (int64_t frame = 0; frame < frames; ++frame) {
    const auto letter = static_cast<size_t>(frame / 2);
    const bool blank = frame % 2 == 1 || letter >= text.size();
    values[frame][blank ? 36 : static_cast<int64_t>(letters.find(text[letter]))] = 1;
  }
  return values;
}

ocr::Sample word(const std::string& text) {
  ocr::Sample sample;
  sample.label = text;
  return sample;
}

TEST(RecognitionTask, ReadsAndCounts) {
  ocr::RecMetricOptions prints;
  prints.print_flag = true;
  RecognitionTask task(text_loss(make_ctc_loss({})), {}, only(rec_metric(prints)));
  const auto output = torch::stack({frames_of("hello", 12), frames_of("w0rld", 12)});
  const auto sums = task.sums({output}, batch_of({word("Hello"), word("world")}));
  const auto result = task.result(sums);
  EXPECT_EQ(result.samples, 2);
  EXPECT_EQ(result.metric("acc"), 0.5);
  EXPECT_NEAR(result.metric("norm_edit_distance"), 0.9, 1e-6);
  EXPECT_EQ(result.lines, (std::vector<std::string>{"hello :: hello", "w0rld :: world",
                                                    "correct num: 1, total num: 2"}));
}

TEST(RecognitionTask, RefusesAnotherNumberOfClasses) {
  RecognitionTask task(text_loss(make_ctc_loss({})), {.use_space_char = true},
                       only(rec_metric({})));
  const auto error =
      error_of([&] { task.sums({torch::stack({frames_of("a", 4)})}, batch_of({word("a")})); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(std::string(error.what()),
            "the network has 37 classes, the dictionary of postprocess has 38, the blank "
            "included");
}

}  // namespace
}  // namespace lockstep
