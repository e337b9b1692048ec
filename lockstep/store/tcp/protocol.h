#pragma once
// The bytes between a TCP store's client and server, after the handshake of base/auth.h. Pure.
//
//   frame   := u32 size of body, body
//   request := u64 id, u8 op, i64 number, u32 count, count strings (keys),
//              in set_many only: count strings (values),
//              string (value), u8 has_expected, string (expected; empty without)
//   reply   := u64 id, u8 status, u8 yes, i64 number, string (text), u32 count,
//              count of { string (key), u8 has_value, string (value; empty without) }
//   string  := u32 size, bytes
//
// Integers are in native byte order: the handshake refuses peers with another. The client chooses
// ids, from 1 on (0 in a cancel only wakes the server); a reply carries that of its request, and
// replies come in any order. A reply with the id 0 is the server's last message before it
// disconnects that client; `text` has the reason.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lockstep/store/request.h"

namespace lockstep::inline internal {

struct RequestFrame {
  uint64_t id = 0;
  StoreRequest request;
};
struct ReplyFrame {
  uint64_t id = 0;
  StoreReply reply;
};

/// Whole frames, ready to send.
std::string encode(const RequestFrame& frame);
std::string encode(const ReplyFrame& frame);
/// A whole frame without its size.
std::string_view body_of(std::string_view frame);

/// One body. Errors: kCorrupt (not such a body; keys that the op does not take), kInvalidArgument
/// (a limit of store.h is exceeded). Allocates no more than a small multiple of the body's size.
RequestFrame decode_request(std::string_view body);
ReplyFrame decode_reply(std::string_view body);

/// Largest bodies that encode() makes from messages within the limits.
inline constexpr int64_t kMaxRequestBody = kMaxRequestBytes + 64;
inline constexpr int64_t kMaxReplyBody = kMaxReplyBytes + 64;

/// Splits a stream into bodies. Allocates for received bytes, never for a header's announced size.
class FrameReader {
 public:
  explicit FrameReader(int64_t max_body) : max_body_(max_body) {}

  void append(std::string_view bytes);
  /// The next whole body; valid until append(). Errors: kCorrupt if its size exceeds the limit.
  std::optional<std::string_view> next();

 private:
  int64_t max_body_;
  std::string buffer_;
  size_t begin_ = 0;  ///< Bytes of buffer_ that have been handed out.
};

}  // namespace lockstep::inline internal
