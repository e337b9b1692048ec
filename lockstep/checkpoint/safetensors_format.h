#pragma once
// The safetensors file format, without libtorch: its header, checked against the file's length, and
// the header that a writer puts before its tensors.
//
//   u64 little-endian N | N bytes of JSON, padded with blanks | the tensors' bytes
//
// The JSON maps each name to {"dtype", "shape", "data_offsets": [begin, end)}; offsets count from
// the end of the header. Optionally it maps "__metadata__" to an object of strings. Tensors are
// little-endian, in C order, and cover the rest of the file without hole or overlap. Source:
// github.com/huggingface/safetensors, README.md and safetensors/src/tensor.rs.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::inline internal {

/// The format's element types in its own order, which is also the order of a file's tensors. It is
/// descending, so that wide elements come first and stay aligned.
enum class StoredType : uint8_t {
  kBool,
  kF4,
  kF6E2M3,
  kF6E3M2,
  kU8,
  kI8,
  kF8E5M2,
  kF8E4M3,
  kF8E8M0,
  kF8E4M3Fnuz,
  kF8E5M2Fnuz,
  kI16,
  kU16,
  kF16,
  kBf16,
  kI32,
  kU32,
  kF32,
  kC64,
  kF64,
  kI64,
  kU64,
};

/// "F32" and so on, as in the header.
std::string_view to_string(StoredType type);
std::optional<StoredType> parse_stored_type(std::string_view name);
/// Bits of one element.
int bits(StoredType type);

struct StoredTensor {
  std::string name;
  StoredType type = StoredType::kF32;
  std::vector<uint64_t> shape;  ///< Empty: one element. Any extent may be 0.
  uint64_t begin = 0;           ///< Bytes from the end of the header.
  uint64_t end = 0;
};

using StoredMetadata = std::map<std::string, std::string>;

struct StoredHeader {
  StoredMetadata metadata;
  std::vector<StoredTensor> tensors;  ///< By offset: contiguous from 0 to the file's end.
  uint64_t data_begin = 0;            ///< Place in the file at which the header ends.
};

/// Size of the longest JSON header that is read; the reference implementation's limit.
inline constexpr uint64_t kMaxStoredHeaderBytes = 100'000'000;

/// Bytes of the JSON header, from the file's first 8 (or fewer) bytes. Errors: kCorrupt, which
/// names `file`, if there are fewer than 8, or the length exceeds the limit or the file.
uint64_t stored_header_bytes(std::string_view first_bytes, uint64_t file_bytes,
                             const std::string& file);

/// The header's content. `start`: at least the first 8 + N bytes of a file of `file_bytes` bytes,
/// which errors call `file`. Memory: proportional to N. Errors: kCorrupt, which names file, tensor
/// and reason, for everything that the format forbids. That is: no object, bad JSON or UTF-8, a
/// duplicate name, an unknown dtype or key, bytes behind the last tensor, metadata other than
/// strings. Also offsets that overlap, leave a hole or do not fit shape and dtype.
StoredHeader parse_stored_header(std::string_view start, uint64_t file_bytes,
                                 const std::string& file);

/// Puts `tensors` (offsets ignored) into the format's order and sets their offsets. The result
/// depends on names, types, shapes and metadata alone: equal content, equal bytes. Errors:
/// kInvalidArgument for a duplicate name, the name "__metadata__", or sizes beyond 64 bits.
StoredHeader plan_stored_file(std::vector<StoredTensor> tensors, StoredMetadata metadata);

/// The bytes in the file before the first tensor: length, JSON, blanks up to a multiple of 8.
/// Errors: kInvalidArgument if a name or metadata is not UTF-8.
std::string encode_stored_header(const StoredHeader& header);

/// Private to the layer. Bytes of a tensor; none if they are not an integer below 2^64. None too if
/// its extents other than 0 multiply to 2^63 or more: no tensor has such strides.
std::optional<uint64_t> stored_bytes(StoredType type, const std::vector<uint64_t>& shape);

}  // namespace lockstep::inline internal
