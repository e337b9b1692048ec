#include "lockstep/train/task/ocr_tasks.h"

#include <fmt/format.h>

#include <utility>

#include "lockstep/data/ocr_batch.h"
#include "lockstep/error.h"
#include "lockstep/ocr/metrics/det_metric.h"
#include "lockstep/ocr/postprocess/ctc_path.h"
#include "lockstep/ocr/postprocess/db.h"

namespace lockstep {
namespace {

/// Counts of one image: `map` is (H, W), contiguous.
ocr::DetCounts score(const at::Tensor& map, const ocr::Sample& truth,
                     const ocr::DbPostprocessOptions& postprocess,
                     const ocr::DetMetricOptions& metric) {
  const cv::Mat probability(static_cast<int>(map.size(0)), static_cast<int>(map.size(1)), CV_32F,
                            map.data_ptr<float>());
  std::vector<ocr::Polygon> found;
  for (auto& region : ocr::db_postprocess(probability, truth.resize, postprocess)) {
    found.push_back(std::move(region.polygon));
  }
  return ocr::det_counts(found, truth.regions, metric);
}

}  // namespace

at::Tensor DetectionTask::loss(const Tensors& outputs, const Tensors& targets) {
  const at::Tensor loss = (*loss_)(outputs[0], targets);
  const auto names = loss_->term_names();
  for (size_t i = 0; i < loss_->terms().size(); ++i) log(names[i], loss_->terms()[i]);
  return loss;
}

std::vector<std::string> DetectionTask::metric_names() const {
  return {"recall", "precision", "f-score"};
}

size_t DetectionTask::num_sums() const {
  return 1 + ocr::DetCounts::kEntries;
}

std::vector<double> DetectionTask::sums(const Tensors& outputs, const Batch& batch) {
  const auto maps = outputs[0].select(1, 0).contiguous();
  ocr::DetCounts counts;
  for (int64_t i = 0; i < batch.valid; ++i) {
    counts +=
        score(maps[i], batch.ground_truth->samples[static_cast<size_t>(i)], postprocess_, metric_);
  }
  std::vector<double> sums = {static_cast<double>(batch.valid)};
  for (const double entry : counts.flat()) sums.push_back(entry);
  return sums;
}

EvalResult DetectionTask::result(std::span<const double> sums) {
  const auto figures =
      ocr::det_figures(ocr::DetCounts::from(sums.subspan<1, ocr::DetCounts::kEntries>()));
  EvalResult result;
  result.samples = static_cast<int64_t>(sums[0]);
  result.metrics = {
      {"recall", figures.recall}, {"precision", figures.precision}, {"f-score", figures.f_score}};
  return result;
}

RecognitionTask::RecognitionTask(std::unique_ptr<Loss> loss,
                                 const ocr::CharacterOptions& characters,
                                 const ocr::RecMetricOptions& metric)
    : loss_(std::move(loss)), dictionary_(characters), scorer_(metric), print_(metric.print_flag) {}

at::Tensor RecognitionTask::loss(const Tensors& outputs, const Tensors& targets) {
  return (*loss_)(outputs[0], targets);
}

std::vector<std::string> RecognitionTask::metric_names() const {
  return {"acc", "norm_edit_distance"};
}

size_t RecognitionTask::num_sums() const {
  return ocr::RecCounts::kEntries;
}

std::vector<double> RecognitionTask::sums(const Tensors& outputs, const Batch& batch) {
  const at::Tensor& output = outputs[0];
  if (output.dim() != 3 || output.size(2) != dictionary_.num_classes()) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("the network has {} classes, the dictionary of postprocess has "
                            "{}, the blank included",
                            output.size(-1), dictionary_.num_classes()));
  }
  const auto frames = output.contiguous();
  const auto of_image = static_cast<size_t>(output.size(1) * output.size(2));
  ocr::RecCounts counts;
  for (int64_t i = 0; i < batch.valid; ++i) {
    const auto& truth = batch.ground_truth->samples[static_cast<size_t>(i)];
    const std::span<const float> own(frames[i].data_ptr<float>(), of_image);
    const auto score = scorer_.score(ocr::ctc_text(own, dictionary_).text, truth.label);
    counts += score.counts;
    if (print_) printed_.push_back(fmt::format("{} :: {}", score.predicted, score.truth));
  }
  const auto flat = counts.flat();
  return {flat.begin(), flat.end()};
}

EvalResult RecognitionTask::result(std::span<const double> sums) {
  const auto counts = ocr::RecCounts::from(sums.first<ocr::RecCounts::kEntries>());
  const auto figures = ocr::rec_figures(counts);
  EvalResult result;
  result.samples = static_cast<int64_t>(counts.words);
  result.metrics = {{"acc", figures.acc}, {"norm_edit_distance", figures.norm_edit_distance}};
  result.lines = std::exchange(printed_, {});
  result.lines.push_back(fmt::format("correct num: {}, total num: {}",
                                     static_cast<int64_t>(counts.correct),
                                     static_cast<int64_t>(counts.words)));
  return result;
}

}  // namespace lockstep
