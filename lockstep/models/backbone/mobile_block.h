#pragma once
// The blocks of MobileNetV3, used by two backbones.

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

/// The blocks of "large", or those of "small" for any other name.
std::span<const MobileBlock> mobile_blocks(const std::string& architecture);

/// The multiple of 8 nearest to `channels`, at most a tenth below it.
int64_t round_to_8(double channels);

}  // namespace lockstep
