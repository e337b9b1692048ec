#pragma once
// PyTorch's .pth since 1.6, without libtorch: a zip archive with a pickle that describes tensors,
// and their bytes as members NAME/data/KEY. Source: pytorch/pytorch, torch/serialization.py and
// torch/_utils.py.

#include "lockstep/checkpoint/weight_table.h"

namespace lockstep {

/// The tensors of a saved state_dict: the top dict's own, or, when it has none, those of the first
/// of its entries "state_dict", "model_state_dict", "model", "net", "network", "params" that has
/// any. Other entries are left out; nothing that the pickle asks for is called. Errors: kCorrupt
/// naming file, tensor and reason; a file that holds a whole module, an unknown element type or
/// big-endian numbers is such a reason.
WeightTable parse_pytorch(const ByteSource& file);

}  // namespace lockstep
