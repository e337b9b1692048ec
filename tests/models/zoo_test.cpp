// The networks of the zoo against torchvision's: names, shapes and numbers of parameters, and
// scores for the same weights. zoo_expected.txt has torchvision's figures; zoo_reference.py made
// it.
#include "lockstep/models/zoo/zoo.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <torch/utils.h>

#include <fstream>
#include <sstream>

#include "lockstep/base/env.h"
#include "lockstep/models/build/build_model.h"
#include "lockstep/models/spec/zoo_names.h"
#include "lockstep/weights.h"
#include "tests/models/zoo_fill.h"
#include "tests/support/error_of.h"
#include "tests/support/zoo_network.h"

namespace lockstep {
namespace {

/// A line of zoo_expected.txt.
struct Expected {
  std::string name;
  int64_t parameters = 0;
  size_t tensors = 0;
  uint32_t names = 0;  ///< Hash of all names and shapes.
  int64_t side = 0;
  std::vector<double> scores;  ///< The first four classes of both pictures.
};

void PrintTo(const Expected& expected, std::ostream* out) {
  *out << expected.name;
}

std::vector<Expected> read_expected() {
  std::ifstream file(env_or("LOCKSTEP_SOURCE_DIR", ".") + "/tests/models/zoo_expected.txt");
  std::vector<Expected> all;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) continue;
    std::istringstream words(line);
    Expected one;
    words >> one.name >> one.parameters >> one.tensors >> one.names >> one.side;
    for (double score = 0; words >> score;) one.scores.push_back(score);
    all.push_back(one);
  }
  return all;
}

std::shared_ptr<Model> make_with(const std::string& name, int64_t side = 0) {
  const ZooNetwork& network = zoo_network(name);
  ZooSettings settings = network.settings;
  if (settings.image_size && side > 0) settings.image_size = side;
  return make_network(network, settings, 1000);
}

uint32_t hash_of_names(const TensorMap& tensors) {
  std::string text;
  for (const auto& [name, tensor] : tensors) {
    text += fmt::format("{} {}\n", name, fmt::join(tensor.sizes(), "x"));
  }
  return name_hash(text);
}

class Zoo : public ::testing::TestWithParam<Expected> {};

TEST_P(Zoo, HasTorchvisionsParametersAndNames) {
  const Expected& expected = GetParam();
  const auto model = make_with(expected.name);
  const TensorMap tensors = module_tensors(*model);
  EXPECT_EQ(count_parameters(*model), expected.parameters);
  EXPECT_EQ(tensors.size(), expected.tensors);
  EXPECT_EQ(hash_of_names(tensors), expected.names);
}

// Differences of 1e-6 of the largest score are usual between versions of libtorch.
TEST_P(Zoo, HasTorchvisionsScores) {
  const Expected& expected = GetParam();
  const torch::NoGradGuard no_grad;
  const auto model = make_with(expected.name, expected.side);
  model->eval();
  for (const auto& [name, tensor] : module_tensors(*model)) fill_by_formula(name, tensor);
  const at::Tensor scores = model->forward(pictures_by_formula(expected.side));
  ASSERT_EQ(scores.sizes(), at::IntArrayRef({2, 1000}));
  ASSERT_EQ(expected.scores.size(), 8U);
  for (int64_t i = 0; i < 8; ++i) {
    const at::Tensor row = scores[i / 4];
    EXPECT_NEAR(row[i % 4].item<double>(), expected.scores[static_cast<size_t>(i)],
                1e-5 * row.abs().max().item<double>())
        << i;
  }
}

std::string name_of_network(const ::testing::TestParamInfo<Expected>& info) {
  return info.param.name;
}

INSTANTIATE_TEST_SUITE_P(Torchvision, Zoo, ::testing::ValuesIn(read_expected()), name_of_network);

TEST(ZooNetworks, AreAllCompared) {
  std::vector<std::string> names, compared;
  for (const auto& network : zoo()) names.push_back(network.name);
  for (const auto& expected : read_expected()) compared.push_back(expected.name);
  EXPECT_EQ(names, compared);
}

