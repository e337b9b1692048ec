// The makers of transforms describe the arguments that they read; the manual shows it.

#include "lockstep/data/transform_args.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "lockstep/data/mixing.h"
#include "lockstep/data/pictures/steps.h"
#include "lockstep/data/transforms.h"

namespace lockstep {
namespace {

using Numbers = std::vector<double>;

/// All that a transform holds.
struct NumbersOf {
  Numbers operator()(const ResizePicture& resize) const {
    return {1. * resize.shorter, 1. * resize.exact.height, 1. * resize.exact.width};
  }
  Numbers operator()(const Resize& resize) const { return {1. * resize.height, 1. * resize.width}; }
  Numbers operator()(const CenterCrop& crop) const {
    return {1. * crop.size.height, 1. * crop.size.width};
  }
  Numbers operator()(const RandomCrop& crop) const { return {1. * crop.size, 1. * crop.padding}; }
  Numbers operator()(const RandomResizedCrop& crop) const {
    return {crop.scale.first, crop.scale.second, crop.ratio.first, crop.ratio.second};
  }
  Numbers operator()(const RandomHorizontalFlip& flip) const { return {flip.prob}; }
  Numbers operator()(const RandomVerticalFlip& flip) const { return {flip.prob}; }
  Numbers operator()(const ColorJitter& jitter) const {
    Numbers numbers;
    for (const auto& [from, to] :
         {jitter.brightness, jitter.contrast, jitter.saturation, jitter.hue}) {
      numbers.insert(numbers.end(), {from, to});
    }
    return numbers;
  }
  Numbers operator()(const RandAugment& augment) const {
    return {1. * augment.num_ops, 1. * augment.magnitude, 1. * augment.num_magnitude_bins};
  }
  Numbers operator()(const TrivialAugmentWide& augment) const {
    return {1. * augment.num_magnitude_bins};
  }
  Numbers operator()(const Normalize& normalize) const {
    Numbers numbers = normalize.mean;
    numbers.insert(numbers.end(), normalize.std.begin(), normalize.std.end());
    return numbers;
  }
  Numbers operator()(const RandomErasing& erasing) const {
    Numbers numbers = {erasing.prob, erasing.scale.first, erasing.scale.second, erasing.ratio.first,
                       erasing.ratio.second};
    numbers.insert(numbers.end(), erasing.value.begin(), erasing.value.end());
    return numbers;
  }
  Numbers operator()(const OwnTransform&) const { return {}; }
};

Numbers small_image_numbers(const TransformSpec& spec) {
  return std::visit(NumbersOf(), make_transform(spec));
}

Numbers picture_numbers(const TransformSpec& spec) {
  return std::visit(NumbersOf(), make_picture_step(spec));
}

Numbers mixing_numbers(const TransformSpec& spec) {
  Mixing mixing;
  add_mixing(spec, mixing);
  if (mixing.mix_up) return {mixing.mix_up->alpha, mixing.mix_up->prob};
  return {mixing.cut_mix->alpha, mixing.cut_mix->prob};
}

/// The numbers that a default of the manual means.
Numbers meant_by(const TransformArgument& argument) {
  static const std::map<std::string, Numbers> kNamed = {
      {"mean of CIFAR-10", {0.4914, 0.4822, 0.4465}},
      {"std of CIFAR-10", {0.2470, 0.2435, 0.2616}},
      {"mean of ImageNet", {123.675, 116.28, 103.53}},
      {"std of ImageNet", {58.395, 57.12, 57.375}}};
  const auto named = kNamed.find(argument.key + " " + argument.fallback);
  if (named != kNamed.end()) return named->second;
  std::string text = argument.fallback;
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '[' || c == ',' || c == ']'; }, ' ');
  std::istringstream stream(text);
  Numbers numbers;
  for (double number = 0; stream >> number;) numbers.push_back(number);
  EXPECT_TRUE(stream.eof() && !numbers.empty()) << argument.key << " has " << argument.fallback;
  return numbers;
}

