#include "lockstep/store/torch/torch_protocol.h"

#include <gtest/gtest.h>

#include "tests/store/helpers.h"
#include "tests/store/torch/torch_bytes.h"

namespace lockstep {
namespace {

using testing::counted;
using testing::error_of;
using testing::from_hex;
using testing::op;
using testing::raw;
using testing::sized;
using testing::torch_hello;
using Texts = std::vector<std::string>;

/// The requests of a stream that comes in pieces of `piece` bytes.
std::vector<TorchRequest> read_all(std::string_view stream, size_t piece) {
  TorchReader reader;
  std::vector<TorchRequest> requests;
  while (!stream.empty()) {
    reader.append(stream.substr(0, piece));
    stream.remove_prefix(std::min(piece, stream.size()));
    while (auto request = reader.next()) requests.push_back(std::move(*request));
  }
  return requests;
}

TorchRequest only_request(const std::string& stream) {
  auto requests = read_all(stream, stream.size());
  EXPECT_EQ(requests.size(), 1U);
  return requests.empty() ? TorchRequest() : requests[0];
}

void expect_refused(const std::string& stream, const std::string& why) {
  const Error error = error_of([&] { read_all(stream, stream.size()); });
  EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
  EXPECT_NE(std::string(error.what()).find(why), std::string::npos) << error.what();
}

/// Bytes recorded from PyTorch's client.
struct Recorded {
  const char* bytes;
  TorchOp op;
  Texts keys = {};
  Texts values = {};
  int64_t number = 0;
};

TEST(TorchProtocol, TheBytesOfEachOperationOfPyTorch) {
  const std::vector<Recorded> all = {
      {"0d44332211", TorchOp::kPing, {}, {}, 0x11223344},
      {"0102000000000000002f6b010000000000000076", TorchOp::kSet, {"/k"}, {"v"}},
      {"0202000000000000002f7a0000000000000000010000000000000078",
       TorchOp::kCompareSet,
       {"/z"},
       {"", "x"}},
      {"0302000000000000002f6b", TorchOp::kGet, {"/k"}},
      {"0402000000000000002f6ef9ffffffffffffff", TorchOp::kAdd, {"/n"}, {}, -7},
      {"05020000000000000002000000000000002f6b02000000000000002f6e", TorchOp::kCheck, {"/k", "/n"}},
      {"06010000000000000002000000000000002f6b", TorchOp::kWait, {"/k"}},
      {"07", TorchOp::kNumKeys},
      {"0802000000000000002f6b", TorchOp::kDeleteKey, {"/k"}},
      {"0902000000000000002f6b010000000000000077", TorchOp::kAppend, {"/k"}, {"w"}},
      {"0a020000000000000002000000000000002f6b02000000000000002f6e",
       TorchOp::kMultiGet,
       {"/k", "/n"}},
      {"0b010000000000000002000000000000002f6b010000000000000076",
       TorchOp::kMultiSet,
       {"/k"},
       {"v"}},
      {"0c", TorchOp::kCancelWait},
      {"0e02000000000000002f71010000000000000061", TorchOp::kQueuePush, {"/q"}, {"a"}},
      {"0f02000000000000002f71", TorchOp::kQueuePop, {"/q"}},
      {"1002000000000000002f71", TorchOp::kQueueLen, {"/q"}},
      {"11", TorchOp::kListKeys},
      {"1202000000000000002f620200000000000000", TorchOp::kBarrier, {"/b"}, {}, 2},
  };
  std::string stream = torch_hello();
  for (const Recorded& each : all) stream += from_hex(each.bytes);
  for (const size_t piece : {size_t{1}, size_t{7}, stream.size()}) {
    const auto requests = read_all(stream, piece);
    ASSERT_EQ(requests.size(), all.size()) << "in pieces of " << piece;
    for (size_t i = 0; i < all.size(); ++i) {
      SCOPED_TRACE(all[i].bytes);
      EXPECT_EQ(requests[i].op, all[i].op);
      EXPECT_EQ(requests[i].keys, all[i].keys);
      EXPECT_EQ(requests[i].values, all[i].values);
      EXPECT_EQ(requests[i].number, all[i].number);
    }
  }
}

/// Recorded from PyTorch 1.13, which has no greeting and other numbers.
TEST(TorchProtocol, TheOlderNumberingIsKnownByItsBeginning) {
  const auto requests = read_all(from_hex("0002000000000000002f6b010000000000000076"
                                          "05010000000000000002000000000000002f6b"
                                          "0202000000000000002f6b"
                                          "0302000000000000002f6e0500000000000000"
                                          "06"
                                          "0802000000000000002f6b"),
                                 3);
  std::vector<TorchOp> ops;
  for (const auto& request : requests) ops.push_back(request.op);
  EXPECT_EQ(ops, (std::vector{TorchOp::kSet, TorchOp::kWait, TorchOp::kGet, TorchOp::kAdd,
                              TorchOp::kNumKeys, TorchOp::kDeleteKey}));
  EXPECT_EQ(only_request(from_hex("03020000000000000069640500000000000000")).number, 5);
  expect_refused(from_hex("0702000000000000002f6b"), "operation 7 is none of torch's store");
  expect_refused(from_hex("09"), "does not begin as PyTorch 2.1");
}

TEST(TorchProtocol, OtherBytesAreRefused) {
  expect_refused("GET / HTTP/1.1\r\n\r\n", "operation 71 is none of torch's store");
  expect_refused(torch_hello() + op(19), "operation 19 is none of torch's store");
  expect_refused(torch_hello() + torch_hello(), "operation 0 is none of torch's store");
  // A greeting with another magic number is set of the older numbering, with an endless key.
  expect_refused(from_hex("00cef7853d") + std::string(8, '\0'), "a key of ");
}

TEST(TorchProtocol, BoundsAreCheckedBeforeTheBytesCome) {
  const std::string hello = torch_hello();
  const auto size = [](size_t bytes) { return raw(static_cast<uint64_t>(bytes)); };
  expect_refused(hello + op(3) + size(kMaxTorchKeyBytes + 1), "a key of 8193 bytes");
  expect_refused(hello + op(1) + sized("k") + size(kMaxTorchValueBytes + 1),
                 "a value of 8388609 bytes");
  expect_refused(hello + op(6) + size(kMaxTorchKeys + 1), "a request with 131073 keys");
  expect_refused(hello + op(3) + raw(UINT64_MAX), "a key of 18446744073709551615 bytes");
  EXPECT_EQ(only_request(hello + op(3) + sized(std::string(kMaxTorchKeyBytes, 'k'))).keys[0].size(),
            kMaxTorchKeyBytes);
}

TEST(TorchProtocol, ARequestHasABound) {
  TorchReader reader;
  reader.append(torch_hello() + op(11) + raw(uint64_t{100}));
  const std::string item = sized("k") + sized(std::string(kMaxTorchValueBytes, 'v'));
  const Error error = error_of([&] {
    for (int i = 0; i < 100; ++i) {
      reader.append(item);
      if (reader.next()) return;
    }
  });
  EXPECT_STREQ(error.what(), "a request of more than 67108864 bytes");
}

TEST(TorchProtocol, OnlyAnUnfinishedRequestCostsMemory) {
  TorchReader reader;
  EXPECT_FALSE(reader.greeted());
  reader.append(torch_hello());
  EXPECT_FALSE(reader.next());
  EXPECT_TRUE(reader.greeted());
  EXPECT_EQ(reader.unfinished_bytes(), 0U);
  const std::string value(1 << 20, 'v');
  reader.append(op(11) + raw(uint64_t{2}) + sized("a") + sized(value) + sized("b"));
  EXPECT_FALSE(reader.next());
  EXPECT_GE(reader.unfinished_bytes(), value.size());
  reader.append(sized(value));
  EXPECT_TRUE(reader.next());
  EXPECT_FALSE(reader.next());
  EXPECT_EQ(reader.unfinished_bytes(), 0U);
}

TEST(TorchProtocol, RequestsMayHaveNoKeysAndEmptyOnes) {
  EXPECT_TRUE(only_request(torch_hello() + op(6) + counted({})).keys.empty());
  EXPECT_EQ(only_request(torch_hello() + op(6) + counted({"", "a"})).keys, (Texts{"", "a"}));
}

}  // namespace
}  // namespace lockstep
