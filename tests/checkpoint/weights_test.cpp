#include "lockstep/weights.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <torch/nn/modules/container/sequential.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "lockstep/base/file.h"
#include "lockstep/checkpoint/mindspore_file.h"
#include "lockstep/checkpoint/weight_table.h"
#include "tests/checkpoint/small_net.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_folder.h"
#include "tests/support/torch_script.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

void expect_same(const torch::nn::Module& a, const torch::nn::Module& b) {
  const TensorMap others = module_tensors(b);
  for (const auto& [name, tensor] : module_tensors(a)) {
    if (name.ends_with("num_batches_tracked")) continue;
    EXPECT_TRUE(same_bits(tensor, others.at(name))) << name;
  }
}

TEST(Weights, ACkptRoundTrips) {
  const TempFolder dir;
  SmallNet saved, loaded;
  saved.norm->running_mean.fill_(0.25);
  save_ckpt(dir / "e1.ckpt", saved);
  const WeightReport report = load_weights(dir / "e1.ckpt", loaded);
  EXPECT_EQ(report.format, "MindSpore's .ckpt");
  EXPECT_EQ(report.loaded, 8U);
  expect_same(loaded, saved);
  const TensorMap read = read_weights(dir / "e1.ckpt");
  EXPECT_TRUE(read.contains("norm.gamma"));
  EXPECT_TRUE(read.contains("norm.moving_variance"));
  EXPECT_FALSE(read.contains("norm.num_batches_tracked"));
}

TEST(Weights, TheUmaskDeterminesWhoMayReadACkpt) {
  const TempFolder dir;
  std::ofstream(dir / "e1.ckpt") << "one of MindSpore's own";
  fs::permissions(dir / "e1.ckpt", fs::perms::owner_read);
  const mode_t before = ::umask(027);
  save_ckpt(dir / "e1.ckpt", SmallNet());
  ::umask(before);
  EXPECT_EQ(fs::status(dir / "e1.ckpt").permissions(), fs::perms(0640));
}

TEST(Weights, ACkptHoldsEveryType) {
  const TempFolder dir;
  TensorMap tensors = {{"none", at::empty({0, 3}, at::kHalf)},
                       {"scalar", at::scalar_tensor(7, at::kLong)}};
  for (const auto type : {at::kBool, at::kByte, at::kChar, at::kShort, at::kInt, at::kLong,
                          at::kHalf, at::kBFloat16, at::kFloat, at::kDouble}) {
    tensors[at::toString(type)] = (at::arange(24) - 12).reshape({2, 3, 4}).to(type).transpose(0, 2);
  }
  save_ckpt(dir / "x.ckpt", tensors);
  const TensorMap read = read_weights(dir / "x.ckpt");
  ASSERT_EQ(read.size(), tensors.size());
  for (const auto& [name, tensor] : tensors) {
    EXPECT_TRUE(same_bits(read.at(name), tensor)) << name;
  }
  EXPECT_EQ(error_of([&] {
              save_ckpt(dir / "y", {{"z", at::zeros({1}, at::kComplexFloat)}});
            }).code(),
            ErrorCode::kInvalidArgument);
  EXPECT_FALSE(fs::exists(dir / "y"));
}

TEST(Weights, SafetensorsByContentWhateverTheName) {
  const TempFolder dir;
  SmallNet saved, loaded;
  save_tensors(dir / "best.ckpt", module_tensors(saved));
  EXPECT_EQ(load_weights(dir / "best.ckpt", loaded).format, "safetensors");
  expect_same(loaded, saved);
}

TEST(Weights, StrictNamesTheTensorAndBothShapes) {
  const TempFolder dir;
  save_ckpt(dir / "x.ckpt", SmallNet(9));
  SmallNet net;
  const at::Tensor before = net.last->weight.clone();
  Error error = error_of([&] { load_weights(dir / "x.ckpt", net); });
  EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
  EXPECT_EQ(error.what(), (dir / "x.ckpt").string() +
                              ": tensor 'first.bias' has shape [9], the network's has [8]");
  TensorMap some = module_tensors(net);
  some.erase("last.bias");
  save_ckpt(dir / "y.ckpt", some);
  error = error_of([&] { load_weights(dir / "y.ckpt", net); });
  EXPECT_NE(std::string(error.what()).find("tensor 'last.bias' of the network is missing"),
            std::string::npos);
  EXPECT_TRUE(at::equal(net.last->weight, before));
}

