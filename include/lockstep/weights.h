#pragma once
// Weights from files of any origin: MindSpore's .ckpt, PyTorch's .pth, safetensors. The content
// tells which, the file's name does not matter.

#include <filesystem>
#include <string>
#include <vector>

#include "lockstep/safetensors.h"

namespace torch::nn {
class Module;
}

namespace lockstep {

/// All tensors under the file's own names, on the CPU, each owning its memory.
/// Errors: kCorrupt naming file and tensor, kNotFound, kInvalidArgument for a dtype that libtorch
/// does not have.
TensorMap read_weights(const std::filesystem::path& path);

struct WeightOptions {
  /// For evaluation and to go on: a tensor of the network that is missing or of another shape is an
  /// error. Otherwise, to start from other weights, it keeps its values, and the log says so.
  bool strict = true;
  /// "backbone.": the file holds that part of the network alone, under names without it.
  std::string prefix;
  bool warns = true;  ///< Else what the log would say is in the report alone.
};

struct WeightReport {
  std::string format;  ///< "safetensors", "MindSpore's .ckpt" or "PyTorch's .pth".
  size_t loaded = 0;
  std::vector<std::string> missing;  ///< Of the network, not in the file.
  std::vector<std::string> dropped;  ///< In the file with another shape or kind of number.
  size_t unused = 0;                 ///< Of the file, not of the network.
};

/// Fills the network (its tensors stay where they are) from a file, or from a checkpoint's folder
/// (find_checkpoint() in checkpoint_folder.h). Names are matched across MindSpore's, PyTorch's and
/// ours; what the file holds besides is left; num_batches_tracked may be missing. Floating point
/// numbers become the network's type, whole numbers likewise; trailing extents of 1 do not count.
/// Only what is wanted is read, and all of it before anything is changed. Errors, nothing changed:
/// kNotFound; kCorrupt naming file, tensor and both shapes; kCorrupt when no name at all is the
/// network's.
WeightReport load_weights(const std::filesystem::path& path, torch::nn::Module& module,
                          const WeightOptions& options = {});

}  // namespace lockstep
