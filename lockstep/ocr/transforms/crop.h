#pragma once

#include <optional>
#include <vector>

#include "lockstep/data/philox.h"
#include "lockstep/ocr/sample.h"
#include "lockstep/ocr/transforms/options.h"

namespace lockstep::ocr {

/// Cuts a part that crosses no legible region and holds or overlaps at least one, scales it to fit
/// crop_size, keeping its proportions, at the upper left of a black canvas of that size. The whole
/// image instead, with probability 1 - p and where no such part is found.
///
/// Sets `actual_size` to what is not canvas. Moves all polygons along, those outside included:
/// ValidatePolygons takes them out.
/// Draws: one; then four a try (rows, columns).
void random_crop(const RandomCropWithBBox& options, Sample& sample, Philox& draws);

/// Rows or columns, out of `side`, that no legible region touches. axis 0: columns (x), 1: rows.
std::vector<int> free_lines(const std::vector<TextRegion>& regions, int axis, int side);

/// The part that the tries lead to; nothing: the whole image.
std::optional<cv::Rect> find_crop(const RandomCropWithBBox& options,
                                  const std::vector<TextRegion>& regions, cv::Size size,
                                  Philox& draws);

}  // namespace lockstep::ocr
