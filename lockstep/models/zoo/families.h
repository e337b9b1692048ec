#pragma once
// The networks of each family, for the list in zoo.cpp, which has those of residual blocks itself.

#include <vector>

#include "lockstep/models/zoo/zoo.h"

namespace lockstep::inline internal {

/// mobilenet_v3_large and mobilenet_v3_small.
/// Source: Howard et al., "Searching for MobileNetV3", ICCV 2019, tables 1 and 2.
std::vector<ZooNetwork> mobilenets_v3();

/// efficientnet_b0.
/// Source: Tan and Le, "EfficientNet: Rethinking Model Scaling for Convolutional Neural Networks",
/// ICML 2019, table 1.
std::vector<ZooNetwork> efficientnets();

/// convnext_tiny. Source: Liu et al., "A ConvNet for the 2020s", CVPR 2022.
std::vector<ZooNetwork> convnexts();

/// vit_b_16 and vit_s_16. Source: Dosovitskiy et al., "An Image is Worth 16x16 Words", ICLR 2021;
/// the small one: Touvron et al., "Training data-efficient image transformers", ICML 2021.
std::vector<ZooNetwork> vision_transformers();

}  // namespace lockstep::inline internal
