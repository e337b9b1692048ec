#pragma once
// timm's names of tensors, where they are not torchvision's.

#include <string>
#include <string_view>

namespace lockstep {

/// torchvision's name of a tensor of timm's vision transformers and ConvNeXts, whose tensors have
/// the same meaning and layout; also that of torchvision's first transformers (mlp.linear_1).
/// "blocks.0.norm1.bias" is "encoder.layers.encoder_layer_0.ln_1.bias". Empty for other names.
/// timm's ResNets have torchvision's names.
std::string torchvision_name(std::string_view name);

}  // namespace lockstep
