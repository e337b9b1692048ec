#pragma once

#include <optional>
#include <vector>

#include "lockstep/base/philox.h"
#include "lockstep/ocr/sample.h"
#include "lockstep/ocr/transforms/options.h"

namespace lockstep::ocr {

/// A part of an image of `size` that crosses no legible region and overlaps at least one. It is the
/// whole image with probability 1 - p, or if there is no such part. Draws: one; then four a try
/// (rows, columns).
cv::Rect draw_crop(const RandomCropWithBBox& options, const std::vector<TextRegion>& regions,
                   cv::Size size, Philox& draws);

/// The factor by which `part` fits crop_size, with its proportions.
double fitting_scale(const RandomCropWithBBox& options, const cv::Rect& part);

/// Puts `fitted`, which is `part` times `scale`, at the upper left of a black canvas of crop_size.
/// The canvas becomes the image; `actual_size` is the size of `fitted` on it. Moves all regions,
/// even those outside: ValidatePolygons removes them.
void place_crop(const RandomCropWithBBox& options, const cv::Rect& part, double scale,
                const cv::Mat& fitted, Sample& sample);

/// Rows or columns, out of `side`, that no legible region touches. axis 0: columns (x), 1: rows.
std::vector<int> free_lines(const std::vector<TextRegion>& regions, int axis, int side);

/// The part that the tries find; empty: the whole image.
std::optional<cv::Rect> find_crop(const RandomCropWithBBox& options,
                                  const std::vector<TextRegion>& regions, cv::Size size,
                                  Philox& draws);

/// Removes regions without a common point with the image (after RandomCropWithBBox its
/// `actual_size`). Ignores regions with fewer than min_area visible pixels. With
/// clip_to_visible_area, polygons become their visible part (the largest of several), ignored below
/// min_vertices corners; else they stay unchanged.
void validate_polygons(const ValidatePolygons& options, Sample& sample);

}  // namespace lockstep::ocr
