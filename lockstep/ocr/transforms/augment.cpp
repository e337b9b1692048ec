#include "lockstep/ocr/transforms/augment.h"

#include <fmt/format.h>

#include "lockstep/error.h"
#include "lockstep/ocr/transforms/crop.h"
#include "lockstep/ocr/transforms/resize_part.h"
#include "lockstep/ocr/transforms/warp.h"

namespace lockstep::ocr {
namespace {

/// Decides all warps and moves the regions.
std::vector<Warp> decide(const std::vector<WarpOptions>& options, size_t place,
                         const SampleDraws& draws, Sample& sample) {
  std::vector<Warp> warps;
  cv::Size size = sample.image.size();
  for (const auto& one : options) {
    Philox stream = draws.at(place++);
    const auto warp = std::visit([&](const auto& o) { return draw(o, size, stream); }, one);
    if (!warp) continue;
    move_regions(*warp, sample.regions);
    size = warp->to;
    warps.push_back(*warp);
  }
  return warps;
}

cv::Size size_after(const std::vector<Warp>& warps, const Sample& sample) {
  return warps.empty() ? sample.image.size() : warps.back().to;
}

}  // namespace

void warp_image(const std::vector<WarpOptions>& warps, size_t place, const SampleDraws& draws,
                Sample& sample) {
  const auto decided = decide(warps, place, draws, sample);
  if (decided.empty()) return;
  sample.image = warped_part(decided, sample.image, cv::Rect({}, size_after(decided, sample)));
}

void warp_and_crop(const std::vector<WarpOptions>& warps, const RandomCropWithBBox& crop,
                   size_t place, const SampleDraws& draws, Sample& sample) {
  const auto decided = decide(warps, place, draws, sample);
  Philox stream = draws.at(place + warps.size());
  const cv::Rect part = draw_crop(crop, sample.regions, size_after(decided, sample), stream);
  const double scale = fitting_scale(crop, part);
  if (resized_size(part.size(), scale).empty()) {  // so thin that the canvas has no pixel for it
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("RandomCropWithBBox: nothing is left of {} x {} pixels on a canvas of "
                            "{} x {}",
                            part.width, part.height, crop.crop_size[1], crop.crop_size[0]));
  }
  place_crop(crop, part, scale, warped_part(decided, sample.image, part, scale), sample);
}

}  // namespace lockstep::ocr
