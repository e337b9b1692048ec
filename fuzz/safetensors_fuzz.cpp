// Any bytes as a safetensors file. What the parser accepts must be planned and encoded again to a
// header that says the same. The first byte chooses: a whole file, or its JSON alone (the length in
// front, which mutations seldom get right, is then put there).

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "lockstep/checkpoint/safetensors_format.h"
#include "lockstep/error.h"

namespace {

using namespace lockstep;

void require(bool holds) {
  if (!holds) std::abort();
}

bool same(const StoredTensor& a, const StoredTensor& b) {
  return a.name == b.name && a.type == b.type && a.shape == b.shape;
}

/// The tensors lie one behind the other from the header's end to the file's.
void require_covered(const StoredHeader& header, uint64_t file_bytes) {
  uint64_t offset = 0;
  for (const StoredTensor& tensor : header.tensors) {
    require(tensor.begin == offset && tensor.end >= tensor.begin);
    offset = tensor.end;
  }
  require(header.data_begin + offset == file_bytes);
}

void require_round_trip(const StoredHeader& header) {
  const StoredHeader planned = plan_stored_file(header.tensors, header.metadata);
  const std::string start = encode_stored_header(planned);
  const uint64_t data_bytes = planned.tensors.empty() ? 0 : planned.tensors.back().end;
  const StoredHeader again = parse_stored_header(start, start.size() + data_bytes, "again");
  require(again.metadata == header.metadata);
  require(again.tensors.size() == header.tensors.size());
  for (const StoredTensor& tensor : header.tensors) {
    require(std::any_of(again.tensors.begin(), again.tensors.end(),
                        [&](const StoredTensor& other) { return same(tensor, other); }));
  }
}

/// A file around `json`, its data as long as the two bytes in front say.
std::string wrap(std::string json, uint64_t* file_bytes) {
  json.resize(std::max<size_t>(json.size(), 2), ' ');
  const uint64_t data_bytes = static_cast<uint8_t>(json[0]) | static_cast<uint8_t>(json[1]) << 8;
  json.erase(0, 2);
  std::string start;
  for (int shift = 0; shift < 64; shift += 8) {
    start += static_cast<char>((json.size() >> shift) & 0xff);
  }
  *file_bytes = 8 + json.size() + data_bytes;
  return start + json;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  std::string start(reinterpret_cast<const char*>(data) + 1, size - 1);
  uint64_t file_bytes = start.size();
  if (data[0] % 2 == 1) start = wrap(start, &file_bytes);
  StoredHeader header;
  try {
    header = parse_stored_header(start, file_bytes, "file");
  } catch (const Error& error) {
    require(error.code() == ErrorCode::kCorrupt);
    return 0;
  }
  require_covered(header, file_bytes);
  require_round_trip(header);
  return 0;
}
