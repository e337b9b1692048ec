#pragma once
// The tensors that a pickle of torch.save() describes; see pytorch_format.h.

#include <map>
#include <string>

#include "lockstep/checkpoint/pickle.h"
#include "lockstep/checkpoint/weight_table.h"

namespace lockstep::inline internal {

using Storages = std::map<std::string, SummedBytes>;  ///< By key.

/// Turns the description of a state_dict into places in the file. Errors: see parse_pytorch().
WeightTable read_state_dict(const ByteSource& file, const Pickle& pickle, const Storages& storages,
                            const CountWanted& count_wanted);

/// Bytes of an element of the storages that the pickle names, by key; without unknown types.
std::map<std::string, uint64_t> storage_widths(const Pickle& pickle);

}  // namespace lockstep::inline internal
