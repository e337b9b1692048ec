#include "lockstep/comm/native/tcp/message.h"

#include <gtest/gtest.h>

#include <cstring>

#include "lockstep/error.h"

namespace lockstep::tcp {
namespace {

Message an_all_reduce() {
  Message message;
  message.operation.kind = OpKind::kAllReduce;
  message.operation.sequence = 7;
  message.operation.count = 100;
  message.operation.dtype = DType::kFloat32;
  message.part = 2;
  message.bytes = 400;
  return message;
}

Message through_wire(const Message& message) {
  std::array<std::byte, kMessageBytes> bytes;
  std::memcpy(bytes.data(), &message, kMessageBytes);
  return parse_message(bytes);
}

Letter through_wire(const Letter& letter) {
  std::array<std::byte, kLetterBytes> bytes;
  std::memcpy(bytes.data(), &letter, kLetterBytes);
  return parse_letter(bytes);
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

TEST(TcpMessage, SurvivesTheWire) {
  EXPECT_EQ(through_wire(an_all_reduce()), an_all_reduce());
  const Letter letter{Letter::kMagic, -3, 17, DType::kInt64, {}};
  EXPECT_EQ(through_wire(letter), letter);
  EXPECT_EQ(letter.bytes(), 136);
}

TEST(TcpMessage, GarbageIsCorrupt) {
  auto message = an_all_reduce();
  message.magic ^= 1;
  EXPECT_EQ(wire_error(message), ErrorCode::kCorrupt);
  message = an_all_reduce();
  message.operation.kind = static_cast<OpKind>(200);
  EXPECT_EQ(wire_error(message), ErrorCode::kCorrupt);
  message = an_all_reduce();
  message.operation.dtype = static_cast<DType>(kNumDTypes);
  EXPECT_EQ(wire_error(message), ErrorCode::kCorrupt);
  message = an_all_reduce();
  message.bytes = -1;
  EXPECT_EQ(wire_error(message), ErrorCode::kCorrupt);
  message.bytes = kMaxPayloadBytes + 1;
  EXPECT_EQ(wire_error(message), ErrorCode::kCorrupt);
}

TEST(TcpMessage, GarbageLetterIsCorrupt) {
  const Letter good{Letter::kMagic, 0, 1, DType::kInt64, {}};
  Letter letter = good;
  letter.magic = 0;
  EXPECT_EQ(wire_error(letter), ErrorCode::kCorrupt);
  letter = good;
  letter.count = -1;
  EXPECT_EQ(wire_error(letter), ErrorCode::kCorrupt);
  letter.count = INT64_MAX;  // times 8 would overflow
  EXPECT_EQ(wire_error(letter), ErrorCode::kCorrupt);
  letter = good;
  letter.dtype = static_cast<DType>(99);
  EXPECT_EQ(wire_error(letter), ErrorCode::kCorrupt);
  letter = good;
  letter.unused[6] = 1;
  EXPECT_EQ(wire_error(letter), ErrorCode::kCorrupt);
}

TEST(TcpMessage, MismatchNamesBothCalls) {
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
