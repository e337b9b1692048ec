#include "lockstep/data/pictures/steps.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "lockstep/base/text.h"
#include "lockstep/error.h"

namespace lockstep {
namespace {

constexpr int kMaxSide = 1 << 14;

/// One or two sides of an argument `size`, which is required.
std::vector<int> read_sides(TransformArgs& args) {
  std::vector<double> sides;
  args.list("size", sides);
  const auto allowed = [](double side) {
    return side >= 1 && side <= kMaxSide && side == std::floor(side);
  };
  if (sides.empty() || sides.size() > 2 || !std::all_of(sides.begin(), sides.end(), allowed)) {
    args.fail("size", fmt::format("must be one whole number or [height, width], each from 1 to {}",
                                  kMaxSide));
  }
  return {sides.begin(), sides.end()};
}

PictureSize read_size(TransformArgs& args) {
  const auto sides = read_sides(args);
  return {sides.back(), sides.front()};
}

/// torchvision calls it `p`.
void read_prob(TransformArgs& args, double& prob) {
  args.number("p", prob, 0, 1);
  args.number("prob", prob, 0, 1);
}

PictureStep make_resize_picture(TransformArgs& args) {
  const auto sides = read_sides(args);
  if (sides.size() == 1) return ResizePicture{sides[0], {}};
  return ResizePicture{0, {sides[1], sides[0]}};
}

PictureStep make_center_crop(TransformArgs& args) {
  return CenterCrop{read_size(args)};
}

/// Areas and aspect ratios, both above 0.
void read_parts(TransformArgs& args, std::pair<double, double>& scale,
                std::pair<double, double>& ratio) {
  constexpr double kLeast = 1e-6;
  args.range("scale", scale, kLeast);
  if (scale.second > 1) args.fail("scale", "must be at most 1: shares of the picture's area");
  args.range("ratio", ratio, kLeast);
}

PictureStep make_random_resized_crop(TransformArgs& args) {
  RandomResizedCrop crop;
  crop.size = read_size(args);
  read_parts(args, crop.scale, crop.ratio);
  return crop;
}

PictureStep make_horizontal_flip(TransformArgs& args) {
  RandomHorizontalFlip flip;
  read_prob(args, flip.prob);
  return flip;
}

PictureStep make_vertical_flip(TransformArgs& args) {
  RandomVerticalFlip flip;
  read_prob(args, flip.prob);
  return flip;
}

/// A number x for [middle - x, middle + x], or two numbers; within [least, most].
void read_jitter(TransformArgs& args, const std::string& key, std::pair<double, double>& range,
                 double middle, double least, double most) {
  std::vector<double> given = {range.first, range.second};
  args.list(key, given);
  if (given.size() == 1) {
    if (given[0] < 0) args.fail(key, "must not be below 0");
    given = {std::max(middle - given[0], least), middle + given[0]};
  }
  if (given.size() != 2 || !(given[0] >= least && given[0] <= given[1] && given[1] <= most)) {
    args.fail(key, fmt::format("must be one number, or two in ascending order from {} to {}", least,
                               most));
  }
  range = {given[0], given[1]};
}

PictureStep make_color_jitter(TransformArgs& args) {
  constexpr double kMost = 1000;
  ColorJitter jitter;
  read_jitter(args, "brightness", jitter.brightness, 1, 0, kMost);
  read_jitter(args, "contrast", jitter.contrast, 1, 0, kMost);
  read_jitter(args, "saturation", jitter.saturation, 1, 0, kMost);
  read_jitter(args, "hue", jitter.hue, 0, -0.5, 0.5);
  return jitter;
}

PictureStep make_rand_augment(TransformArgs& args) {
  RandAugment augment;
  args.whole("num_ops", augment.num_ops, 0);
  args.whole("num_magnitude_bins", augment.num_magnitude_bins, 2);
  args.whole("magnitude", augment.magnitude, 0);
  if (augment.magnitude >= augment.num_magnitude_bins) {
    args.fail("magnitude", fmt::format("is {}; it must be below num_magnitude_bins, {}",
                                       augment.magnitude, augment.num_magnitude_bins));
  }
  return augment;
}

PictureStep make_trivial_augment(TransformArgs& args) {
  TrivialAugmentWide augment;
  args.whole("num_magnitude_bins", augment.num_magnitude_bins, 2);
  return augment;
}

PictureStep make_random_erasing(TransformArgs& args) {
  RandomErasing erasing;
  read_prob(args, erasing.prob);
  read_parts(args, erasing.scale, erasing.ratio);
  std::vector<double> value = {0};
  args.list("value", value);
  if (value.size() == 1) value.assign(3, value[0]);
  if (value.size() != 3) args.fail("value", "must be one number, or one for each of 3 channels");
  std::transform(value.begin(), value.end(), erasing.value.begin(),
                 [](double one) { return static_cast<float>(one); });
  return erasing;
}

template <auto make>
PictureStep step_of(TransformArgs& args) {
  return make(args);
}

struct StepMaker {
  const char* name;
  PictureStep (*make)(TransformArgs& args);
};

constexpr StepMaker kStepMakers[] = {{"Resize", make_resize_picture},
                                     {"CenterCrop", make_center_crop},
                                     {"RandomCrop", step_of<make_random_crop>},
                                     {"RandomResizedCrop", make_random_resized_crop},
                                     {"RandomHorizontalFlip", make_horizontal_flip},
                                     {"RandomVerticalFlip", make_vertical_flip},
                                     {"ColorJitter", make_color_jitter},
                                     {"RandAugment", make_rand_augment},
                                     {"TrivialAugmentWide", make_trivial_augment},
                                     {"Normalize", step_of<make_normalize>},
                                     {"NormalizeImage", step_of<make_normalize_image>},
                                     {"RandomErasing", make_random_erasing}};

}  // namespace

const std::vector<std::string>& picture_step_names() {
  static const auto names = [] {
    std::vector<std::string> all;
    for (const auto& maker : kStepMakers) all.emplace_back(maker.name);
    return all;
  }();
  return names;
}

PictureStep make_picture_step(const TransformSpec& spec) {
  for (const auto& maker : kStepMakers) {
    if (spec.name != maker.name) continue;
    TransformArgs args(spec);
    PictureStep step = maker.make(args);
    args.finish();
    return step;
  }
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("unknown transform '{}'{} (known: {})", spec.name,
                          did_you_mean(spec.name, picture_step_names()),
                          fmt::join(picture_step_names(), ", ")));
}

}  // namespace lockstep
