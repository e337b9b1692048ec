#pragma once
// Writes MindSpore's .ckpt.

#include <torch/nn/module.h>

#include <filesystem>

#include "lockstep/weights.h"

namespace lockstep::inline internal {

/// Replaces `path`, whole or not at all, by a .ckpt file with these tensors in the order of their
/// names. The umask determines who may read it, as of other files; MindSpore's own are 0400. Names
/// become MindSpore's (see weight_names.h); num_batches_tracked, which MindSpore lacks, is left
/// out. A tensor without dimensions is a scalar there. Errors: kInvalidArgument, which names the
/// tensor (undefined, or a dtype that the format lacks); kIo.
void save_ckpt(const std::filesystem::path& path, const TensorMap& tensors);

/// Saves parameters and buffers of a network.
void save_ckpt(const std::filesystem::path& path, const torch::nn::Module& module);

}  // namespace lockstep::inline internal
