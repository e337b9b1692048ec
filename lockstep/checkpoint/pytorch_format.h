#pragma once
// PyTorch's .pth since 1.6, without libtorch: a zip archive with a pickle that describes tensors,
// and their bytes as members NAME/data/KEY. Source: pytorch/pytorch, torch/serialization.py and
// torch/_utils.py.

#include "lockstep/checkpoint/weight_table.h"

namespace lockstep {

/// The tensors of a saved state_dict: those of the top dict. If it has none: those of the first
/// entry that has any, of "state_dict", "model_state_dict", "model", "net", "network", "params".
/// Other entries are left out; no call in the pickle is executed. Errors: kCorrupt, which names
/// file, tensor and reason; such reasons are a file with a whole module, an unknown element type,
/// and big-endian numbers.
WeightTable parse_pytorch(const ByteSource& file);

}  // namespace lockstep
