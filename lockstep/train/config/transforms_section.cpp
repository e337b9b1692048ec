// The transform_pipeline of a classifier's data set: each item of the list, typed.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <variant>

#include "lockstep/data/mixing.h"
#include "lockstep/data/own_transform.h"
#include "lockstep/data/steps.h"
#include "lockstep/error.h"
#include "lockstep/ocr/transforms/options.h"
#include "lockstep/train/config/built_in_makers.h"
#include "lockstep/train/config/node.h"
#include "lockstep/train/config/own_parts.h"
#include "lockstep/train/config/sections.h"
#include "lockstep/train/config/transform_arguments.h"

namespace lockstep::inline internal {
namespace {

/// The areas and aspect ratios of a part of the picture.
void read_parts(ConfigSection& args, std::pair<double, double>& scale,
                std::pair<double, double>& ratio, const std::string& about_ratio) {
  read_ascending(args, "scale", scale, {1e-6, 1}, "share of the picture's area");
  read_ascending(args, "ratio", ratio, {1e-6, 1e6}, about_ratio);
}

PictureStep read_random_crop(ConfigSection& args, ImageKind) {
  RandomCrop crop;
  read_whole_one(args, "size", crop.size, 1, "of a square");
  read_whole_one(args, "padding", crop.padding, 0, "black pixels on each side before it");
  return crop;
}

template <typename Flip>
PictureStep read_random_flip(ConfigSection& args, ImageKind) {
  Flip flip;
  read_prob(args, flip.prob);
  return flip;
}

PictureStep read_normalize_floats(ConfigSection& args, ImageKind images) {
  Normalize normalize;
  read_mean_and_std(args, normalize, "of values from 0 to 1", "of CIFAR-10", images);
  return normalize;
}

/// MindOCR's flags are only checked.
PictureStep read_normalize_bytes(ConfigSection& args, ImageKind images) {
  Normalize normalize{{ocr::kImageNetMean.begin(), ocr::kImageNetMean.end()},
                      {ocr::kImageNetStd.begin(), ocr::kImageNetStd.end()}};
  read_mean_and_std(args, normalize, "of values from 0 to 255", "of ImageNet", images);
  for (auto* values : {&normalize.mean, &normalize.std}) {
    for (double& value : *values) value /= 255;
  }
  args.only("is_hwc", {"True", "False", ""}, "it is True or False");
  args.only("bgr_to_rgb", {"False", ""}, "these images are RGB already");
  args.only("rgb_to_bgr", {"False", ""}, "these images stay RGB");
  return normalize;
}

PictureStep read_resize(ConfigSection& args, ImageKind images) {
  constexpr int kSmallDefault = 224;
  const bool may_be_absent = images == ImageKind::kSmall && !args.has("size");
  if (may_be_absent) args.any("size");
  const auto sides = may_be_absent ? std::vector{kSmallDefault}
                                   : require_sides(args, "one number is of the shorter side",
                                                   "required; small images: 224");
  if (sides.size() == 1) return ResizePicture{sides[0], {}};
  return ResizePicture{0, {sides[1], sides[0]}};
}

PictureStep read_center_crop(ConfigSection& args, ImageKind) {
  return CenterCrop{require_size(args, "of the middle")};
}

PictureStep read_resized_crop(ConfigSection& args, ImageKind) {
  RandomResizedCrop crop;
  crop.size = require_size(args, "of the result");
  read_parts(args, crop.scale, crop.ratio, "width over height");
  return crop;
}

PictureStep read_color_jitter(ConfigSection& args, ImageKind) {
  constexpr Range<double> kFactor{0, 1000}, kTurn{-0.5, 0.5};
  ColorJitter jitter;
  read_jitter(args, "brightness", jitter.brightness, 1, kFactor, "a factor from 1 - x to 1 + x");
  read_jitter(args, "contrast", jitter.contrast, 1, kFactor, "the same");
  read_jitter(args, "saturation", jitter.saturation, 1, kFactor, "the same");
  read_jitter(args, "hue", jitter.hue, 0, kTurn, "from -x to x turns of the colour circle");
  return jitter;
}

void read_bins(ConfigSection& args, int64_t& bins) {
  read_whole_one(args, "num_magnitude_bins", bins, 2, "strengths there are");
}

PictureStep read_rand_augment(ConfigSection& args, ImageKind) {
  RandAugment augment;
  const bool has_magnitude = args.has("magnitude");  // a default has no line for an error
  read_whole_one(args, "num_ops", augment.num_ops, 0, "operations one after another");
  read_whole_one(args, "magnitude", augment.magnitude, 0, "their strength");
  read_bins(args, augment.num_magnitude_bins);
  const auto [ops, magnitude, bins] = augment;
  if (magnitude < bins) return augment;
  if (has_magnitude) {
    args.fail("magnitude",
              fmt::format("is {}; it must be below num_magnitude_bins, {}", magnitude, bins));
  }
  args.fail("num_magnitude_bins",
            fmt::format("is {}; it must be above magnitude, {} unless given", bins, magnitude));
}

PictureStep read_trivial_augment(ConfigSection& args, ImageKind) {
  TrivialAugmentWide augment;
  read_bins(args, augment.num_magnitude_bins);
  return augment;
}

PictureStep read_random_erasing(ConfigSection& args, ImageKind) {
  RandomErasing erasing;
  read_prob(args, erasing.prob);
  read_parts(args, erasing.scale, erasing.ratio, "height over width");
  args.record("value", "a number, or one a channel", fmt::format("{}", erasing.value[0]),
              "after Normalize");
  auto value = args.number_or_list("value");
  if (!args.has("value")) return erasing;
  if (value.size() == 1) value.assign(3, value[0]);
  if (value.size() != 3) args.fail("value", "must be one number, or one for each of 3 channels");
  std::transform(value.begin(), value.end(), erasing.value.begin(),
                 [](double one) { return static_cast<float>(one); });
  return erasing;
}

struct StepReader {
  const char* name;
  PictureStep (*read)(ConfigSection& args, ImageKind images);
  const char* about;
  bool on_floats = false;
};

constexpr auto kStepReaders = std::to_array<StepReader>(
    {{"Resize", read_resize, "brings the picture to a size; bilinear"},
     {"CenterCrop", read_center_crop,
      "cuts the middle out; a smaller picture gets black pixels around it"},
     {"RandomCrop", read_random_crop, "cuts a square from a random place"},
     {"RandomResizedCrop", read_resized_crop, "cuts a random part out, and brings it to a size"},
     {"RandomHorizontalFlip", read_random_flip<RandomHorizontalFlip>, "mirrors left and right"},
     {"RandomVerticalFlip", read_random_flip<RandomVerticalFlip>, "mirrors top and bottom"},
     {"ColorJitter", read_color_jitter,
      "brightness, contrast, saturation and hue, in a random order"},
     {"RandAugment", read_rand_augment, "some of 14 operations, of one strength"},
     {"TrivialAugmentWide", read_trivial_augment, "one of 14 operations, of any strength"},
     {"Normalize", read_normalize_floats, "(value / 255 - mean) / std of each channel", true},
     {"NormalizeImage", read_normalize_bytes, "(value - mean) / std of each channel", true},
     {"RandomErasing", read_random_erasing, "fills a random rectangle; the last one", true}});

template <auto kKind>
void read_mixing(ConfigSection& args, Mixing& mixing) {
  auto& kind = mixing.*kKind;
  if (kind) {
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("{}: {} may stand in transform_pipeline once", args.where(""), args.path()));
  }
  kind.emplace();
  read_one(args, "alpha", kind->alpha, {0.01, 1000}, "of the beta distribution of the shares");
  read_one(args, "prob", kind->prob, {0, 1}, "of being mixed");
}

void read_nothing(ConfigSection&, Mixing&) {}

/// Items that are no steps of a sample.
struct BatchReader {
  const char* name;
  void (*read)(ConfigSection& args, Mixing& mixing);
  const char* about;
  const char* why_apart = "it works on whole batches";  ///< It is no part of another transform.
};

constexpr auto kBatchReaders = std::to_array<BatchReader>(
    {{"MixUp", read_mixing<&Mixing::mix_up>,
      "the weighted mean of each image of a batch and the next one"},
     {"CutMix", read_mixing<&Mixing::cut_mix>,
      "a rectangle of the next image of a batch in the place of each one's"},
     {"ToCHWImage", read_nothing, "nothing: images have this order anyway", "it changes nothing"}});

std::vector<std::string> class_transform_names() {
  auto names = names_of(kStepReaders);
  for (const auto& reader : kBatchReaders) names.emplace_back(reader.name);
  return names;
}

bool is_random(const std::string& name) {
  constexpr std::array kOthers = {"ColorJitter", "RandAugment", "TrivialAugmentWide", "MixUp",
                                  "CutMix"};
  return name.starts_with("Random") ||
         std::find(kOthers.begin(), kOthers.end(), name) != kOthers.end();
}

NamedPart<PictureTransform> refused_transform(const std::string& name, const std::string& about,
                                              const std::string& why) {
  const auto read = [name, why](Section& section) -> PictureTransform {
    refuse_as_part(section, name, why);
  };
  return {.name = name, .about = about, .read = read, .built_in = true};
}

NamedPart<PictureTransform> step_transform(const StepReader& reader) {
  if (reader.on_floats) {
    return refused_transform(reader.name, reader.about,
                             "it works on floats, and a transform of one's own on bytes");
  }
  return built_in_part<PictureTransform>(reader, [&reader](ConfigSection& args) {
    return built_in_makers().transform(reader.read(args, ImageKind::kInFiles));
  });
}

}  // namespace

