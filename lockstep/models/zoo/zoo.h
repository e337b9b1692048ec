#pragma once
// Networks for classification by name. Structure, names of parameters and buffers, their order and
// their initial values are torchvision's, so weights can be exchanged with torchvision as they are.
// vit_s_16 is timm's vit_small_patch16_224 under torchvision's names.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/model.h"

namespace lockstep::inline internal {

/// Settings with torchvision's defaults. A network lacks those that are empty.
struct ZooSettings {
  std::optional<double> dropout = {};            ///< In front of the last layer; ViT: everywhere.
  std::optional<double> attention_dropout = {};  ///< Of the weights of the attention.
  /// Share of the pictures that skip the last block. Of earlier blocks it is less, in proportion.
  std::optional<double> stochastic_depth = {};
  std::optional<int64_t> image_size = {};  ///< Sides of the pictures, a multiple of 16.
  std::optional<bool> zero_init_residual = {};
  std::optional<double> norm_eps = {};  ///< Added to the variance in batch norms; timm's is 1e-5.
};

struct ZooNetwork {
  std::string name;
  std::string about;          ///< One line.
  ZooSettings settings = {};  ///< Those that it has, with their defaults.
  /// A network with fresh weights, drawn from libtorch's default CPU generator.
  /// forward: (N, 3, H, W) -> (N, num_classes) logits.
  std::function<std::shared_ptr<Model>(const ZooSettings&, int64_t num_classes)> make;
};

/// All networks, by family.
const std::vector<ZooNetwork>& zoo();

/// Errors: kInvalidArgument for fewer than one class, and for unusable settings.
std::shared_ptr<Model> make_network(const ZooNetwork& network, const ZooSettings& settings,
                                    int64_t num_classes);

}  // namespace lockstep::inline internal
