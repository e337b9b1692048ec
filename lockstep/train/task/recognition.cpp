#include "lockstep/train/task/recognition.h"

#include <fmt/format.h>

#include "lockstep/data/ocr_batch.h"
#include "lockstep/error.h"
#include "lockstep/ocr/postprocess/ctc_path.h"

namespace lockstep {

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
