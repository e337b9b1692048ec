#include "lockstep/checkpoint/mindspore_format.h"

#include <gtest/gtest.h>

#include "tests/support/error_of.h"

namespace lockstep {
namespace {

std::string from_hex(std::string_view hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  }
  return bytes;
}

// Serialized by Google's protobuf 4.21 for Python, one Checkpoint message per value: bn1.gamma [2]
// Float32 (1, 2); conv.weight [2, 1, 1, 1] Float16; epoch_num [0] Int32 7; a str; and sliced [3]
// Int64 in two slices.
const std::string& ckpt_reference() {
  static const std::string bytes = from_hex(
      "0a220a09626e312e67616d6d61121508021207466c6f617433321a080000803f000000400a260a0b"
      "636f6e762e776569676874121708020801080108011207466c6f617431361a04003800c00a1c0a09"
      "65706f63685f6e756d120f08001205496e7433321a04070000000a160a046e6f7465120e08051203"
      "7374721a0568656c6c6f0a250a06736c69636564121b08031205496e7436341a1001000000000000"
      "0002000000000000000a1d0a06736c69636564121308031205496e7436341a080300000000000000");
  return bytes;
}

WeightTable parse_ckpt(const std::string& bytes) {
  return parse_mindspore(MemoryBytes("x.ckpt", bytes));
}

std::string ckpt_fault(const std::string& bytes) {
  const Error error = error_of([&] { parse_ckpt(bytes); });
  EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
  return error.what();
}

TEST(MindSporeFormat, ReadsWhatProtobufWrote) {
  const auto weights = parse_ckpt(ckpt_reference()).weights;
  ASSERT_EQ(weights.size(), 4U);
  EXPECT_EQ(weights[0].name, "bn1.gamma");
  EXPECT_EQ(weights[0].type, StoredType::kF32);
  EXPECT_EQ(weights[0].shape, (std::vector<uint64_t>{2}));
  ASSERT_EQ(weights[0].pieces.size(), 1U);
  EXPECT_EQ(ckpt_reference().substr(weights[0].pieces[0].offset, 8), from_hex("0000803f00000040"));
  EXPECT_EQ(weights[1].shape, (std::vector<uint64_t>{2, 1, 1, 1}));
  EXPECT_EQ(weights[1].type, StoredType::kF16);
  EXPECT_TRUE(weights[2].shape.empty());  // dims [0] with one element: a scalar
  EXPECT_EQ(weights[3].name, "sliced");
  EXPECT_EQ(weights[3].pieces.size(), 2U);
}

TEST(MindSporeFormat, WritesWhatProtobufWrites) {
  std::string bytes = mindspore_message_start("bn1.gamma", StoredType::kF32, {2}, 8);
  bytes += from_hex("0000803f00000040");
  bytes += mindspore_message_start("conv.weight", StoredType::kF16, {2, 1, 1, 1}, 4);
  bytes += from_hex("003800c0");
  bytes += mindspore_message_start("epoch_num", StoredType::kI32, {}, 4) + from_hex("07000000");
  EXPECT_EQ(bytes, ckpt_reference().substr(0, bytes.size()));
}

TEST(MindSporeFormat, LongLengthsAndEmptyTensors) {
  const uint64_t many = 300'000;
  const std::string bytes = mindspore_message_start("big", StoredType::kU8, {3, many / 3}, many) +
                            std::string(many, 'x') +
                            mindspore_message_start("none", StoredType::kF64, {0, 4}, 0);
  const auto weights = parse_ckpt(bytes).weights;
  EXPECT_EQ(weights.at(0).pieces.at(0).bytes, many);
  EXPECT_EQ(weights.at(1).shape, (std::vector<uint64_t>{0, 4}));
}

TEST(MindSporeFormat, EveryCutIsAnErrorOrEndsBetweenParameters) {
  size_t whole = 0;
  for (size_t bytes = 1; bytes < ckpt_reference().size(); ++bytes) {
    try {
      parse_ckpt(ckpt_reference().substr(0, bytes));
      ++whole;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kCorrupt) << bytes;
    }
  }
  EXPECT_EQ(whole, 4U);  // behind gamma, weight, epoch_num and the text
}

TEST(MindSporeFormat, SaysWhatIsWrong) {
  const auto message = [](const char* name, const std::vector<uint64_t>& dims,
                          const std::string& content) {
    return mindspore_message_start(name, StoredType::kF32, dims, content.size()) + content;
  };
  EXPECT_EQ(ckpt_fault(message("w", {3}, "12345678")),
            "x.ckpt: parameter 'w' of Float32 [3] has 8 bytes");
  EXPECT_EQ(
      ckpt_fault(message("w", {1}, "1234") + message("v", {1}, "1234") + message("w", {1}, "1234")),
      "x.ckpt: parameter 'w' is there twice");
  EXPECT_EQ(ckpt_fault(message("w", {2}, "1234") + message("w", {1, 2}, "1234")),
            "x.ckpt: parameter 'w' comes in slices of different dims or types");
  EXPECT_EQ(
      ckpt_fault(message("w", {uint64_t{1} << 62, uint64_t{1} << 62}, "1234")),
      "x.ckpt: parameter 'w' of Float32 [4611686018427387904, 4611686018427387904] has 4 bytes");
  std::string other = message("w", {1}, "1234");
  other.replace(other.find("Float32"), 7, "Complex");
  EXPECT_EQ(ckpt_fault(other), "x.ckpt: parameter 'w' has the unknown type 'Complex'");
  EXPECT_EQ(ckpt_fault("\x12\x01x"),
            "x.ckpt: not a valid .ckpt file at byte 0: no parameter begins there");
  EXPECT_EQ(ckpt_fault("\x0a\x7f"),
            "x.ckpt: not a valid .ckpt file at byte 1: a field of 127 bytes where 0 are left; was "
            "it cut off?");
  EXPECT_EQ(ckpt_fault(""), "x.ckpt: a .ckpt file without parameters");
}

TEST(MindSporeFormat, HasNoComplexNumbers) {
  const Error error = error_of([] { mindspore_message_start("z", StoredType::kC64, {1}, 8); });
  EXPECT_STREQ(error.what(), "tensor 'z': a .ckpt file has no type C64");
}

}  // namespace
}  // namespace lockstep
