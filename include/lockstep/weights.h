#pragma once
// Weights from files of any origin: MindSpore's .ckpt, PyTorch's .pth, safetensors. The content
// determines the format, not the file's name.

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
  /// For evaluation and resumption: a missing tensor of the network, or one of another shape, is an
  /// error. Otherwise, to start from other weights, it keeps its values, and a log line names it.
  bool strict = true;
  /// "backbone.": the file holds only that part of the network, under names without the prefix.
  std::string prefix;
  bool warns = true;  ///< False: no log lines, only the report.
};

struct WeightReport {
  std::string format;  ///< "safetensors", "MindSpore's .ckpt" or "PyTorch's .pth".
  size_t loaded = 0;
  std::vector<std::string> missing;  ///< Of the network, not in the file.
  std::vector<std::string> dropped;  ///< In the file with another shape or kind of number.
  size_t unused = 0;                 ///< Of the file, not of the network.
};

/// Fills the network (its tensors stay in place) from a file, or from a checkpoint's folder
/// (find_checkpoint() in checkpoint_folder.h). Names are matched across MindSpore's, PyTorch's and
/// ours. Other tensors of the file are ignored; num_batches_tracked may be missing. Floating point
/// numbers are converted to the network's type, and so are integers; trailing dimensions of 1 do
/// not count. Only the needed tensors are read, and all of them before anything is changed. Errors,
/// nothing changed: kNotFound; kCorrupt naming file, tensor and both shapes; kCorrupt if no name
/// matches the network's.
WeightReport load_weights(const std::filesystem::path& path, torch::nn::Module& module,
                          const WeightOptions& options = {});

}  // namespace lockstep
