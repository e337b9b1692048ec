// Parts that a program registered, as a configuration names them.

#include "lockstep/train/config/own_parts.h"

#include <gtest/gtest.h>

#include "lockstep/error.h"
#include "lockstep/train/config/config.h"
#include "lockstep/train/config/overrides.h"
#include "lockstep/train/config/yaml_reader.h"
#include "lockstep/train/config/yaml_writer.h"

namespace lockstep {

// This program has no libtorch, and reading needs none of what parts make.
class BatchMaker {};
class Metric {};

namespace {

int64_t read_width = 0;

NetworkMaker no_network(Section& settings) {
  int64_t width = 16;
  settings.require("depth", "is missing");
  int64_t depth = 1;
  settings.read("width", width, {1, 64}, "channels");
  settings.read("depth", depth, {1, 9}, "layers");
  read_width = width;
  return [](int64_t) { return nullptr; };
}

const NetworkPart kNet("small_net", "a network", no_network);
const NetworkPart kTwiceA("twice", "a network", no_network);
const NetworkPart kTwiceB("twice", "another", no_network);
const DatasetPart kData("points", "numbers", [](Section& settings) {
  int64_t count = 9;
  settings.read("count", count, {1, 100}, "of points");
  return [](const DatasetUse&) { return nullptr; };
});
const MetricPart kMetric("hits", "a metric",
                         [](Section&) { return [](int64_t) { return nullptr; }; });

constexpr auto kOwn = R"(model:
  network: {name: small_net, width: 8, depth: 2}
metric: {name: hits, main_indicator: hits}
train:
  ckpt_save_dir: out
  dataset: {type: points, count: 4}
  loader: {batch_size: 32}
eval:
  dataset: {type: points}
  loader: {batch_size: 32}
)";

Config read_own(const std::vector<std::string>& overrides = {}) {
  Node tree = parse_yaml(kOwn, "a.yaml");
  apply_overrides(tree, overrides);
  return read_config(std::move(tree));
}

std::string refusal_of(const std::string& override_item) {
  try {
    read_own({override_item});
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.what();
  }
  return "no error";
}

TEST(OwnParts, AreReadWithTheirSettings) {
  const auto config = read_own();
  ASSERT_TRUE(config.model.network);
  EXPECT_TRUE(config.model.network->make);
  EXPECT_EQ(config.model.name(), "small_net");
  EXPECT_EQ(read_width, 8);
  EXPECT_TRUE(config.train.dataset.own);
  EXPECT_TRUE(config.eval->dataset.own);
  ASSERT_EQ(config.metric.own.size(), 1U);
  EXPECT_EQ(config.metric.names, std::vector<std::string>{"hits"});
  EXPECT_EQ(config.metric.main_indicator, "hits");
  EXPECT_TRUE(std::holds_alternative<CrossEntropyConfig>(config.loss));
}

TEST(OwnParts, DefaultsAreInTheEffectiveConfiguration) {
  const auto text = write_yaml(read_own().effective);
  EXPECT_NE(text.find("count: 9"), std::string::npos) << text;
}

TEST(OwnParts, ErrorsNameWhatThereIsAndTheNearest) {
  EXPECT_EQ(refusal_of("model.network.name=smal_net"),
            "-o model.network.name=smal_net: model.network.name must be one of small_net, twice, "
            "twice, not 'smal_net', did you mean 'small_net'?");
  EXPECT_EQ(refusal_of("train.dataset.type=point"),
            "-o train.dataset.type=point: train.dataset.type must be one of Cifar10Dataset, "
            "Cifar100Dataset, MnistDataset, FashionMnistDataset, ImageFolderDataset, "
            "ImageListDataset, WebDataset, points, not 'point', did you mean 'points'?");
  EXPECT_EQ(refusal_of("model.network.widht=3"),
            "-o model.network.widht=3: unknown key 'model.network.widht', did you mean 'width'?");
  EXPECT_EQ(refusal_of("model.network.width=65"),
            "-o model.network.width=65: model.network.width must be a whole number from 1 to 64, "
            "not '65'");
}

TEST(OwnParts, ANameThatIsRegisteredTwiceIsRefused) {
  const auto error = refusal_of("model.network.name=twice");
  EXPECT_NE(error.find("'twice' is registered twice"), std::string::npos) << error;
}

TEST(OwnParts, ANetworkTakesThePlaceOfTheParts) {
  const auto error = refusal_of("model.backbone.name=resnet18");
  EXPECT_NE(error.find("model.network takes its place"), std::string::npos) << error;
  const auto text = refusal_of("model.type=det");
  EXPECT_NE(text.find("model.network needs type: cls"), std::string::npos) << text;
}

TEST(OwnParts, AreListedWithTheirSettings) {
  const auto text = list_parts("networks");
  EXPECT_EQ(text.find("networks (model.network.name):\n"
                      "  small_net: a network\n"
                      "    width: channels; a whole number from 1 to 64; default 16\n"
                      "    depth: layers; a whole number from 1 to 9; required\n"),
            0U)
      << text;
  EXPECT_NE(text.find("built in: resnet18, "), std::string::npos) << text;
  EXPECT_NE(list_parts("").find("datasets (train.dataset.type):\n  points: numbers\n"),
            std::string::npos);
  EXPECT_THROW(list_parts("network"), Error);
}

}  // namespace
}  // namespace lockstep
