// The transform_pipeline of text: each item of the list, typed.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <variant>

#include "lockstep/data/own_transform.h"
#include "lockstep/train/config/sections.h"

namespace lockstep::inline internal {
namespace {

/// Reads two numbers; sorts them.
void read_range(ConfigSection& args, const std::string& key, std::array<double, 2>& value,
                Range<double> range, const std::string& about) {
  args.read(key, value, range, about);
  if (value[0] > value[1]) std::swap(value[0], value[1]);
}

void read_p(ConfigSection& args, double& p) {
  args.read("p", p, {0, 1}, "probability");
}

/// Reads OpenCV's number.
void read_interpolation(ConfigSection& args, ocr::Interpolation& value) {
  using ocr::Interpolation;
  args.choose("interpolation", value,
              {{"0", Interpolation::kNearest},
               {"1", Interpolation::kLinear},
               {"2", Interpolation::kCubic},
               {"3", Interpolation::kArea}},
              "OpenCV's number: nearest, linear, cubic, area");
}

ocr::Transform read_decode(ConfigSection& args) {
  ocr::DecodeImage item;
  args.choose("img_mode", item.img_mode,
              {{"BGR", ocr::ImageMode::kBgr}, {"RGB", ocr::ImageMode::kRgb}}, "order of channels");
  args.only("channel_first", {"False", ""}, "the following transforms need rows first");
  args.read("to_float32", item.to_float32, "pixels as float32");
  args.read("ignore_orientation", item.ignore_orientation, "EXIF's orientation is ignored");
  args.read("keep_ori", item.keep_ori, "keeps the image as decoded, too");
  return item;
}

/// Reads "mean" or "std": three numbers, or "imagenet", the initial `value`.
void read_moments(ConfigSection& args, const std::string& key, std::array<double, 3>& value,
                  const std::string& about) {
  args.record(key, "imagenet, or a list of 3 numbers", "imagenet", about);
  const Node* node = args.any(key);
  const bool named = args.has(key) && node->kind == Node::Kind::kScalar && node->text == "imagenet";
  if (!named) args.read(key, value, {-1e6, 1e6}, "");
}

ocr::Transform read_normalize(ConfigSection& args) {
  ocr::NormalizeImage item;
  read_moments(args, "mean", item.mean, "of each channel");
  read_moments(args, "std", item.std, "of each channel, above 0");
  for (const double value : item.std) {
    if (value <= 0) args.fail("std", "must be above 0");
  }
  args.only("is_hwc", {"True", ""}, "the channels come last until ToCHWImage");
  bool reversed = false;
  args.read("bgr_to_rgb", item.swap_channels, "reverses the channels first");
  args.read("rgb_to_bgr", reversed, "the same");
  item.swap_channels |= reversed;
  return item;
}

ocr::Transform read_to_chw(ConfigSection&) {
  return ocr::ToCHWImage();
}

ocr::Transform read_random_scale(ConfigSection& args) {
  ocr::RandomScale item;
  args.require("scale_range", "is missing: [smallest, largest]");
  read_range(args, "scale_range", item.scale_range, {1e-3, 1e3}, "[smallest, largest]");
  args.read("size_limits", item.size_limits, {1, kMaxSide},
            "pixels: of the shorter, the longer side");
  if (item.size_limits) std::sort(item.size_limits->begin(), item.size_limits->end());
  read_p(args, item.p);
  return item;
}

/// As in MindSpore a single x stands for [max(0, 1 - x), 1 + x].
void read_factor(ConfigSection& args, const std::string& key, std::array<double, 2>& factor) {
  const std::string about = "a range; a single x stands for [max(0, 1 - x), 1 + x]";
  const auto numbers = args.number_or_list(key);
  if (numbers.size() == 1 && numbers[0] >= 0 && numbers[0] <= 1e3) {
    factor = {std::max(0.0, 1 - numbers[0]), 1 + numbers[0]};
  } else {
    read_range(args, key, factor, {0, 1e3}, about);
  }
}

ocr::Transform read_color_adjust(ConfigSection& args) {
  ocr::RandomColorAdjust item;
  read_factor(args, "brightness", item.brightness);
  read_factor(args, "saturation", item.saturation);
  read_factor(args, "contrast", item.contrast);
  const auto hue = args.number_or_list("hue");
  if (hue.size() == 1 && hue[0] >= 0 && hue[0] <= 0.5) {
    item.hue = {-hue[0], hue[0]};
  } else {
    read_range(args, "hue", item.hue, {-0.5, 0.5}, "a range; a single x stands for [-x, x]");
  }
  return item;
}

ocr::Transform read_rotate(ConfigSection& args) {
  ocr::RandomRotate item;
  args.read("degrees", item.degrees, {-360, 360}, "lowest, and above the highest");
  if (item.degrees[0] >= item.degrees[1])
    args.fail("degrees", "must be [lowest, above the highest]");
  args.read("expand_canvas", item.expand_canvas, "the image grows, so that nothing is cut off");
  read_p(args, item.p);
  return item;
}

ocr::Transform read_flip(ConfigSection& args) {
  ocr::RandomHorizontalFlip item;
  read_p(args, item.p);
  return item;
}

ocr::Transform read_det_label(ConfigSection&) {
  return ocr::DetLabelEncode();
}

ocr::Transform read_crop(ConfigSection& args) {
  ocr::RandomCropWithBBox item;
  args.read("max_tries", item.max_tries, {0, 1 << 20}, "then the image stays whole");
  args.read("min_crop_ratio", item.min_crop_ratio, {0, 1}, "of a side");
  args.read("crop_size", item.crop_size, {1, kMaxSide}, "rows, columns");
  read_p(args, item.p);
  return item;
}

ocr::Transform read_validate(ConfigSection& args) {
  ocr::ValidatePolygons item;
  args.read("min_area", item.min_area, {0, 1e12}, "smaller ones do not count");
  args.read("clip_to_visible_area", item.clip_to_visible_area, "cuts off the parts outside");
  args.read("min_vertices", item.min_vertices, {3, 1 << 20}, "polygons with fewer do not count");
  return item;
}

ocr::Transform read_shrink(ConfigSection& args) {
  ocr::ShrinkBinaryMap item;
  args.read("min_text_size", item.min_text_size, {0, kMaxSide}, "smaller texts do not count");
  args.read("shrink_ratio", item.shrink_ratio, {0, 1}, "of the polygons of texts");
  return item;
}

ocr::Transform read_border(ConfigSection& args) {
  ocr::BorderMap item;
  args.read("shrink_ratio", item.shrink_ratio, {0, 1}, "of the polygons of texts");
  args.read("thresh_min", item.thresh_min, {0, 1}, "threshold far from a border");
  args.read("thresh_max", item.thresh_max, {0, 1}, "threshold on a border");
  ignore(args, "fast");
  return item;
}

ocr::Transform read_det_resize(ConfigSection& args) {
  using Limit = ocr::DetResize::Limit;
  ocr::DetResize item;
  // MindOCR 0.2 wrote Python's None for none.
  args.choose(
      "limit_type", item.limit_type,
      {{"min", Limit::kMin}, {"max", Limit::kMax}, {"none", Limit::kNone}, {"None", Limit::kNone}},
      "which side `limit_side_len` bounds");
  args.read("target_size", item.target_size, {1, kMaxSide}, "rows, columns; instead of a limit");
  if (item.target_size) item.limit_type = Limit::kNone;
  args.read("keep_ratio", item.keep_ratio, "of the sides");
  args.read("padding", item.padding, "black below and beside, up to `target_size`");
  args.read("limit_side_len", item.limit_side_len, {1, kMaxSide}, "pixels");
  args.read("force_divisable", item.force_divisable, "sides are multiples of `divisor`");
  args.read("divisor", item.divisor, {1, kMaxSide}, "pixels");
  read_interpolation(args, item.interpolation);
  if (item.padding && item.limit_type == Limit::kNone && !item.target_size) {
    args.fail("padding", "needs a target_size");
  }
  return item;
}

/// MindOCR 0.1: DetResize with the division alone.
ocr::Transform read_grid_resize(ConfigSection& args) {
  ocr::DetResize item;
  item.name = "GridResize";
  item.limit_type = ocr::DetResize::Limit::kNone;
  args.read("factor", item.divisor, {1, kMaxSide}, "sides are multiples of it");
  return item;
}

/// MindOCR 0.1: the largest size within the target, exact to the pixel; black below and beside it.
ocr::Transform read_scale_pad(ConfigSection& args) {
  ocr::DetResize item;
  item.name = "ScalePadImage";
  args.require("target_size", "is missing: [height, width]");
  args.read("target_size", item.target_size, {1, kMaxSide}, "rows, columns");
  item.limit_type = ocr::DetResize::Limit::kNone;
  item.padding = true;
  item.force_divisable = false;
  item.exact = true;
  return item;
}

ocr::Transform read_ctc_label(ConfigSection& args) {
  ocr::RecCTCLabelEncode item;
  args.read("max_text_len", item.max_text_len, {1, 1 << 20}, "longer texts are left out");
  item.characters = read_characters(args);
  return item;
}

ocr::Transform read_rec_resize(ConfigSection& args) {
  ocr::RecResizeImg item;
  args.require("image_shape", "is missing: [height, width]");
  args.read("image_shape", item.image_shape, {1, kMaxSide}, "rows, columns");
  args.read("padding", item.padding, "keeps the ratio of the sides, black beside");
  bool infer = false;
  args.read("infer_mode", infer, "with a dictionary: False only");
  if (infer && args.has("character_dict_path")) {
    args.fail("infer_mode",
              "cannot be True with a dictionary, which makes images of any width: use "
              "RecResizeNormForInfer");
  }
  ignore(args, "character_dict_path");
  return item;
}

ocr::Transform read_rec_infer(ConfigSection& args) {
  ocr::RecResizeNormForInfer item;
  args.read("target_height", item.target_height, {1, kMaxSide}, "pixels");
  args.read("target_width", item.target_width, {1, kMaxSide}, "pixels");
  args.read("keep_ratio", item.keep_ratio, "of the sides");
  args.read("padding", item.padding, "up to `target_width`");
  read_interpolation(args, item.interpolation);
  args.read("norm_before_pad", item.norm_before_pad, "padding is then 0");
  args.read("mean", item.mean, {-1e6, 1e6}, "of each channel");
  args.read("std", item.std, {1e-9, 1e6}, "of each channel");
  std::optional<double> divisor;
  args.read("divisor", divisor, {1e-9, 1e9}, "pixels are divided by it first");
  item.divisor = divisor.value_or(item.divisor);
  return item;
}

ocr::Transform read_rotate_vertical(ConfigSection& args) {
  ocr::Rotate90IfVertical item;
  args.read("threshold", item.threshold, {0, 1e6}, "of height over width");
  args.choose("direction", item.counterclockwise,
              {{"counterclockwise", true}, {"clockwise", false}}, "of the turn");
  return item;
}

constexpr auto kImgaug = "IaaAugment";

struct TextReader {
  const char* name;
  ocr::Transform (*read)(ConfigSection& args);
};

/// Constant: a program's parts ask for the names before main().
constexpr auto kTextReaders = std::to_array<TextReader>({
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
});

/// MindOCR 0.1, by imgaug's names: a turn that keeps the picture's size, and a flip.
std::vector<ocr::Transform> read_iaa_augment(ConfigSection& args) {
  std::vector<ocr::Transform> items;
  if (args.has("Affine")) {
    ConfigSection affine = args.section("Affine");
    ocr::RandomRotate turn;
    affine.read("rotate", turn.degrees, {-360, 360}, "as `degrees` of RandomRotate");
    if (turn.degrees[0] >= turn.degrees[1]) {
      affine.fail("rotate", "must be [lowest, above the highest]");
    }
    turn.expand_canvas = false;
    turn.name = "IaaAugment.Affine";
    affine.finish();
    items.push_back(turn);
  }
  if (args.has("Fliplr")) {
    ConfigSection flip = args.section("Fliplr");
    ocr::RandomHorizontalFlip item{1, "IaaAugment.Fliplr"};
    read_p(flip, item.p);
    items.push_back(item);
    flip.finish();
  }
  args.any("Affine");
  args.any("Fliplr");
  return items;
}

[[noreturn]] void refuse_random(const ConfigSection& item, const std::string& name) {
  item.fail(name, "is random, and this pipeline may not be");
}

/// A built-in transform.
std::vector<ocr::Transform> read_item(ConfigSection item, const std::string& name, DataUse use) {
  if (use != DataUse::kTrain && (name.starts_with("Random") || name == kImgaug)) {
    refuse_random(item, name);
  }
  ConfigSection args = item.section(name);
  auto items = name == kImgaug
                   ? read_iaa_augment(args)
                   : std::vector<ocr::Transform>{find_named(kTextReaders, name)->read(args)};
  args.finish();
  return items;
}

constexpr std::string_view kToFloat = "to_float32";

/// The picture after the items so far.
struct PictureSoFar {
  bool bgr = true;
  std::string floats_by{};  ///< The item that made other numbers than bytes of its pixels.

