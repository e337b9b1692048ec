#pragma once
// The tensors of a file of weights, and their places: MindSpore's .ckpt, PyTorch's .pth and
// safetensors, without libtorch and without reading the tensors.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/checkpoint/byte_source.h"
#include "lockstep/checkpoint/safetensors_format.h"

namespace lockstep::inline internal {

/// The bytes of an archive's member.
struct SummedBytes {
  uint64_t offset = 0;  ///< In the file.
  uint64_t bytes = 0;
  uint32_t crc32 = 0;  ///< 0: unknown.
};

struct WeightPiece {
  uint64_t offset = 0;  ///< In the file.
  uint64_t bytes = 0;
  std::optional<SummedBytes> member{};  ///< That the piece is in.
};

struct StoredWeight {
  std::string name;
  StoredType type = StoredType::kF32;
  std::vector<uint64_t> shape;      ///< Empty: one element.
  std::vector<WeightPiece> pieces;  ///< The tensor's elements, when joined.
  /// In elements, one per extent; empty: C order. The elements lie within the pieces, which hold no
  /// fewer than the shape has.
  std::vector<uint64_t> strides;
  /// "is quantized": the reason why it cannot be read, and has neither shape nor pieces; mostly
  /// empty.
  std::string unread{};
};

enum class WeightFormat { kSafetensors, kMindSpore, kPyTorch };

/// "safetensors", "MindSpore's .ckpt", "PyTorch's .pth".
std::string_view to_string(WeightFormat format);

struct WeightTable {
  WeightFormat format = WeightFormat::kSafetensors;
  std::vector<StoredWeight> weights;  ///< In the file's order; each name once.
  /// Of a .pth, the dict with the weights: "model", "weights.inner"; empty: the top one.
  std::string dict;
  std::vector<std::string>
      other_dicts;  ///< Those that had wanted tensors, too; without the top one.
};

struct NamedShape {
  std::string name;
  std::vector<uint64_t> shape;  ///< Empty: one element, or unknown.
};

/// The number of wanted tensors among those of a dict.
using CountWanted = std::function<size_t(const std::vector<NamedShape>& tensors)>;

/// Detected by the file's first bytes, never by its name. Errors: kCorrupt if it is none of the
/// three.
WeightFormat weight_format(const ByteSource& file);

/// The contents of the file. Everything is checked against the file's size: all pieces together
/// have at most its length, or eight times that if tensors of a .pth share memory. Memory: in
/// proportion to the file's description of its tensors, at most some hundred MiB. Nothing in the
/// file is executed. `count_wanted`: to choose one of the dicts of a .pth, see parse_pytorch().
/// Errors: kCorrupt, which names file, tensor (or byte) and reason.
WeightTable read_weight_table(const ByteSource& file, const CountWanted& count_wanted = {});

}  // namespace lockstep::inline internal
