// Backbones of one's own that take built-in ones as parts, and the registries' entries.

#include <gtest/gtest.h>
#include <torch/utils.h>

#include <memory>
#include <string>
#include <vector>

#include "lockstep/recipe.h"
#include "lockstep/train/config/own_parts.h"
#include "lockstep/train/config/task_settings.h"
#include "lockstep/train/part_makers.h"
#include "lockstep/train/setup.h"
#include "lockstep/weights.h"
#include "tests/train/config/configs.h"

namespace lockstep {
namespace {

template <typename Made, typename Parts>
void expect_entries(const Registry<Made>& registry, const Parts& parts) {
  for (const auto& part : parts) {
    const auto* entry = find_named(registry.parts(), part.name);
    ASSERT_NE(entry, nullptr) << part.name;
    EXPECT_TRUE(entry->built_in) << part.name;
    EXPECT_EQ(entry->about, part.about);
  }
}

TEST(WrappedBackbones, EveryBuiltInNameOfATaskIsAnEntry) {
  for (const auto& task : all_tasks()) {
    expect_entries(backbones(), task.backbones);
    expect_entries(losses(), task.losses);
    expect_entries(metrics(), task.metrics);
    expect_entries(datasets(), task.datasets);
  }
}

/// Adds it once the makers of built-in parts are there: its settings are those of one.
void register_same_maps() {
  static const bool is_added = [] {
    register_built_in_parts();
    backbones().add({.name = "same_maps", .about = "a built-in one", .read = [](Section& settings) {
                       Section base = settings.section("base");
                       std::string name = "det_resnet18";
                       base.read("name", name, "the built-in one");
                       auto made = backbones().read(name, base);
                       base.finish();
                       return made;
                     }});
    return true;
  }();
  ASSERT_TRUE(is_added);
}

TEST(WrappedBackbones, AreListedWithTheSettingsOfTheOther) {
  register_same_maps();
  const auto text = list_parts("backbones");
  EXPECT_NE(
      text.find("\n  same_maps: a built-in one\n    base.name: the built-in one; a text; default "
                "det_resnet18\n    base.dcn: deformable convolutions; "),
      std::string::npos)
      << text;
}

/// Networks of the same file, with the built-in backbone and with the registered one, are equal.
void expect_same_networks(const char* text, const std::string& backbone, const at::Tensor& images) {
  SCOPED_TRACE(backbone);
  register_same_maps();
  const auto model_with = [&](const std::string& section) {
    return make_model(read_text(text, {"model.backbone={" + section + "}"}).model, 3);
  };
  const auto built_in = model_with(backbone + ", pretrained: False");
  const auto own = model_with("name: same_maps, base: {" + backbone + "}");
  const auto tensors = module_tensors(*built_in), own_tensors = module_tensors(*own);
  ASSERT_EQ(own_tensors.size(), tensors.size());
  for (const auto& [name, tensor] : tensors) {
    ASSERT_TRUE(own_tensors.contains(name)) << name;
    EXPECT_TRUE(at::equal(own_tensors.at(name), tensor)) << name;
  }
  const torch::NoGradGuard no_grad;
  built_in->eval();
  own->eval();
  EXPECT_TRUE(at::equal(own->forward(images), built_in->forward(images)));
}

TEST(WrappedBackbones, AreThoseOfTheTrainer) {
  const auto images = torch::rand({1, 3, 64, 96});
  expect_same_networks(kDetector, "name: det_resnet18", images);
  expect_same_networks(kDetector, "name: det_resnet18, dcn: True", images);
  expect_same_networks(kDetector, "name: det_mobilenet_v3, out_stages: [5, 8, 14, 20]", images);
  expect_same_networks(kDetector, "name: det_mobilenet_v3_enhance, alpha: 0.5", images);
  expect_same_networks(kRecogniser, "name: rec_vgg7", torch::rand({1, 3, 32, 100}));
  expect_same_networks(kRecogniser, "name: rec_resnet34, in_channels: 3",
                       torch::rand({1, 3, 32, 100}));
}

/// What the registered backbone with these settings of `base` makes.
std::shared_ptr<Backbone> backbone_on(const std::string& base) {
  const auto config =
      read_text(kDetector, {"model.backbone={name: same_maps, base: " + base + "}"});
  return config.model.backbone.own->make();
}

TEST(WrappedBackbones, OfAClassifierHaveFourMaps) {
  register_same_maps();
  const auto backbone = backbone_on("{name: resnet18}");
  EXPECT_EQ(backbone->feature_channels(), (std::vector<int64_t>{64, 128, 256, 512}));
  const auto maps = backbone->features(torch::rand({1, 3, 64, 96}));
  EXPECT_EQ(maps.front().sizes(), (std::vector<int64_t>{1, 64, 16, 24}));
  EXPECT_EQ(maps.back().sizes(), (std::vector<int64_t>{1, 512, 2, 3}));
  const auto small = backbone_on("{name: resnet18, stem: cifar}");
  EXPECT_EQ(small->forward(torch::rand({1, 3, 32, 32})).sizes(),
            (std::vector<int64_t>{1, 512, 4, 4}));
  const auto zero = module_tensors(*backbone_on("{name: resnet18, zero_init_residual: True}"));
  EXPECT_EQ(zero.at("layer1.0.bn2.weight").abs().max().item<float>(), 0);
}

TEST(WrappedBackbones, FaultsOfTheirSettingsAreNamed) {
  register_same_maps();
  const auto fault = [](const std::string& base) {
    const std::string section = "model.backbone={name: same_maps, base: " + base + "}";
    const std::string place = "-o " + section + ": ", text = fault_in(kDetector, {section});
    return text.starts_with(place) ? text.substr(place.size()) : text;
  };
  EXPECT_EQ(fault("{name: det_resnet18, dcnn: True}"),
            "unknown key 'model.backbone.base.dcnn', did you mean 'dcn'?");
  EXPECT_EQ(fault("{name: det_resnet18, pretrained: True}"),
            "unknown key 'model.backbone.base.pretrained'");
  EXPECT_EQ(fault("{name: rec_vgg7, in_channels: 1}"),
            "model.backbone.base.in_channels cannot be '1': images have three channels");
  EXPECT_TRUE(fault("{name: det_resnet19}")
                  .starts_with("model.backbone.base: no part 'det_resnet19' is registered, "))
      << fault("{name: det_resnet19}");
}

}  // namespace
}  // namespace lockstep
