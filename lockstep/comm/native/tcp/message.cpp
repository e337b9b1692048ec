#include "lockstep/comm/native/tcp/message.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "lockstep/error.h"

namespace lockstep::tcp {
namespace {

[[noreturn]] void reject(const std::string& why) {
  throw Error(ErrorCode::kCorrupt, "sent bytes that are no message: " + why);
}

}  // namespace

Message parse_message(std::span<const std::byte, kMessageBytes> bytes) {
  Message message;
  std::memcpy(&message, bytes.data(), kMessageBytes);
  if (message.magic != Message::kMagic) reject("wrong magic");
  if (const auto why = malformed(message.operation)) reject(*why);
  if (message.bytes < 0 || message.bytes > kMaxPayloadBytes)
    reject(fmt::format("a payload of {} bytes", message.bytes));
  return message;
}

Letter parse_letter(std::span<const std::byte, kLetterBytes> bytes) {
  Letter letter;
  std::memcpy(&letter, bytes.data(), kLetterBytes);
  if (letter.magic != Letter::kMagic) reject("wrong magic");
  if (static_cast<int>(letter.dtype) >= kNumDTypes)
    reject(fmt::format("dtype {}", static_cast<int>(letter.dtype)));
  if (letter.count < 0 || letter.count > kMaxPayloadBytes / size_of(letter.dtype))
    reject(fmt::format("{} elements", letter.count));
  const auto zero = [](uint8_t byte) { return byte == 0; };
  if (!std::all_of(letter.unused.begin(), letter.unused.end(), zero)) reject("padding");
  return letter;
}

std::string mismatch(const Message& expected, const std::string& self, const Message& got,
                     const std::string& peer) {
  if (expected == got) return {};
  if (auto why = lockstep::mismatch(expected.operation, self, got.operation, peer)) return *why;
  return fmt::format("{}: {} expects part {} of {} bytes, {} sent part {} of {} bytes",
                     describe(expected.operation), self, expected.part, expected.bytes, peer,
                     got.part, got.bytes);
}

}  // namespace lockstep::tcp
