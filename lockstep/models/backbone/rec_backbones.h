#pragma once
// The networks that turn a line of text into features.

#include <memory>

#include "lockstep/model.h"

namespace lockstep::inline internal {

/// ResNet-34 for lines of text: only the first pooling halves the columns.
/// Three 3x3 convolutions (32, 32, 64) and a max-pool of 3x3, stride 2; 3, 4, 6 and 3 basic blocks
/// of 64, 128, 256 and 512 channels; a max-pool of 2x2, stride 2. Each stage after the first halves
/// the rows. A shortcut that halves rows is a mean over (2, 1), then 1x1. forward: (N, 3, H, W) ->
/// (N, 512, ceil(H / 32), ceil(W / 4)): 32x100 -> 1x25. One feature map. Names:
/// conv1_{1,2,3}.{conv,norm}, block_list.I.{conv0,conv1,short}.{conv,norm}. Initial values: those
/// of PyTorch and MindSpore 2.
std::shared_ptr<Backbone> make_rec_resnet34();

/// Seven convolutions for lines of text, each with bias and ReLU: 3x3 to 64, 128, 256, 256, 512 and
/// 512 channels, then 2x2 without padding to 512. Batch norm (epsilon 1e-4) follows the third,
/// fifth and seventh; max-pools of 2x2 the first and second, of (2, 1) the fourth and sixth.
/// forward: (N, 3, H, W) -> (N, 512, H / 16 - 1, W / 4 - 1): 32x100 -> 1x24. One feature map.
/// Names: conv{1..7}.{conv,bn}. Initial values: truncated normal, deviation 0.02 for weights, 0.01
/// for biases. Source: Simonyan, Zisserman, "Very Deep Convolutional Networks", 2015. Shi et al.
/// cut it for CRNN: "An End-to-End Trainable Neural Network for Image-based Sequence Recognition",
/// 2017.
std::shared_ptr<Backbone> make_rec_vgg7();

}  // namespace lockstep::inline internal
