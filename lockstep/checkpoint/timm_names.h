#pragma once
// timm's names of tensors, where they are not torchvision's.

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::inline internal {

/// torchvision's name of a tensor of timm's vision transformers and ConvNeXts, whose tensors have
/// the same meaning and layout; also that of torchvision's first transformers (mlp.linear_1).
/// "blocks.0.norm1.bias" is "encoder.layers.encoder_layer_0.ln_1.bias". Empty for other names.
/// timm's ResNets have torchvision's names.
std::string torchvision_name(std::string_view name);

/// The same for all tensors of a file, in their order; also for timm's MobileNetV3 and
/// EfficientNet. There torchvision's numbers count the blocks and parts in front, so the other
/// names matter. With two blocks in front "blocks.1.1.conv_pwl.weight" is
/// "features.3.block.2.0.weight". If its block has `se`, too, it is "features.3.block.3.0.weight".
/// In an EfficientNet it is "features.2.1.block.3.0.weight".
std::vector<std::string> torchvision_names(const std::vector<std::string>& file);

}  // namespace lockstep::inline internal
