#include "lockstep/data/pictures/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <opencv2/imgproc.hpp>
#include <utility>
#include <variant>

#include "lockstep/data/pictures/augment.h"
#include "lockstep/data/pictures/colour.h"
#include "lockstep/data/pictures/own_step.h"
#include "lockstep/data/pictures/resample.h"
#include "lockstep/error.h"
#include "lockstep/ocr/transforms/image_frame.h"

namespace lockstep::inline internal {
namespace {

constexpr int kTries = 10;

[[noreturn]] void refuse_steps(const std::string& what) {
  throw Error(ErrorCode::kInvalidArgument, what);
}

void check_steps(const std::vector<PictureStep>& steps) {
  const char* before = nullptr;
  for (const auto& step : steps) {
    const bool erases = std::holds_alternative<RandomErasing>(step);
    const bool follows = before == nullptr || (erases && before == std::string("Normalize"));
    if (!follows) {
      refuse_steps(fmt::format("transform_pipeline: behind {} {}", before,
                               before == std::string("Normalize") ? "only RandomErasing may follow"
                                                                  : "nothing may follow"));
    }
    if (std::holds_alternative<Normalize>(step)) before = "Normalize";
    if (erases) before = "RandomErasing";
  }
}

/// Only a registered step changes a size without a word to SizeAfter.
[[noreturn]] void refuse_size(const std::vector<PictureStep>& steps, cv::Size made,
                              cv::Size expected) {
  std::vector<std::string> own;
  for (const auto& step : steps) {
    if (const auto* found = std::get_if<OwnTransform>(&step)) own.push_back(found->name);
  }
  throw TransformFailed(fmt::format(
      "transform_pipeline: {} changed the size, so the result has {} x {} pixels, not {} x {}: "
      "behind it Resize [height, width] or CenterCrop is needed",
      fmt::join(own, " or "), made.width, made.height, expected.width, expected.height));
}

cv::Size cv_size(const PictureSize& size) {
  return {size.width, size.height};
}

PictureSize picture_size(cv::Size size) {
  return {size.width, size.height};
}

/// Errors: kInvalidArgument for more pixels than any picture may have.
cv::Size checked_size_after(const ResizePicture& resize, cv::Size from) {
  const cv::Size size = cv_size(size_after(resize, picture_size(from)));
  if (int64_t{size.width} * size.height <= ocr::kMaxImagePixels) return size;
  refuse_steps(fmt::format("Resize: a picture of {} x {} would have {} x {} pixels", from.width,
                           from.height, size.width, size.height));
}

/// Half of `number`, halves to the even number, as Python rounds.
int half(int number) {
  return static_cast<int>(std::nearbyint(number / 2.0));
}

cv::Mat padded(const cv::Mat& picture, int top, int bottom, int left, int right) {
  cv::Mat out;
  cv::copyMakeBorder(picture, out, top, bottom, left, right, cv::BORDER_CONSTANT,
                     cv::Scalar::all(0));
  return out;
}

struct PartRange {
  std::pair<double, double> scale;
  std::pair<double, double> ratio;  ///< Width over height.
  bool may_be_whole = true;         ///< A side may be as long as the picture's.
};

/// A rectangle of random area and aspect ratio within `size`; none if ten do not fit.
std::optional<cv::Rect> draw_part(const PartRange& range, cv::Size size, RandomNumbers& random) {
  const double area = static_cast<double>(size.width) * size.height;
  const double low = std::log(range.ratio.first), high = std::log(range.ratio.second);
  for (int i = 0; i < kTries; ++i) {
    const double part =
        area * (range.scale.first + (range.scale.second - range.scale.first) * random.uniform());
    const double ratio = std::exp(low + (high - low) * random.uniform());
    const auto width = static_cast<int>(std::nearbyint(std::sqrt(part * ratio)));
    const auto height = static_cast<int>(std::nearbyint(std::sqrt(part / ratio)));
    const int less = range.may_be_whole ? 0 : 1;
    const bool fits =
        width > 0 && height > 0 && width <= size.width - less && height <= size.height - less;
    if (!fits) continue;
    const auto row = random.below(static_cast<uint32_t>(size.height - height + 1));
    const auto column = random.below(static_cast<uint32_t>(size.width - width + 1));
    return cv::Rect(static_cast<int>(column), static_cast<int>(row), width, height);
  }
  return std::nullopt;
}

/// The largest part in the middle whose aspect ratio is allowed.
cv::Rect middle_part(const std::pair<double, double>& ratio, cv::Size size) {
  const double own = static_cast<double>(size.width) / size.height;
  cv::Size part = size;
  if (own < ratio.first) {
    part.height = std::max(1, static_cast<int>(std::nearbyint(size.width / ratio.first)));
  } else if (own > ratio.second) {
    part.width = std::max(1, static_cast<int>(std::nearbyint(size.height * ratio.second)));
  }
  return {cv::Point((size.width - part.width) / 2, (size.height - part.height) / 2), part};
}

/// The most that a part of a picture may be reduced so that it has at least `size`.
int denominator_for(cv::Size part, cv::Size size) {
  for (const int d : {8, 4, 2}) {
    if (part.width >= d * size.width && part.height >= d * size.height) return d;
  }
  return 1;
}

/// `decoded`, which shows `wanted`, as `size` pixels. A reduced picture begins and ends with whole
/// pixels of its own, and so shows a little more.
cv::Mat resample_part(const cv::Mat& decoded, const ocr::PicturePart& wanted, cv::Size size) {
  const cv::Rect& part = wanted.part;
  const double d = wanted.denominator;
  if (decoded.size() == part.size()) return resample(decoded, size);
  const auto within = [&](int first) { return first % wanted.denominator / d; };
  return resample(decoded, size, {within(part.x), within(part.y), part.width / d, part.height / d});
}

/// Applies steps to one picture in turn.
class Applied {
 public:
  Applied(const Undecoded& picture, bool reduced, RandomNumbers& random)
      : undecoded_(&picture), reduced_(reduced), random_(random) {}

