// The transform_pipeline of a classifier's data set.

#include <algorithm>
#include <array>
#include <map>

#include "lockstep/data/mixing.h"
#include "lockstep/data/pictures/steps.h"
#include "lockstep/data/transforms.h"
#include "lockstep/train/config/node.h"
#include "lockstep/train/config/sections.h"

namespace lockstep {
namespace {

/// A transform of a classifier's pipeline.
struct KnownTransform {
  std::vector<TransformArgument> arguments;
  const char* of = nullptr;  ///< In front of the manual's lines; null: it has none.
};
using KnownTransforms = std::map<std::string, KnownTransform>;

/// `own`, and those of all pictures. ToCHWImage changes nothing here.
KnownTransforms known_transforms(const TransformArguments& own, const char* of) {
  KnownTransforms known = {{"ToCHWImage", {}}};
  for (const auto& [name, arguments] : own) known[name] = {arguments, of};
  for (const auto& [name, arguments] : mixing_arguments()) known[name] = {arguments, "`cls`: "};
  return known;
}

const KnownTransforms& small_image_transforms() {
  static const auto known = known_transforms(transform_arguments(), nullptr);
  return known;
}

/// Of pictures in files.
const KnownTransforms& picture_transforms() {
  static const auto known = known_transforms(picture_step_arguments(), "pictures in files: ");
  return known;
}

bool is_random(const std::string& transform) {
  constexpr std::array kOthers = {"ColorJitter", "RandAugment", "TrivialAugmentWide"};
  return transform.starts_with("Random") || is_mixing(transform) ||
         std::find(kOthers.begin(), kOthers.end(), transform) != kOthers.end();
}

/// MindOCR's flags of NormalizeImage. They are only checked.
void check_channel_flags(Section& args) {
  args.only("is_hwc", {"True", "False", ""}, "it is True or False");
  args.only("bgr_to_rgb", {"False", ""}, "these images are RGB already");
  args.only("rgb_to_bgr", {"False", ""}, "these images stay RGB");
}

/// One item of the pipeline, `Name: {args}` or `Name:`.
TransformConfig read_transform(Section item, const std::string& name, const KnownTransform& known) {
  TransformConfig config{name, {}, item.where(name)};
  Section args = item.section(name);
  for (const auto& [key, kind, fallback, about] : known.arguments) {
    if (args.has(key)) config.args[key] = args.number_or_list(key);
    args.any(key);
    if (known.of && !about.empty()) args.record(key, kind, fallback, known.of + about);
  }
  if (name == "NormalizeImage") check_channel_flags(args);
  args.finish();
  return config;
}

std::vector<TransformConfig> read_pipeline(Section& section, bool training,
                                           const KnownTransforms& known) {
  Node* node = section.any("transform_pipeline");
  if (node == nullptr || !section.has("transform_pipeline")) return {};
  if (node->kind != Node::Kind::kList) section.fail("transform_pipeline", "must be a list");
  std::vector<TransformConfig> pipeline;
  for (Node& node_of_item : node->items) {
    Section item(node_of_item, section.name_of("transform_pipeline"), section.settings());
    if (node_of_item.entries.size() != 1) {
      section.fail("transform_pipeline", "must hold items of the form 'Name: {arguments}'");
    }
    for (const auto& transform : known) item.any(transform.first);
    item.finish();
    const std::string name = node_of_item.entries[0].key;
    if (!training && is_random(name)) item.fail(name, "is random, evaluation is not");
    auto transform = read_transform(item, name, known.at(name));
    if (name != "ToCHWImage") pipeline.push_back(std::move(transform));
  }
  return pipeline;
}

}  // namespace

std::vector<TransformConfig> read_small_image_pipeline(Section& section, bool training) {
  return read_pipeline(section, training, small_image_transforms());
}

std::vector<TransformConfig> read_picture_pipeline(Section& section, bool training) {
  return read_pipeline(section, training, picture_transforms());
}

}  // namespace lockstep
