#pragma once

#include <optional>
#include <vector>

#include "lockstep/base/philox.h"
#include "lockstep/ocr/sample.h"
#include "lockstep/ocr/transforms/options.h"

namespace lockstep::ocr {

/// A part of an image of `size` that crosses no legible region and overlaps at least one. The whole
/// image instead, with probability 1 - p and where no such part is found.
/// Draws: one; then four a try (rows, columns).
cv::Rect draw_crop(const RandomCropWithBBox& options, const std::vector<TextRegion>& regions,
                   cv::Size size, Philox& draws);

/// Factor by which `part` is brought to fit crop_size, its proportions kept.
double fitting_scale(const RandomCropWithBBox& options, const cv::Rect& part);

/// Puts `fitted`, which is `part` times `scale`, at the upper left of a black canvas of crop_size,
/// which becomes the image; sets `actual_size` to what is not canvas. Moves all regions along,
/// those outside included: ValidatePolygons takes them out.
void place_crop(const RandomCropWithBBox& options, const cv::Rect& part, double scale,
                const cv::Mat& fitted, Sample& sample);

/// Rows or columns, out of `side`, that no legible region touches. axis 0: columns (x), 1: rows.
std::vector<int> free_lines(const std::vector<TextRegion>& regions, int axis, int side);

/// The part that the tries lead to; nothing: the whole image.
std::optional<cv::Rect> find_crop(const RandomCropWithBBox& options,
                                  const std::vector<TextRegion>& regions, cv::Size size,
                                  Philox& draws);

/// Takes out regions that have no point in common with the image (where RandomCropWithBBox left
/// padding: with `actual_size`), and ignores those of which less than min_area pixels are visible.
/// With clip_to_visible_area, polygons become their visible part (the largest where it is in
/// pieces), ignored below min_vertices corners; else they stay as they are.
void validate_polygons(const ValidatePolygons& options, Sample& sample);

}  // namespace lockstep::ocr
