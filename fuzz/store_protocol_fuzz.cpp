// Bytes after the handshake, as the store's server and client meet them: the first byte chooses the
// end, the next how the stream is cut. The server's end also carries the requests out.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "lockstep/error.h"
#include "lockstep/store/store_state.h"
#include "lockstep/store/tcp/protocol.h"

namespace {

using namespace lockstep;

void require(bool holds) {
  if (!holds) std::abort();
}

/// Feeds `stream` in pieces of `piece` bytes and hands out the bodies.
template <class OnBody>
void read_frames(std::string_view stream, size_t piece, int64_t max_body, OnBody on_body) {
  FrameReader reader(max_body);
  while (!stream.empty()) {
    const auto part = stream.substr(0, piece);
    stream.remove_prefix(part.size());
    reader.append(part);
    while (const auto body = reader.next()) on_body(*body);
  }
}

/// What was decoded must encode to the very bytes it came from.
template <class Frame>
void require_round_trip(const Frame& frame, std::string_view body) {
  require(std::string_view(encode(frame)).substr(sizeof(uint32_t)) == body);
}

void serve(std::string_view stream, size_t piece) {
  StoreState state;
  read_frames(stream, piece, kMaxRequestBody, [&](std::string_view body) {
    RequestFrame frame = decode_request(body);
    require_round_trip(frame, body);
    const StoreTicket ticket{frame.id % 3, frame.id};
    if (frame.request.op == StoreOp::kCancel) {
      state.cancel(ticket);
      return;
    }
    const size_t waited = state.num_waiting();
    const auto answers = state.submit(ticket, std::move(frame.request));
    // Each request is answered or waits, and nobody is answered twice.
    require(state.num_waiting() + answers.size() == waited + 1);
  });
  for (uint64_t client = 0; client < 3; ++client) {
    for (const auto& answer : state.drop_client(client)) require(answer.to.client > client);
    require(state.leased_by(client) == nullptr);
  }
  require(state.num_waiting() == 0);
}

void receive(std::string_view stream, size_t piece) {
  read_frames(stream, piece, kMaxReplyBody,
              [](std::string_view body) { require_round_trip(decode_reply(body), body); });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const std::string_view stream(reinterpret_cast<const char*>(data) + 2, size - 2);
  const size_t piece = std::max<size_t>(1, data[1]);
  try {
    (data[0] % 2 == 0 ? serve : receive)(stream, piece);
  } catch (const Error&) {
    // Refused with a reason: what must happen to most inputs.
  }
  return 0;
}