template <>
std::vector<NamedPart<PictureTransform>> built_in_parts() {
  std::vector<NamedPart<PictureTransform>> parts;
  for (const auto& reader : kStepReaders) parts.push_back(step_transform(reader));
  for (const auto& reader : kBatchReaders) {
    parts.push_back(refused_transform(reader.name, reader.about, reader.why_apart));
  }
  for (const auto& name : text_transform_names()) {
    if (find_named(parts, name) != nullptr) continue;  // a classifier has one of this name, too
    parts.push_back(refused_transform(name, "of text", "it works on text, with its labels"));
  }
  return parts;
}

void read_transforms(ConfigSection& section, const TransformReader& read) {
  const std::string key = "transform_pipeline";
  Node* node = section.any(key);
  if (!section.has(key)) return;
  if (node->kind != Node::Kind::kList) section.fail(key, "must be a list");
  for (Node& node_of_item : node->items) {
    ConfigSection item(node_of_item, section.name_of(key), section.settings());
    if (node_of_item.entries.size() != 1) {
      section.fail(key, "must hold items of the form 'Name: {arguments}'");
    }
    const std::string name = node_of_item.entries.front().key;
    read(item, name);
  }
}

std::optional<OwnTransform> read_own_transform(ConfigSection& item, const std::string& name,
                                               const std::vector<std::string>& built_in) {
  item.expect(joined_names(built_in, transforms()));
  const auto parts = parts_of(transforms(), false);
  const auto* part = find_named(parts, name);
  if (part == nullptr) return std::nullopt;
  refuse_taken(item, name, name, transforms());
  ConfigSection args = item.section(name);
  OwnTransform own{name, part->read(args)};
  args.finish();
  const auto is_empty = [](const auto& function) { return function == nullptr; };
  if (std::visit(is_empty, own.transform)) item.fail(name, "made no function");
  return own;
}

