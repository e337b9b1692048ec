#include "lockstep/train/task/ocr_tasks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "lockstep/data/ocr_batch.h"
#include "lockstep/error.h"
#include "lockstep/ocr/postprocess/ctc_path.h"
#include "lockstep/ocr/postprocess/db.h"
#include "lockstep/train/task/logged_values.h"

namespace lockstep::inline internal {
namespace {

TextPolygon text_polygon(const ocr::Polygon& polygon) {
  TextPolygon text;
  for (const auto& corner : polygon) text.corners.push_back({corner.x, corner.y});
  return text;
}

TextPicture truth_of(const ocr::Sample& sample) {
  TextPicture picture;
  picture.source = sample.source;
  picture.label = sample.label;
  for (const auto& region : sample.regions) {
    auto text = text_polygon(region.polygon);
    text.text = region.text;
    text.ignored = region.ignored;
    picture.truth.push_back(std::move(text));
  }
  return picture;
}

/// A built-in data set gives samples.
std::vector<TextPicture> truths_of(const Batch& batch) {
  const auto valid = static_cast<size_t>(batch.valid);
  std::vector<TextPicture> pictures;
  if (batch.ground_truth && batch.ground_truth->samples.size() >= valid) {
    for (size_t i = 0; i < valid; ++i) pictures.push_back(truth_of(batch.ground_truth->samples[i]));
  } else {
    const auto& given = text_pictures(batch);
    pictures.assign(given.begin(), given.begin() + batch.valid);
  }
  return pictures;
}

/// A registered network may have another number of outputs.
const at::Tensor& only_one(const Tensors& outputs) {
  if (outputs.size() == 1) return outputs.front();
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("the network has {} outputs; of text it needs one", outputs.size()));
}

/// Whether `output` has `dim` dimensions, the first of at least `count`. Postprocessing reads
/// floats.
bool is_of_pictures(const at::Tensor& output, size_t count, int64_t dim) {
  return output.defined() && output.scalar_type() == at::kFloat && output.dim() == dim &&
         output.size(0) >= static_cast<int64_t>(count);
}

/// `names`: of all terms; a loss may compute the first ones alone, or none.
void log_terms(const std::vector<std::string>& names, const std::vector<at::Tensor>& terms) {
  LoggedValues* const taker = LoggedValues::current();
  if (taker == nullptr) return;
  for (size_t i = 0; i < terms.size(); ++i) {
    if (taker->takes(names[i])) taker->add(names[i], terms[i]);
  }
}

[[noreturn]] void refuse_output(const at::Tensor& output, size_t count, const char* wanted) {
  const auto shown = [&] {
    return fmt::format("({}) {}", fmt::join(output.sizes(), ", "),
                       c10::toString(output.scalar_type()));
  };
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("the network's output for {} pictures is {}; an evaluation needs {}, in "
                          "float32",
                          count, output.defined() ? shown() : "undefined", wanted));
}

}  // namespace

void check_maps(const at::Tensor& output, size_t count) {
  if (is_of_pictures(output, count, 4) && output.size(1) == 1) return;
  refuse_output(output, count, "the map binary, (N, 1, H, W)");
}

void check_frames(const at::Tensor& output, size_t count, int64_t classes) {
  if (!is_of_pictures(output, count, 3)) {
    refuse_output(output, count, "probabilities, (N, T, K)");
  }
  if (output.size(2) == classes) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("the network has {} classes, the dictionary of postprocess has {}, the "
                          "blank included",
                          output.size(2), classes));
}

LoggedLoss text_loss(std::unique_ptr<Loss> loss) {
  const auto names = loss->term_names();
  const std::shared_ptr<Loss> shared = std::move(loss);
  const auto compute = [shared, names](const Tensors& outputs, const Tensors& targets) {
    const at::Tensor sum = (*shared)(only_one(outputs), targets);
    log_terms(names, shared->terms());
    return sum;
  };
  return {compute, names};
}

at::Tensor TextTask::loss(const Tensors& outputs, const Tensors& targets) {
  only_one(outputs);  // for a registered loss, too
  return loss_.function(outputs, targets);
}

std::vector<double> TextTask::sums(const Tensors& outputs, const Batch& batch) {
  auto pictures = truths_of(batch);
  read(only_one(outputs), *batch.ground_truth, pictures);
  Batch seen = batch;
  set_text_pictures(seen, std::move(pictures));
  std::vector<double> sums = {static_cast<double>(batch.valid)};
  add_sums(metrics_, outputs, seen, sums);
  return sums;
}

EvalResult TextTask::result(std::span<const double> sums) {
  EvalResult result;
  result.samples = static_cast<int64_t>(sums[0]);
  add_results(metrics_, sums.subspan(1), result);
  return result;
}

void DetectionTask::read(const at::Tensor& output, const OcrGroundTruth& truth,
                         std::vector<TextPicture>& pictures) const {
  check_maps(output, pictures.size());
  const auto maps = output.select(1, 0).contiguous();
  for (size_t i = 0; i < pictures.size(); ++i) {
    const at::Tensor map = maps[static_cast<int64_t>(i)];
    const cv::Mat probability(static_cast<int>(map.size(0)), static_cast<int>(map.size(1)), CV_32F,
                              map.data_ptr<float>());
    const auto resize = truth.samples.empty() ? std::nullopt : truth.samples[i].resize;
    for (const auto& region : ocr::db_postprocess(probability, resize, postprocess_)) {
      auto text = text_polygon(region.polygon);
      text.score = region.score;
      pictures[i].found.push_back(std::move(text));
    }
  }
}

RecognitionTask::RecognitionTask(LoggedLoss loss, const ocr::CharacterOptions& characters,
                                 MetricList metrics)
    : TextTask(std::move(loss), std::move(metrics)), dictionary_(characters) {}

void RecognitionTask::read(const at::Tensor& output, const OcrGroundTruth&,
                           std::vector<TextPicture>& pictures) const {
  check_frames(output, pictures.size(), dictionary_.num_classes());
  const auto frames = output.contiguous();
  const auto of_image = static_cast<size_t>(output.size(1) * output.size(2));
  for (size_t i = 0; i < pictures.size(); ++i) {
    const std::span<const float> own(frames[static_cast<int64_t>(i)].data_ptr<float>(), of_image);
    auto text = ocr::ctc_text(own, dictionary_);
    pictures[i].read = std::move(text.text);
    pictures[i].confidence = text.confidence;
  }
}

}  // namespace lockstep::inline internal
