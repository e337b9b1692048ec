#pragma once
// Heads of networks: for classes, for the characters of a line, for places of text.

#include <memory>

#include "lockstep/model.h"
#include "lockstep/models/spec/model_spec.h"

namespace lockstep::inline internal {

/// Mean over the image, then one linear layer `fc`. forward: (N, in_channels, H, W) -> (N, K)
/// logits, K = num_classes. Errors: kInvalidArgument if a size is below 1.
std::shared_ptr<Model> make_cls_head(int64_t in_channels, int64_t num_classes);

/// One linear layer `dense1`, or with mid_channels two (`dense1`, dropout, `dense2`, no activation
/// between). forward: (W, N, in_channels) -> in training logits (W, N, K), else probabilities (N,
/// W, K); K = out_channels, the blank is the last class.
/// Initial values of both layers: weight_init "normal" (deviation 0.01) or "crnn_customised"
/// (U(+-1/sqrt(in_channels))), bias_init "zeros" or "crnn_customised".
/// Errors: kInvalidArgument for other names, and for sizes below 1.
std::shared_ptr<Model> make_ctc_head(int64_t in_channels, const HeadSpec& spec);

/// The approximate step function of a pixel's probability and its threshold.
/// kMindocr: sigmoid(k binary - threshold). MindOCR's published weights were trained with it.
/// kPaper: sigmoid(k (binary - threshold)).
enum class StepFunction { kMindocr, kPaper };

/// Probability of text, and in training a threshold and the approximate binary map, for each pixel.
/// Each of the two branches has three convolutions. The first is of 3x3, to in_channels / 4. Two
/// transposed ones of 2x2 and stride 2 follow, the last to one channel. Batch norm and ReLU come
/// after the first two, a sigmoid after the last.
/// forward: (N, in_channels, H, W) -> in training, if `adaptive`, (N, 3, 4 H, 4 W): binary, thresh,
/// thresh_binary; else (N, 1, 4 H, 4 W): binary.
/// The sigmoids and the outputs are float32 under mixed precision, too.
/// Names: segm.{0,1,3,4,6}, thresh.{0,1,3,4,6}. Initial weights: he_uniform_().
/// Source: Liao et al., "Real-time Scene Text Detection with Differentiable Binarization", 2020.
std::shared_ptr<Model> make_db_head(int64_t in_channels, const HeadSpec& spec, StepFunction step);

}  // namespace lockstep::inline internal
