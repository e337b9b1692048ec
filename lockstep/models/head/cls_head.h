#pragma once

#include <memory>

#include "lockstep/models/model.h"

namespace lockstep {

/// Mean over the image, then one linear layer `fc`. forward: (N, in_channels, H, W) -> (N, K)
/// logits, K = num_classes. Errors: kInvalidArgument if a size is below 1.
std::shared_ptr<Model> make_cls_head(int64_t in_channels, int64_t num_classes);

}  // namespace lockstep
