#pragma once
// What goes in front of every payload between ranks of different hosts, and how a received one is
// checked.
//
// Both structs travel as they lie in memory: the ends have compared build_id(), which holds byte
// order and version, before the first one. Pure functions: what comes from the wire is a stranger's
// until it has passed.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "lockstep/comm/op_header.h"
#include "lockstep/types.h"

namespace lockstep::tcp {

/// In front of each payload of a collective.
struct Message {
  static constexpr uint32_t kMagic = 0x504f4b4c;  // "LKOP"
  uint32_t magic = kMagic;
  uint32_t part = 0;   ///< Which of the operation's messages to this peer.
  OpHeader operation;  ///< What the sender's caller asked for.
  int64_t bytes = 0;   ///< Payload that follows.
  bool operator==(const Message&) const = default;
};
inline constexpr size_t kMessageBytes = 40;
static_assert(sizeof(Message) == kMessageBytes);

/// In front of each payload of a send.
struct Letter {
  static constexpr uint32_t kMagic = 0x454c4b4c;  // "LKLE"
  uint32_t magic = kMagic;
  int32_t tag = 0;
  int64_t count = 0;  ///< Elements that follow.
  DType dtype = DType::kUint8;
  std::array<uint8_t, 7> unused{};  ///< Zero.
  bool operator==(const Letter&) const = default;
  int64_t bytes() const { return count * size_of(dtype); }
};
inline constexpr size_t kLetterBytes = 24;
static_assert(sizeof(Letter) == kLetterBytes);

/// No payload is larger; sizes below it cannot overflow.
inline constexpr int64_t kMaxPayloadBytes = int64_t{1} << 48;

/// Errors: kCorrupt when it is none: wrong magic, a malformed operation, an impossible size.
Message parse_message(std::span<const std::byte, kMessageBytes> bytes);
/// Errors: kCorrupt.
Letter parse_letter(std::span<const std::byte, kLetterBytes> bytes);

/// Why `got`, which rank `peer` sent, is not what rank `self` (names for people) waits for; "" when
/// it is. Names what both called.
std::string mismatch(const Message& expected, const std::string& self, const Message& got,
                     const std::string& peer);

}  // namespace lockstep::tcp
