#include "lockstep/train/task/detection.h"

#include "lockstep/data/ocr_batch.h"
#include "lockstep/ocr/metrics/det_metric.h"
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

}  // namespace lockstep
