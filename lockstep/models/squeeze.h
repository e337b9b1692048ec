#pragma once

#include <memory>

#include "lockstep/models/model.h"

namespace lockstep {

/// x * hardsigmoid(conv2(relu(conv1(mean of x)))): 1x1 convolutions to a quarter of the channels,
/// rounded down, and back. MindOCR's SEModule. (N, C, H, W) -> the same.
std::shared_ptr<Model> make_squeeze(int64_t channels);

}  // namespace lockstep
