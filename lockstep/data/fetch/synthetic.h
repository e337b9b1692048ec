#pragma once
// Synthetic pictures to train on if CIFAR-10 is unavailable.

#include <array>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

namespace lockstep::inline internal {

struct SyntheticOptions {
  int64_t train_records = 10'000;  ///< Spread over data_batch_1.bin .. data_batch_5.bin.
  int64_t test_records = 2'000;
  uint64_t seed = 0;
};

/// Writes a data set in CIFAR-10's binary format into the existing folder `dir`. It has ten shapes
/// (circle, ring, square, triangle, star, cross, crescent, heart, bars, arrow) with random place,
/// size, angle, colour and noise. All shapes are equally frequent. batches.meta.txt has their
/// names, README.txt a note about the data (see synthetic_note.h). One seed gives one data set;
/// train and test share no record.
/// Errors: kInvalidArgument (a count outside [10, 1,000,000]), kIo (disk full).
void write_synthetic_cifar10(const std::filesystem::path& dir,
                             const SyntheticOptions& options = {});

// The ten shapes of the synthetic data set.

inline constexpr std::array<std::string_view, 10> kShapeNames = {
    "circle", "ring", "square", "triangle", "star", "cross", "crescent", "heart", "bars", "arrow"};

/// Whether the point belongs to the shape; x to the right, y up. Every shape lies in the circle of
/// radius kShapeRadius around the origin.
bool shape_contains(int shape, double x, double y);
inline constexpr double kShapeRadius = 1.4;

/// Draws one 32x32 picture of `shape` into `image` (3072 bytes, planes red, green, blue). All
/// random values follow from (seed, stream, index). It uses only arithmetic that IEEE 754 fixes, so
/// that any machine draws the same.
void draw_shape(int shape, uint64_t seed, uint32_t stream, uint64_t index,
                std::span<uint8_t> image);

}  // namespace lockstep::inline internal
