#pragma once
// PyTorch's .pth, without libtorch. Since 1.6 it is a zip archive with a pickle that describes
// tensors, and their bytes as members NAME/data/KEY. The older format, which
// _use_new_zipfile_serialization=False still writes, begins with five pickles: a magic number, a
// version, the machine, the description, the keys of the storages. Each storage follows: its number
// of elements in 8 bytes, and the elements. Source: pytorch/pytorch, torch/serialization.py and
// torch/_utils.py.

#include <string_view>

#include "lockstep/checkpoint/weight_table.h"

namespace lockstep::inline internal {

/// So many bytes of a file tell the format before 1.6.
inline constexpr uint64_t kOldPyTorchStart = 32;
bool is_old_pytorch(std::string_view start);

/// The tensors of a saved state_dict: those of the top dict, or of one within it. It is the dict
/// with most of the wanted tensors. If none is wanted, or `count_wanted` is empty, it is the one
/// with most tensors. Of equal ones it is the first of: the top dict, "state_dict",
/// "model_state_dict", "model", "net", "network", "params", "weights", "model_ema",
/// "state_dict_ema", "ema_state_dict", "ema", others in the file's order, of these last the ones
/// whose path begins with "opt" (an optimizer's moments). Tensors of other dicts are left out; no
/// call in the pickle is executed. Quantized and sparse tensors, and those of unknown element
/// types, are StoredWeight::unread. Errors: kCorrupt, which names file, tensor and reason; such
/// reasons are a file with a whole module or TorchScript, and big-endian numbers.
WeightTable parse_pytorch(const ByteSource& file, const CountWanted& count_wanted = {});

}  // namespace lockstep::inline internal
