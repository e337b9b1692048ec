#pragma once
// Residual networks for images.
// Source: He et al., "Deep Residual Learning for Image Recognition", CVPR 2016. The 3x3 convolution
// of a bottleneck has its stride, as in torchvision ("ResNet v1.5"). With Stem::kMindSpore its
// first 1x1 convolution has it, as in the paper.

#include <memory>
#include <vector>

#include "lockstep/models/model.h"
#include "lockstep/models/spec/model_spec.h"

namespace lockstep::inline internal {

/// Known depths: 18 and 34 (basic blocks, 512 output channels), 50, 101 and 152 (bottlenecks, 2048
/// output channels).
const std::vector<int>& resnet_depths();

/// The 3x3 convolution of a bottleneck: its groups, and the channels of each in the first stage. 32
/// and 4: ResNeXt 32x4d (Xie et al., CVPR 2017). 1 and 128: the wide ResNet (Zagoruyko and
/// Komodakis, BMVC 2016).
struct BottleneckWidth {
  int64_t groups = 1;
  int64_t per_group = 64;
};

/// forward: (N, 3, H, W) -> (N, 512 or 2048, H', W'), H' and W' as in Stem, rounded up. Modules
/// have torchvision's names: conv1, bn1, layer1.0.conv1, layer1.0.downsample.0, ... They are
/// constructed in torchvision's order and with libtorch's initial values; init_resnet() sets their
/// own. `width` has no effect on basic blocks. Errors: kInvalidArgument for another depth.
std::shared_ptr<Backbone> make_resnet(int depth, Stem stem, const BottleneckWidth& width = {});

/// The backbones of text detection: as make_resnet(depth, Stem::kImageNet), with the initial values
/// of init_resnet(). The max-pool pads as same_padding(), which MindOCR's weights need. features:
/// (N, 3, H, W) -> four maps, of strides 4, 8, 16 and 32 (sizes rounded up), the outputs of layer1
/// to layer4.
/// With `dcn` each block's conv2 in layer2 to layer4 is a deformable convolution with offsets from
/// its `conv2_offset` (DBNet++ paper, section 3.1, and its authors' code). Errors: kInvalidArgument
/// for another depth.
std::shared_ptr<Backbone> make_det_resnet(int depth, bool dcn);

/// Sets the initial values of every convolution (normal, Kaiming, fan-out, ReLU) and batch norm (1
/// and 0) under `net`, in the order of its modules. Linear layers keep libtorch's. With
/// `zero_init_residual` the last batch norm of each block starts at 0. Each block then starts as
/// the identity (Goyal et al., 2017, section 5.1). A seed gives the same numbers as
/// torchvision.models.resnet after the same torch.manual_seed.
void init_resnet(torch::nn::Module& net, bool zero_init_residual);

/// Sets the initial values of MindSpore's tutorial: weights of convolutions and linear layers
/// Xavier uniform, scales of norms and biases of linear layers U(-0.07, 0.07), shifts 0. The norms
/// keep 0.99 of their running statistics in a step.
void init_as_mindspore(torch::nn::Module& net);

}  // namespace lockstep::inline internal
