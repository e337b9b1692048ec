#include "lockstep/checkpoint/safetensors_format.h"
#include "lockstep/weights.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <cstdio>

#include "lockstep/base/file.h"
#include "lockstep/checkpoint/file_digest.h"
#include "tests/checkpoint/small_net.h"
#include "tests/support/error_of.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/temp_folder.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

TensorMap reference_tensors() {
  return {{"a", at::scalar_tensor(7, at::kLong)},
          {"b", at::tensor({1.0, -2.5}, at::kFloat)},
          {"c", at::tensor({1, 2, 3}, at::kByte)}};
}

std::string output_of(const std::string& command) {
  FILE* pipe = ::popen(command.c_str(), "r");
  std::string text;
  char buffer[4096];
  while (const size_t got = std::fread(buffer, 1, sizeof buffer, pipe)) text.append(buffer, got);
  EXPECT_EQ(::pclose(pipe), 0) << command;
  return text;
}

TEST(Safetensors, WritesTheReferenceFile) {
  const TempFolder dir;
  save_tensors(dir / "x.safetensors", reference_tensors(), {{"format", "pt"}});
  const FileDigest digest = digest_file(dir / "x.safetensors");
  EXPECT_EQ(digest.bytes, 219);
  EXPECT_EQ(digest.hex, "d8442816936f4b9f1f9d0ce1b8ecfecff85b2dae17a77160b823bf5b728eb1cb");
}

TEST(Safetensors, EveryTypeRoundTripsBitForBit) {
  const TempFolder dir;
  TensorMap tensors = {{"none", at::empty({0, 3}, at::kHalf)}};
  for (const auto type : {at::kBool, at::kByte, at::kChar, at::kShort, at::kInt, at::kLong,
                          at::kHalf, at::kBFloat16, at::kFloat, at::kDouble, at::kComplexFloat}) {
    tensors[at::toString(type)] = (at::arange(24) - 12).reshape({2, 3, 4}).to(type);
  }
  tensors["nan"] = at::tensor({std::nan(""), -0.0, INFINITY}, at::kDouble);
  save_tensors(dir / "x", tensors, {{"k", "v"}});
  const LoadedTensors loaded = load_tensors(dir / "x");
  EXPECT_EQ(loaded.metadata, (StoredMetadata{{"k", "v"}}));
  ASSERT_EQ(loaded.tensors.size(), tensors.size());
  for (const auto& [name, tensor] : tensors) {
    EXPECT_TRUE(same_bits(loaded.tensors.at(name), tensor)) << name;
  }
}

TEST(Safetensors, StridesAreWrittenOut) {
  const TempFolder dir;
  const at::Tensor matrix = at::arange(12).reshape({3, 4});
  const at::Tensor number = at::complex(at::ones({1}), at::ones({1}));
  save_tensors(dir / "x",
               {{"t", matrix.t()}, {"part", matrix.slice(1, 1, 3)}, {"c", number.conj()}});
  const TensorMap loaded = load_tensors(dir / "x").tensors;
  EXPECT_TRUE(at::equal(loaded.at("t"), matrix.t()));
  EXPECT_TRUE(at::equal(loaded.at("part"), matrix.slice(1, 1, 3)));
  EXPECT_TRUE(at::equal(at::view_as_real(loaded.at("c")),
                        at::tensor({1.0, -1.0}, at::kFloat).reshape({1, 2})));
}

TEST(Safetensors, EqualContentGivesEqualBytes) {
  const TempFolder dir;
  for (const char* name : {"x", "y"})
    save_tensors(dir / name, reference_tensors(), {{"b", "1"}, {"a", "2"}});
  EXPECT_EQ(read_file(dir / "x"), read_file(dir / "y"));
}

TEST(Safetensors, PythonReadsIt) {
  const TempFolder dir;
  save_tensors(dir / "x", reference_tensors(), {{"format", "pt"}});
  write_file_atomically(dir / "read.py", R"(
import json, struct, sys
data = open(sys.argv[1], "rb").read()
length = struct.unpack("<Q", data[:8])[0]
header = json.loads(data[8:8 + length])
for name, code in (("a", "<q"), ("b", "<2f"), ("c", "<3B")):
    begin, end = header[name]["data_offsets"]
    print(name, header[name]["shape"], struct.unpack(code, data[8 + length + begin:8 + length + end]))
)");
  EXPECT_EQ(output_of("python3 " + (dir / "read.py").string() + " " + (dir / "x").string()),
            "a [] (7,)\nb [2] (1.0, -2.5)\nc [3] (1, 2, 3)\n");
}

TEST(Safetensors, RefusesWhatTheFormatLacks) {
  const TempFolder dir;
  const auto refused = [&](const at::Tensor& tensor) {
    const Error error = error_of([&] { save_tensors(dir / "x", {{"weight", tensor}}); });
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(std::string(error.what()).find("'weight'"), std::string::npos) << error.what();
    EXPECT_FALSE(fs::exists(dir / "x"));
  };
  refused(at::Tensor());
  refused(at::zeros({1}, at::kComplexDouble));
  refused(at::eye(3).to_sparse());
}

TEST(Safetensors, RefusesTypesThatLibtorchLacks) {
  const TempFolder dir;
  const StoredHeader header = plan_stored_file({{"w", StoredType::kF8E4M3, {2}}}, {});
  write_file_atomically(dir / "x", encode_stored_header(header) + "ab");
  const Error error = error_of([&] { load_tensors(dir / "x"); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(std::string(error.what()).find("'w': libtorch has no dtype for F8_E4M3"),
            std::string::npos)
      << error.what();
}

TEST(Safetensors, ATruncatedFileNamesTheTensor) {
  const TempFolder dir;
  save_tensors(dir / "x", reference_tensors());
  const std::string bytes = read_file(dir / "x");
  for (size_t size = 0; size < bytes.size(); ++size) {
    write_file_atomically(dir / "x", bytes.substr(0, size));
    const Error error = error_of([&] { load_tensors(dir / "x"); });
    EXPECT_EQ(error.code(), ErrorCode::kCorrupt) << size;
    EXPECT_NE(std::string(error.what()).find((dir / "x").string()), std::string::npos);
  }
  const Error error = error_of([&] { load_tensors(dir / "x"); });
  EXPECT_NE(std::string(error.what()).find("\"c\" at bytes [16, 19)"), std::string::npos)
      << error.what();
}

TEST(Safetensors, MissingFileAndFolder) {
  const TempFolder dir;
  EXPECT_EQ(error_of([&] { load_tensors(dir / "x"); }).code(), ErrorCode::kNotFound);
  EXPECT_EQ(error_of([&] { load_tensors(dir.path()); }).code(), ErrorCode::kInvalidArgument);
}

TEST(Safetensors, AFullDiskLeavesTheOldFile) {
  const TempFolder dir;
  save_tensors(dir / "x", reference_tensors());
  const std::string before = read_file(dir / "x");
  {
    const FileSizeLimit limit(64 << 10);
    const Error error = error_of([&] { save_tensors(dir / "x", {{"w", at::zeros({1 << 20})}}); });
    EXPECT_EQ(error.code(), ErrorCode::kIo);
    EXPECT_NE(std::string(error.what()).find((dir / "x").string()), std::string::npos);
  }
  EXPECT_EQ(read_file(dir / "x"), before);
  EXPECT_EQ(std::distance(fs::directory_iterator(dir.path()), {}), 1);
}

}  // namespace
}  // namespace lockstep
