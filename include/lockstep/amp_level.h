#pragma once
// The levels of mixed precision, under the names that Apex gave them and MindOCR took over.

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep {

/// The operations that compute in a 16-bit type. Weights, optimizer state, loss and checkpoints are
/// float32 at every level.
enum class AmpLevel : uint8_t {
  kO0,  ///< None.
  kO1,  ///< Those that libtorch's autocast lists: convolutions and matrix products.
  kO2,  ///< All but batch norm, whose scales, shifts and statistics stay float32.
  kO3,  ///< All. As in MindOCR the optimizer still updates float32 weights; Apex's O3 keeps none.
};

/// "O0" ... "O3".
const std::vector<std::string>& amp_level_names();
const std::string& to_string(AmpLevel level);
/// Errors: kInvalidArgument naming the known ones.
AmpLevel parse_amp_level(const std::string& name);

}  // namespace lockstep
