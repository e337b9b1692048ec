#pragma once
// Private to the layer.

#include <cstdint>
#include <optional>
#include <vector>

#include "lockstep/checkpoint/safetensors_format.h"

namespace lockstep {

/// Bytes of a tensor; none when they are not a whole number below 2^64, or its extents other than 0
/// multiply to 2^63 or more, for which no tensor has strides.
std::optional<uint64_t> stored_bytes(StoredType type, const std::vector<uint64_t>& shape);

}  // namespace lockstep
