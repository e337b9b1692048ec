#include "lockstep/store/tcp/protocol.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/store/helpers.h"

namespace lockstep {
namespace {

using testing::error_of;

/// The only body in `frame`.
std::string body_of(const std::string& frame) {
  FrameReader reader(kMaxReplyBody);
  reader.append(frame);
  std::string body(reader.next().value());
  EXPECT_FALSE(reader.next().has_value());
  return body;
}

RequestFrame full_request() {
  RequestFrame frame;
  frame.id = 0x123456789abcdef0;
  frame.request.op = StoreOp::kWait;
  frame.request.keys = {"a", "", std::string("\0b", 2)};
  frame.request.value = "value";
  frame.request.expected = "";
  frame.request.number = -5;
  return frame;
}

ReplyFrame full_reply() {
  ReplyFrame frame;
  frame.id = 7;
  frame.reply.status = StoreReply::Status::kRefused;
  frame.reply.yes = true;
  frame.reply.number = INT64_MIN;
  frame.reply.text = "why";
  frame.reply.items = {{"k", "v"}, {"", std::nullopt}, {"e", ""}};
  return frame;
}

TEST(Protocol, RequestsRoundTrip) {
  const auto sent = full_request();
  const auto got = decode_request(body_of(encode(sent)));
  EXPECT_EQ(got.id, sent.id);
  EXPECT_EQ(got.request.op, sent.request.op);
  EXPECT_EQ(got.request.keys, sent.request.keys);
  EXPECT_EQ(got.request.value, sent.request.value);
  EXPECT_EQ(got.request.expected, sent.request.expected);
  EXPECT_EQ(got.request.number, sent.request.number);
}

TEST(Protocol, ManyValuesRoundTrip) {
  RequestFrame sent;
  sent.request.op = StoreOp::kSetMany;
  sent.request.keys = {"a", "", "c"};
  sent.request.values = {"1", std::string("\0", 1), ""};
  const std::string body = body_of(encode(sent));
  const auto got = decode_request(body);
  EXPECT_EQ(got.request.keys, sent.request.keys);
  EXPECT_EQ(got.request.values, sent.request.values);
  for (size_t size = 0; size < body.size(); ++size)
    EXPECT_THROW(decode_request(body.substr(0, size)), Error) << size;
}

TEST(Protocol, RepliesRoundTrip) {
  const auto sent = full_reply();
  const auto got = decode_reply(body_of(encode(sent)));
  EXPECT_EQ(got.id, sent.id);
  EXPECT_EQ(got.reply.status, sent.reply.status);
  EXPECT_EQ(got.reply.yes, sent.reply.yes);
  EXPECT_EQ(got.reply.number, sent.reply.number);
  EXPECT_EQ(got.reply.text, sent.reply.text);
  ASSERT_EQ(got.reply.items.size(), 3u);
  EXPECT_EQ(got.reply.items[0].value, "v");
  EXPECT_EQ(got.reply.items[1].value, std::nullopt);
  EXPECT_EQ(got.reply.items[2].value, "");
}

TEST(Protocol, EveryShortenedOrLengthenedBodyIsRefused) {
  const std::string request = body_of(encode(full_request()));
  for (size_t size = 0; size < request.size(); ++size)
    EXPECT_THROW(decode_request(request.substr(0, size)), Error) << size;
  EXPECT_THROW(decode_request(request + "x"), Error);
  const std::string reply = body_of(encode(full_reply()));
  for (size_t size = 0; size < reply.size(); ++size)
    EXPECT_THROW(decode_reply(reply.substr(0, size)), Error) << size;
  EXPECT_THROW(decode_reply(reply + "x"), Error);
}

TEST(Protocol, UnknownOperationsAndStatesAreRefused) {
  std::string request = body_of(encode(full_request()));
  request[sizeof(uint64_t)] = static_cast<char>(kNumStoreOps);
  EXPECT_THROW(decode_request(request), Error);
  std::string reply = body_of(encode(full_reply()));
  reply[sizeof(uint64_t)] = 3;
  EXPECT_THROW(decode_reply(reply), Error);
}

TEST(Protocol, OperationsTakeTheirNumberOfKeys) {
  const auto code = [](StoreOp op, size_t num_keys) {
    RequestFrame frame;
    frame.request.op = op;
    frame.request.keys.resize(num_keys);
    return error_of([&] { decode_request(body_of(encode(frame))); }).code();
  };
  EXPECT_EQ(code(StoreOp::kSet, 0), ErrorCode::kCorrupt);
  EXPECT_EQ(code(StoreOp::kSet, 2), ErrorCode::kCorrupt);
  EXPECT_EQ(code(StoreOp::kCancel, 1), ErrorCode::kCorrupt);
  EXPECT_EQ(code(StoreOp::kArrive, 0), ErrorCode::kCorrupt);
}

TEST(Protocol, PromisedCountsAreCheckedBeforeRoomIsMade) {
  RequestFrame frame;
  frame.request.op = StoreOp::kWait;
  std::string body = body_of(encode(frame));
  const uint32_t count = 0xffffffff;
  std::memcpy(body.data() + 17, &count, sizeof count);  // after id, op, number
  EXPECT_EQ(error_of([&] { decode_request(body); }).code(), ErrorCode::kCorrupt);
}

TEST(Protocol, LimitsHoldForWhatComesIn) {
  RequestFrame frame;
  frame.request.op = StoreOp::kCancel;
  frame.request.value.assign(static_cast<size_t>(kMaxValueBytes) + 1, 'x');
  EXPECT_EQ(error_of([&] { decode_request(body_of(encode(frame))); }).code(),
            ErrorCode::kInvalidArgument);
  frame.request = {};
  frame.request.keys = {std::string(static_cast<size_t>(kMaxKeyBytes) + 1, 'k')};
  EXPECT_EQ(error_of([&] { decode_request(body_of(encode(frame))); }).code(),
            ErrorCode::kInvalidArgument);
  frame.request = {};
  frame.request.op = StoreOp::kSetMany;
  frame.request.keys = {"k"};
  frame.request.values = {std::string(static_cast<size_t>(kMaxValueBytes) + 1, 'x')};
  EXPECT_EQ(error_of([&] { decode_request(body_of(encode(frame))); }).code(),
            ErrorCode::kInvalidArgument);
  frame.request = {};
  frame.request.op = StoreOp::kSetWithLease;
  frame.request.keys = {"k"};
  for (const int64_t ttl : {int64_t{0}, int64_t{-1}, kMaxLeaseTtl.count() + 1}) {
    frame.request.number = ttl;
    EXPECT_EQ(error_of([&] { decode_request(body_of(encode(frame))); }).code(),
              ErrorCode::kInvalidArgument);
  }
}

TEST(Protocol, LargestRequestFits) {
  RequestFrame frame;
  frame.request.op = StoreOp::kCompareSet;
  frame.request.keys = {std::string(static_cast<size_t>(kMaxKeyBytes), 'k')};
  frame.request.value.assign(static_cast<size_t>(kMaxValueBytes), 'x');
  frame.request.expected = frame.request.value;
  check_limits(frame.request);
  EXPECT_LE(static_cast<int64_t>(encode(frame).size()), kMaxRequestBody);
}

TEST(FrameReader, CutsAStreamWhereverItWasCut) {
  const std::string stream = encode(full_request()) + encode(full_request());
  const std::string wanted = body_of(encode(full_request()));
  for (size_t piece = 1; piece <= stream.size(); ++piece) {
    FrameReader reader(kMaxRequestBody);
    int bodies = 0;
    for (size_t at = 0; at < stream.size(); at += piece) {
      reader.append(std::string_view(stream).substr(at, piece));
      while (const auto body = reader.next()) {
        EXPECT_EQ(*body, wanted);
        ++bodies;
      }
    }
    EXPECT_EQ(bodies, 2) << piece;
  }
}

TEST(FrameReader, RefusesTooLargeAFrameByItsHeader) {
  FrameReader reader(100);
  const uint32_t size = 101;
  reader.append({reinterpret_cast<const char*>(&size), sizeof size});
  EXPECT_EQ(error_of([&] { reader.next(); }).code(), ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace lockstep
