// What stands in front of payloads between hosts must be judged without a crash or an overflow,
// whatever it is.
#include <cstdint>
#include <cstring>

#include "lockstep/comm/native/tcp/frame.h"
#include "lockstep/error.h"

namespace {

template <size_t kBytes, class Parse>
void judge(const uint8_t* data, size_t size, Parse parse) {
  if (size < kBytes) return;
  const auto* bytes = reinterpret_cast<const std::byte*>(data);
  try {
    parse(std::span<const std::byte, kBytes>(bytes, kBytes));
  } catch (const lockstep::Error& error) {
    if (error.code() != lockstep::ErrorCode::kCorrupt) __builtin_trap();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lockstep;
  judge<tcp::kFrameBytes>(data, size, [](auto bytes) {
    const auto frame = tcp::parse_frame(bytes);
    if (frame.bytes < 0 || frame.bytes > tcp::kMaxPayloadBytes) __builtin_trap();
    tcp::Frame other;
    other.operation.kind = OpKind::kBarrier;
    if (tcp::mismatch(other, "rank 0", frame, "rank 1").empty() && !(other == frame))
      __builtin_trap();
  });
  judge<tcp::kMessageFrameBytes>(data, size, [](auto bytes) {
    const auto message = tcp::parse_message_frame(bytes);
    if (message.bytes() < 0 || message.bytes() > tcp::kMaxPayloadBytes) __builtin_trap();
  });
  return 0;
}
