#include "lockstep/onnx/onnx_file.h"

#include <gtest/gtest.h>

#include "tests/onnx/wire.h"
#include "tests/support/error_of.h"

namespace lockstep {
namespace {

using namespace std::string_literals;

// By hand, from onnx.proto.
TEST(OnnxFile, HasTheFieldsOfItsSchema) {
  OnnxModel model;
  model.name = "g";
  model.input = {"x", {3}};
  model.output = {"y", {300}};
  model.nodes = {{"Op",
                  {"x", "w"},
                  "y",
                  {{"a", int64_t{-1}}, {"f", 0.5F}, {"l", std::vector<int64_t>{1, 2}}}}};
  const std::string bytes = "\0\0\x80\x3f"s;
  model.initializers = {{"w", OnnxType::kFloat, {1}, bytes}};
  const std::string node =
      "\x0a\x01x\x0a\x01w\x12\x01y\x1a\x04Op_0\x22\x02Op"
      "\x2a\x11\x0a\x01"
      "a\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\xa0\x01\x02"
      "\x2a\x0b\x0a\x01"
      "f\x15\0\0\0\x3f\xa0\x01\x01"
      "\x2a\x0a\x0a\x01l\x40\x01\x40\x02\xa0\x01\x07"s;
  const std::string weight = "\x08\x01\x10\x01\x42\x01w\x4a\x04\0\0\x80\x3f"s;
  const std::string input =
      "\x0a\x01x\x12\x0f\x0a\x0d\x08\x01\x12\x09\x0a\x03\x12\x01N\x0a\x02\x08\x03"s;
  const auto graph = texts_of(encode_onnx(model), 7).at(0);
  EXPECT_EQ(texts_of(graph, 1), std::vector{node});
  EXPECT_EQ(texts_of(graph, 2), std::vector{"g"s});
  EXPECT_EQ(texts_of(graph, 5), std::vector{weight});
  EXPECT_EQ(texts_of(graph, 11), std::vector{input});
  EXPECT_NE(texts_of(graph, 12).at(0).find("\x08\xac\x02"s), std::string::npos);  // 300
}

TEST(OnnxFile, SaysItsVersions) {
  const auto fields = fields_of(encode_onnx({}));
  EXPECT_EQ(fields.front().number, 1U);
  EXPECT_EQ(fields.front().value, 8U);
  EXPECT_EQ(fields.back().number, 8U);
  EXPECT_EQ(fields_of(fields.back().bytes).back().value, 17U);
}

TEST(OnnxFile, HoldsAtMostTwoGibibytes) {
  OnnxModel model;
  const char first = 0;
  const std::string_view much(&first, uint64_t{1} << 30);  // never read
  model.initializers = {{"a", OnnxType::kFloat, {1 << 28}, much},
                        {"b", OnnxType::kFloat, {1 << 28}, much}};
  EXPECT_STREQ(error_of([&] { encode_onnx(model); }).what(),
               "an ONNX file holds at most 2 GiB, the network has 2.0 GiB");
}

}  // namespace
}  // namespace lockstep
