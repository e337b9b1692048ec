#pragma once
// Writing MindSpore's .ckpt.

#include <torch/nn/module.h>

#include <filesystem>

#include "lockstep/safetensors.h"

namespace lockstep {

/// Replaces `path` by a .ckpt file with these tensors in the order of their names, whole or not at
/// all, readable by its owner alone (0400), as MindSpore leaves it. Names become MindSpore's (see
/// weight_names.h); num_batches_tracked, which MindSpore does not have, is left out. A tensor
/// without dimensions is a scalar there. Errors: kInvalidArgument naming the tensor (undefined, or
/// a dtype that the format does not have), kIo.
void save_ckpt(const std::filesystem::path& path, const TensorMap& tensors);

/// Parameters and buffers of a network.
void save_ckpt(const std::filesystem::path& path, const torch::nn::Module& module);

}  // namespace lockstep
