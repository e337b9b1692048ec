#pragma once
// MindSpore's .ckpt, without libtorch: protobuf's wire format, messages one after the other.
//
//   Checkpoint  { repeated Value value = 1; }
//   Value       { string tag = 1; TensorProto tensor = 2; MapTensorProto maptensor = 3; }
//   TensorProto { repeated int64 dims = 1; string tensor_type = 2; bytes tensor_content = 3; }
//
// A tensor beyond 512 MiB is several values with one tag and the whole tensor's dims. dims [0] with
// one element is a scalar. Source: mindspore-ai/mindspore, mindspore/ccsrc/utils/checkpoint.proto
// and mindspore/python/mindspore/train/serialization.py; protobuf.dev, "Encoding".

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/checkpoint/weight_table.h"

namespace lockstep::inline internal {

/// Longest content of one message that MindSpore writes.
inline constexpr uint64_t kMindSporeSlice = uint64_t{512} << 20;

/// The file's tensors. Texts, random states and map parameters, which are not tensors, are left
/// out. Errors: kCorrupt, which names file, byte or tensor, and reason: no such message, cut off,
/// an unknown type, a size that does not fit the dims, a duplicate name.
WeightTable parse_mindspore(const ByteSource& file);

/// The bytes in the file before `content_bytes` bytes of a tensor (or of a slice of it). Errors:
/// kInvalidArgument for a type that the format lacks.
std::string mindspore_message_start(std::string_view name, StoredType type,
                                    const std::vector<uint64_t>& shape, uint64_t content_bytes);

}  // namespace lockstep::inline internal
