#include "lockstep/ocr/synth/ink.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <opencv2/imgproc.hpp>

#include "lockstep/ocr/synth/backdrop.h"

namespace lockstep::ocr {
namespace {

cv::Matx33d shift(double x, double y) {
  return {1, 0, x, 0, 1, y, 0, 0, 1};
}

void blend(cv::Mat image, const cv::Mat& alpha, const cv::Scalar& colour) {
  const std::array<int, 3> ink = {cv::saturate_cast<uint8_t>(colour[0]),
                                  cv::saturate_cast<uint8_t>(colour[1]),
                                  cv::saturate_cast<uint8_t>(colour[2])};
  for (int y = 0; y < image.rows; ++y) {
    auto* pixel = image.ptr<uint8_t>(y);
    const auto* cover = alpha.ptr<uint8_t>(y);
    for (int x = 0; x < image.cols; ++x, pixel += 3) {
      const int part = cover[x];
      if (part == 0) continue;
      for (size_t c = 0; c < 3; ++c) {
        pixel[c] = static_cast<uint8_t>((pixel[c] * (255 - part) + ink[c] * part + 127) / 255);
      }
    }
  }
}

/// Paints `alpha`, transformed by `view`, onto the part of the picture that it covers.
void paint_alpha(cv::Mat& image, const cv::Mat& alpha, const cv::Matx33d& view,
                 const cv::Scalar& colour) {
  const cv::Rect2d seen = bounds_of(map_corners(
      view, corners_of({0, 0, static_cast<double>(alpha.cols), static_cast<double>(alpha.rows)})));
  const cv::Rect reach =
      cv::Rect(static_cast<int>(std::floor(seen.x)), static_cast<int>(std::floor(seen.y)),
               static_cast<int>(std::ceil(seen.width)) + 2,
               static_cast<int>(std::ceil(seen.height)) + 2) &
      cv::Rect(0, 0, image.cols, image.rows);
  if (reach.empty()) return;
  // OpenCV's coordinates refer to pixels' centres.
  const cv::Matx33d centres = shift(-0.5 - reach.x, -0.5 - reach.y) * view * shift(0.5, 0.5);
  cv::Mat warped;
  cv::warpPerspective(alpha, warped, centres, reach.size(), cv::INTER_LINEAR, cv::BORDER_CONSTANT);
  blend(image(reach), warped, colour);
}

}  // namespace

double brightness(const cv::Scalar& bgr) {
  return 0.114 * bgr[0] + 0.587 * bgr[1] + 0.299 * bgr[2];
}

InkLook draw_look(Dice& dice, const cv::Scalar& ground, double text_height,
                  const SynthStyle& style) {
  const double against = brightness(ground);
  InkLook look;
  const auto differs = [&] {
    return std::abs(brightness(look.colour) - against) >= style.contrast;
  };
  look.colour = draw_colour(dice);
  for (int tries = 0; tries < 20 && !differs(); ++tries) look.colour = draw_colour(dice);
  if (!differs()) look.colour = against < 128 ? cv::Scalar::all(250) : cv::Scalar::all(5);
  // Shadow and outline lie on the ground's side in brightness, so text stands out more.
  const double far = brightness(look.colour) > against ? dice.real(0, 40) : dice.real(215, 255);
  if (dice.chance(style.effects)) {
    const double reach = std::max(text_height / 16, 1.0);
    look.shadow = cv::Scalar::all(far);
    look.shadow_shift = {dice.real(-reach, reach), dice.real(0.3 * reach, reach)};
  } else if (text_height >= 24 && dice.chance(style.effects)) {
    look.outline = cv::Scalar::all(far);
  }
  return look;
}

Corners corners_of(const cv::Rect2d& box) {
  return {cv::Point2d(box.x, box.y), cv::Point2d(box.x + box.width, box.y),
          cv::Point2d(box.x + box.width, box.y + box.height),
          cv::Point2d(box.x, box.y + box.height)};
}

Corners draw_view(Dice& dice, const cv::Rect2d& box, double height, const SynthStyle& style) {
  const double angle = dice.real(-style.tilt, style.tilt) * CV_PI / 180;
  const double reach = style.perspective * height;
  const cv::Point2d centre(box.x + box.width / 2, box.y + box.height / 2);
  Corners seen = corners_of(box);
  for (cv::Point2d& corner : seen) {
    const cv::Point2d arm = corner - centre;
    corner = centre + cv::Point2d(std::cos(angle) * arm.x - std::sin(angle) * arm.y,
                                  std::sin(angle) * arm.x + std::cos(angle) * arm.y);
    corner.x += dice.real(-reach, reach);
    corner.y += dice.real(-reach, reach);
  }
  return seen;
}

cv::Matx33d view_matrix(const cv::Rect2d& box, const Corners& seen) {
  std::array<cv::Point2f, 4> from, to;
  const Corners flat = corners_of(box);
  for (size_t i = 0; i < 4; ++i) {
    from[i] = flat[i];
    to[i] = seen[i];
  }
  return cv::Matx33d(cv::getPerspectiveTransform(from.data(), to.data()));
}

Corners map_corners(const cv::Matx33d& view, const Corners& corners) {
  Corners mapped;
  for (size_t i = 0; i < 4; ++i) {
    const cv::Vec3d point = view * cv::Vec3d(corners[i].x, corners[i].y, 1);
    mapped[i] = {point[0] / point[2], point[1] / point[2]};
  }
  return mapped;
}

cv::Rect2d bounds_of(const Corners& corners) {
  cv::Point2d low = corners[0], high = corners[0];
  for (const cv::Point2d& corner : corners) {
    low = {std::min(low.x, corner.x), std::min(low.y, corner.y)};
    high = {std::max(high.x, corner.x), std::max(high.y, corner.y)};
  }
  return {low.x, low.y, high.x - low.x, high.y - low.y};
}

void paint(cv::Mat& image, const TextMask& mask, const cv::Matx33d& view, const InkLook& look) {
  if (look.shadow) {
    const cv::Matx33d below = shift(look.shadow_shift.x, look.shadow_shift.y) * view;
    paint_alpha(image, mask.alpha, below, *look.shadow);
  }
  if (look.outline) {
    cv::Mat wider;
    cv::dilate(mask.alpha, wider, cv::getStructuringElement(cv::MORPH_ELLIPSE, {3, 3}));
    paint_alpha(image, wider, view, *look.outline);
  }
  paint_alpha(image, mask.alpha, view, look.colour);
}

}  // namespace lockstep::ocr
