#pragma once
// Requests of a client of torch's TCPStore, as it sends them.

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::testing {

template <class Number>
std::string raw(Number number) {
  return {reinterpret_cast<const char*>(&number), sizeof number};
}

inline std::string sized(const std::string& text) {
  return raw(static_cast<uint64_t>(text.size())) + text;
}

inline std::string counted(const std::vector<std::string>& texts) {
  std::string bytes = raw(static_cast<uint64_t>(texts.size()));
  for (const auto& text : texts) bytes += sized(text);
  return bytes;
}

inline std::string op(int number) {
  return std::string(1, static_cast<char>(number));
}

/// Text of hexadecimal digits as bytes.
inline std::string from_hex(const std::string& digits) {
  std::string bytes;
  for (size_t i = 0; i + 1 < digits.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

/// How a client of PyTorch 2.1 or newer begins.
inline std::string torch_hello() {
  return from_hex("00cef7853c");
}

}  // namespace lockstep::testing
