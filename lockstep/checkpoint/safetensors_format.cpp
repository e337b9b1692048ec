#include "lockstep/checkpoint/safetensors_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <tuple>

#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

struct TypeRow {
  std::string_view name;
  int bits;
};

// In the order of StoredType.
constexpr std::array<TypeRow, 22> kTypes = {{
    {"BOOL", 8},        {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"U8", 8},
    {"I8", 8},          {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8},
    {"F8_E5M2FNUZ", 8}, {"I16", 16},    {"U16", 16},    {"F16", 16},    {"BF16", 16},
    {"I32", 32},        {"U32", 32},    {"F32", 32},    {"C64", 64},    {"F64", 64},
    {"I64", 64},        {"U64", 64},
}};

void check_names(const std::vector<StoredTensor>& tensors) {
  std::vector<std::string_view> names;
  for (const StoredTensor& tensor : tensors) names.push_back(tensor.name);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end()) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("two tensors are called '{}'; names in a file are unique", *twice));
  }
  if (std::binary_search(names.begin(), names.end(), "__metadata__")) {
    throw Error(ErrorCode::kInvalidArgument,
                "a tensor is called '__metadata__', which the safetensors format keeps for itself");
  }
}

}  // namespace

std::string_view to_string(StoredType type) {
  return kTypes.at(static_cast<size_t>(type)).name;
}

std::optional<StoredType> parse_stored_type(std::string_view name) {
  for (size_t i = 0; i < kTypes.size(); ++i) {
    if (kTypes[i].name == name) return static_cast<StoredType>(i);
  }
  return std::nullopt;
}

int bits(StoredType type) {
  return kTypes.at(static_cast<size_t>(type)).bits;
}

std::optional<uint64_t> stored_bytes(StoredType type, const std::vector<uint64_t>& shape) {
  // Even with an extent of 0, the others must fit: strides are their products.
  uint64_t total = 1, span = 1;
  for (const uint64_t extent : shape) {
    total *= extent;
    if (__builtin_mul_overflow(span, std::max<uint64_t>(extent, 1), &span)) return std::nullopt;
  }
  if (span > std::numeric_limits<int64_t>::max()) return std::nullopt;
  if (__builtin_mul_overflow(total, static_cast<uint64_t>(bits(type)), &total)) return std::nullopt;
  if (total % 8 != 0) return std::nullopt;  // 4- and 6-bit elements that end within a byte
  return total / 8;
}

StoredHeader plan_stored_file(std::vector<StoredTensor> tensors, StoredMetadata metadata) {
  check_names(tensors);
  std::sort(tensors.begin(), tensors.end(), [](const StoredTensor& a, const StoredTensor& b) {
    return std::tie(b.type, a.name) < std::tie(a.type, b.name);
  });
  uint64_t offset = 0;
  for (StoredTensor& tensor : tensors) {
    const auto bytes = stored_bytes(tensor.type, tensor.shape);
    tensor.begin = offset;
    if (!bytes || __builtin_add_overflow(offset, *bytes, &offset)) {
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("tensor '{}': its size has no whole number of bytes below 2^64",
                              tensor.name));
    }
    tensor.end = offset;
  }
  StoredHeader header{std::move(metadata), std::move(tensors), 0};
  header.data_begin = encode_stored_header(header).size();
  return header;
}

std::string encode_stored_header(const StoredHeader& header) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  if (!header.metadata.empty()) json["__metadata__"] = header.metadata;
  std::string text;
  try {
    // Entries are appended one by one: an ordered_json of many keys is searched linearly.
    text = json.dump();
    text.pop_back();
    for (const StoredTensor& tensor : header.tensors) {
      text += fmt::format("{}{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}",
                          text.size() > 1 ? "," : "", nlohmann::json(tensor.name).dump(),
                          to_string(tensor.type), fmt::join(tensor.shape, ","), tensor.begin,
                          tensor.end);
    }
    text += '}';
  } catch (const nlohmann::json::type_error&) {
    throw Error(ErrorCode::kInvalidArgument, "a tensor's name or a metadata text is not UTF-8");
  }
  text.append((8 - text.size() % 8) % 8, ' ');
  if (text.size() > kMaxStoredHeaderBytes) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("the names of the tensors need a header of {} bytes, {} are allowed",
                            text.size(), kMaxStoredHeaderBytes));
  }
  std::string bytes;
  for (int shift = 0; shift < 64; shift += 8) {
    bytes += static_cast<char>((text.size() >> shift) & 0xff);
  }
  return bytes + text;
}

}  // namespace lockstep::inline internal
