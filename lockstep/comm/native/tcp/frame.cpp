#include "lockstep/comm/native/tcp/frame.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "lockstep/comm/kernels/element_types.h"
#include "lockstep/error.h"

namespace lockstep::tcp {
namespace {

[[noreturn]] void reject(const std::string& why) {
  throw Error(ErrorCode::kCorrupt, "sent bytes that are no frame: " + why);
}

}  // namespace

Frame parse_frame(std::span<const std::byte, kFrameBytes> bytes) {
  Frame frame;
  std::memcpy(&frame, bytes.data(), kFrameBytes);
  if (frame.magic != Frame::kMagic) reject("wrong magic");
  if (const auto why = malformed(frame.operation)) reject(*why);
  if (frame.bytes < 0 || frame.bytes > kMaxPayloadBytes)
    reject(fmt::format("a payload of {} bytes", frame.bytes));
  return frame;
}

MessageFrame parse_message_frame(std::span<const std::byte, kMessageFrameBytes> bytes) {
  MessageFrame message;
  std::memcpy(&message, bytes.data(), kMessageFrameBytes);
  if (message.magic != MessageFrame::kMagic) reject("wrong magic");
  if (static_cast<int>(message.dtype) >= kNumDTypes)
    reject(fmt::format("dtype {}", static_cast<int>(message.dtype)));
  if (message.count < 0 || message.count > kMaxPayloadBytes / size_of(message.dtype))
    reject(fmt::format("{} elements", message.count));
  const auto zero = [](uint8_t byte) { return byte == 0; };
  if (!std::all_of(message.unused.begin(), message.unused.end(), zero)) reject("padding");
  return message;
}

std::string mismatch(const Frame& expected, const std::string& self, const Frame& got,
                     const std::string& peer) {
  if (expected == got) return {};
  if (auto why = lockstep::mismatch(expected.operation, self, got.operation, peer)) return *why;
  return fmt::format("{}: {} expects part {} of {} bytes, {} sent part {} of {} bytes",
                     describe(expected.operation), self, expected.part, expected.bytes, peer,
                     got.part, got.bytes);
}

}  // namespace lockstep::tcp
