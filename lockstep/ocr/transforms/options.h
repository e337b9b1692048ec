#pragma once
// The items of a text pipeline (MindOCR's `transform_pipeline`), typed. Names, arguments and
// defaults are MindOCR's; the function that carries out an item documents it. The reader of
// external values checks them.

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "lockstep/base/philox.h"
#include "lockstep/ocr/options.h"

namespace lockstep::ocr {

/// Means and standard deviations of ImageNet's pixels, RGB, 0 .. 255.
inline constexpr std::array<double, 3> kImageNetMean = {123.675, 116.28, 103.53};
inline constexpr std::array<double, 3> kImageNetStd = {58.395, 57.12, 57.375};

enum class ImageMode : uint8_t { kBgr, kRgb, kGray };
enum class Interpolation : uint8_t { kNearest, kLinear, kArea, kCubic };

struct DecodeImage {
  ImageMode img_mode = ImageMode::kBgr;
  bool to_float32 = false;
  bool ignore_orientation = false;
  bool keep_ori = false;  ///< Keeps the decoded image beside the transformed one.
};

struct NormalizeImage {
  std::array<double, 3> mean = kImageNetMean;
  std::array<double, 3> std = kImageNetStd;
  bool swap_channels = false;  ///< bgr_to_rgb or rgb_to_bgr: reverses the channels first.
  bool left_out = false;       ///< Of as_bytes(): the channels alone, without the arithmetic.
};

struct ToCHWImage {};

struct RandomScale {
  std::array<double, 2> scale_range = {1, 1};
  std::optional<std::array<double, 2>> size_limits{};  ///< Pixels: of the shorter, the longer side.
  double p = 0.5;
};

/// Factors from [max(0, 1 - x), 1 + x] for a single x, or from the given range.
struct RandomColorAdjust {
  std::array<double, 2> brightness = {1 - 32.0 / 255, 1 + 32.0 / 255};
  std::array<double, 2> saturation = {0.5, 1.5};
  std::array<double, 2> contrast = {1, 1};
  std::array<double, 2> hue = {0, 0};
};

struct RandomRotate {
  std::array<int, 2> degrees = {-10, 10};  ///< Whole degrees, the upper one excluded.
  bool expand_canvas = true;
  double p = 1.0;
  std::string_view name = "RandomRotate";  ///< As the configuration has it, for errors.
};

struct RandomHorizontalFlip {
  double p = 0.5;
  std::string_view name = "RandomHorizontalFlip";  ///< The same.
};

struct DetLabelEncode {};

struct RandomCropWithBBox {
  int max_tries = 10;
  double min_crop_ratio = 0.1;
  std::array<int, 2> crop_size = {640, 640};  ///< Rows, columns.
  double p = 0.5;
};

struct ValidatePolygons {
  double min_area = 1.0;
  bool clip_to_visible_area = false;
  int min_vertices = 4;
};

struct ShrinkBinaryMap {
  double min_text_size = 8;
  double shrink_ratio = 0.4;
};

struct BorderMap {
  double shrink_ratio = 0.4;
  double thresh_min = 0.3;
  double thresh_max = 0.7;
};

struct DetResize {
  enum class Limit : uint8_t { kNone, kMin, kMax };
  std::optional<std::array<int, 2>> target_size{};  ///< Rows, columns; makes the limit kNone.
  bool keep_ratio = true;
  bool padding = false;
  bool exact = false;  ///< Rounds sides that keep the ratio to whole pixels, not to 32.
  Limit limit_type = Limit::kMin;
  int limit_side_len = 736;
  bool force_divisable = true;
  int divisor = 32;
  Interpolation interpolation = Interpolation::kLinear;
  std::string_view name = "DetResize";  ///< As the configuration has it, for errors.
};

struct RecCTCLabelEncode {
  int max_text_len = 23;
  CharacterOptions characters;
};

struct RecResizeImg {
  std::array<int, 2> image_shape = {32, 100};  ///< Rows, columns.
  bool padding = true;
};

struct RecResizeNormForInfer {
  int target_height = 32;
  int target_width = 320;
  bool keep_ratio = true;
  bool padding = false;
  Interpolation interpolation = Interpolation::kLinear;
  bool norm_before_pad = false;
  bool left_out = false;  ///< Of as_bytes(): no arithmetic, so pixels remain bytes.
  std::array<double, 3> mean = {127, 127, 127};
  std::array<double, 3> std = {127, 127, 127};
  double divisor = 1;  ///< Pixels are divided by it first.
};

struct Rotate90IfVertical {
  double threshold = 1.5;  ///< Of height over width.
  bool counterclockwise = true;
};

/// A transform of a program's own. It keeps the picture's size, so that regions stay where they
/// are.
struct OwnPixels {
  std::string name;
  bool bgr = true;  ///< The order of the picture's channels.
  /// Changes 8-bit RGB pixels, row by row from the top: 3 * width * height bytes.
  std::function<void(std::span<uint8_t> pixels, int width, int height, Philox& draws)> change;
};

using Transform =
    std::variant<DecodeImage, NormalizeImage, ToCHWImage, RandomScale, RandomColorAdjust,
                 RandomRotate, RandomHorizontalFlip, DetLabelEncode, RandomCropWithBBox,
                 ValidatePolygons, ShrinkBinaryMap, BorderMap, DetResize, RecCTCLabelEncode,
                 RecResizeImg, RecResizeNormForInfer, Rotate90IfVertical, OwnPixels>;

}  // namespace lockstep::ocr
