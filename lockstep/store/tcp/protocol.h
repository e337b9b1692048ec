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
// Integers are in the machine's order: the handshake has refused peers of another. The id is the
// client's, from 1 on; a reply carries that of its request, and replies come in any order. A reply
// with the id 0 is the server's last word before it disconnects that client: `text` says why.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lockstep/store/request.h"

namespace lockstep {

struct RequestFrame {
  uint64_t id = 0;
  StoreRequest request;
};
struct ReplyFrame {
  uint64_t id = 0;
  StoreReply reply;
};

/// Whole frames, ready to be sent.
std::string encode(const RequestFrame& frame);
std::string encode(const ReplyFrame& frame);

/// One body. Errors: kCorrupt (not such a body; keys that the op does not take), kInvalidArgument
/// (a limit of store.h is exceeded). Allocates no more than a small multiple of the body's size.
RequestFrame decode_request(std::string_view body);
ReplyFrame decode_reply(std::string_view body);

/// Largest bodies that encode() makes of what is within the limits.
inline constexpr int64_t kMaxRequestBody = kMaxRequestBytes + 64;
inline constexpr int64_t kMaxReplyBody = kMaxReplyBytes + 64;

/// Cuts a stream into bodies. Holds what has come, never what a header only promises.
class FrameReader {
 public:
  explicit FrameReader(int64_t max_body) : max_body_(max_body) {}

  void append(std::string_view bytes);
  /// The next whole body; valid until append(). Errors: kCorrupt when it is said to be larger than
  /// allowed.
  std::optional<std::string_view> next();

 private:
  int64_t max_body_;
  std::string buffer_;
  size_t begin_ = 0;  ///< Bytes of buffer_ that have been handed out.
};

}  // namespace lockstep
