// Networks of the zoo, as a configuration names them.

#include "lockstep/train/zoo_parts.h"

#include <gtest/gtest.h>

#include "lockstep/error.h"
#include "lockstep/train/config/overrides.h"
#include "lockstep/train/config/own_parts.h"
#include "lockstep/train/config/yaml_reader.h"
#include "lockstep/train/config/yaml_writer.h"
#include "lockstep/train/setup.h"
#include "lockstep/weights.h"
#include "tests/support/error_of.h"

namespace lockstep {
namespace {

constexpr auto kSmallest = R"(model:
  network: {name: mobilenet_v3_small, dropout: 0.1}
  head: {num_classes: 10}
train:
  ckpt_save_dir: out
  dataset: {dataset_root: data, data_dir: cifar}
  loader: {batch_size: 32}
)";

NetworkMaker own_network(Section&) {
  return [](int64_t) { return nullptr; };
}

// Before the zoo is registered, as in a program's main().
const bool kIsPut = [] {
  networks().put({"resnet101", "of the program, and not the zoo's", own_network});
  return true;
}();
const NetworkPart kAdded("wide_resnet50_2", "of the program, too", own_network);

Config read_zoo(const std::vector<std::string>& overrides = {}) {
  register_zoo();
  Node tree = parse_yaml(kSmallest, "a.yaml");
  apply_overrides(tree, overrides);
  return read_config(std::move(tree));
}

std::string zoo_refusal(const std::vector<std::string>& overrides) {
  return error_of([&] { read_zoo(overrides); }).what();
}

TEST(ZooParts, AreNetworksOfAConfiguration) {
  const auto config = read_zoo();
  EXPECT_EQ(config.model.name(), "mobilenet_v3_small");
  const auto model = make_model(config.model, 1);
  const auto tensors = module_tensors(*model);
  EXPECT_EQ(tensors.at("classifier.3.bias").numel(), 10);
  const auto again = module_tensors(*make_model(config.model, 1));  // another rank
  for (const auto& [name, tensor] : tensors) EXPECT_TRUE(at::equal(tensor, again.at(name))) << name;
}

TEST(ZooParts, HaveTheirOwnSettings) {
  const auto config = read_zoo({"model.network={name: vit_s_16, image_size: 32}"});
  EXPECT_NE(write_yaml(config.effective).find("attention_dropout: 0.0"), std::string::npos);
  const auto tensors = module_tensors(*make_model(config.model, 1));
  EXPECT_EQ(tensors.at("encoder.pos_embedding").size(1), 5);
  EXPECT_EQ(zoo_refusal({"model.network.image_size=32"}),
            "-o model.network.image_size=32: unknown key 'model.network.image_size'");
  EXPECT_EQ(zoo_refusal({"model.network={name: vit_s_16, image_size: 100}"}),
            "-o model.network={name: vit_s_16, image_size: 100}: model.network.image_size must be "
            "a multiple of 16, not 100");
  EXPECT_NE(zoo_refusal({"model.network.name=mobilenet_v3_smal"})
                .find("did you mean 'mobilenet_v3_small'?"),
            std::string::npos);
}

TEST(ZooParts, LeaveTheirNamesToPartsThatWerePut) {
  EXPECT_TRUE(kIsPut);
  read_zoo({"model.network={name: resnet101}"});
  EXPECT_NE(list_parts("networks").find("  resnet101: of the program, and not the zoo's\n"),
            std::string::npos);
  const auto refusal = zoo_refusal({"model.network={name: wide_resnet50_2}"});
  EXPECT_NE(refusal.find("'wide_resnet50_2' is registered twice"), std::string::npos) << refusal;
}

TEST(ZooParts, NeedTheNumberOfClasses) {
  const auto config = read_zoo({"model.head.num_classes=0"});
  EXPECT_STREQ(error_of([&] { make_model(config.model, 1); }).what(),
               "model.head.num_classes is missing: mobilenet_v3_small needs the number of classes");
}

TEST(ZooParts, AreListedOnce) {
  register_zoo();
  register_zoo();
  const auto text = list_parts("networks");
  const auto first = text.find("  convnext_tiny: ");
  EXPECT_EQ(text.find("  convnext_tiny: ", first + 1), std::string::npos);
  EXPECT_NE(text.find("  convnext_tiny: 28.6 million parameters with 1000 classes\n"
                      "    stochastic_depth: share of pictures"),
            std::string::npos)
      << text;
}

}  // namespace
}  // namespace lockstep
