#include "lockstep/ocr/transforms/pipeline.h"

#include <array>
#include <memory>
#include <optional>
#include <type_traits>

#include "lockstep/base/text.h"
#include "lockstep/base/transform_failed.h"
#include "lockstep/error.h"
#include "lockstep/ocr/data/regions.h"
#include "lockstep/ocr/text/dictionary.h"
#include "lockstep/ocr/transforms/colour.h"
#include "lockstep/ocr/transforms/crop.h"
#include "lockstep/ocr/transforms/decode.h"
#include "lockstep/ocr/transforms/det_resize.h"
#include "lockstep/ocr/transforms/det_targets.h"
#include "lockstep/ocr/transforms/normalize.h"
#include "lockstep/ocr/transforms/own_pixels.h"
#include "lockstep/ocr/transforms/rec_image.h"

namespace lockstep::ocr {
namespace {

// One name for all transforms without draws, so that std::visit finds each function.
void carry_out(const DecodeImage& o, Sample& s) {
  decode_image(o, s);
}
void carry_out(const NormalizeImage& o, Sample& s) {
  normalize_image(o, s);
}
void carry_out(const ToCHWImage&, Sample& s) {
  to_planar(s);
}
void carry_out(const DetLabelEncode&, Sample& s) {
  s.regions = parse_regions(s.label);
  ignore_unusable(s.regions, s.remarks);
}
void carry_out(const ValidatePolygons& o, Sample& s) {
  validate_polygons(o, s);
}
void carry_out(const ShrinkBinaryMap& o, Sample& s) {
  make_shrink_map(o, s);
}
void carry_out(const BorderMap& o, Sample& s) {
  make_border_map(o, s);
}
void carry_out(const RecResizeImg& o, Sample& s) {
  rec_resize(o, s);
}
void carry_out(const RecResizeNormForInfer& o, Sample& s) {
  rec_resize_normalize(o, s);
}
void carry_out(const Rotate90IfVertical& o, Sample& s) {
  rotate_if_vertical(o, s);
}

void encode_label(const Dictionary& dictionary, int max_text_len, Sample& sample) {
  auto text = encode_text(dictionary, sample.label, max_text_len);
  sample.text_seq = std::move(text.text_seq);
  sample.length = text.length;
  if (!text.remark.empty()) sample.remarks.push_back(std::move(text.remark));
}

/// The transform as a warp, if it changes the geometry at random.
std::optional<WarpOptions> as_warp(const Transform& transform) {
  return std::visit(
      [](const auto& options) -> std::optional<WarpOptions> {
        if constexpr (std::is_constructible_v<WarpOptions, decltype(options)>) return options;
        return std::nullopt;
      },
      transform);
}

/// The consecutive changes of geometry from `begin` on.
std::vector<WarpOptions> warps_from(const std::vector<Transform>& transforms, size_t begin) {
  std::vector<WarpOptions> warps;
  for (size_t i = begin; i < transforms.size(); ++i) {
    const auto warp = as_warp(transforms[i]);
    if (!warp) break;
    warps.push_back(*warp);
  }
  return warps;
}

/// "RandomRotate, RandomCropWithBBox": the names of `count` transforms from `begin` on.
std::string names_of(const std::vector<Transform>& transforms, size_t begin, size_t count) {
  std::string names;
  for (size_t i = begin; i < begin + count; ++i) {
    if (i > begin) names += ", ";
    names += transform_name(transforms[i]);
  }
  return names;
}

template <typename T>
const T* transform_at(const std::vector<Transform>& transforms, size_t place) {
  return place < transforms.size() ? std::get_if<T>(&transforms[place]) : nullptr;
}

}  // namespace

std::string describe(const Sample& sample) {
  if (sample.label_source.empty()) return sample.source;
  return sample.label_source + " (" + sample.source + ")";
}

std::string_view transform_name(const Transform& transform) {
  constexpr std::array<std::string_view, std::variant_size_v<Transform> - 1> kInOrder = {
      "DecodeImage",        "NormalizeImage",    "ToCHWImage",           "RandomScale",
      "RandomColorAdjust",  "RandomRotate",      "RandomHorizontalFlip", "DetLabelEncode",
      "RandomCropWithBBox", "ValidatePolygons",  "ShrinkBinaryMap",      "BorderMap",
      "DetResize",          "RecCTCLabelEncode", "RecResizeImg",         "RecResizeNormForInfer",
      "Rotate90IfVertical"};
  return std::visit(
      [&](const auto& options) -> std::string_view {
        if constexpr (requires { options.name; }) return options.name;
        return kInOrder.at(transform.index());
      },
      transform);
}

Pipeline::Pipeline(const std::vector<Transform>& transforms, uint64_t seed, bool training)
    : seed_(seed), training_(training) {
  for (size_t place = 0; place < transforms.size();) place += add_step(transforms, place);
}

size_t Pipeline::add_step(const std::vector<Transform>& transforms, size_t place) {
  const auto warps = warps_from(transforms, place);
  const auto* crop = transform_at<RandomCropWithBBox>(transforms, place + warps.size());
  if (crop != nullptr && !warps.empty()) {
    const auto warp = [warps, o = *crop, place](Sample& sample, const SampleDraws& draws) {
      warp_and_crop(warps, o, place, draws, sample);
    };
    steps_.push_back({names_of(transforms, place, warps.size() + 1), warp});
    return warps.size() + 1;
  }
  const auto* resize = transform_at<RecResizeImg>(transforms, place);
  const size_t num_resizes = resize != nullptr ? 1 : 0;
  const auto* normalize = transform_at<NormalizeImage>(transforms, place + num_resizes);
  if (resize != nullptr && normalize != nullptr && normalize->left_out) {
    steps_.push_back({names_of(transforms, place, 2),
                      [o = *resize, norm = *normalize](Sample& sample, const SampleDraws&) {
                        rec_resize_in_order(o, norm, sample);
                      }});
    return 2;
  }
  const auto* to_chw = transform_at<ToCHWImage>(transforms, place + num_resizes + 1);
  if (normalize == nullptr || to_chw == nullptr) {
    steps_.push_back({names_of(transforms, place, 1), make_step(transforms[place], place)});
    return 1;
  }
  const auto name = names_of(transforms, place, num_resizes + 2);
  if (resize != nullptr) {
    steps_.push_back({name, [o = *resize, norm = *normalize](Sample& sample, const SampleDraws&) {
                        rec_resize_to_planar(o, norm, sample);
                      }});
  } else {
    steps_.push_back({name, [o = *normalize](Sample& sample, const SampleDraws&) {
                        normalize_to_planar(o, sample);
                      }});
  }
  return num_resizes + 2;
}

Pipeline::CarryOut Pipeline::make_step(const Transform& transform, size_t place) const {
  return std::visit(
      [this, place](const auto& options) -> CarryOut {
        using Options = std::decay_t<decltype(options)>;
        if constexpr (std::is_same_v<Options, RecCTCLabelEncode>) {
          return [dictionary = std::make_shared<const Dictionary>(options.characters),
                  length = options.max_text_len](Sample& sample, const SampleDraws&) {
            encode_label(*dictionary, length, sample);
          };
        } else if constexpr (std::is_same_v<Options, DetResize>) {
          return [options, training = training_](Sample& sample, const SampleDraws&) {
            det_resize(options, training, sample);
          };
        } else if constexpr (std::is_same_v<Options, RandomColorAdjust>) {
          return [options, place](Sample& sample, const SampleDraws& draws) {
            Philox stream = draws.at(place);
            adjust_colour(options, sample, stream);
          };
        } else if constexpr (std::is_same_v<Options, OwnPixels>) {
          return [options, place](Sample& sample, const SampleDraws& draws) {
            Philox stream = draws.at(place);
            change_pixels(options, sample, stream);
          };
        } else if constexpr (std::is_constructible_v<WarpOptions, Options>) {
          return [options, place](Sample& sample, const SampleDraws& draws) {
            warp_image({options}, place, draws, sample);
          };
        } else if constexpr (std::is_same_v<Options, RandomCropWithBBox>) {
          return [options, place](Sample& sample, const SampleDraws& draws) {
            warp_and_crop({}, options, place, draws, sample);
          };
        } else {
          return [options](Sample& sample, const SampleDraws&) { carry_out(options, sample); };
        }
      },
      transform);
}

void Pipeline::apply(Sample& sample, int64_t epoch, int64_t key) const {
  const SampleDraws draws{seed_, epoch, key};
  try {
    for (const auto& step : steps_) {
      run_transform(step.name, [&] {
        try {
          step.carry_out(sample, draws);
        } catch (const cv::Exception& error) {  // from an image that passed all checks
          if (error.code == cv::Error::StsNoMem) throw;
          throw Error(ErrorCode::kCorrupt, step.name + ": OpenCV: " + error.err);
        }
      });
    }
  } catch (const Error& error) {
    throw Error(error.code(), with_place(describe(sample), error.what()));
  } catch (const TransformFailed& error) {
    throw TransformFailed(with_place(describe(sample), error.what()));
  }
}

}  // namespace lockstep::ocr
