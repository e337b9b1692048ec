#pragma once

#include "lockstep/models/zoo/zoo.h"

namespace lockstep {

/// efficientnet_b0.
/// Source: Tan and Le, "EfficientNet: Rethinking Model Scaling for Convolutional Neural Networks",
/// ICML 2019, table 1.
std::vector<ZooNetwork> efficientnets();

}  // namespace lockstep
