#pragma once

#include "lockstep/models/zoo/zoo.h"

namespace lockstep {

/// convnext_tiny. Source: Liu et al., "A ConvNet for the 2020s", CVPR 2022.
std::vector<ZooNetwork> convnexts();

}  // namespace lockstep