TEST(Weights, OtherwiseWhatDoesNotFitKeepsItsValues) {
  const TempFolder dir;
  SmallNet wide(9), net;
  save_ckpt(dir / "x.ckpt", wide);
  const at::Tensor before = net.first->weight.clone();
  ::testing::internal::CaptureStderr();
  load_weights(dir / "x.ckpt", net, {false, "", /*warns=*/false});
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  ::testing::internal::CaptureStderr();
  const WeightReport report = load_weights(dir / "x.ckpt", net, {false, ""});
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("x.ckpt: 7 tensors"), std::string::npos);
  EXPECT_EQ(report.loaded, 1U);  // last.bias
  EXPECT_EQ(report.dropped.size(), 7U);
  EXPECT_TRUE(at::equal(net.last->bias, wide.last->bias));
  EXPECT_TRUE(at::equal(net.first->weight, before));
  save_tensors(dir / "other", {{"z", at::zeros({1})}});
  EXPECT_NE(std::string(error_of([&] {
                          load_weights(dir / "other", net, {false, ""});
                        }).what())
                .find("none of its 1 tensors ('z' ...) is one of the network's ('first.bias' ...)"),
            std::string::npos);
}

TEST(Weights, ATensorThatCannotBeFilledIsNamedBeforeAnyChange) {
  const TempFolder dir;
  SmallNet net;
  save_tensors(dir / "without", module_tensors(SmallNet()));
  net.register_buffer("other", at::ones({1, 8}).expand({4, 8}));
  load_weights(dir / "without", net, {false, "", /*warns=*/false});  // it keeps its values
  TensorMap tensors = module_tensors(SmallNet());
  tensors["other"] = at::zeros({4, 8});
  save_tensors(dir / "x", tensors);
  const at::Tensor before = net.first->weight.clone();
  const Error error = error_of([&] { load_weights(dir / "x", net); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(std::string(error.what()).find("tensor 'other' of the network has elements that share"),
            0)
      << error.what();
  EXPECT_TRUE(at::equal(net.first->weight, before));
}

/// A network like SmallNet with another number of classes.
struct OtherHead : torch::nn::Module {
  explicit OtherHead(int64_t classes)
      : first(register_module("first", torch::nn::Linear(4, 8))),
        last(register_module("last", torch::nn::Linear(8, classes))) {}
  torch::nn::Linear first;
  torch::nn::Linear last;
};

TEST(Weights, AHeadForOtherClassesIsLeftOut) {
  const TempFolder dir;
  OtherHead thousand(1000), ten(10);
  TensorMap tensors = module_tensors(thousand);
  tensors["extra"] = at::zeros({3});
  save_tensors(dir / "x", tensors);
  const at::Tensor before = ten.last->weight.clone();
  ::testing::internal::CaptureStderr();
  const WeightReport report = load_weights(dir / "x", ten, {false, ""});
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("x: its last layer 'last' is for 1000 classes, the network's for 10: it is "
                     "left out"),
            std::string::npos)
      << log;
  EXPECT_NE(log.find("x: 2 tensors of the network are loaded from safetensors; left over in it: 1 "
                     "(extra)"),
            std::string::npos)
      << log;
  EXPECT_EQ(report.loaded, 2U);
  EXPECT_TRUE(report.dropped.empty() && report.missing.empty());
  EXPECT_EQ(report.unused, std::vector<std::string>{"extra"});
  EXPECT_TRUE(at::equal(ten.first->weight, thousand.first->weight));
  EXPECT_TRUE(at::equal(ten.last->weight, before));
  EXPECT_NE(std::string(error_of([&] { load_weights(dir / "x", ten); }).what())
                .find("tensor 'last.bias' has shape [1000], the network's has [10]"),
            std::string::npos);
}

TEST(Weights, AHeadIsOneForOtherClassesOnly) {
  const TempFolder dir;
  OtherHead ten(10), eight(8);
  TensorMap tensors = module_tensors(ten);
  tensors["last.weight"] = at::ones({10, 8}, at::kLong);  // for as many classes
  save_tensors(dir / "x", tensors);
  ::testing::internal::CaptureStderr();
  WeightReport report = load_weights(dir / "x", ten, {false, ""});
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("x: 1 tensors of the network have another shape or type there, so they keep "
                     "their values: 'last.weight' is Long, the network's is Float"),
            std::string::npos)
      << log;
  EXPECT_EQ(report.head, "");
  save_tensors(dir / "x", module_tensors(ten));
  report = load_weights(dir / "x", eight, {false, "", /*warns=*/false, /*classes=*/0});
  EXPECT_EQ(report.head, "");
  EXPECT_EQ(report.dropped.size(), 2U);
  report = load_weights(dir / "x", eight, {false, "", /*warns=*/false, /*classes=*/8});
  EXPECT_NE(report.head.find("is for 10 classes, the network's for 8"), std::string::npos);
  EXPECT_TRUE(report.dropped.empty());
}

