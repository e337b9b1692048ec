#pragma once
// The names of one parameter in PyTorch, Lockstep and MindSpore.

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::inline internal {

/// For each of the network's tensors, the index of the same tensor in the file, or none. A name
/// matches itself first, else a name that differs only by
///   gamma, beta, moving_mean, moving_variance (MindSpore) : weight, bias, running_mean,
///   running_var .down_sample. (MindCV) : .downsample.        classifier. (MindCV's ResNet) : fc.
///   module. in front (PyTorch's DDP)
/// else one that torchvision_names() gives.
/// With `prefix` ("backbone."), for weights of a part: the network's names that begin with it match
/// without it, and no others match.
std::vector<std::optional<size_t>> match_names(const std::vector<std::string>& network,
                                               const std::vector<std::string>& file,
                                               std::string_view prefix = {});

struct NameMatches {
  std::vector<std::optional<size_t>> of_network;  ///< As match_names() returns them.
  std::string stripped;   ///< In front of the file's names: "model." or "_orig_mod."; mostly empty.
  std::string runner_up;  ///< Another prefix that could have been stripped; mostly empty.
  size_t count = 0;       ///< Of the network's tensors that have a match that fits.
};

/// Whether the network's tensor may take that of the file; empty: any may.
using Fits = std::function<bool(size_t in_network, size_t in_file)>;

/// The same for files whose names begin with one more prefix, as those of Lightning ("model.") and
/// torch.compile ("_orig_mod."). It is the prefix, of up to four parts, without which most names
/// match and fit. They must be at least half of the network's, and more than twice as many as with
/// nothing stripped. Of equal prefixes it is the one that leaves fewer of its names over, then the
/// first in the file. Cost: that of match_names(), or seventeen times that.
NameMatches match_names_by_prefix(const std::vector<std::string>& network,
                                  const std::vector<std::string>& file,
                                  std::string_view prefix = {}, const Fits& fits = {});

/// The network's names in the spelling of MindSpore and MindOCR, in their order; empty for tensors
/// that MindSpore lacks (batch norm's num_batches_tracked).
std::vector<std::string> mindspore_names(const std::vector<std::string>& network);

}  // namespace lockstep::inline internal
