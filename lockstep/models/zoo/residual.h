#pragma once

#include "lockstep/models/zoo/zoo.h"

namespace lockstep {

/// resnet18, 34, 50 and 101, resnext50_32x4d, wide_resnet50_2; see backbone/resnet.h.
std::vector<ZooNetwork> residual_networks();

}  // namespace lockstep
