#pragma once
// Bounds of what agents tell each other: those of the command line.

#include <cstdint>

namespace lockstep {

inline constexpr int kMaxPort = 65535;
inline constexpr int kMaxNodes = 1 << 20;
inline constexpr int kMaxLocalRanks = 1 << 16;
/// No job has as many, and sums with it stay far from the end of the range.
inline constexpr int64_t kMaxGeneration = int64_t{1} << 53;
inline constexpr int kMaxRestarts = 1 << 30;
inline constexpr int kMaxSuccessors = 8;

}  // namespace lockstep
