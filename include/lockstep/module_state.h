#pragma once
// Parameters and buffers of a network as named tensors, under PyTorch's names
// ("layer1.0.bn1.bias").

#include "lockstep/safetensors.h"

namespace torch::nn {
class Module;
}

namespace lockstep {

/// All parameters and buffers; the tensors are the module's own, not copies.
TensorMap module_tensors(const torch::nn::Module& module);

/// Makes the checks of load_module(). Errors: as load_module().
void check_module(const torch::nn::Module& module, const TensorMap& tensors,
                  const std::string& file);

/// Copies values into the module's own tensors. The tensors stay in place, so gradients, optimizers
/// and DDP remain valid. Checks everything before the first copy.
/// Errors, nothing changed: kCorrupt naming `file` and tensor: missing, not of this network, other
/// shape, other dtype.
void load_module(torch::nn::Module& module, const TensorMap& tensors, const std::string& file);

}  // namespace lockstep