/// As far as the manual's four digits go.
void expect_same(const Numbers& given, const Numbers& expected, const std::string& of) {
  ASSERT_EQ(given.size(), expected.size()) << of;
  for (size_t i = 0; i < given.size(); ++i) EXPECT_NEAR(given[i], expected[i], 5e-4) << of;
}

/// A default that is written out does not change its transform.
void check_defaults(const TransformArguments& all, Numbers (*numbers)(const TransformSpec&)) {
  for (const auto& [name, arguments] : all) {
    TransformSpec least{name, {}};
    for (const auto& argument : arguments) {
      if (argument.fallback == "required") least.args[argument.key] = {8};
    }
    for (const auto& argument : arguments) {
      if (argument.fallback == "required") continue;
      TransformSpec spec = least;
      spec.args[argument.key] = meant_by(argument);
      expect_same(numbers(spec), numbers(least), name + "." + argument.key);
    }
  }
}

TEST(TransformArgs, DescribeWhatIsRead) {
  const auto described = described_arguments([](TransformArgs& args) {
    double prob = 0.25, alpha = 2;
    int64_t count = 3;
    Numbers required, one = {0.5}, named = {1, 2};
    std::pair<double, double> ratio{3. / 4, 4. / 3};
    args.number("prob", prob, 0, 1, "a share");
    args.number("alpha", alpha, 0.01, 1000, "", "a number");
    args.whole("count", count, 1, "of them");
    args.list("size", required, "a size", "of all");
    args.list("value", one, "a value", "");
    args.list("mean", named, "two numbers", "of each", "of CIFAR-10");
    args.range("ratio", ratio, 0, "of sides");
    args.finish();
    EXPECT_TRUE(args.only_describes());
    EXPECT_EQ(count, 3) << "a default stays";
  });
  std::string text;
  for (const auto& [key, kind, fallback, about] : described) {
    text += key + ": " + kind + "; " + fallback + "; " + about + "\n";
  }
  EXPECT_EQ(text,
            "prob: a number from 0 to 1; 0.25; a share\n"
            "alpha: a number; 2; \n"
            "count: a whole number; 3; of them\n"
            "size: a size; required; of all\n"
            "value: a value; 0.5; \n"
            "mean: two numbers; of CIFAR-10; of each\n"
            "ratio: two numbers; [0.75, 1.333]; of sides\n");
}

TEST(TransformArgs, DescribedDefaultsAreThoseWithoutArguments) {
  check_defaults(transform_arguments(), small_image_numbers);
  check_defaults(picture_step_arguments(), picture_numbers);
  check_defaults(mixing_arguments(), mixing_numbers);
}

TEST(TransformArgs, DefaultsAreThoseOfTheStructs) {
  const std::map<std::string, PictureStep> steps = {
      {"RandomCrop", RandomCrop{}},
      {"RandomHorizontalFlip", RandomHorizontalFlip{}},
      {"RandomVerticalFlip", RandomVerticalFlip{}},
      {"ColorJitter", ColorJitter{}},
      {"RandAugment", RandAugment{}},
      {"TrivialAugmentWide", TrivialAugmentWide{}},
      {"Normalize", Normalize{}},
      {"RandomErasing", RandomErasing{}}};
  for (const auto& [name, step] : steps) {
    EXPECT_EQ(picture_numbers({name, {}}), std::visit(NumbersOf(), step)) << name;
  }
  EXPECT_EQ(picture_numbers({"RandomResizedCrop", {{"size", {8}}}}),
            NumbersOf()(RandomResizedCrop{}));
  EXPECT_EQ(small_image_numbers({"Resize", {}}), NumbersOf()(Resize{}));
}

TEST(TransformArgs, EveryMixingIsDescribed) {
  EXPECT_EQ(mixing_arguments().size(), 2u);
  for (const auto& mixing : mixing_arguments()) EXPECT_TRUE(is_mixing(mixing.first));
  EXPECT_NE(mixing_about("MixUp"), mixing_about("CutMix"));
}

TEST(TransformArgs, EveryStepHasALine) {
  for (const auto& name : picture_step_names()) EXPECT_NE(picture_step_about(name), "") << name;
  EXPECT_EQ(picture_step_about("Resiz"), "");
}

}  // namespace
}  // namespace lockstep
