#pragma once
// Which tensors a file of weights holds, and where: MindSpore's .ckpt, PyTorch's .pth and
// safetensors, without libtorch and without reading the tensors.

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/checkpoint/byte_source.h"
#include "lockstep/checkpoint/safetensors_format.h"

namespace lockstep {

struct WeightPiece {
  uint64_t offset = 0;  ///< In the file.
  uint64_t bytes = 0;
};

struct StoredWeight {
  std::string name;
  StoredType type = StoredType::kF32;
  std::vector<uint64_t> shape;      ///< Empty: one element.
  std::vector<WeightPiece> pieces;  ///< One behind the other they are the tensor's elements.
  /// In elements, one an extent; empty: C order. The elements lie within the pieces, and there are
  /// no fewer of them than the shape has.
  std::vector<uint64_t> strides;
};

enum class WeightFormat { kSafetensors, kMindSpore, kPyTorch };

/// "safetensors", "MindSpore's .ckpt", "PyTorch's .pth".
std::string_view to_string(WeightFormat format);

struct WeightTable {
  WeightFormat format = WeightFormat::kSafetensors;
  std::vector<StoredWeight> weights;  ///< In the file's order; each name once.
};

/// By the file's first bytes, never by its name. Errors: kCorrupt for what is none of the three;
/// for PyTorch's files before 1.6 the text says how to convert them.
WeightFormat weight_format(const ByteSource& file);

/// What the file holds. Everything is checked against the file's size: all pieces together are no
/// longer than it, or eight times it where tensors of a .pth share memory. Memory here: in
/// proportion to the file's description of its tensors, at most some hundred MiB. Nothing in the
/// file is executed. Errors: kCorrupt naming file, tensor (or byte) and reason.
WeightTable read_weight_table(const ByteSource& file);

}  // namespace lockstep