void read_class_pipeline(ConfigSection& section, DatasetConfig& config, bool training,
                         ImageKind images) {
  const auto names = class_transform_names();
  const auto check_random = [&](const ConfigSection& item, const std::string& name, bool random) {
    if (random && !training) item.fail(name, "is random, evaluation is not");
  };
  read_transforms(section, [&](ConfigSection& item, const std::string& name) {
    const auto where = item.where(name);
    if (auto own = read_own_transform(item, name, names)) {
      check_random(item, name, std::holds_alternative<RandomTransform>(own->transform));
      config.transforms.push_back({std::move(*own), where});
      return;
    }
    check_random(item, name, is_random(name));
    ConfigSection args = item.section(name);
    Settings* settings = args.settings();
    const size_t before = settings == nullptr ? 0 : settings->size();
    const auto* reader = find_named(kStepReaders, name);
    if (reader != nullptr) {
      config.transforms.push_back({reader->read(args, images), where});
    } else {
      find_named(kBatchReaders, name)->read(args, config.mixing);
    }
    args.finish();
    for (size_t i = before; settings != nullptr && i < settings->size(); ++i) {
      (*settings)[i].about.insert(0, "`cls`: ");
    }
  });
}

std::vector<ListedPart> built_in_class_transforms() {
  std::vector<ListedPart> parts;
  for (const auto& reader : kStepReaders) {
    const auto read = [&](ConfigSection& args) { reader.read(args, ImageKind::kInFiles); };
    parts.push_back({reader.name, reader.about, settings_of(reader.name, read)});
  }
  for (const auto& reader : kBatchReaders) {
    const auto read = [&](ConfigSection& args) {
      Mixing mixing;
      reader.read(args, mixing);
    };
    parts.push_back({reader.name, reader.about, settings_of(reader.name, read)});
  }
  return parts;
}

}  // namespace lockstep::inline internal