  void follow(const ocr::Transform& item, const std::string& name) {
    const auto* decode = std::get_if<ocr::DecodeImage>(&item);
    if (decode != nullptr) bgr = decode->img_mode == ocr::ImageMode::kBgr;
    if (decode != nullptr && decode->to_float32) floats_by = kToFloat;
    if (std::holds_alternative<ocr::NormalizeImage>(item) ||
        std::holds_alternative<ocr::RecResizeNormForInfer>(item) ||
        std::holds_alternative<ocr::ToCHWImage>(item)) {
      floats_by = name;
    }
  }
};

/// A registered transform for pictures of text.
ocr::OwnPixels own_pixels(const OwnTransform& own, bool bgr) {
  // A copy of the variant itself is uninitialised in the eyes of g++ 12.
  const auto with_name = [&](const auto& function) { return OwnTransform{own.name, function}; };
  return {own.name, bgr,
          [copy = std::visit(with_name, own.transform)](std::span<uint8_t> pixels, int width,
                                                        int height, Philox& draws) {
            Picture picture(width, height);
            std::copy(pixels.begin(), pixels.end(), picture.bytes().begin());
            apply_in_size(copy, picture, draws);
            std::copy(picture.bytes().begin(), picture.bytes().end(), pixels.begin());
          }};
}

ocr::OwnPixels checked_own(const ConfigSection& item, const OwnTransform& own,
                           const PictureSoFar& picture, DataUse use) {
  if (use != DataUse::kTrain && std::holds_alternative<RandomTransform>(own.transform)) {
    refuse_random(item, own.name);
  }
  if (picture.floats_by == kToFloat) {
    item.fail(own.name, "changes pixels of 8 bits: it needs DecodeImage without to_float32");
  }
  if (!picture.floats_by.empty()) {
    item.fail(own.name,
              fmt::format("must stand before {}: it changes pixels of 8 bits", picture.floats_by));
  }
  return own_pixels(own, picture.bgr);
}

}  // namespace

const std::vector<std::string>& text_transform_names() {
  static const auto names = [] {
    auto all = names_of(kTextReaders);
    std::sort(all.begin(), all.end());
    all.insert(all.begin(), kImgaug);
    return all;
  }();
  return names;
}

std::vector<ocr::Transform> read_ocr_pipeline(ConfigSection& section, DataUse use) {
  const std::string key = "transform_pipeline";
  section.require(key, "is missing: a list of transforms");
  std::vector<ocr::Transform> pipeline;
  PictureSoFar picture;
  read_transforms(section, [&](ConfigSection& item, const std::string& name) {
    if (const auto own = read_own_transform(item, name, text_transform_names())) {
      pipeline.emplace_back(checked_own(item, *own, picture, use));
      return;
    }
    for (auto& one : read_item(item, name, use)) {
      picture.follow(one, name);
      pipeline.push_back(std::move(one));
    }
  });
  if (!section.has(key)) return {};  // keys are being listed
  if (pipeline.empty() || !std::holds_alternative<ocr::DecodeImage>(pipeline[0])) {
    section.fail(key, "must begin with DecodeImage");
  }
  return pipeline;
}

}  // namespace lockstep::inline internal
