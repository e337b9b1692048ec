#pragma once
// ONNX files: a graph of operations in protobuf's wire format.
// Source: onnx/onnx, onnx/onnx.proto; protobuf.dev, "Encoding".

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace lockstep::inline internal {

/// The version of ONNX's operations, and that of the file's format which came with it.
inline constexpr int64_t kOnnxOpset = 17;
inline constexpr int64_t kOnnxFormat = 8;

enum class OnnxType : int64_t { kFloat = 1, kInt64 = 7 };

using OnnxAttribute = std::variant<int64_t, float, std::vector<int64_t>>;

struct OnnxNode {
  std::string op;  ///< "Conv".
  std::vector<std::string> inputs;
  std::string output;
  std::map<std::string, OnnxAttribute> attributes;
};

/// A value that is known: a weight, or a constant. The bytes outlive it.
struct OnnxInitializer {
  std::string name;
  OnnxType type = OnnxType::kFloat;
  std::vector<int64_t> dims;  ///< Empty: one number.
  std::string_view bytes;     ///< In C order.
};

/// Float input or output of the whole. The first dimension is the batch, "N", of any size.
struct OnnxValue {
  std::string name;
  std::vector<int64_t> dims;  ///< Without the batch.
};

struct OnnxModel {
  std::string name;
  OnnxValue input;
  OnnxValue output;
  std::vector<OnnxNode> nodes;  ///< Each behind those whose outputs it takes.
  std::vector<OnnxInitializer> initializers;
};

/// The bytes of the file. Memory: up to three times those of the initializers. Errors:
/// kInvalidArgument if they are more than protobuf allows, 2 GiB.
std::string encode_onnx(const OnnxModel& model);

}  // namespace lockstep::inline internal
