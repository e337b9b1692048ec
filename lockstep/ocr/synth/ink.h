#pragma once
// Paints drawn text onto a picture.

#include <opencv2/core.hpp>
#include <optional>

#include "lockstep/ocr/synth/dice.h"
#include "lockstep/ocr/synth/style.h"
#include "lockstep/ocr/synth/text_mask.h"

namespace lockstep::ocr {

using Corners = std::array<cv::Point2d, 4>;  ///< Upper left, upper right, lower right, lower left.

/// How text is painted.
struct InkLook {
  cv::Scalar colour;
  std::optional<cv::Scalar> outline;  ///< Around every letter, one pixel of the mask wide.
  std::optional<cv::Scalar> shadow;
  cv::Point2d shadow_shift;  ///< In pixels of the picture.
};

double brightness(const cv::Scalar& bgr);
/// Draws a look whose brightness differs from `ground` by `style.contrast`.
InkLook draw_look(Dice& dice, const cv::Scalar& ground, double text_height,
                  const SynthStyle& style);

Corners corners_of(const cv::Rect2d& box);
/// A random view of a box: rotated around its centre by up to `style.tilt`, then each corner
/// shifted by up to style.perspective * `height` either way.
Corners draw_view(Dice& dice, const cv::Rect2d& box, double height, const SynthStyle& style);
cv::Matx33d view_matrix(const cv::Rect2d& box, const Corners& seen);
Corners map_corners(const cv::Matx33d& view, const Corners& corners);
/// Their upright bounding box.
cv::Rect2d bounds_of(const Corners& corners);

/// Paints `mask`, transformed by `view` (from edges of the mask's pixels to edges of the
/// picture's), onto an 8-bit BGR picture.
void paint(cv::Mat& image, const TextMask& mask, const cv::Matx33d& view, const InkLook& look);

}  // namespace lockstep::ocr
