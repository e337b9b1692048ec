#pragma once

#include <cstdint>

namespace lockstep::inline internal {

/// Of the images of a batch. Bytes are a quarter of the memory. Floats are made of them by
/// Batch::move_to().
enum class PixelForm : uint8_t { kFloats, kBytes };

}  // namespace lockstep::inline internal
