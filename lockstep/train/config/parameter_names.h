#pragma once
// What the names of a network's parameters decide: their group in the optimizer, and their layer.

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/train/config/config.h"

namespace lockstep::inline internal {

/// Whether `pattern` selects the parameter or buffer `name`: it matches the whole name, or that of
/// a module around it. "*" stands for any text, dots too, "?" for one character, "[0-3]" for one of
/// several. "layer1" and "layer1.*" select layer1.0.conv1.weight, "*.bias" selects every bias.
bool selects(const std::string& pattern, const std::string& name);

/// The first of `groups` that selects `name`; -1: none.
int group_of(const std::vector<GroupConfig>& groups, const std::string& name);

/// Errors: kInvalidArgument for a pattern that selects none of `names`, the parameters of the
/// network, with the nearest name; and for one whose names all belong to earlier groups.
void check_groups(const std::vector<GroupConfig>& groups, const std::vector<std::string>& names);

/// The layer of each parameter for optimizer.layer_decay, from 0; `names` are in the network's
/// order.
/// - The last top-level module (`fc`, `head`) is the highest layer.
/// - A block is a layer: the shortest path whose last part is a number or ends in one behind "_",
///   as layer1.0 or blocks.3 or encoder.layers.encoder_layer_3.
/// - What comes before the first block is layer 0, other parameters between blocks belong to the
///   block before them.
/// - Without blocks each top-level module is a layer.
/// ResNets and ViTs thus have the layers of timm (timm/optim, param_groups_layer_decay).
std::vector<int64_t> layers_of(const std::vector<std::string>& names);

/// The factor of each parameter's rate: `decay` to the power of the layers above its own.
/// Source: Bao et al., BEiT, arXiv:2106.08254; Clark et al., ELECTRA, arXiv:2003.10555.
std::vector<double> layer_scales(double decay, const std::vector<std::string>& names);

}  // namespace lockstep::inline internal
