#include "lockstep/checkpoint/weight_table.h"

#include <algorithm>

#include "lockstep/checkpoint/mindspore_format.h"
#include "lockstep/checkpoint/pytorch_format.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

bool is_safetensors(std::string_view start, uint64_t file_bytes) {
  if (start.size() < 9 || start[8] != '{') return false;
  uint64_t length = 0;
  for (size_t i = 8; i-- > 0;) length = length << 8 | static_cast<uint8_t>(start[i]);
  return length <= file_bytes - 8;
}

WeightTable safetensors_table(const ByteSource& file) {
  const std::string first = file.read(0, std::min<uint64_t>(8, file.size()));
  const uint64_t length = stored_header_bytes(first, file.size(), file.name());
  StoredHeader header = parse_stored_header(file.read(0, 8 + length), file.size(), file.name());
  WeightTable table;
  for (StoredTensor& tensor : header.tensors) {
    table.weights.push_back({std::move(tensor.name),
                             tensor.type,
                             std::move(tensor.shape),
                             {{header.data_begin + tensor.begin, tensor.end - tensor.begin}},
                             {},
                             {}});
  }
  return table;
}

}  // namespace

std::string_view to_string(WeightFormat format) {
  switch (format) {
    case WeightFormat::kSafetensors:
      return "safetensors";
    case WeightFormat::kMindSpore:
      return "MindSpore's .ckpt";
    case WeightFormat::kPyTorch:
      return "PyTorch's .pth";
  }
  return "";
}

WeightFormat weight_format(const ByteSource& file) {
  const std::string start = file.read(0, std::min(kOldPyTorchStart, file.size()));
  if (is_safetensors(start, file.size())) return WeightFormat::kSafetensors;
  if (start.starts_with("PK\x03\x04") || is_old_pytorch(start)) return WeightFormat::kPyTorch;
  if (start.starts_with('\x0a')) return WeightFormat::kMindSpore;
  throw Error(ErrorCode::kCorrupt,
              file.name() +
                  ": no file of weights (known: safetensors, MindSpore's .ckpt, "
                  "PyTorch's .pth)");
}

WeightTable read_weight_table(const ByteSource& file, const CountWanted& count_wanted) {
  const WeightFormat format = weight_format(file);
  WeightTable table = format == WeightFormat::kSafetensors ? safetensors_table(file)
                      : format == WeightFormat::kMindSpore ? parse_mindspore(file)
                                                           : parse_pytorch(file, count_wanted);
  table.format = format;
  return table;
}

}  // namespace lockstep::inline internal
