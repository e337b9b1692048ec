#pragma once
// A message of protobuf, read field by field.

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::inline internal {

struct WireField {
  uint64_t number = 0;
  uint64_t value = 0;      ///< Of a number.
  std::string_view bytes;  ///< Of all else.
};

inline uint64_t take_varint(std::string_view& bytes) {
  uint64_t value = 0;
  for (int shift = 0; !bytes.empty(); shift += 7) {
    const auto byte = static_cast<uint8_t>(bytes[0]);
    bytes.remove_prefix(1);
    value |= uint64_t{byte & 0x7fU} << shift;
    if (byte < 0x80) break;
  }
  return value;
}

inline std::vector<WireField> fields_of(std::string_view bytes) {
  std::vector<WireField> fields;
  while (!bytes.empty()) {
    const uint64_t key = take_varint(bytes);
    WireField field{key >> 3, 0, {}};
    if ((key & 7) == 0) {
      field.value = take_varint(bytes);
    } else {
      const uint64_t length = (key & 7) == 5 ? 4 : take_varint(bytes);
      EXPECT_LE(length, bytes.size());
      field.bytes = bytes.substr(0, length);
      bytes.remove_prefix(field.bytes.size());
    }
    fields.push_back(field);
  }
  return fields;
}

/// The fields `number` that are bytes.
inline std::vector<std::string> texts_of(std::string_view bytes, uint64_t number) {
  std::vector<std::string> texts;
  for (const WireField& field : fields_of(bytes)) {
    if (field.number == number) texts.emplace_back(field.bytes);
  }
  return texts;
}

/// The graph of a file.
inline std::string graph_of(const std::string& file) {
  return texts_of(file, 7).at(0);
}

/// The kinds of the graph's operations, in their order.
inline std::vector<std::string> ops_of(const std::string& file) {
  std::vector<std::string> ops;
  for (const auto& node : texts_of(graph_of(file), 1)) ops.push_back(texts_of(node, 4).at(0));
  return ops;
}

/// The names of the initializers.
inline std::vector<std::string> initializers_of(const std::string& file) {
  std::vector<std::string> names;
  for (const auto& one : texts_of(graph_of(file), 5)) names.push_back(texts_of(one, 8).at(0));
  return names;
}

}  // namespace lockstep::inline internal
