#include "lockstep/ocr/transforms/byte_form.h"

#include <algorithm>
#include <cstdint>

#include "lockstep/ocr/transforms/normalize.h"
#include "lockstep/ocr/transforms/rec_image.h"

namespace lockstep::ocr {
namespace {

using Steps = std::vector<Transform>;

bool is_planar_step(const Transform& step) {
  return std::holds_alternative<ToCHWImage>(step);
}

bool decodes_to_colours(const Transform& step) {
  const auto* decode = std::get_if<DecodeImage>(&step);
  return decode != nullptr && !decode->to_float32 && decode->img_mode != ImageMode::kGray;
}

/// Whether 8-bit colours of three channels remain such.
bool keeps_bytes(const Transform& step) {
  if (std::holds_alternative<DecodeImage>(step)) return decodes_to_colours(step);
  return !is_planar_step(step) && !std::holds_alternative<NormalizeImage>(step) &&
         !std::holds_alternative<RecResizeNormForInfer>(step);
}

/// Whether a step does not look at the image.
bool is_of_labels(const Transform& step) {
  return std::holds_alternative<DetLabelEncode>(step) ||
         std::holds_alternative<RecCTCLabelEncode>(step);
}

/// Leaves the step's arithmetic to a device. Returns what it is; none if it cannot be left.
std::optional<NormalizeImage> leave_out(Transform& step) {
  if (auto* normalize = std::get_if<NormalizeImage>(&step)) {
    normalize->left_out = true;
    return *normalize;
  }
  auto* resize = std::get_if<RecResizeNormForInfer>(&step);
  if (resize == nullptr || (resize->norm_before_pad && resize->padding && resize->keep_ratio)) {
    return std::nullopt;
  }
  resize->left_out = true;
  return normalization_of(*resize);
}

cv::Mat values_of(const NormalizeImage& normalize) {
  cv::Mat all(1, 256, CV_8U);
  for (int byte = 0; byte < all.cols; ++byte) all.at<uint8_t>(byte) = static_cast<uint8_t>(byte);
  return normalized_planes(normalize, {all, all, all}).reshape(1, 3);
}

}  // namespace

std::optional<ByteForm> as_bytes(const std::vector<Transform>& transforms) {
  if (transforms.empty() || !decodes_to_colours(transforms.front())) return std::nullopt;
  Steps steps = transforms;
  const auto last = std::find_if_not(steps.begin(), steps.end(), keeps_bytes);
  if (last == steps.end()) return std::nullopt;
  const auto arithmetic = leave_out(*last);
  if (!arithmetic) return std::nullopt;
  const auto planar = std::find_if(last + 1, steps.end(), is_planar_step);
  if (planar != steps.end()) steps.erase(planar);
  if (!std::all_of(last + 1, steps.end(), is_of_labels)) return std::nullopt;
  return ByteForm{std::move(steps), values_of(*arithmetic)};
}

}  // namespace lockstep::ocr
