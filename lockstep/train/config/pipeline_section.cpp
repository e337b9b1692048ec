// transform_pipeline of text: each item of the list, typed.

#include <fmt/format.h>

#include <array>
#include <map>

#include "lockstep/train/config/sections.h"

namespace lockstep {
namespace {

using ocr::Transform;

/// A list of N numbers, each in [lo, hi]; `fallback` when absent.
template <typename T, size_t N>
std::array<T, N> read_array(Section& args, const std::string& key, std::array<T, N> fallback,
                            double lo, double hi) {
  const auto numbers = args.number_or_list(key);
  if (numbers.empty() && !args.has(key)) return fallback;
  bool right = numbers.size() == N;
  for (size_t i = 0; right && i < N; ++i) {
    right = numbers[i] >= lo && numbers[i] <= hi &&
            (std::is_floating_point_v<T> ||
             numbers[i] == static_cast<double>(static_cast<T>(numbers[i])));
    fallback[i] = right ? static_cast<T>(numbers[i]) : T();
  }
  if (!right) {
    args.fail(key, fmt::format("must be a list of {} {}numbers from {} to {}", N,
                               std::is_floating_point_v<T> ? "" : "whole ", lo, hi));
  }
  return fallback;
}

/// The same, the smaller first.
std::array<double, 2> read_range(Section& args, const std::string& key,
                                 std::array<double, 2> fallback, double lo, double hi) {
  auto range = read_array(args, key, fallback, lo, hi);
  if (range[0] > range[1]) std::swap(range[0], range[1]);
  return range;
}

double read_p(Section& args, double fallback) {
  return args.number("p", fallback, 0, 1);
}

/// OpenCV's number or name.
ocr::Interpolation read_interpolation(Section& args) {
  using ocr::Interpolation;
  const auto text = args.choice("interpolation", "1", {"0", "1", "2", "3"});
  constexpr std::array kByNumber = {Interpolation::kNearest, Interpolation::kLinear,
                                    Interpolation::kCubic, Interpolation::kArea};
  return kByNumber.at(static_cast<size_t>(text[0] - '0'));
}

Transform read_decode(Section& args) {
  ocr::DecodeImage item;
  const auto mode = args.choice("img_mode", "BGR", {"BGR", "RGB"});
  item.img_mode = mode == "RGB" ? ocr::ImageMode::kRgb : ocr::ImageMode::kBgr;
  args.only("channel_first", {"False", ""}, "the transforms that follow want rows first");
  item.to_float32 = args.flag("to_float32", false);
  item.ignore_orientation = args.flag("ignore_orientation", false);
  item.keep_ori = args.flag("keep_ori", false);
  return item;
}

/// Of "mean" or "std": three numbers, or "imagenet".
std::array<double, 3> read_moments(Section& args, const std::string& key,
                                   std::array<double, 3> imagenet) {
  const Node* node = args.any(key);
  if (!args.has(key)) return imagenet;
  if (node->kind == Node::Kind::kScalar && node->text == "imagenet") return imagenet;
  return read_array(args, key, imagenet, -1e6, 1e6);
}

Transform read_normalize(Section& args) {
  ocr::NormalizeImage item;
  item.mean = read_moments(args, "mean", ocr::kImageNetMean);
  item.std = read_moments(args, "std", ocr::kImageNetStd);
  for (const double value : item.std) {
    if (value <= 0) args.fail("std", "must be above 0");
  }
  args.only("is_hwc", {"True", ""}, "the channels come last until ToCHWImage");
  const bool reversed = args.flag("bgr_to_rgb", false);
  item.swap_channels = args.flag("rgb_to_bgr", false) || reversed;
  return item;
}

Transform read_to_chw(Section&) {
  return ocr::ToCHWImage();
}

Transform read_random_scale(Section& args) {
  ocr::RandomScale item;
  if (!args.has("scale_range")) args.missing("scale_range", "is missing: [smallest, largest]");
  item.scale_range = read_range(args, "scale_range", item.scale_range, 1e-3, 1e3);
  if (args.has("size_limits")) {
    item.size_limits = read_range(args, "size_limits", {}, 1, kMaxSide);
  }
  args.any("size_limits");
  item.p = read_p(args, 0.5);
  return item;
}

/// MindSpore: a single x stands for [max(0, 1 - x), 1 + x].
void read_factor(Section& args, const std::string& key, std::array<double, 2>& factor) {
  const auto numbers = args.number_or_list(key);
  if (numbers.size() == 1 && numbers[0] >= 0 && numbers[0] <= 1e3) {
    factor = {std::max(0.0, 1 - numbers[0]), 1 + numbers[0]};
  } else {
    factor = read_range(args, key, factor, 0, 1e3);
  }
}

Transform read_color_adjust(Section& args) {
  ocr::RandomColorAdjust item;
  read_factor(args, "brightness", item.brightness);
  read_factor(args, "saturation", item.saturation);
  read_factor(args, "contrast", item.contrast);
  const auto hue = args.number_or_list("hue");
  item.hue = hue.size() == 1 && hue[0] >= 0 && hue[0] <= 0.5
                 ? std::array{-hue[0], hue[0]}
                 : read_range(args, "hue", item.hue, -0.5, 0.5);
  return item;
}

Transform read_rotate(Section& args) {
  ocr::RandomRotate item;
  item.degrees = read_array(args, "degrees", item.degrees, -360, 360);
  if (item.degrees[0] >= item.degrees[1])
    args.fail("degrees", "must be [lowest, above the highest]");
  item.expand_canvas = args.flag("expand_canvas", true);
  item.p = read_p(args, 1);
  return item;
}

Transform read_flip(Section& args) {
  return ocr::RandomHorizontalFlip{read_p(args, 0.5)};
}

Transform read_det_label(Section&) {
  return ocr::DetLabelEncode();
}

Transform read_crop(Section& args) {
  ocr::RandomCropWithBBox item;
  item.max_tries = static_cast<int>(args.whole("max_tries", 10, 0, 1 << 20));
  item.min_crop_ratio = args.number("min_crop_ratio", 0.1, 0, 1);
  item.crop_size = read_array(args, "crop_size", item.crop_size, 1, kMaxSide);
  item.p = read_p(args, 0.5);
  return item;
}

Transform read_validate(Section& args) {
  ocr::ValidatePolygons item;
  item.min_area = args.number("min_area", 1, 0, 1e12);
  item.clip_to_visible_area = args.flag("clip_to_visible_area", false);
  item.min_vertices = static_cast<int>(args.whole("min_vertices", 4, 3, 1 << 20));
  return item;
}

Transform read_shrink(Section& args) {
  ocr::ShrinkBinaryMap item;
  item.min_text_size = args.number("min_text_size", 8, 0, kMaxSide);
  item.shrink_ratio = args.number("shrink_ratio", 0.4, 0, 1);
  return item;
}

Transform read_border(Section& args) {
  ocr::BorderMap item;
  item.shrink_ratio = args.number("shrink_ratio", 0.4, 0, 1);
  item.thresh_min = args.number("thresh_min", 0.3, 0, 1);
  item.thresh_max = args.number("thresh_max", 0.7, 0, 1);
  ignore(args, "fast");
  return item;
}

Transform read_det_resize(Section& args) {
  using Limit = ocr::DetResize::Limit;
  ocr::DetResize item;
  // MindOCR 0.2 wrote Python's None where it means none.
  const auto limit = args.choice("limit_type", "min", {"min", "max", "none", "None"});
  item.limit_type = limit == "min" ? Limit::kMin : limit == "max" ? Limit::kMax : Limit::kNone;
  if (args.has("target_size")) {
    item.target_size = read_array(args, "target_size", std::array<int, 2>{}, 1, kMaxSide);
    item.limit_type = Limit::kNone;
  }
  args.any("target_size");
  item.keep_ratio = args.flag("keep_ratio", true);
  item.padding = args.flag("padding", false);
  item.limit_side_len = static_cast<int>(args.whole("limit_side_len", 736, 1, kMaxSide));
  item.force_divisable = args.flag("force_divisable", true);
  item.divisor = static_cast<int>(args.whole("divisor", 32, 1, kMaxSide));
  item.interpolation = read_interpolation(args);
  if (item.padding && item.limit_type == Limit::kNone && !item.target_size) {
    args.fail("padding", "needs a target_size");
  }
  return item;
}

/// Of MindOCR 0.1: DetResize with nothing but the division.
Transform read_grid_resize(Section& args) {
  ocr::DetResize item;
  item.limit_type = ocr::DetResize::Limit::kNone;
  item.divisor = static_cast<int>(args.whole("factor", 32, 1, kMaxSide));
  return item;
}

/// Of MindOCR 0.1: as large as fits the target, to the pixel, and black below and beside it.
Transform read_scale_pad(Section& args) {
  ocr::DetResize item;
  if (!args.has("target_size")) args.missing("target_size", "is missing: [height, width]");
  item.target_size = read_array(args, "target_size", std::array<int, 2>{}, 1, kMaxSide);
  item.limit_type = ocr::DetResize::Limit::kNone;
  item.padding = true;
  item.force_divisable = false;
  item.exact = true;
  return item;
}

Transform read_ctc_label(Section& args) {
  ocr::RecCTCLabelEncode item;
  item.max_text_len = static_cast<int>(args.whole("max_text_len", 23, 1, 1 << 20));
  item.characters = read_characters(args);
  return item;
}

Transform read_rec_resize(Section& args) {
  ocr::RecResizeImg item;
  if (!args.has("image_shape")) args.missing("image_shape", "is missing: [height, width]");
  item.image_shape = read_array(args, "image_shape", item.image_shape, 1, kMaxSide);
  item.padding = args.flag("padding", true);
  const bool infer = args.flag("infer_mode", false);
  if (infer && args.has("character_dict_path")) {
    args.fail("infer_mode",
              "cannot be True with a dictionary, which makes images of any width: use "
              "RecResizeNormForInfer");
  }
  ignore(args, "character_dict_path");
  return item;
}

Transform read_rec_infer(Section& args) {
  ocr::RecResizeNormForInfer item;
  item.target_height = static_cast<int>(args.whole("target_height", 32, 1, kMaxSide));
  item.target_width = static_cast<int>(args.whole("target_width", 320, 1, kMaxSide));
  item.keep_ratio = args.flag("keep_ratio", true);
  item.padding = args.flag("padding", false);
  item.interpolation = read_interpolation(args);
  item.norm_before_pad = args.flag("norm_before_pad", false);
  item.mean = read_array(args, "mean", item.mean, -1e6, 1e6);
  item.std = read_array(args, "std", item.std, 1e-9, 1e6);
  if (args.has("divisor")) item.divisor = args.number("divisor", 1, 1e-9, 1e9);
  args.any("divisor");
  return item;
}

Transform read_rotate_vertical(Section& args) {
  ocr::Rotate90IfVertical item;
  item.threshold = args.number("threshold", 1.5, 0, 1e6);
  item.counterclockwise = args.choice("direction", "counterclockwise",
                                      {"counterclockwise", "clockwise"}) != "clockwise";
  return item;
}

constexpr auto kImgaug = "IaaAugment";

using Reader = Transform (*)(Section&);

const std::map<std::string, Reader> kReaders = {
    {"DecodeImage", read_decode},
    {"NormalizeImage", read_normalize},
    {"ToCHWImage", read_to_chw},
    {"RandomScale", read_random_scale},
    {"RandomColorAdjust", read_color_adjust},
    {"RandomRotate", read_rotate},
    {"RandomHorizontalFlip", read_flip},
    {"DetLabelEncode", read_det_label},
    {"RandomCropWithBBox", read_crop},
    {"ValidatePolygons", read_validate},
    {"ShrinkBinaryMap", read_shrink},
    {"BorderMap", read_border},
    {"DetResize", read_det_resize},
    {"GridResize", read_grid_resize},
    {"ScalePadImage", read_scale_pad},
    {"RecCTCLabelEncode", read_ctc_label},
    {"RecResizeImg", read_rec_resize},
    {"RecResizeNormForInfer", read_rec_infer},
    {"Rotate90IfVertical", read_rotate_vertical},
};

/// Of MindOCR 0.1, by imgaug's names: a turn that keeps the picture's size, and a flip.
std::vector<Transform> read_iaa_augment(Section& args) {
  std::vector<Transform> items;
  if (args.has("Affine")) {
    Section affine = args.section("Affine");
    ocr::RandomRotate turn;
    turn.degrees = read_array(affine, "rotate", turn.degrees, -360, 360);
    if (turn.degrees[0] >= turn.degrees[1]) {
      affine.fail("rotate", "must be [lowest, above the highest]");
    }
    turn.expand_canvas = false;
    affine.finish();
    items.push_back(turn);
  }
  if (args.has("Fliplr")) {
    Section flip = args.section("Fliplr");
    items.push_back(ocr::RandomHorizontalFlip{read_p(flip, 1)});
    flip.finish();
  }
  args.any("Affine");
  args.any("Fliplr");
  return items;
}

std::vector<Transform> read_item(Section item, const std::string& name, DataUse use) {
  for (const auto& [known, reader] : kReaders) item.any(known);
  item.any(kImgaug);
  item.finish();
  if (use != DataUse::kTrain && (name.starts_with("Random") || name == kImgaug)) {
    item.fail(name, "is random, and this pipeline may not be");
  }
  Section args = item.section(name);
  auto items =
      name == kImgaug ? read_iaa_augment(args) : std::vector<Transform>{kReaders.at(name)(args)};
  args.finish();
  return items;
}

}  // namespace

std::vector<Transform> read_text_pipeline(Section& section, DataUse use) {
  const std::string key = "transform_pipeline";
  Node* node = section.any(key);
  if (!section.has(key)) section.missing(key, "is missing: a list of transforms");
  if (node->kind != Node::Kind::kList) section.fail(key, "must be a list");
  std::vector<Transform> pipeline;
  for (Node& node_of_item : node->items) {
    Section item(node_of_item, section.name_of(key));
    if (node_of_item.entries.size() != 1) {
      section.fail(key, "must hold items of the form 'Name: {arguments}'");
    }
    for (auto& one : read_item(item, node_of_item.entries[0].key, use)) {
      pipeline.push_back(std::move(one));
    }
  }
  if (pipeline.empty() || !std::holds_alternative<ocr::DecodeImage>(pipeline[0])) {
    section.fail(key, "must begin with DecodeImage");
  }
  return pipeline;
}

}  // namespace lockstep
