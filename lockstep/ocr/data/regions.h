#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lockstep/ocr/sample.h"

namespace lockstep::ocr {

/// Of a label. It exceeds any image, and areas stay exact in double precision.
inline constexpr double kMaxCoordinate = 1e6;

/// The regions of a detection label: a JSON list of {"transcription": TEXT, "points": [[x, y],
/// ..]}; other keys are ignored. A TEXT of "###" or "*" marks a region as ignored. Errors: kCorrupt
/// naming the entry and its fault.
std::vector<TextRegion> parse_regions(std::string_view json);

/// Marks as ignored every region without an inside to train on: fewer than three corners, no area,
/// edges that cross. Adds a line to `remarks` for each.
void ignore_unusable(std::vector<TextRegion>& regions, std::vector<std::string>& remarks);

}  // namespace lockstep::ocr
