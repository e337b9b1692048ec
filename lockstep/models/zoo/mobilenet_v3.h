#pragma once

#include "lockstep/models/zoo/zoo.h"

namespace lockstep {

/// mobilenet_v3_large and mobilenet_v3_small.
/// Source: Howard et al., "Searching for MobileNetV3", ICCV 2019, tables 1 and 2.
std::vector<ZooNetwork> mobilenets_v3();

}  // namespace lockstep
