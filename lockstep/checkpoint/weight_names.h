#pragma once
// The names of one parameter in PyTorch, Lockstep and MindSpore.

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
  std::string stripped;  ///< In front of the file's names: "model." or "_orig_mod."; mostly empty.

  size_t count() const;  ///< Of the network's tensors that have a match.
};

/// The same for files whose names begin with one more prefix, as those of Lightning ("model.") and
/// torch.compile ("_orig_mod."). Nothing is stripped if any name matches as it is. Otherwise it is
/// the prefix, of up to four parts, without which most names match; at least half of the network's
/// must. Cost: that of match_names(), or seventeen times that.
NameMatches match_names_by_prefix(const std::vector<std::string>& network,
                                  const std::vector<std::string>& file,
                                  std::string_view prefix = {});

/// The network's names in the spelling of MindSpore and MindOCR, in their order; empty for tensors
/// that MindSpore lacks (batch norm's num_batches_tracked).
std::vector<std::string> mindspore_names(const std::vector<std::string>& network);

}  // namespace lockstep::inline internal
