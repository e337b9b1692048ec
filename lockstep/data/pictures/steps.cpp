#include "lockstep/data/pictures/steps.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "lockstep/base/text.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

constexpr int kMaxSide = 1 << 14;

/// One or two sides of an argument `size`, which is required.
std::vector<int> read_sides(TransformArgs& args, const std::string& about) {
  std::vector<double> sides;
  args.list("size", sides, "a whole number, or [height, width]", about);
  if (args.only_describes()) sides = {1};
  const auto allowed = [](double side) {
    return side >= 1 && side <= kMaxSide && side == std::floor(side);
  };
  if (sides.empty() || sides.size() > 2 || !std::all_of(sides.begin(), sides.end(), allowed)) {
    args.fail("size", fmt::format("must be one whole number or [height, width], each from 1 to {}",
                                  kMaxSide));
  }
  return {sides.begin(), sides.end()};
}

PictureSize read_size(TransformArgs& args, const std::string& about) {
  const auto sides = read_sides(args, about);
  return {sides.back(), sides.front()};
}

/// torchvision calls it `p`.
void read_prob(TransformArgs& args, double& prob) {
  args.number("p", prob, 0, 1);
  args.number("prob", prob, 0, 1, "its probability; also as `p`");
}

PictureStep make_resize_picture(TransformArgs& args) {
  const auto sides =
      read_sides(args, "one number is of the shorter side; bilinear, with antialias");
  if (sides.size() == 1) return ResizePicture{sides[0], {}};
  return ResizePicture{0, {sides[1], sides[0]}};
}

PictureStep make_center_crop(TransformArgs& args) {
  return CenterCrop{read_size(args, "of the middle")};
}

/// Areas and aspect ratios, both above 0.
void read_parts(TransformArgs& args, std::pair<double, double>& scale,
                std::pair<double, double>& ratio, const std::string& about_ratio) {
  constexpr double kLeast = 1e-6;
  args.range("scale", scale, kLeast, "share of the picture's area");
  if (scale.second > 1) args.fail("scale", "must be at most 1: shares of the picture's area");
  args.range("ratio", ratio, kLeast, about_ratio);
}

PictureStep make_random_resized_crop(TransformArgs& args) {
  RandomResizedCrop crop;
  crop.size = read_size(args, "of the result");
  read_parts(args, crop.scale, crop.ratio, "width over height");
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

/// A number x of an argument stands for [middle - x, middle + x], within bounds.
struct JitterKind {
  double middle, least, most;
};

/// A number x, or two numbers.
void read_jitter(TransformArgs& args, const std::string& key, std::pair<double, double>& range,
                 const JitterKind& kind, const std::string& about) {
  const auto [middle, least, most] = kind;
  std::vector<double> given = {range.first, range.second};
  args.list(key, given, "a number x, or two", about);
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
  constexpr JitterKind kFactor{1, 0, 1000}, kTurn{0, -0.5, 0.5};
  ColorJitter jitter;
  read_jitter(args, "brightness", jitter.brightness, kFactor, "a factor from 1 - x to 1 + x");
  read_jitter(args, "contrast", jitter.contrast, kFactor, "the same");
  read_jitter(args, "saturation", jitter.saturation, kFactor, "the same");
  read_jitter(args, "hue", jitter.hue, kTurn, "from -x to x turns of the colour circle");
  return jitter;
}

void read_bins(TransformArgs& args, int64_t& bins) {
  args.whole("num_magnitude_bins", bins, 2, "strengths there are");
}

PictureStep make_rand_augment(TransformArgs& args) {
  RandAugment augment;
  args.whole("num_ops", augment.num_ops, 0, "operations one after another");
  args.whole("magnitude", augment.magnitude, 0, "their strength");
  read_bins(args, augment.num_magnitude_bins);
  if (augment.magnitude >= augment.num_magnitude_bins) {
    args.fail("magnitude", fmt::format("is {}; it must be below num_magnitude_bins, {}",
                                       augment.magnitude, augment.num_magnitude_bins));
  }
  return augment;
}

PictureStep make_trivial_augment(TransformArgs& args) {
  TrivialAugmentWide augment;
  read_bins(args, augment.num_magnitude_bins);
  return augment;
}

PictureStep make_random_erasing(TransformArgs& args) {
  RandomErasing erasing;
  read_prob(args, erasing.prob);
  read_parts(args, erasing.scale, erasing.ratio, "height over width");
  std::vector<double> value = {erasing.value[0]};
  args.list("value", value, "a number, or one a channel", "after Normalize");
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
  const char* about;
};

constexpr StepMaker kStepMakers[] = {
    {"Resize", make_resize_picture, "brings the picture to a size"},
    {"CenterCrop", make_center_crop,
     "cuts the middle out; a smaller picture gets black pixels around it"},
    {"RandomCrop", step_of<make_random_crop>, "cuts a square from a random place"},
    {"RandomResizedCrop", make_random_resized_crop,
     "cuts a random part out, and brings it to a size"},
    {"RandomHorizontalFlip", make_horizontal_flip, "mirrors left and right"},
    {"RandomVerticalFlip", make_vertical_flip, "mirrors top and bottom"},
    {"ColorJitter", make_color_jitter,
     "brightness, contrast, saturation and hue, in a random order"},
    {"RandAugment", make_rand_augment, "some of 14 operations, of one strength"},
    {"TrivialAugmentWide", make_trivial_augment, "one of 14 operations, of any strength"},
    {"Normalize", step_of<make_normalize>, "(value / 255 - mean) / std of each channel"},
    {"NormalizeImage", step_of<make_normalize_image>, "(value - mean) / std of each channel"},
    {"RandomErasing", make_random_erasing, "fills a random rectangle; the last one"}};

}  // namespace

const std::vector<std::string>& picture_step_names() {
  static const auto names = [] {
    std::vector<std::string> all;
    for (const auto& maker : kStepMakers) all.emplace_back(maker.name);
    return all;
  }();
  return names;
}

TransformArguments picture_step_arguments() {
  return arguments_of(kStepMakers);
}

std::string picture_step_about(const std::string& name) {
  const auto found = std::find_if(std::begin(kStepMakers), std::end(kStepMakers),
                                  [&](const auto& maker) { return maker.name == name; });
  return found == std::end(kStepMakers) ? "" : found->about;
}

std::string_view picture_step_name(const PictureStep& step) {
  if (const auto* own = std::get_if<OwnTransform>(&step)) return own->name;
  constexpr std::array<std::string_view, std::variant_size_v<PictureStep> - 1> kInOrder = {
      "Resize",
      "CenterCrop",
      "RandomCrop",
      "RandomResizedCrop",
      "RandomHorizontalFlip",
      "RandomVerticalFlip",
      "ColorJitter",
      "RandAugment",
      "TrivialAugmentWide",
      "Normalize",
      "RandomErasing"};
  return kInOrder.at(step.index());
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

}  // namespace lockstep::inline internal
