#include "lockstep/train/task/text_metrics.h"

#include <fmt/format.h>

#include <utility>

#include "lockstep/ocr/metrics/det_metric.h"
#include "lockstep/ocr/metrics/rec_metric.h"

namespace lockstep::inline internal {
namespace {

ocr::Polygon polygon_of(const TextPolygon& text) {
  ocr::Polygon polygon;
  for (const auto& corner : text.corners) polygon.emplace_back(corner.x, corner.y);
  return polygon;
}

class DetMetric final : public Metric {
 public:
  explicit DetMetric(const ocr::DetMetricOptions& options) : options_(options) {}

  std::vector<std::string> metric_names() const override {
    return {"recall", "precision", "f-score"};
  }
  size_t num_sums() const override { return ocr::DetCounts::kEntries; }

  std::vector<double> sums(const Tensors&, const Batch& batch) override {
    const auto& pictures = text_pictures(batch);
    ocr::DetCounts counts;
    for (size_t i = 0; i < static_cast<size_t>(batch.valid); ++i) counts += counts_of(pictures[i]);
    const auto flat = counts.flat();
    return {flat.begin(), flat.end()};
  }

  EvalResult result(std::span<const double> sums) override {
    const auto figures =
        ocr::det_figures(ocr::DetCounts::from(sums.first<ocr::DetCounts::kEntries>()));
    EvalResult result;
    result.metrics = {
        {"recall", figures.recall}, {"precision", figures.precision}, {"f-score", figures.f_score}};
    return result;
  }

 private:
  ocr::DetCounts counts_of(const TextPicture& picture) const {
    std::vector<ocr::Polygon> found;
    for (const auto& one : picture.found) found.push_back(polygon_of(one));
    std::vector<ocr::TextRegion> truth;
    for (const auto& one : picture.truth) {
      truth.push_back({polygon_of(one), one.text, one.ignored});
    }
    return ocr::det_counts(found, truth, options_);
  }

  ocr::DetMetricOptions options_;
};

class RecMetric final : public Metric {
 public:
  explicit RecMetric(const ocr::RecMetricOptions& options)
      : scorer_(options), print_(options.print_flag) {}

  std::vector<std::string> metric_names() const override { return {"acc", "norm_edit_distance"}; }
  size_t num_sums() const override { return ocr::RecCounts::kEntries; }

  std::vector<double> sums(const Tensors&, const Batch& batch) override {
    const auto& pictures = text_pictures(batch);
    ocr::RecCounts counts;
    for (size_t i = 0; i < static_cast<size_t>(batch.valid); ++i) {
      const auto score = scorer_.score(pictures[i].read, pictures[i].label);
      counts += score.counts;
      if (print_) printed_.push_back(fmt::format("{} :: {}", score.predicted, score.truth));
    }
    const auto flat = counts.flat();
    return {flat.begin(), flat.end()};
  }

  EvalResult result(std::span<const double> sums) override {
    const auto counts = ocr::RecCounts::from(sums.first<ocr::RecCounts::kEntries>());
    const auto figures = ocr::rec_figures(counts);
    EvalResult result;
    result.metrics = {{"acc", figures.acc}, {"norm_edit_distance", figures.norm_edit_distance}};
    result.lines = std::exchange(printed_, {});
    result.lines.push_back(fmt::format("correct num: {}, total num: {}",
                                       static_cast<int64_t>(counts.correct),
                                       static_cast<int64_t>(counts.words)));
    return result;
  }

 private:
  ocr::RecScorer scorer_;
  bool print_;
  std::vector<std::string> printed_;
};

}  // namespace

std::unique_ptr<Metric> det_metric(const ocr::DetMetricOptions& options) {
  return std::make_unique<DetMetric>(options);
}

std::unique_ptr<Metric> rec_metric(const ocr::RecMetricOptions& options) {
  return std::make_unique<RecMetric>(options);
}

}  // namespace lockstep::inline internal
