#pragma once
// A small reader of TensorBoard's event files, which shares no code with the writer.

#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::testing {

struct ReadEvent {
  double wall_time = 0;
  int64_t step = 0;
  std::string version;
  bool starts_session = false;
  std::map<std::string, float> scalars;
};

class EventReader {
 public:
  /// Errors: std::runtime_error for what is no whole record with right checksums.
  static std::vector<ReadEvent> read(std::string_view file) {
    std::vector<ReadEvent> events;
    while (!file.empty()) {
      const auto length = number<uint64_t>(file, 0);
      check(file.size() >= 16 + length, "a record is cut off");
      check(masked(file.substr(0, 8)) == number<uint32_t>(file, 8), "checksum of a length");
      const auto data = file.substr(12, length);
      check(masked(data) == number<uint32_t>(file, 12 + length), "checksum of a record");
      events.push_back(event(data));
      file.remove_prefix(16 + length);
    }
    return events;
  }

 private:
  static void check(bool right, const char* what) {
    if (!right) throw std::runtime_error(what);
  }

  template <typename Number>
  static Number number(std::string_view bytes, size_t at) {
    check(bytes.size() >= at + sizeof(Number), "a number is cut off");
    Number value;
    std::memcpy(&value, bytes.data() + at, sizeof value);  // of a little-endian machine
    return value;
  }

  /// Bit by bit, as the polynomial is defined.
  static uint32_t masked(std::string_view bytes) {
    uint32_t crc = 0xffffffff;
    for (const char c : bytes) {
      crc ^= static_cast<uint8_t>(c);
      for (int bit = 0; bit < 8; ++bit) crc = (crc & 1) != 0 ? (crc >> 1) ^ 0x82f63b78 : crc >> 1;
    }
    crc = ~crc;
    return ((crc >> 15) | (crc << 17)) + 0xa282ead8;
  }

  struct Field {
    uint64_t number = 0;
    uint64_t value = 0;      ///< Of varint and fixed ones: the bits.
    std::string_view bytes;  ///< Of the others.
  };

  static uint64_t varint(std::string_view& bytes) {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      check(!bytes.empty(), "a varint is cut off");
      const auto byte = static_cast<uint8_t>(bytes.front());
      bytes.remove_prefix(1);
      value |= uint64_t{byte & 0x7fU} << shift;
      if (byte < 0x80) return value;
    }
    throw std::runtime_error("a varint without end");
  }

  static std::optional<Field> next(std::string_view& message) {
    if (message.empty()) return std::nullopt;
    const uint64_t key = varint(message);
    Field field{key >> 3, 0, {}};
    size_t skip = 0;
    switch (key & 7) {
      case 0:
        field.value = varint(message);
        break;
      case 1:
        field.value = number<uint64_t>(message, 0);
        skip = 8;
        break;
      case 2: {
        const uint64_t length = varint(message);
        check(message.size() >= length, "a field is cut off");
        field.bytes = message.substr(0, length);
        skip = length;
        break;
      }
      case 5:
        field.value = number<uint32_t>(message, 0);
        skip = 4;
        break;
      default:
        throw std::runtime_error("a field of no known kind");
    }
    message.remove_prefix(skip);
    return field;
  }

  static ReadEvent event(std::string_view message) {
    ReadEvent found;
    while (const auto field = next(message)) {
      if (field->number == 1) std::memcpy(&found.wall_time, &field->value, sizeof(double));
      if (field->number == 2) found.step = static_cast<int64_t>(field->value);
      if (field->number == 3) found.version = field->bytes;
      if (field->number == 5) summary(field->bytes, found);
      if (field->number == 7) found.starts_session = field->bytes == std::string_view("\x08\x01");
    }
    return found;
  }

  static void summary(std::string_view message, ReadEvent& found) {
    while (const auto value = next(message)) {
      check(value->number == 1, "no value of a summary");
      auto rest = value->bytes;
      std::string tag;
      while (const auto field = next(rest)) {
        if (field->number == 1) tag = field->bytes;
        const auto bits = static_cast<uint32_t>(field->value);
        if (field->number == 2) std::memcpy(&found.scalars[tag], &bits, sizeof bits);
      }
    }
  }
};

}  // namespace lockstep::testing