TEST(ZooNetworks, AreKnownByNameWithoutLibtorch) {
  std::vector<std::string_view> names;
  for (const auto& network : zoo()) names.push_back(network.name);
  EXPECT_EQ(names, std::vector<std::string_view>(kZooNames.begin(), kZooNames.end()));
}

TEST(ZooNetworks, StartFromTheSeedAlone) {
  std::vector<TensorMap> starts;
  for (int i = 0; i < 2; ++i) {
    torch::manual_seed(3);
    starts.push_back(module_tensors(*make_with("mobilenet_v3_small")));
    (void)at::rand({7});  // must not matter
  }
  for (const auto& [name, tensor] : starts[0]) {
    EXPECT_TRUE(at::equal(tensor, starts[1].at(name))) << name;
  }
}

double deviation_of(const TensorMap& tensors, const std::string& name) {
  return tensors.at(name).std().item<double>();
}

TEST(ZooNetworks, StartWithTorchvisionsDistributions) {
  torch::manual_seed(3);
  const auto mobile = module_tensors(*make_with("mobilenet_v3_small"));
  EXPECT_NEAR(deviation_of(mobile, "classifier.0.weight"), 0.01, 0.001);
  // Fan-out of 576 channels and one pixel.
  EXPECT_NEAR(deviation_of(mobile, "features.12.0.weight"), std::sqrt(2.0 / 576), 0.001);
  const auto convnext = module_tensors(*make_with("convnext_tiny"));
  EXPECT_NEAR(deviation_of(convnext, "features.7.0.block.3.weight"), 0.02, 0.001);
  for (const auto& [name, tensor] : convnext) {
    if (tensor.dim() > 1 && !name.ends_with("layer_scale")) {
      EXPECT_LT(tensor.abs().max().item<double>(), 8 * 0.02) << name;
    }
  }
  EXPECT_EQ(convnext.at("features.1.0.layer_scale").max().item<float>(), 1e-6F);
  const auto vit = module_tensors(*make_with("vit_s_16"));
  EXPECT_NEAR(deviation_of(vit, "conv_proj.weight"), std::sqrt(1.0 / 768), 0.001);
  EXPECT_EQ(vit.at("heads.head.weight").abs().max().item<float>(), 0);
}

TEST(ZooNetworks, DropInTrainingOnly) {
  for (const char* name : {"mobilenet_v3_small", "efficientnet_b0"}) {
    const torch::NoGradGuard no_grad;
    const auto model = make_with(name);
    const at::Tensor pictures = pictures_by_formula(32);
    const at::Tensor score = [&] {
      model->eval();
      return model->forward(pictures);
    }();
    EXPECT_TRUE(at::equal(model->forward(pictures), score)) << name;
    model->train();
    const at::Tensor first = model->forward(pictures);
    EXPECT_FALSE(at::equal(model->forward(pictures), first)) << name;
  }
}

// Activations in place must not spoil what backward needs.
TEST(ZooNetworks, GiveEveryParameterAGradient) {
  for (const char* name :
       {"resnext50_32x4d", "mobilenet_v3_small", "efficientnet_b0", "convnext_tiny", "vit_s_16"}) {
    const auto model = make_with(name, 32);
    model->train();
    model->forward(pictures_by_formula(32)).square().sum().backward();
    for (const auto& parameter : model->named_parameters()) {
      ASSERT_TRUE(parameter.value().grad().defined()) << name << " " << parameter.key();
      EXPECT_TRUE(parameter.value().grad().isfinite().all().item<bool>())
          << name << " " << parameter.key();
    }
  }
}

TEST(ZooNetworks, RefuseWhatTheyCannotTake) {
  const ZooNetwork& vit = zoo_network("vit_s_16");
  EXPECT_NE(std::string(error_of([&] { make_network(vit, vit.settings, 0); }).what())
                .find("model.head.num_classes is missing"),
            std::string::npos);
  const auto model = make_network(vit, vit.settings, 3);
  EXPECT_STREQ(
      error_of([&] { model->forward(pictures_by_formula(64)); }).what(),
      "the network takes pictures of 224 x 224 pixels, not 64 x 64: its setting image_size, "
      "or the transforms, must be another");
}

}  // namespace
}  // namespace lockstep