/// Positions of side x side patches, behind that of the token of the class.
struct Encoder : torch::nn::Module {
  explicit Encoder(int64_t side)
      : pos_embedding(register_parameter("pos_embedding", at::full({1, 1 + side * side, 2}, 7.0))) {
  }
  at::Tensor pos_embedding;
};

struct WithPositions : torch::nn::Module {
  explicit WithPositions(int64_t side)
      : pos_embedding(register_module("encoder", std::make_shared<Encoder>(side))->pos_embedding),
        last(register_module("last", torch::nn::Linear(2, 2))) {}
  at::Tensor pos_embedding;
  torch::nn::Linear last;
};

/// The first of the two columns is `first`, the second is twice that.
TensorMap with_columns(const WithPositions& net, const at::Tensor& first) {
  TensorMap tensors = module_tensors(net);
  tensors["encoder.pos_embedding"] = at::stack({first, 2 * first}, 1).unsqueeze(0);
  return tensors;
}

void expect_columns(const WithPositions& net, const at::Tensor& first) {
  const at::Tensor expected = at::stack({first, 2 * first}, 1).unsqueeze(0);
  EXPECT_TRUE(at::allclose(net.pos_embedding, expected, 1e-5, 1e-5)) << net.pos_embedding;
}

// Expected numbers: torch.nn.functional.interpolate(grid, size, mode="bicubic", antialias=True).
TEST(Weights, PositionsForAnotherSizeAreInterpolated) {
  const TempFolder dir;
  WithPositions two(2), three(3);
  save_tensors(dir / "two", with_columns(two, at::tensor({-5.0F, 0.0F, 1.0F, 4.0F, 9.0F})));
  ::testing::internal::CaptureStderr();
  WeightReport report = load_weights(dir / "two", three, {false, ""});
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("two: its positions 'encoder.pos_embedding' are for 2 x 2 patches, the "
                     "network's for 3 x 3: they are interpolated bicubically"),
            std::string::npos)
      << log;
  EXPECT_EQ(report.loaded, 3U);
  EXPECT_TRUE(report.dropped.empty());
  expect_columns(three, at::tensor({-5.0F, -0.3116337F, 0.1052641F, 0.5221620F, 1.8026321F, 3.5F,
                                    5.1973686F, 3.9168987F, 6.8947377F, 9.8725777F}));

  const at::Tensor grid =
      at::tensor({-5.0F, 0.0F, 3.0F, 6.0F, 1.0F, 4.0F, 7.0F, 4.0F, 7.0F, 10.0F});
  save_tensors(dir / "three", with_columns(three, grid.to(at::kHalf)));
  report = load_weights(dir / "three", two, {false, ""});
  EXPECT_FALSE(report.positions.empty());
  expect_columns(two, at::tensor({-5.0F, 1.1589079F, 5.3001599F, 3.9197426F, 8.0609951F}));
}

