#pragma once

#include "lockstep/models/zoo/zoo.h"

namespace lockstep {

/// vit_b_16 and vit_s_16. Source: Dosovitskiy et al., "An Image is Worth 16x16 Words", ICLR 2021;
/// the small one: Touvron et al., "Training data-efficient image transformers", ICML 2021.
std::vector<ZooNetwork> vision_transformers();

}  // namespace lockstep
