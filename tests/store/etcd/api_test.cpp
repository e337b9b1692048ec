#include "lockstep/store/etcd/api.h"

#include <gtest/gtest.h>

#include "lockstep/store/etcd/base64.h"
#include "tests/store/helpers.h"

namespace lockstep::etcd {
namespace {

using lockstep::testing::error_of;

TEST(Base64, KnownTexts) {
  const std::vector<std::pair<std::string, std::string>> known = {
      {"", ""},        {"f", "Zg=="},          {"fo", "Zm8="},
      {"foo", "Zm9v"}, {"foobar", "Zm9vYmFy"}, {std::string("\0\xff\xfe", 3), "AP/+"}};
  for (const auto& [bytes, text] : known) {
    EXPECT_EQ(encode_base64(bytes), text);
    EXPECT_EQ(decode_base64(text), bytes);
  }
}

TEST(Base64, AnythingElseIsRefused) {
  for (const char* text : {"Z", "Zg=", "Zg", "Zg==Zg==", "=g==", "Z===", "====", "Zm9-",
                           "Zh==", "Zm9=", "Zg= ", "Zm\n="})
    EXPECT_EQ(error_of([&] { decode_base64(text); }).code(), ErrorCode::kCorrupt) << text;
}

TEST(EtcdApi, APrefixIsARangeOfKeys) {
  EXPECT_EQ(keys_below("a/").end, "a0");
  EXPECT_EQ(keys_below("a\xff").end, "b");
  EXPECT_EQ(keys_below("a\xff\xff").first, "a\xff\xff");
  EXPECT_EQ(keys_below("\xff").end, std::string(1, '\0'));  // etcd's "all from there on"
}

TEST(EtcdApi, WritesWhatEtcdReads) {
  EXPECT_EQ(put("a", "1").dump(), R"({"key":"YQ==","value":"MQ=="})");
  EXPECT_EQ(put("a", "", 77).dump(), R"({"key":"YQ==","lease":"77","value":""})");
  EXPECT_EQ(range({"a", "b"}, true).dump(),
            R"({"key":"YQ==","keys_only":true,"range_end":"Yg=="})");
  EXPECT_EQ(watch_body({"a", ""}, 9), R"({"create_request":{"key":"YQ==","start_revision":"9"}})");
  Transaction transaction;
  transaction.conditions = {if_missing("a"), if_revision("a", 3)};
  transaction.puts = {put("a", "1")};
  transaction.else_ranges = {range({"b", ""})};
  EXPECT_EQ(transaction.body(),
            R"({"compare":[{"key":"YQ==","result":"EQUAL","target":"VERSION","version":"0"},)"
            R"({"key":"YQ==","mod_revision":"3","result":"EQUAL","target":"MOD"}],)"
            R"("failure":[{"request_range":{"key":"Yg=="}}],)"
            R"("success":[{"request_put":{"key":"YQ==","value":"MQ=="}}]})");
}

TEST(EtcdApi, WhatIsLeftOutIsNothing) {
  EXPECT_TRUE(parse_range("{}").items.empty());
  EXPECT_EQ(parse_deleted("{}"), 0);
  EXPECT_FALSE(parse_transaction("{}").succeeded);
  EXPECT_EQ(error_of([] { parse_transaction("{}").found(); }).code(), ErrorCode::kCorrupt);
  const auto item = parse_range(R"({"kvs":[{"key":"YQ=="}]})").items.at(0);
  EXPECT_EQ(item.value, "");
  EXPECT_EQ(item.lease, 0);
  EXPECT_EQ(parse_lease_ttl(R"({"result":{"ID":"9"}})"), 0);
  EXPECT_EQ(parse_lease_ttl("{\"result\":{\"TTL\":\"9\"}}\n{\"error\":{\"code\":14}}\n"), 9);
}

TEST(EtcdApi, ReadsWhatEtcdWrites) {
  const auto range = parse_range(
      R"({"header":{"revision":"7"},"kvs":[{"key":"YQ==","value":"MQ==","mod_revision":"5","lease":"9223372036854775807"}],"count":"1"})");
  EXPECT_EQ(range.revision, 7);
  EXPECT_EQ(range.items.at(0).lease, INT64_MAX);
  EXPECT_EQ(range.items.at(0).mod_revision, 5);
  const auto transaction = parse_transaction(
      R"({"succeeded":true,"responses":[{"response_put":{}},{"response_range":{"kvs":[{"key":"YQ=="}]}}]})");
  EXPECT_TRUE(transaction.succeeded);
  EXPECT_EQ(transaction.ranges.at(0).items.size(), 1u);
  const auto watch = parse_watch(
      R"({"result":{"events":[{"kv":{"key":"YQ==","mod_revision":"5"}},{"type":"DELETE","kv":{"key":"Yg=="}}]}})");
  EXPECT_FALSE(watch.events.at(0).erased);
  EXPECT_TRUE(watch.events.at(1).erased);
  EXPECT_EQ(watch.events.at(1).item.key, "b");
  EXPECT_EQ(parse_watch(R"({"result":{"canceled":true,"compact_revision":6}})").compact_revision,
            6);
}

TEST(EtcdApi, AStreamsFailureIsTheEndOfTheStream) {
  for (const char* line :
       {R"({"error":{"grpc_code":14,"http_code":503,"message":"gone"}})",
        R"({"error":{"code":14,"message":"gone","details":[]}})", R"({"error":"gone"})"}) {
    const auto answer = parse_watch(line);
    EXPECT_TRUE(answer.failed) << line;
    EXPECT_EQ(answer.reason, "gone") << line;
  }
  EXPECT_TRUE(parse_watch(R"({"error":{}})").failed);
  EXPECT_FALSE(parse_watch(R"({"result":{"created":true}})").failed);
}

TEST(EtcdApi, RefusalsAreRead) {
  const auto plain = parse_refusal(R"({"error":"why","message":"because","code":5})");
  ASSERT_TRUE(plain.has_value());
  EXPECT_EQ(plain->code, kNotFound);
  EXPECT_EQ(plain->message, "because");
  EXPECT_FALSE(worth_another_attempt(*plain));
  const auto stream = parse_refusal(R"({"error":{"grpc_code":14,"message":"gone"}})");
  ASSERT_TRUE(stream.has_value());
  EXPECT_TRUE(worth_another_attempt(*stream));
  EXPECT_TRUE(worth_another_attempt(Refusal{1, "grpc: the client connection is closing"}));
  for (const char* none : {"", "Not Found\n", "[]", "{}", R"({"error":"x","code":"y"})", "7"})
    EXPECT_FALSE(parse_refusal(none).has_value()) << none;
}

TEST(EtcdApi, AnythingElseIsRefused) {
  for (const char* body :
       {"", "null", "[]", "<html>", R"({"kvs":7})", R"({"kvs":[7]})", R"({"kvs":[{"key":5}]})",
        R"({"kvs":[{"key":"?"}]})", R"({"header":[]})", R"({"header":{"revision":"x"}})",
        R"({"header":{"revision":"99999999999999999999"}})", R"({"header":{"revision":1.5}})"})
    EXPECT_EQ(error_of([&] { parse_range(body); }).code(), ErrorCode::kCorrupt) << body;
  for (const char* body : {R"({"succeeded":1})", R"({"responses":{}})", R"({"responses":[7]})"})
    EXPECT_EQ(error_of([&] { parse_transaction(body); }).code(), ErrorCode::kCorrupt) << body;
  for (const char* body : {"{}", R"({"result":7})", R"({"result":{"events":[{"type":5}]}})"})
    EXPECT_EQ(error_of([&] { parse_watch(body); }).code(), ErrorCode::kCorrupt) << body;
}

}  // namespace
}  // namespace lockstep::etcd
