#include "lockstep/comm/native/tcp/frame.h"
#include "lockstep/comm/kernels/element_types.h"

#include <gtest/gtest.h>

#include <cstring>

#include "lockstep/error.h"

namespace lockstep::tcp {
namespace {

Frame an_all_reduce() {
  Frame frame;
  frame.operation.kind = OpKind::kAllReduce;
  frame.operation.sequence = 7;
  frame.operation.count = 100;
  frame.operation.dtype = DType::kFloat32;
  frame.part = 2;
  frame.bytes = 400;
  return frame;
}

Frame through_wire(const Frame& frame) {
  std::array<std::byte, kFrameBytes> bytes;
  std::memcpy(bytes.data(), &frame, kFrameBytes);
  return parse_frame(bytes);
}

MessageFrame through_wire(const MessageFrame& message) {
  std::array<std::byte, kMessageFrameBytes> bytes;
  std::memcpy(bytes.data(), &message, kMessageFrameBytes);
  return parse_message_frame(bytes);
}

template <class T>
ErrorCode wire_error(const T& item) {
  try {
    through_wire(item);
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode::kInternal;
}

TEST(TcpFrame, SurvivesTheWire) {
  EXPECT_EQ(through_wire(an_all_reduce()), an_all_reduce());
  const MessageFrame message{MessageFrame::kMagic, -3, 17, DType::kInt64, {}};
  EXPECT_EQ(through_wire(message), message);
  EXPECT_EQ(message.bytes(), 136);
}

TEST(TcpFrame, GarbageIsCorrupt) {
  auto frame = an_all_reduce();
  frame.magic ^= 1;
  EXPECT_EQ(wire_error(frame), ErrorCode::kCorrupt);
  frame = an_all_reduce();
  frame.operation.kind = static_cast<OpKind>(200);
  EXPECT_EQ(wire_error(frame), ErrorCode::kCorrupt);
  frame = an_all_reduce();
  frame.operation.dtype = static_cast<DType>(kNumDTypes);
  EXPECT_EQ(wire_error(frame), ErrorCode::kCorrupt);
  frame = an_all_reduce();
  frame.bytes = -1;
  EXPECT_EQ(wire_error(frame), ErrorCode::kCorrupt);
  frame.bytes = kMaxPayloadBytes + 1;
  EXPECT_EQ(wire_error(frame), ErrorCode::kCorrupt);
}

TEST(TcpFrame, GarbageMessageFrameIsCorrupt) {
  const MessageFrame good{MessageFrame::kMagic, 0, 1, DType::kInt64, {}};
  MessageFrame message = good;
  message.magic = 0;
  EXPECT_EQ(wire_error(message), ErrorCode::kCorrupt);
  message = good;
  message.count = -1;
  EXPECT_EQ(wire_error(message), ErrorCode::kCorrupt);
  message.count = INT64_MAX;  // times 8 would overflow
  EXPECT_EQ(wire_error(message), ErrorCode::kCorrupt);
  message = good;
  message.dtype = static_cast<DType>(99);
  EXPECT_EQ(wire_error(message), ErrorCode::kCorrupt);
  message = good;
  message.unused[6] = 1;
  EXPECT_EQ(wire_error(message), ErrorCode::kCorrupt);
}

TEST(TcpFrame, MismatchNamesBothCalls) {
  const auto ours = an_all_reduce();
  EXPECT_EQ(mismatch(ours, "rank 0", ours, "rank 1"), "");
  auto theirs = ours;
  theirs.operation.kind = OpKind::kBroadcast;
  theirs.operation.root = 3;
  EXPECT_EQ(mismatch(ours, "rank 0", theirs, "rank 1"),
            "rank 0 called all_reduce #7 (float32, 100 elements, sum), rank 1 called broadcast #7 "
            "(float32, 100 elements, root 3)");
  theirs = ours;
  theirs.part = 3;
  EXPECT_NE(mismatch(ours, "rank 0", theirs, "rank 1").find("part 3"), std::string::npos);
}

}  // namespace
}  // namespace lockstep::tcp