  MadePicture take() {
    pixels();
    return std::move(made_);
  }

  void operator()(const ResizePicture& resize) {
    cv::Size size;
    ocr::PicturePart wanted;
    const cv::Mat whole = part_of([&](cv::Size from) {
      size = checked_size_after(resize, from);
      wanted = {{{0, 0}, from}, reduced_ ? denominator_for(from, size) : 1, !reduced_};
      return wanted;
    });
    made_.pixels = resample_part(whole, wanted, size);
  }

  void operator()(const CenterCrop& crop) {
    const int wide = std::max(0, crop.size.width - pixels().cols);
    const int high = std::max(0, crop.size.height - pixels().rows);
    if (wide > 0 || high > 0) {
      pixels() = padded(pixels(), high / 2, (high + 1) / 2, wide / 2, (wide + 1) / 2);
    }
    const cv::Point corner(half(pixels().cols - crop.size.width),
                           half(pixels().rows - crop.size.height));
    pixels() = pixels()(cv::Rect(corner, cv_size(crop.size)));
  }

  void operator()(const RandomCrop& crop) {
    const auto size = static_cast<int>(crop.size);
    const auto border = static_cast<int>(crop.padding);
    check_crop(crop, picture_size(pixels().size()));
    const auto place = [&](int extent) {
      return static_cast<int>(random_.below(static_cast<uint32_t>(extent + 2 * border - size + 1)));
    };
    const int row = place(pixels().rows);
    const int column = place(pixels().cols);
    if (border > 0) pixels() = padded(pixels(), border, border, border, border);
    pixels() = pixels()(cv::Rect(column, row, size, size));
  }

  void operator()(const RandomResizedCrop& crop) {
    const cv::Size result = cv_size(crop.size);
    ocr::PicturePart wanted;
    const cv::Mat part = part_of([&](cv::Size size) {
      const auto drawn = draw_part({crop.scale, crop.ratio}, size, random_);
      const cv::Rect chosen = drawn.value_or(middle_part(crop.ratio, size));
      wanted = {chosen, reduced_ ? denominator_for(chosen.size(), result) : 1, !reduced_};
      return wanted;
    });
    made_.pixels = resample_part(part, wanted, result);
  }

  void operator()(const RandomHorizontalFlip& flip) { mirror(flip.prob, 1); }
  void operator()(const RandomVerticalFlip& flip) { mirror(flip.prob, 0); }

  void operator()(const ColorJitter& jitter) { pixels() = jittered(jitter, random_, pixels()); }

  void operator()(const RandAugment& step) { pixels() = augmented(step, random_, pixels()); }
  void operator()(const TrivialAugmentWide& step) { pixels() = augmented(step, random_, pixels()); }

  void operator()(const Normalize&) {}  // write() does it

  void operator()(const RandomErasing& erasing) {
    if (random_.uniform() >= erasing.prob) return;
    const auto ratio = std::pair(1 / erasing.ratio.second, 1 / erasing.ratio.first);
    made_.erased = draw_part({erasing.scale, ratio, false}, pixels().size(), random_);
  }

  void operator()(const OwnTransform& own) { pixels() = apply_own_step(own, pixels(), random_); }

 private:
  /// Of the picture as it is; decoded now if it is not yet.
  cv::Mat part_of(const ocr::ChoosePart& choose) {
    if (undecoded_ != nullptr) return (*std::exchange(undecoded_, nullptr))(choose);
    return made_.pixels(choose(made_.pixels.size()).part);
  }

  cv::Mat& pixels() {
    if (undecoded_ != nullptr) {
      made_.pixels = part_of([](cv::Size size) { return ocr::PicturePart{{{0, 0}, size}}; });
    }
    return made_.pixels;
  }

  void mirror(double prob, int axis) {
    if (random_.uniform() >= prob) return;
    cv::Mat out;
    cv::flip(pixels(), out, axis);
    pixels() = out;
  }

  const Undecoded* undecoded_;  ///< Null once it is decoded.
  bool reduced_;
  RandomNumbers& random_;
  MadePicture made_;
};

/// The size after a step; none if it depends on the picture.
struct SizeAfter {
  std::optional<cv::Size> before;

