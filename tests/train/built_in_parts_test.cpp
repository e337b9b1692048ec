// Parts of one's own that build on built-in ones: optimizers, schedules, transforms.

#include <gtest/gtest.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/utils.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/data/pictures/pipeline.h"
#include "lockstep/train/config/node.h"
#include "lockstep/train/config/optimizers.h"
#include "lockstep/train/config/own_parts.h"
#include "lockstep/train/optim/optimizer.h"
#include "lockstep/train/part_makers.h"
#include "lockstep/train/schedule/schedule.h"
#include "tests/data/pictures/drawn.h"
#include "tests/support/error_of.h"
#include "tests/train/config/configs.h"

namespace lockstep {
namespace {

/// A part of one's own: the built-in one whose name is `of`, with the settings of `base`.
template <typename Made>
NamedPart<Made> part_of_built_in(const std::string& name, Registry<Made>& (*registry)(),
                                 const std::string& of) {
  return {.name = name, .about = "another by its name", .read = [=](Section& settings) {
            std::string chosen = of;
            settings.read("of", chosen, "the other");
            Section base = settings.section("base");
            Made made = registry().read(chosen, base);
            base.finish();
            return made;
          }};
}

/// The parts are registered here, because those of a test program would be of all its tests.
class OnBuiltInParts : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    register_built_in_parts();
    optimizers().put(part_of_built_in("optimizer_by_name", optimizers, "sgd"));
    schedules().put(part_of_built_in("schedule_by_name", schedules, "constant"));
    schedules().put(part_of_built_in("schedule_in_steps", schedules, "multi_step_decay"));
    transforms().put(part_of_built_in("TransformByName", transforms, "RandomVerticalFlip"));
  }
};

/// What the entry `name` makes of its defaults.
template <typename Made>
Made made_by_default(const Registry<Made>& registry, const std::string& name) {
  Node node;
  ConfigSection section(node, "mine.base");
  return registry.read(name, section);
}

