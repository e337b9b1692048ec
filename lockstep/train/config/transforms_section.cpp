// The transform_pipeline of a classifier's data set.

#include <algorithm>
#include <array>
#include <map>
#include <utility>
#include <variant>

#include "lockstep/data/mixing.h"
#include "lockstep/data/pictures/steps.h"
#include "lockstep/data/transforms.h"
#include "lockstep/train/config/node.h"
#include "lockstep/train/config/own_parts.h"
#include "lockstep/train/config/sections.h"

namespace lockstep::inline internal {
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

std::vector<std::string> names_in(const KnownTransforms& known) {
  std::vector<std::string> names;
  for (const auto& transform : known) names.push_back(transform.first);
  return names;
}

bool is_random(const TransformConfig& transform) {
  if (transform.own) return std::holds_alternative<RandomTransform>(transform.own->make);
  constexpr std::array kOthers = {"ColorJitter", "RandAugment", "TrivialAugmentWide"};
  const std::string& name = transform.name;
  return name.starts_with("Random") || is_mixing(name) ||
         std::find(kOthers.begin(), kOthers.end(), name) != kOthers.end();
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
    const std::string name = node_of_item.entries[0].key;
    const std::string where = item.where(name);
    auto own = read_own_transform(item, name, names_in(known));
    auto transform = own ? TransformConfig{name, {}, where, std::move(own)}
                         : read_transform(item, name, known.at(name));
    if (!training && is_random(transform)) item.fail(name, "is random, evaluation is not");
    if (name != "ToCHWImage") pipeline.push_back(std::move(transform));
  }
  return pipeline;
}

ListedPart listed_transform(const std::string& name, const std::string& about,
                            const std::vector<TransformArgument>& arguments) {
  ListedPart part{name, about, {}};
  for (const auto& [key, kind, fallback, line] : arguments) {
    if (!line.empty()) part.settings.push_back({"", key, kind, fallback, line});
  }
  return part;
}

/// `names`, and the transforms of all pictures.
std::vector<ListedPart> listed_transforms(const std::vector<std::string>& names,
                                          const TransformArguments& arguments,
                                          std::string (*about)(const std::string& name)) {
  std::vector<ListedPart> parts;
  for (const auto& name : names) {
    parts.push_back(listed_transform(name, about(name), arguments.at(name)));
  }
  for (const auto& [name, of_it] : mixing_arguments()) {
    parts.push_back(listed_transform(name, mixing_about(name), of_it));
  }
  parts.push_back({"ToCHWImage", "nothing: images have this order anyway", {}});
  return parts;
}

}  // namespace

template <>
std::vector<std::string> built_in_names<PictureTransform>() {
  auto names = text_transform_names();
  for (const auto* known : {&small_image_transforms(), &picture_transforms()}) {
    for (const auto& name : names_in(*known)) names.push_back(name);
  }
  return names;
}

std::optional<OwnPart<PictureTransform>> read_own_transform(
    Section& item, const std::string& name, const std::vector<std::string>& built_in) {
  item.expect(joined_names(built_in, transforms()));
  const auto* part = find_named(transforms().parts(), name);
  if (part == nullptr) return std::nullopt;
  refuse_taken(item, name, name, transforms());
  Section args = item.section(name);
  OwnPart<PictureTransform> own{name, part->read(args)};
  args.finish();
  const auto is_empty = [](const auto& function) { return function == nullptr; };
  if (std::visit(is_empty, own.make)) item.fail(name, "made no function");
  return own;
}

std::vector<TransformConfig> read_small_image_pipeline(Section& section, bool training) {
  return read_pipeline(section, training, small_image_transforms());
}

std::vector<TransformConfig> read_picture_pipeline(Section& section, bool training) {
  return read_pipeline(section, training, picture_transforms());
}

std::vector<ListedPart> built_in_picture_transforms() {
  return listed_transforms(picture_step_names(), picture_step_arguments(), picture_step_about);
}

std::vector<ListedPart> built_in_small_image_transforms() {
  return listed_transforms(transform_names(), transform_arguments(), transform_about);
}

}  // namespace lockstep::inline internal
