#pragma once
// The header of every payload between ranks of different hosts, and the check of a received one.
//
// Both structs are sent as they are in memory: before the first one, the ends have compared
// build_id(), which covers byte order and version. Pure functions: received bytes are untrusted
// until they pass.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "lockstep/comm/op_header.h"
#include "lockstep/types.h"

namespace lockstep::tcp {

/// The header of a frame of a collective; its payload follows.
struct Frame {
  static constexpr uint32_t kMagic = 0x504f4b4c;  // "LKOP"
  uint32_t magic = kMagic;
  uint32_t part = 0;   ///< Number of the frame among the operation's frames to this peer.
  OpHeader operation;  ///< The operation that the sender's caller requested.
  int64_t bytes = 0;   ///< Size of the payload that follows.
  bool operator==(const Frame&) const = default;
};
inline constexpr size_t kFrameBytes = 40;
static_assert(sizeof(Frame) == kFrameBytes);

/// The header of a message's frame; its payload follows.
struct MessageFrame {
  static constexpr uint32_t kMagic = 0x454c4b4c;  // "LKLE"
  uint32_t magic = kMagic;
  int32_t tag = 0;
  int64_t count = 0;  ///< Elements that follow.
  DType dtype = DType::kUint8;
  std::array<uint8_t, 7> unused{};  ///< Zero.
  bool operator==(const MessageFrame&) const = default;
  int64_t bytes() const { return count * size_of(dtype); }
};
inline constexpr size_t kMessageFrameBytes = 24;
static_assert(sizeof(MessageFrame) == kMessageFrameBytes);

/// No payload is larger; sizes below it cannot overflow.
inline constexpr int64_t kMaxPayloadBytes = int64_t{1} << 48;

/// Errors: kCorrupt for a wrong magic, a malformed operation, or an impossible size.
Frame parse_frame(std::span<const std::byte, kFrameBytes> bytes);
/// Errors: kCorrupt.
MessageFrame parse_message_frame(std::span<const std::byte, kMessageFrameBytes> bytes);

/// The difference between `got`, sent by rank `peer`, and the frame that rank `self` awaits
/// (names for people); "" if there is none. Names both calls.
std::string mismatch(const Frame& expected, const std::string& self, const Frame& got,
                     const std::string& peer);

}  // namespace lockstep::tcp
