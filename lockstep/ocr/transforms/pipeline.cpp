#include "lockstep/ocr/transforms/pipeline.h"

#include <memory>
#include <type_traits>

#include "lockstep/base/error.h"
#include "lockstep/ocr/data/regions.h"
#include "lockstep/ocr/text/label_codec.h"
#include "lockstep/ocr/transforms/border_map.h"
#include "lockstep/ocr/transforms/colour.h"
#include "lockstep/ocr/transforms/crop.h"
#include "lockstep/ocr/transforms/decode.h"
#include "lockstep/ocr/transforms/det_resize.h"
#include "lockstep/ocr/transforms/normalize.h"
#include "lockstep/ocr/transforms/rec_image.h"
#include "lockstep/ocr/transforms/shrink_map.h"
#include "lockstep/ocr/transforms/validate.h"
#include "lockstep/ocr/transforms/warp.h"

namespace lockstep::ocr {
namespace {

// One name for all, so that std::visit finds each transform's function.
void carry_out(const DecodeImage& o, Sample& s, Philox&) {
  decode_image(o, s);
}
void carry_out(const NormalizeImage& o, Sample& s, Philox&) {
  normalize_image(o, s);
}
void carry_out(const ToCHWImage&, Sample& s, Philox&) {
  to_planar(s);
}
void carry_out(const RandomScale& o, Sample& s, Philox& draws) {
  random_scale(o, s, draws);
}
void carry_out(const RandomColorAdjust& o, Sample& s, Philox& draws) {
  adjust_colour(o, s, draws);
}
void carry_out(const RandomRotate& o, Sample& s, Philox& draws) {
  random_rotate(o, s, draws);
}
void carry_out(const RandomHorizontalFlip& o, Sample& s, Philox& draws) {
  random_flip(o, s, draws);
}
void carry_out(const DetLabelEncode&, Sample& s, Philox&) {
  s.regions = parse_regions(s.label);
  ignore_unusable(s.regions, s.remarks);
}
void carry_out(const RandomCropWithBBox& o, Sample& s, Philox& draws) {
  random_crop(o, s, draws);
}
void carry_out(const ValidatePolygons& o, Sample& s, Philox&) {
  validate_polygons(o, s);
}
void carry_out(const ShrinkBinaryMap& o, Sample& s, Philox&) {
  make_shrink_map(o, s);
}
void carry_out(const BorderMap& o, Sample& s, Philox&) {
  make_border_map(o, s);
}
void carry_out(const RecResizeImg& o, Sample& s, Philox&) {
  rec_resize(o, s);
}
void carry_out(const RecResizeNormForInfer& o, Sample& s, Philox&) {
  rec_resize_normalize(o, s);
}
void carry_out(const Rotate90IfVertical& o, Sample& s, Philox&) {
  rotate_if_vertical(o, s);
}

void encode_label(const Dictionary& dictionary, int max_text_len, Sample& sample) {
  auto text = encode_text(dictionary, sample.label, max_text_len);
  sample.text_seq = std::move(text.text_seq);
  sample.length = text.length;
  if (!text.remark.empty()) sample.remarks.push_back(std::move(text.remark));
}

uint64_t seed_of_step(uint64_t seed, size_t step) {
  return seed + 0x9E3779B97F4A7C15 * (step + 1);
}

}  // namespace

std::string describe(const Sample& sample) {
  if (sample.label_source.empty()) return sample.source;
  return sample.label_source + " (" + sample.source + ")";
}

Pipeline::Pipeline(const std::vector<Transform>& transforms, uint64_t seed, bool training)
    : seed_(seed), training_(training) {
  for (size_t i = 0; i < transforms.size(); ++i) {
    const auto* normalize = std::get_if<NormalizeImage>(&transforms[i]);
    const bool planar_next =
        i + 1 < transforms.size() && std::holds_alternative<ToCHWImage>(transforms[i + 1]);
    if (normalize != nullptr && planar_next) {
      steps_.emplace_back([o = *normalize](Sample& s, Philox&) { normalize_to_planar(o, s); });
      ++i;
    } else {
      steps_.push_back(make_step(transforms[i]));
    }
  }
}

Pipeline::Step Pipeline::make_step(const Transform& transform) const {
  return std::visit(
      [this](const auto& options) -> Step {
        using Options = std::decay_t<decltype(options)>;
        if constexpr (std::is_same_v<Options, RecCTCLabelEncode>) {
          return [dictionary = std::make_shared<const Dictionary>(options.characters),
                  length = options.max_text_len](Sample& sample, Philox&) {
            encode_label(*dictionary, length, sample);
          };
        } else if constexpr (std::is_same_v<Options, DetResize>) {
          return [options, training = training_](Sample& sample, Philox&) {
            det_resize(options, training, sample);
          };
        } else {
          return [options](Sample& sample, Philox& draws) { carry_out(options, sample, draws); };
        }
      },
      transform);
}

void Pipeline::apply(Sample& sample, int64_t epoch, int64_t index) const {
  try {
    for (size_t i = 0; i < steps_.size(); ++i) {
      Philox draws(seed_of_step(seed_, i), static_cast<uint32_t>(epoch),
                   static_cast<uint64_t>(index));
      steps_[i](sample, draws);
    }
  } catch (const Error& error) {
    throw Error(error.code(), describe(sample) + ": " + error.what());
  } catch (const cv::Exception& error) {  // of an image that no check foresaw
    throw Error(ErrorCode::kCorrupt, describe(sample) + ": OpenCV: " + error.err);
  }
}

}  // namespace lockstep::ocr
