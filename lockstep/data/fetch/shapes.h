#pragma once
// The ten shapes of the stand-in data set.

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace lockstep {

inline constexpr std::array<std::string_view, 10> kShapeNames = {
    "circle", "ring", "square", "triangle", "star", "cross", "crescent", "heart", "bars", "arrow"};

/// Whether the point belongs to the shape; x to the right, y up. Every shape lies in the circle of
/// radius kShapeRadius around the origin.
bool shape_contains(int shape, double x, double y);
inline constexpr double kShapeRadius = 1.4;

/// Draws one 32x32 picture of `shape` into `image` (3072 bytes, planes red, green, blue). All that
/// is random in it follows from (seed, stream, index); only arithmetic that IEEE 754 fixes is used,
/// so that any machine draws the same.
void draw_shape(int shape, uint64_t seed, uint32_t stream, uint64_t index,
                std::span<uint8_t> image);

}  // namespace lockstep
