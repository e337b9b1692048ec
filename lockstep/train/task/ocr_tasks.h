#pragma once
// The tasks about text in images.

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lockstep/models/loss/loss.h"
#include "lockstep/ocr/metrics/rec_metric.h"
#include "lockstep/ocr/options.h"
#include "lockstep/ocr/text/dictionary.h"
#include "lockstep/train/task/task.h"

namespace lockstep {

/// Finds text in an image. Metrics: recall, precision, f-score.
class DetectionTask final : public Task {
 public:
  DetectionTask(std::unique_ptr<Loss> loss, const ocr::DbPostprocessOptions& postprocess,
                const ocr::DetMetricOptions& metric)
      : loss_(std::move(loss)), postprocess_(postprocess), metric_(metric) {}

  at::Tensor loss(const Tensors& outputs, const Tensors& targets) override;
  std::vector<std::string> log_names() const override { return loss_->term_names(); }
  std::vector<std::string> metric_names() const override;
  size_t num_sums() const override;
  /// outputs: one, (N, 1, H, W), probabilities. Sums are whole numbers, so their bits do not depend
  /// on the order of addition.
  std::vector<double> sums(const Tensors& outputs, const Batch& batch) override;
  EvalResult result(std::span<const double> sums) override;

 private:
  std::unique_ptr<Loss> loss_;
  ocr::DbPostprocessOptions postprocess_;
  ocr::DetMetricOptions metric_;
};

/// Reads the text in an image. Metrics: acc, norm_edit_distance.
class RecognitionTask final : public Task {
 public:
  /// `characters`: the meaning of classes; see Dictionary for errors.
  RecognitionTask(std::unique_ptr<Loss> loss, const ocr::CharacterOptions& characters,
                  const ocr::RecMetricOptions& metric);

  at::Tensor loss(const Tensors& outputs, const Tensors& targets) override;
  std::vector<std::string> metric_names() const override;
  size_t num_sums() const override;
  /// outputs: one, (N, W, K), probabilities. Sums are exact, so their bits do not depend on the
  /// order of addition.
  std::vector<double> sums(const Tensors& outputs, const Batch& batch) override;
  /// Its lines: with print_flag each prediction beside its target, and the number of correct ones.
  EvalResult result(std::span<const double> sums) override;

  const ocr::Dictionary& dictionary() const { return dictionary_; }

 private:
  std::unique_ptr<Loss> loss_;
  ocr::Dictionary dictionary_;
  ocr::RecScorer scorer_;
  bool print_;
  std::vector<std::string> printed_;
};

}  // namespace lockstep