TEST(Weights, PositionsThatAreNoGridOrMustFitAreNot) {
  const TempFolder dir;
  WithPositions two(2), three(3);
  save_tensors(dir / "two", module_tensors(two));
  EXPECT_NE(std::string(error_of([&] { load_weights(dir / "two", three); }).what())
                .find("tensor 'encoder.pos_embedding' has shape [1, 5, 2], the network's has "
                      "[1, 10, 2]"),
            std::string::npos);
  TensorMap tensors = module_tensors(two);
  for (const auto& other : {at::zeros({1, 7, 2}), at::zeros({1, 5, 3}), at::zeros({5, 2})}) {
    tensors["encoder.pos_embedding"] = other;
    save_tensors(dir / "other", tensors);
    const WeightReport report = load_weights(dir / "other", three, {false, ""});
    EXPECT_EQ(report.dropped.size(), 1U) << other.sizes();
    EXPECT_EQ(report.positions, "");
  }
  EXPECT_TRUE(at::equal(three.pos_embedding, at::full({1, 10, 2}, 7.0)));
}

TEST(Weights, NumbersBecomeTheNetworksAndTrailingOnesDoNotCount) {
  const TempFolder dir;
  SmallNet saved, loaded;
  TensorMap tensors = module_tensors(saved);
  tensors["first.weight"] = saved.first->weight.to(at::kDouble).view({8, 4, 1, 1});
  save_ckpt(dir / "x.ckpt", tensors);
  load_weights(dir / "x.ckpt", loaded);
  expect_same(loaded, saved);
  tensors["first.weight"] = at::ones({8, 4}, at::kLong);
  save_ckpt(dir / "x.ckpt", tensors);
  EXPECT_NE(std::string(error_of([&] { load_weights(dir / "x.ckpt", loaded); }).what())
                .find("tensor 'first.weight' is Long, the network's is Float"),
            std::string::npos);
}

TEST(Weights, APrefixOfAllNamesIsLeftOut) {
  const TempFolder dir;
  SmallNet saved, loaded;
  TensorMap tensors;
  for (const auto& [name, tensor] : module_tensors(saved)) tensors["model." + name] = tensor;
  save_tensors(dir / "x", tensors);
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(load_weights(dir / "x", loaded).stripped, "model.");
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("x: 9 tensors of the network are loaded from safetensors (names without "
                     "'model.')"),
            std::string::npos)
      << log;
  expect_same(loaded, saved);
  tensors["model.last.bias"] = at::zeros({3});
  save_tensors(dir / "x", tensors);
  EXPECT_NE(std::string(error_of([&] { load_weights(dir / "x", loaded); }).what())
                .find("tensor 'model.last.bias' has shape [3], the network's has [2]"),
            std::string::npos);
}

void add_tensors(TensorMap& tensors, const std::string& prefix, const SmallNet& net) {
  for (const auto& [name, tensor] : module_tensors(net)) tensors[prefix + name] = tensor;
}

TEST(Weights, OfTwoPrefixesTheNextBestIsNamed) {
  const TempFolder dir;
  SmallNet key, query, loaded;
  TensorMap tensors = {{"encoder_k.extra", at::zeros({3})}};
  add_tensors(tensors, "encoder_k.", key);
  add_tensors(tensors, "encoder_q.", query);
  save_tensors(dir / "x", tensors);
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(load_weights(dir / "x", loaded).other_prefix, "encoder_k.");
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("(names without 'encoder_q.', not without 'encoder_k.')"), std::string::npos)
      << log;
  expect_same(loaded, query);
}

TEST(Weights, APrefixOfATeacherOfAnotherWidthIsNotTaken) {
  const TempFolder dir;
  SmallNet teacher(16), student, loaded;
  TensorMap tensors;
  add_tensors(tensors, "a_teacher.", teacher);
  add_tensors(tensors, "student.", student);
  save_tensors(dir / "x", tensors);
  const WeightReport report = load_weights(dir / "x", loaded, {true, "", /*warns=*/false});
  EXPECT_EQ(report.stripped, "student.");
  EXPECT_EQ(report.other_prefix, "");
  expect_same(loaded, student);
}

// As the names of a VGG are those of any Sequential behind "features.".
TEST(Weights, APrefixWithoutWhichNothingFitsIsAnError) {
  const TempFolder dir;
  torch::nn::Sequential net(torch::nn::Linear(4, 3));
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{10, 4}, {8, 8}}) {
    save_tensors(dir / "x", {{"features.0.weight", at::zeros(shape)},
                             {"features.0.bias", at::zeros({shape[0]})}});
    const Error error = error_of([&] { load_weights(dir / "x", *net, {false, ""}); });
    EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
    EXPECT_NE(std::string(error.what()).find("none of its 2 tensors"), std::string::npos)
        << error.what();
  }
}

