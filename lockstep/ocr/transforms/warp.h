#pragma once
// Scaling, turning and mirroring an image together with its regions.

#include "lockstep/data/philox.h"
#include "lockstep/ocr/sample.h"
#include "lockstep/ocr/transforms/options.h"

namespace lockstep::ocr {

/// With probability p: image and polygons times a factor from scale_range, which size_limits
/// narrows. Draws: one, then one. Error(kInvalidArgument): more than kMaxImagePixels.
void random_scale(const RandomScale& options, Sample& sample, Philox& draws);

/// With probability p: turns by a whole number of degrees, counterclockwise for the eye, around
/// pixel (W / 2, H / 2), halves cut off; black where there was nothing. Expanded, the canvas is
/// int(H |sin| + W |cos|) wide and int(H |cos| + W |sin|) high, the centre in its middle.
/// Draws: one, then one.
void random_rotate(const RandomRotate& options, Sample& sample, Philox& draws);

/// With probability p: left becomes right, x becomes W - 1 - x, and the order of corners is
/// reversed, so that they go round as before. Draws: one.
void random_flip(const RandomHorizontalFlip& options, Sample& sample, Philox& draws);

/// For a range and sides, the range narrowed by size_limits: neither side may come out below the
/// first or above the second. The ends may have changed places where both cannot hold.
std::array<double, 2> limited_range(const RandomScale& options, cv::Size size);

}  // namespace lockstep::ocr
