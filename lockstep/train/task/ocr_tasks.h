#pragma once
// The tasks about text in images.

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/models/loss/loss.h"
#include "lockstep/ocr/options.h"
#include "lockstep/ocr/text/dictionary.h"
#include "lockstep/train/task/metric_list.h"
#include "lockstep/train/task/task.h"

namespace lockstep::inline internal {

struct OcrGroundTruth;

/// Checks the output of a detector that evaluates `count` pictures or more: (N, 1, H, W), float32.
/// Errors: kInvalidArgument.
void check_maps(const at::Tensor& output, size_t count);
/// The same of a recogniser: (N, T, K) with K = `classes`, the blank included.
void check_frames(const at::Tensor& output, size_t count, int64_t classes);

/// Computes `loss`, and logs its terms as log_value() does. A registered loss around it need not
/// have their names: terms without a name in the run are left out. Of outputs it takes one. Errors:
/// kInvalidArgument for several; those of `loss`.
LoggedLoss text_loss(std::unique_ptr<Loss> loss);

/// An evaluation reads what the network's outputs mean, and its figures are those of all `metrics`,
/// in their order: they get text_pictures().
class TextTask : public Task {
 public:
  /// The task itself has the log_names of `loss`.
  TextTask(LoggedLoss loss, MetricList metrics)
      : loss_(std::move(loss)), metrics_(std::move(metrics)) {}

  /// Errors: kInvalidArgument for several outputs; those of the loss.
  at::Tensor loss(const Tensors& outputs, const Tensors& targets) override;
  std::vector<std::string> log_names() const override { return loss_.log_names; }
  std::vector<std::string> metric_names() const override { return figure_names(metrics_); }
  std::vector<std::string> lower_is_better() const override { return lower_figures(metrics_); }
  /// The first sum is the number of samples.
  size_t num_sums() const override { return 1 + lockstep::num_sums(metrics_); }
  /// Errors: kInvalidArgument for a batch without ground truth, or for several outputs; those of
  /// read().
  std::vector<double> sums(const Tensors& outputs, const Batch& batch) override;
  EvalResult result(std::span<const double> sums) override;

 private:
  /// Adds to the `pictures`, one for each sample that counts, what the output means. Errors:
  /// kInvalidArgument for an output of another shape.
  virtual void read(const at::Tensor& output, const OcrGroundTruth& truth,
                    std::vector<TextPicture>& pictures) const = 0;

  LoggedLoss loss_;
  MetricList metrics_;
};

/// Finds text in an image.
class DetectionTask final : public TextTask {
 public:
  DetectionTask(LoggedLoss loss, const ocr::DbPostprocessOptions& postprocess, MetricList metrics)
      : TextTask(std::move(loss), std::move(metrics)), postprocess_(postprocess) {}

 private:
  /// output: (N, 1, H, W), probabilities.
  void read(const at::Tensor& output, const OcrGroundTruth& truth,
            std::vector<TextPicture>& pictures) const override;

  ocr::DbPostprocessOptions postprocess_;
};

/// Reads the text in an image.
class RecognitionTask final : public TextTask {
 public:
  /// `characters`: the meaning of classes; see Dictionary for errors.
  RecognitionTask(LoggedLoss loss, const ocr::CharacterOptions& characters, MetricList metrics);

 private:
  /// output: (N, W, K), probabilities.
  void read(const at::Tensor& output, const OcrGroundTruth& truth,
            std::vector<TextPicture>& pictures) const override;

  ocr::Dictionary dictionary_;
};

}  // namespace lockstep::inline internal
