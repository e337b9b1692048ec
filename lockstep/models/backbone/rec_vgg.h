#pragma once

#include <memory>

#include "lockstep/models/model.h"

namespace lockstep {

/// Seven convolutions for lines of text, each with bias and ReLU: 3x3 to 64, 128, 256, 256, 512 and
/// 512 channels, then 2x2 without padding to 512. Batch norm (epsilon 1e-4) after the third, fifth
/// and seventh. Max-pools of 2x2 after the first and the second, of (2, 1) after the fourth and
/// the sixth.
/// forward: (N, 3, H, W) -> (N, 512, H / 16 - 1, W / 4 - 1): 32x100 -> 1x24. One feature map.
/// Names: conv{1..7}.{conv,bn}. Start values: truncated normal, deviation 0.02 for weights, 0.01
/// for biases.
/// Source: Simonyan, Zisserman, "Very Deep Convolutional Networks", 2015, as cut for CRNN by Shi et
/// al., "An End-to-End Trainable Neural Network for Image-based Sequence Recognition", 2017.
std::shared_ptr<FeatureBackbone> make_rec_vgg7();

}  // namespace lockstep