struct Inner : torch::nn::Module {
  Inner() { register_module("backbone", std::make_shared<SmallNet>()); }
};

TEST(Weights, APartOfTheNetworkByItsPrefix) {
  const TempFolder dir;
  SmallNet saved;
  save_ckpt(dir / "x.ckpt", saved);
  Inner net;
  load_weights(dir / "x.ckpt", net, {true, "backbone."});
  EXPECT_TRUE(at::equal(module_tensors(net).at("backbone.last.bias"), saved.last->bias));
}

/// Damages the bytes of the tensor whose name ends so.
void flip_bit_of(const fs::path& file, const std::string& name) {
  std::string bytes = read_file(file);
  for (const StoredWeight& weight : read_weight_table(MemoryBytes("x", bytes)).weights) {
    if (!weight.name.ends_with(name)) continue;
    char& first = bytes.at(weight.pieces.at(0).offset);
    first = static_cast<char>(first ^ 1);
  }
  write_file_atomically(file, bytes);
}

TEST(Weights, ReadsWhatPyTorchSaves) {
  const TempFolder dir;
  const std::string command =
      torch_script("tests/checkpoint/weights_reference.py ") + dir.path().string();
  ASSERT_EQ(std::system(command.c_str()), 0);
  for (const char* name : {"plain.pth", "nested.pth", "old.pth", "old4.pth", "general.pth"}) {
    SmallNet net;
    const WeightReport report = load_weights(dir / name, net);
    EXPECT_EQ(report.format, "PyTorch's .pth");
    EXPECT_EQ(report.loaded, 9U);
    EXPECT_TRUE(at::equal(net.first->weight, at::arange(32).reshape({8, 4}) * 0.5)) << name;
    EXPECT_TRUE(at::equal(net.norm->running_var, at::arange(8) * 0.5 + 5)) << name;
    EXPECT_TRUE(at::equal(net.last->weight, at::arange(16).reshape({2, 8}) * 0.5 + 7)) << name;
    EXPECT_TRUE(at::equal(net.last->bias, at::arange(2) * 0.5 + 8)) << name;
  }
  SmallNet net;
  EXPECT_NE(std::string(error_of([&] { load_weights(dir / "module.pth", net); }).what())
                .find("holds a whole module"),
            std::string::npos);
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(load_weights(dir / "general.pth", net, {false, ""}).dict, "model_state_dict");
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("general.pth: 9 tensors of the network are loaded from PyTorch's .pth (its "
                     "'model_state_dict', not 'model_ema'; 'swa')"),
            std::string::npos)
      << log;
  const WeightReport report = load_weights(dir / "kinds.pth", net, {false, "", /*warns=*/false});
  EXPECT_EQ(report.loaded, 7U);
  EXPECT_EQ(report.dropped,
            (std::vector<std::string>{"'first.weight' is quantized, which is not read",
                                      "'last.weight' is sparse, which is not read"}));
  EXPECT_EQ(report.unused, std::vector<std::string>{"spare"});
  EXPECT_NE(std::string(error_of([&] { load_weights(dir / "kinds.pth", net); }).what())
                .find("tensor 'first.weight' is quantized, which is not read"),
            std::string::npos);
  EXPECT_EQ(read_weights(dir / "kinds.pth").size(), 7U);
  for (const char* name : {"plain.pth", "nested.pth"}) {  // in the latter a part of its storage
    flip_bit_of(dir / name, "last.bias");
    SmallNet untouched;
    const at::Tensor before = untouched.first->weight.clone();
    const Error error = error_of([&] { load_weights(dir / name, untouched); });
    EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
    EXPECT_NE(std::string(error.what())
                  .find("last.bias' has other bytes than those saved (CRC-32 differs)"),
              std::string::npos)
        << error.what();
    EXPECT_TRUE(at::equal(untouched.first->weight, before));
    EXPECT_EQ(error_of([&] { read_weights(dir / name); }).code(), ErrorCode::kCorrupt);
  }
  EXPECT_NE(std::string(error_of([&] { load_weights(dir / "jit.pt", net); }).what())
                .find("is TorchScript, not a state_dict"),
            std::string::npos);
}

}  // namespace
}  // namespace lockstep
