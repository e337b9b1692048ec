#pragma once
// Models by name, put together from a backbone and a head as MindOCR's configurations do.

#include <memory>
#include <string>
#include <vector>

#include "lockstep/models/backbone/resnet.h"
#include "lockstep/models/model.h"

namespace lockstep {

/// What a configuration's `model:` section says.
struct ModelSpec {
  std::string backbone = "resnet50";  ///< One of backbone_names().
  std::string head = "ClsHead";       ///< One of head_names().
  Stem stem = Stem::kImageNet;
  int64_t num_classes = 1000;
  bool zero_init_residual = false;  ///< See init_resnet().
};

/// resnet18 .. resnet152, and each again as cls_resnet18 .. (MindOCR's prefix for the task).
const std::vector<std::string>& backbone_names();
const std::vector<std::string>& head_names();

/// A network with fresh weights, drawn from libtorch's default CPU generator: one seed, one
/// network.
///
/// Shape of forward: (N, 3, H, W) float -> (N, num_classes) logits.
/// Names: the modules of backbone and head stand side by side without a prefix, so that parameters
/// are called as in torchvision (conv1.weight, layer1.0.bn1.weight, fc.weight) and come in the same
/// order; weights can be exchanged as they are.
/// Errors: kInvalidArgument for an unknown name, with the nearest known one.
std::shared_ptr<Model> build_model(const ModelSpec& spec);

/// Elements of all parameters. With `buffers` those of batch norm's statistics too.
int64_t count_parameters(const torch::nn::Module& model, bool buffers = false);

}  // namespace lockstep
