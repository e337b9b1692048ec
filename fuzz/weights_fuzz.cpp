// Any bytes as a file of weights. The first byte chooses: the file, or the pickle of a .pth whose
// archive is right. Whatever is accepted lies within the file and fits its shape.

#include <cstdint>
#include <cstdlib>
#include <string>

#include "lockstep/checkpoint/weight_table.h"
#include "lockstep/error.h"
#include "tests/checkpoint/zip_file.h"

namespace {

using namespace lockstep;

void require(bool holds) {
  if (!holds) std::abort();
}

void require_within(const StoredWeight& weight, uint64_t file_bytes) {
  if (!weight.unread.empty()) return require(weight.pieces.empty());
  uint64_t bytes = 0;
  for (const WeightPiece& piece : weight.pieces) {
    require(piece.offset <= file_bytes && piece.bytes <= file_bytes - piece.offset);
    bytes += piece.bytes;
  }
  uint64_t elements = 1, last = 0;
  for (size_t i = 0; i < weight.shape.size(); ++i) {
    elements *= weight.shape[i];
    if (!weight.strides.empty()) last += (weight.shape[i] - 1) * weight.strides[i];
  }
  const auto one = static_cast<uint64_t>(bits(weight.type));
  require(weight.strides.empty() ? elements * one == bytes * 8 : elements * one <= bytes * 8);
  if (!weight.strides.empty() && elements > 0) require((last + 1) * one == bytes * 8);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 2 == 1) {
    bytes = zip_file({{"a/data.pkl", bytes}, {"a/data/0", std::string(96, 'x')}});
  }
  const MemoryBytes file("file", bytes);
  try {
    const WeightTable table = read_weight_table(file);
    uint64_t total = 0;
    for (const StoredWeight& weight : table.weights) {
      require_within(weight, bytes.size());
      for (const WeightPiece& piece : weight.pieces) total += piece.bytes;
    }
    require(total <= 9 * bytes.size());
  } catch (const Error& error) {
    require(error.code() == ErrorCode::kCorrupt);
  }
  return 0;
}
