#include "lockstep/checkpoint/safetensors_format.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/error_of.h"

namespace lockstep {
namespace {

std::string length_field(uint64_t length) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(length >> (8 * i) & 0xff);
  return bytes;
}

/// A file with this JSON, followed by `data_bytes` zeros.
std::string file_of(const std::string& json, size_t data_bytes) {
  return length_field(json.size()) + json + std::string(data_bytes, '\0');
}

StoredHeader parse(const std::string& file) {
  return parse_stored_header(file, file.size(), "x.safetensors");
}

void expect_rejected(const std::string& file, const std::string& reason) {
  const Error error = error_of([&] { parse(file); });
  EXPECT_EQ(error.code(), ErrorCode::kCorrupt) << error.what();
  EXPECT_TRUE(std::string(error.what()).starts_with("x.safetensors: ")) << error.what();
  EXPECT_NE(std::string(error.what()).find(reason), std::string::npos) << error.what();
  EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
}

std::string entry(const std::string& name, uint64_t begin, uint64_t end,
                  const std::string& dtype = "U8", const std::string& shape = "") {
  return fmt::format(R"("{}":{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})", name, dtype,
                     shape.empty() ? std::to_string(end - begin) : shape, begin, end);
}

// The vector of the reference implementation.
const std::string kHeader =
    R"({"__metadata__":{"format":"pt"},"a":{"dtype":"I64","shape":[],"data_offsets":[0,8]},)"
    R"("b":{"dtype":"F32","shape":[2],"data_offsets":[8,16]},)"
    R"("c":{"dtype":"U8","shape":[3],"data_offsets":[16,19]}})";

TEST(SafetensorsFormat, PlansTheReferenceFile) {
  const StoredHeader header = plan_stored_file(
      {{"c", StoredType::kU8, {3}}, {"b", StoredType::kF32, {2}}, {"a", StoredType::kI64, {}}},
      {{"format", "pt"}});
  EXPECT_EQ(kHeader.size(), 192u);
  EXPECT_EQ(encode_stored_header(header), length_field(192) + kHeader);
  EXPECT_EQ(header.data_begin, 200u);
  EXPECT_EQ(header.tensors.back().end, 19u);
}

TEST(SafetensorsFormat, ReadsTheReferenceFile) {
  const StoredHeader header = parse(file_of(kHeader, 19));
  ASSERT_EQ(header.tensors.size(), 3u);
  EXPECT_EQ(header.metadata, (StoredMetadata{{"format", "pt"}}));
  EXPECT_EQ(header.tensors[1].name, "b");
  EXPECT_EQ(header.tensors[1].type, StoredType::kF32);
  EXPECT_EQ(header.tensors[1].shape, std::vector<uint64_t>{2});
  EXPECT_EQ(header.tensors[1].begin, 8u);
  EXPECT_EQ(header.tensors[1].end, 16u);
  EXPECT_EQ(header.data_begin, 200u);
}

TEST(SafetensorsFormat, FileWithoutTensors) {
  const std::string bytes = encode_stored_header(plan_stored_file({}, {}));
  EXPECT_EQ(bytes, length_field(8) + "{}      ");
  EXPECT_TRUE(parse(bytes).tensors.empty());
}

TEST(SafetensorsFormat, EveryTypeAndOddNamesRoundTrip) {
  std::vector<StoredTensor> tensors;
  for (int i = 0; i <= static_cast<int>(StoredType::kU64); ++i) {
    const auto type = static_cast<StoredType>(i);
    EXPECT_EQ(parse_stored_type(to_string(type)), type);
    tensors.push_back({fmt::format("\"\\\n\x01\u00e9\u4e2d{}", i), type, {4, 3, 2}});
  }
  tensors.push_back({"", StoredType::kF32, {0, 5}});
  tensors.push_back({"scalar", StoredType::kBool, {}});
  const StoredHeader planned = plan_stored_file(tensors, {{"k\t", "v\u00fc"}, {"a", ""}});
  const std::string start = encode_stored_header(planned);
  EXPECT_EQ(start.size() % 8, 0u);
  const std::string file = start + std::string(planned.tensors.back().end, '\0');
  const StoredHeader parsed = parse(file);
  EXPECT_EQ(parsed.metadata, planned.metadata);
  EXPECT_EQ(parsed.tensors.size(), tensors.size());
  EXPECT_EQ(encode_stored_header(parsed).size(), start.size());
  for (const StoredTensor& tensor : parsed.tensors) {
    const auto same = [&](const StoredTensor& other) {
      return other.name == tensor.name && other.type == tensor.type &&
             other.shape == tensor.shape && other.begin == tensor.begin && other.end == tensor.end;
    };
    EXPECT_TRUE(std::any_of(planned.tensors.begin(), planned.tensors.end(), same)) << tensor.name;
  }
}

TEST(SafetensorsFormat, WideTypesComeFirstAndStayAligned) {
  const StoredHeader header = plan_stored_file({{"a", StoredType::kU8, {3}},
                                                {"b", StoredType::kF64, {1}},
                                                {"c", StoredType::kF16, {3}},
                                                {"d", StoredType::kF32, {1}}},
                                               {});
  for (const StoredTensor& tensor : header.tensors) {
    const uint64_t align = static_cast<uint64_t>(bits(tensor.type)) / 8;
    EXPECT_EQ((header.data_begin + tensor.begin) % align, 0u) << tensor.name;
  }
}

TEST(SafetensorsFormat, OffsetsMayComeInAnyOrder) {
  const std::string json = "{" + entry("b", 3, 5) + "," + entry("a", 0, 3) + "}";
  const StoredHeader header = parse(file_of(json, 5));
  EXPECT_EQ(header.tensors[0].name, "a");
}

TEST(SafetensorsFormat, RejectsBadLengths) {
  expect_rejected("", "0 bytes");
  expect_rejected("1234567", "7 bytes");
  expect_rejected(length_field(3) + "{}", "a header of 3 bytes in a file of 10");
  expect_rejected(length_field(~uint64_t{0}) + "{}", "at most 100000000");
  expect_rejected(length_field(kMaxStoredHeaderBytes + 1) + "{}", "at most 100000000");
}

TEST(SafetensorsFormat, RejectsWhatIsNoHeader) {
  expect_rejected(file_of("", 0), "'{'");
  expect_rejected(file_of(" {}", 0), "'{'");
  expect_rejected(file_of("[]", 0), "'{'");
  expect_rejected(file_of("{", 0), "no JSON");
  expect_rejected(file_of("{}{}", 0), "no JSON");
  expect_rejected(file_of("{\"a\xff\":1}", 0), "no UTF-8");
  expect_rejected(file_of(R"({"a":1})", 0), R"("a" is a number)");
  expect_rejected(file_of(R"({"a":null})", 0), "null");
  expect_rejected(file_of(R"({"a":[]})", 0), "a list");
  expect_rejected(file_of(R"({"a":{}})", 0), "has no dtype");
  expect_rejected(file_of(R"({"a":{"dtype":"U8","shape":[1]}})", 1), "has no data_offsets");
  expect_rejected(file_of(std::string(100'000, '{'), 0), "no JSON");
  expect_rejected(file_of(R"({"a":{"shape":[)" + std::string(100'000, '['), 0), "a list");
}

TEST(SafetensorsFormat, RejectsBadFields) {
  const auto tensor = [](const std::string& fields) {
    return file_of("{\"a\":{" + fields + "}}", 1);
  };
  expect_rejected(tensor(R"("dtype":"U9","shape":[1],"data_offsets":[0,1])"), "unknown dtype");
  expect_rejected(tensor(R"("dtype":8,"shape":[1],"data_offsets":[0,1])"), "a number");
  expect_rejected(tensor(R"("dtype":"U8","shape":[-1],"data_offsets":[0,1])"), "negative");
  expect_rejected(tensor(R"("dtype":"U8","shape":[1.5],"data_offsets":[0,1])"), "not whole");
  expect_rejected(tensor(R"("dtype":"U8","shape":[true],"data_offsets":[0,1])"), "truth");
  expect_rejected(tensor(R"("dtype":"U8","shape":[1],"data_offsets":[0])"), "[begin, end]");
  expect_rejected(tensor(R"("dtype":"U8","shape":[1],"data_offsets":[0,1,2])"), "a number");
  expect_rejected(tensor(R"("dtype":"U8","shape":[1],"data_offsets":[0,1],"x":1)"), "unknown");
  expect_rejected(tensor(R"("dtype":"U8","dtype":"U8","shape":[1],"data_offsets":[0,1])"), "twice");
  expect_rejected(tensor(R"("dtype":"U8","shape":[99999999999999999999],"data_offsets":[0,1])"),
                  "not whole");
}

TEST(SafetensorsFormat, RejectsBadMetadata) {
  expect_rejected(file_of(R"({"__metadata__":{"a":1}})", 0), R"(metadata "a" is a number)");
  expect_rejected(file_of(R"({"__metadata__":"a"})", 0), "a text");
  expect_rejected(file_of(R"({"__metadata__":{"a":{"b":"c"}}})", 0), "an object");
  expect_rejected(file_of(R"({"__metadata__":{"a":"b","a":"c"}})", 0), "twice");
  expect_rejected(file_of(R"({"__metadata__":{},"__metadata__":{}})", 0), "twice");
}

TEST(SafetensorsFormat, RejectsBadLayouts) {
  const auto two = [](const std::string& a, const std::string& b) {
    return "{" + a + "," + b + "}";
  };
  expect_rejected(file_of(two(entry("a", 0, 4), entry("b", 3, 8)), 8), "the one before ends at 4");
  expect_rejected(file_of(two(entry("a", 0, 4), entry("b", 5, 8)), 8), "the one before ends at 4");
  expect_rejected(file_of("{" + entry("a", 1, 4) + "}", 4), "the one before ends at 0");
  expect_rejected(file_of("{" + entry("a", 0, 4) + "}", 5), "1 bytes behind the last tensor");
  expect_rejected(file_of("{" + entry("a", 0, 4) + "}", 3), "cut off");
  expect_rejected(file_of("{}", 3), "3 bytes behind");
  expect_rejected(file_of("{" + entry("a", 4, 0, "U8", "4") + "}", 4), "ends before it begins");
  expect_rejected(file_of("{" + entry("a", 0, 4, "F32", "2") + "}", 4), "needs 8 bytes");
  expect_rejected(file_of("{" + entry("a", 0, 2, "F4", "3") + "}", 2), "broken");
  expect_rejected(file_of("{" + entry("a", 0, 0, "U8", "4294967296,4294967296") + "}", 0), "2^64");
  for (const char* shape : {"0,9223372036854775808", "4294967296,0,4294967296"}) {
    expect_rejected(file_of("{" + entry("a", 0, 0, "U8", shape) + "}", 0), "2^64");
  }
  expect_rejected(file_of(two(entry("a", 0, 4), entry("a", 4, 8)), 8), "twice");
}

TEST(SafetensorsFormat, LongNamesStayOffTheErrorLine) {
  const Error error =
      error_of([&] { parse(file_of("{" + entry(std::string(10'000, 'n'), 1, 4) + "}", 4)); });
  EXPECT_LT(std::string(error.what()).size(), 400u);
}

TEST(SafetensorsFormat, WriterRefusesImpossibleNames) {
  const StoredTensor a{"a", StoredType::kU8, {1}};
  EXPECT_EQ(error_of([&] { plan_stored_file({a, a}, {}); }).code(), ErrorCode::kInvalidArgument);
  StoredTensor bad = a;
  bad.name = "__metadata__";
  EXPECT_EQ(error_of([&] { plan_stored_file({bad}, {}); }).code(), ErrorCode::kInvalidArgument);
  bad.name = "\xff";
  EXPECT_EQ(error_of([&] { plan_stored_file({bad}, {}); }).code(), ErrorCode::kInvalidArgument);
  bad.name = "b";
  bad.shape = {uint64_t{1} << 40, uint64_t{1} << 40};
  EXPECT_EQ(error_of([&] { plan_stored_file({bad}, {}); }).code(), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace lockstep