/// Without its place.
template <typename Made>
std::string refusal_of_entry(const Registry<Made>& registry, const std::string& name) {
  const auto error = error_of([&] { made_by_default(registry, name); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  const std::string place = "default: mine.base: ", text = error.what();
  EXPECT_TRUE(text.starts_with(place)) << text;
  return text.substr(place.size());
}

template <typename Made>
std::vector<std::string> built_in_names(const Registry<Made>& registry) {
  return names_of(parts_of(registry, true));
}

TEST_F(OnBuiltInParts, UnknownNamesAreRefusedWithTheNearest) {
  EXPECT_EQ(refusal_of_entry(optimizers(), "adagrd")
                .find("no part 'adagrd' is registered, did you mean 'adagrad'? (there are: "),
            0U);
  const std::string item = "scheduler={scheduler: schedule_by_name, of: cosine_dekay}";
  EXPECT_EQ(fault_in(kPictures, {item})
                .find("-o " + item +
                      ": scheduler.base: no part 'cosine_dekay' is registered, did you mean "
                      "'cosine_decay'?"),
            0U)
      << fault_in(kPictures, {item});
}

TEST_F(OnBuiltInParts, APartThatReadsItselfIsRefused) {
  const Registry<Schedule> before = schedules();
  schedules().put({"endless", "reads itself",
                   [](Section& settings) { return schedules().read("endless", settings); }});
  EXPECT_EQ(fault_in(kPictures, {"scheduler={scheduler: endless}"}),
            "-o scheduler={scheduler: endless}: scheduler: parts read one another without an end: "
            "'endless', 'endless', 'endless'");
  schedules() = before;
}

TEST_F(OnBuiltInParts, PutReplacesNoBuiltInOne) {
  Registry<OptimizerOfGroups> registry = optimizers();
  const auto before = own_names(registry).size();
  const auto none = [](Section&) -> OptimizerOfGroups { return {}; };
  registry.put({"adamw", "of the program", none});
  registry.put({"adamw", "of the program, too", none});
  EXPECT_EQ(built_in_names(registry), built_in_names(optimizers()));
  EXPECT_EQ(own_names(registry).size(), before + 1);
  EXPECT_EQ(own_names(registry).back(), "adamw");
  EXPECT_EQ(refusal_of_entry(registry, "adamw"),
            "several parts are named 'adamw': give your own another name");
}

TEST_F(OnBuiltInParts, MisspeltSettingsAreRefused) {
  const auto fault =
      fault_in(kPictures, {"optimizer={opt: optimizer_by_name, of: adamw, base: {bata1: 0.5}}"});
  EXPECT_NE(fault.find("unknown key 'optimizer.base.bata1', did you mean 'beta1'?"),
            std::string::npos)
      << fault;
}

OptimizerConfig optimizer_section(const std::string& settings) {
  return read_text(kPictures, {"optimizer={" + settings + ", weight_decay: 0.1}"}).optimizer;
}

/// The weights of a small network after some steps.
std::vector<at::Tensor> weights_after_steps(const OptimizerConfig& config) {
  constexpr double kPeak = 0.05;
  torch::manual_seed(3);
  torch::nn::Sequential network(torch::nn::Linear(3, 4), torch::nn::Tanh(),
                                torch::nn::Linear(4, 2));
  const auto optimizer = make_optimizer(config, *network, kPeak);
  GroupRates rates(*optimizer, kPeak);
  const auto input = torch::arange(12, torch::kFloat32).reshape({4, 3}).sin();
  for (int step = 1; step <= 5; ++step) {
    rates.set(kPeak / step);
    optimizer->zero_grad();
    network->forward(input).square().sum().backward();
    optimizer->step();
  }
  return network->parameters();
}

void expect_same_steps(const std::string& name, const std::string& settings) {
  const auto own = weights_after_steps(
      optimizer_section("opt: optimizer_by_name, of: " + name + ", base: {" + settings + "}"));
  const auto built_in = weights_after_steps(
      optimizer_section("opt: " + name + (settings.empty() ? "" : ", " + settings)));
  ASSERT_EQ(own.size(), built_in.size());
  for (size_t i = 0; i < own.size(); ++i) EXPECT_TRUE(own[i].equal(built_in[i])) << name;
}

TEST_F(OnBuiltInParts, EveryOptimizerIsAnEntryAndMakesTheSameSteps) {
  EXPECT_EQ(built_in_names(optimizers()), names_of(optimizer_kinds()));
  for (const auto& kind : optimizer_kinds()) {
    EXPECT_EQ(find_named(optimizers().parts(), kind.name)->about, kind.about);
    expect_same_steps(kind.name, "");
  }
}

TEST_F(OnBuiltInParts, OptimizersTakeTheirSettings) {
  expect_same_steps("adamw", "beta1: 0.5, eps: 0.01, use_amsgrad: True");
  const auto other = weights_after_steps(optimizer_section("opt: adamw, beta1: 0.5"));
  const auto plain = weights_after_steps(optimizer_section("opt: adamw"));
  EXPECT_FALSE(other[0].equal(plain[0])) << "the setting has an effect";
}

SchedulerConfig schedule_section(const std::string& settings) {
  return read_text(kPictures, {"scheduler={lr: 0.1, num_epochs: 12, " + settings + "}"}).scheduler;
}

/// `keys`: of the built-in schedule; `common`: of every one.
void expect_same_rates(const std::string& name, const std::string& keys,
                       const std::string& common) {
  const auto own = schedule_section("scheduler: schedule_by_name, of: " + name + ", base: {" +
                                    keys + "}, " + common);
  const auto built_in =
      schedule_section("scheduler: " + name + ", " + common + (keys.empty() ? "" : ", ") + keys);
  constexpr int64_t kStepsOfEpoch = 4;
  for (int step = 0; step <= 50; ++step) {
    EXPECT_EQ(learning_rate(own, step, kStepsOfEpoch), learning_rate(built_in, step, kStepsOfEpoch))
        << name << " at step " << step;
  }
}

TEST_F(OnBuiltInParts, SchedulesGiveTheSameRatesAfterAnyWarmUp) {
  const auto names = built_in_names(schedules());
  EXPECT_EQ(names.size(), 9U);
  for (const auto& name : names) {
    if (name == "reduce_on_plateau") continue;
    const std::string keys = name == "multi_step_decay" ? "milestones: [2, 5]" : "";
    if (name != "one_cycle") {
      expect_same_rates(name, keys, "warmup_epochs: 3, warmup_factor: 0.25");
    }
    expect_same_rates(name, keys, "warmup_epochs: 0");
  }
  expect_same_rates("cosine_decay",
                    "min_lr: 0.01, decay_epochs: 4, num_cycles: 2, cycle_decay: 0.5",
                    "warmup_epochs: 2");
}

TEST_F(OnBuiltInParts, ASchedulesSectionHasItsOwnKeysAlone) {
  const auto fault = [](const std::string& keys) {
    return fault_in(kPictures, {"scheduler={scheduler: schedule_by_name, " + keys + "}"});
  };
  EXPECT_NE(fault("min_lr: 0.1").find("unknown key 'scheduler.min_lr'"), std::string::npos);
  EXPECT_NE(fault("of: cosine_decay, base: {milestones: [1]}")
                .find("unknown key 'scheduler.base.milestones'"),
            std::string::npos);
  EXPECT_NE(fault("of: cosine_decay, base: {warmup_epochs: 1}")
                .find("unknown key 'scheduler.base.warmup_epochs'"),
            std::string::npos);
}

// Without milestones it cannot be in a run.
TEST_F(OnBuiltInParts, AScheduleThatNeedsASettingIsListed) {
  const auto listed = list_parts("schedules");
  EXPECT_NE(listed.find("\n  schedule_in_steps: another by its name\n    of: the other; "),
            std::string::npos)
      << listed;
  EXPECT_NE(fault_in(kPictures, {"scheduler={scheduler: schedule_in_steps}"})
                .find("scheduler.base.milestones must name at least one epoch"),
            std::string::npos);
}

TEST_F(OnBuiltInParts, AScheduleOfEvaluationsIsRefused) {
  const std::string said =
      "reduce_on_plateau cannot be a part of another: it follows evaluations, and a schedule the "
      "point of the run alone";
  EXPECT_EQ(refusal_of_entry(schedules(), "reduce_on_plateau"), said);
  const std::string item = "scheduler={scheduler: schedule_by_name, of: reduce_on_plateau}";
  EXPECT_EQ(fault_in(kPictures, {item}), "-o " + item + ": scheduler.base: " + said);
}

/// The bytes that a pipeline of these items makes, of several samples.
std::vector<int> bytes_of_items(const std::string& items) {
  const auto config = read_text(kPictures, {"train.dataset.transform_pipeline=[" + items + "]"});
  std::vector<PictureStep> steps;
  for (const auto& item : config.train.dataset.transforms) steps.push_back(item.step);
  const PicturePipeline pipeline(std::move(steps), /*seed=*/7);
  std::vector<int> bytes;
  for (int64_t key = 0; key < 12; ++key) {
    const auto made = bytes_of(pipeline.apply(drawn_picture(40, 30), /*epoch=*/2, key).pixels);
    bytes.insert(bytes.end(), made.begin(), made.end());
  }
  return bytes;
}

/// The items around it show that both draw equally many numbers.
std::string between_flips(const std::string& item) {
  return "{RandomHorizontalFlip: }, {" + item + "}, {RandomVerticalFlip: }";
}

std::string by_name(const std::string& name, const std::string& settings) {
  return "TransformByName: {of: " + name + ", base: {" + settings + "}}";
}

TEST_F(OnBuiltInParts, TransformsMakeTheSameBytes) {
  const std::vector<std::pair<std::string, std::string>> items = {
      {"Resize", "size: [20, 24]"},
      {"Resize", "size: 16"},
      {"CenterCrop", "size: 35"},
      {"RandomCrop", "size: 16, padding: 2"},
      {"RandomResizedCrop", "size: 16"},
      {"RandomResizedCrop", "size: 16, scale: [0.9, 1], ratio: [3, 4]"},
      {"RandomHorizontalFlip", "prob: 0.3"},
      {"RandomVerticalFlip", ""},
      {"ColorJitter", "brightness: 0.4, contrast: 0.4, saturation: 0.4, hue: 0.1"},
      {"RandAugment", "num_ops: 3"},
      {"TrivialAugmentWide", ""}};
  for (const auto& [name, settings] : items) {
    const auto built_in = bytes_of_items(between_flips(name + ": {" + settings + "}"));
    EXPECT_EQ(bytes_of_items(between_flips(by_name(name, settings))), built_in) << name;
  }
}

TEST_F(OnBuiltInParts, TransformsAreEntriesWithTheirLines) {
  const auto listed = list_parts("transforms");
  const auto parts = parts_of(transforms(), true);
  for (const auto& part : parts) {
    EXPECT_EQ(std::count_if(parts.begin(), parts.end(),
                            [&](const auto& other) { return other.name == part.name; }),
              1)
        << part.name;
    if (part.about == "of text") continue;
    EXPECT_NE(listed.find("\n  " + part.name + ": " + part.about + "\n"), std::string::npos)
        << part.name;
  }
  EXPECT_NE(find_named(parts, "ColorJitter"), nullptr);
}

TEST_F(OnBuiltInParts, RandomTransformsStayRandom) {
  EXPECT_TRUE(std::holds_alternative<RandomTransform>(
      made_by_default(transforms(), "RandomHorizontalFlip")));
  const auto items_of_eval = [](const std::string& item) {
    return std::vector<std::string>{"eval.dataset.transform_pipeline=[{" + item + "}]"};
  };
  EXPECT_NE(fault_in(kPictures, items_of_eval(by_name("RandAugment", "")))
                .find("TransformByName is random, evaluation is not"),
            std::string::npos);
  EXPECT_EQ(fault_in(kPictures, items_of_eval(by_name("Resize", "size: [8, 8]"))), "");
}

TEST_F(OnBuiltInParts, TransformsOfFloatsBatchesAndTextAreRefused) {
  const std::string floats = "it works on floats, and a transform of one's own on bytes";
  const std::vector<std::pair<std::string, std::string>> reasons = {
      {"Normalize", floats},
      {"NormalizeImage", floats},
      {"RandomErasing", floats},
      {"MixUp", "it works on whole batches"},
      {"CutMix", "it works on whole batches"},
      {"ToCHWImage", "it changes nothing"},
      {"RandomCropWithBBox", "it works on text, with its labels"}};
  for (const auto& [name, why] : reasons) {
    EXPECT_EQ(refusal_of_entry(transforms(), name), name + " cannot be a part of another: " + why);
  }
}

TEST_F(OnBuiltInParts, AnUnusablePictureOfABuiltInTransformHasBothNames) {
  const auto error =
      error_of([] { bytes_of_items("{" + by_name("RandomCrop", "size: 50, padding: 0") + "}"); });
  EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
  EXPECT_STREQ(error.what(),
               "TransformByName: RandomCrop: size 50 does not fit into a picture of 40 x 30 with "
               "padding 0");
}

}  // namespace
}  // namespace lockstep
