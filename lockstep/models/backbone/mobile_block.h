#pragma once
// The blocks of MobileNetV3, of which two backbones are made.

#include <cstdint>
#include <span>
#include <string>

namespace lockstep {

/// A line of the paper's tables 1 and 2.
struct MobileBlock {
  int64_t kernel;
  int64_t expanded;
  int64_t out;
  bool squeezes;
  bool hard_swish;
  int64_t stride;
};

/// Of "large", else of "small".
std::span<const MobileBlock> mobile_blocks(const std::string& architecture);

/// The multiple of 8 nearest to `channels`, but not a tenth below it.
int64_t round_to_8(double channels);

}  // namespace lockstep
