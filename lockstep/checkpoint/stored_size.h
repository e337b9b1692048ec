#pragma once
// Private to the layer.

#include <cstdint>
#include <optional>
#include <vector>

#include "lockstep/checkpoint/safetensors_format.h"

namespace lockstep {

/// Bytes of a tensor; none when they are not a whole number below 2^64.
std::optional<uint64_t> stored_bytes(StoredType type, const std::vector<uint64_t>& shape);

}  // namespace lockstep