  std::optional<cv::Size> operator()(const ResizePicture& resize) const {
    if (resize.shorter == 0) return cv_size(resize.exact);
    if (!before) return std::nullopt;
    return cv_size(size_after(resize, picture_size(*before)));
  }
  std::optional<cv::Size> operator()(const CenterCrop& crop) const { return cv_size(crop.size); }
  std::optional<cv::Size> operator()(const RandomCrop& crop) const {
    return cv::Size(static_cast<int>(crop.size), static_cast<int>(crop.size));
  }
  std::optional<cv::Size> operator()(const RandomResizedCrop& crop) const {
    return cv_size(crop.size);
  }
  template <typename Step>
  std::optional<cv::Size> operator()(const Step&) const {
    return before;
  }
};

void check_own_channels(const std::vector<PictureStep>& steps, int64_t channels) {
  if (channels == 3) return;
  for (const auto& step : steps) {
    const auto* own = std::get_if<OwnTransform>(&step);
    if (own == nullptr) continue;
    refuse_steps(
        fmt::format("{}: a transform of one's own needs a network's input of 3 channels, not {}",
                    own->name, channels));
  }
}

/// Sizes fit, and each value is for as many channels as the network's input has.
void check_alike(const std::vector<PictureStep>& steps, const PicturesAlike& pictures) {
  check_sizes(steps, pictures.size);
  check_own_channels(steps, pictures.channels);
  const auto* erasing = steps.empty() ? nullptr : std::get_if<RandomErasing>(&steps.back());
  if (erasing == nullptr || pictures.channels != 1) return;
  const auto& [first, second, third] = erasing->value;
  if (first == second && first == third) return;
  refuse_steps("RandomErasing: value has 3 numbers; the images have 1 channel");
}

}  // namespace

void check_sizes(const std::vector<PictureStep>& steps, cv::Size size) {
  std::optional<cv::Size> known = size;
  for (const auto& step : steps) {
    if (std::holds_alternative<OwnTransform>(step)) {
      known.reset();
      continue;
    }
    const auto* crop = std::get_if<RandomCrop>(&step);
    if (crop != nullptr && known) check_crop(*crop, picture_size(*known));
    const auto* resize = std::get_if<ResizePicture>(&step);
    if (resize != nullptr && known) checked_size_after(*resize, *known);
    known = std::visit(SizeAfter{known}, step);
  }
}

PicturePipeline::PicturePipeline(std::vector<PictureStep> steps, uint64_t seed, bool reduced,
                                 const std::optional<PicturesAlike>& pictures)
    : steps_(std::move(steps)), seed_(seed), reduced_(reduced) {
  check_steps(steps_);
  if (pictures) {
    check_alike(steps_, *pictures);
    output_ = pictures->size;
  }
  const Normalize* normalize = nullptr;
  for (const auto& step : steps_) {
    output_ = std::visit(SizeAfter{output_}, step);
    if (const auto* found = std::get_if<Normalize>(&step)) normalize = found;
    if (const auto* found = std::get_if<RandomErasing>(&step)) erasing_ = *found;
  }
  tables_ = byte_tables(normalize, pictures ? pictures->channels : 3);
}

Undecoded already_decoded(cv::Mat picture) {
  return [picture = std::move(picture)](const ocr::ChoosePart& choose) {
    return picture(choose(picture.size()).part);
  };
}

MadePicture PicturePipeline::apply(const cv::Mat& picture, int64_t epoch, int64_t key) const {
  return apply(already_decoded(picture), epoch, key);
}

MadePicture PicturePipeline::apply(const Undecoded& picture, int64_t epoch, int64_t key) const {
  Philox stream(seed_, static_cast<uint32_t>(epoch), static_cast<uint64_t>(key));
  StreamNumbers numbers(stream);
  return apply(picture, numbers);
}

MadePicture PicturePipeline::apply(const Undecoded& picture, RandomNumbers& random) const {
  Applied applied(picture, reduced_, random);
  for (const auto& step : steps_) {
    run_transform(picture_step_name(step), [&] { std::visit(applied, step); });
  }
  MadePicture made = applied.take();
  if (output_ && made.pixels.size() != *output_) refuse_size(steps_, made.pixels.size(), *output_);
  return made;
}

void PicturePipeline::write(const MadePicture& made, float* planes) const {
  const cv::Mat& pixels = made.pixels;
  const size_t plane = pixels.total();
  for (size_t c = 0; c < tables_.size(); ++c) {
    float* out = planes + c * plane;
    for (int y = 0; y < pixels.rows; ++y) {
      const uint8_t* in = pixels.ptr<uint8_t>(y) + c;
      for (int x = 0; x < pixels.cols; ++x, in += 3) *out++ = tables_[c][*in];
    }
    if (!made.erased) continue;
    cv::Mat(pixels.size(), CV_32F, planes + c * plane)(*made.erased)
        .setTo(cv::Scalar(static_cast<double>(erasing_->value[c])));
  }
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

}  // namespace lockstep::inline internal
