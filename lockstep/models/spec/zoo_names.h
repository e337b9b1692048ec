#pragma once
// The networks of the zoo by name, for programs without libtorch.

#include <array>
#include <string_view>

namespace lockstep::inline internal {

/// Those of zoo() (models/zoo/zoo.h), in its order.
inline constexpr std::array<std::string_view, 12> kZooNames = {
    "resnet18",        "resnet34",        "resnet50",           "resnet101",
    "resnext50_32x4d", "wide_resnet50_2", "mobilenet_v3_large", "mobilenet_v3_small",
    "efficientnet_b0", "convnext_tiny",   "vit_b_16",           "vit_s_16"};

}  // namespace lockstep::inline internal
