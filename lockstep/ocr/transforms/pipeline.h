#pragma once
// A data set's executable transform_pipeline.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/ocr/sample.h"
#include "lockstep/ocr/transforms/augment.h"
#include "lockstep/ocr/transforms/options.h"

namespace lockstep::ocr {

/// Transforms in their order. Read-only after construction: any number of threads may apply it.
///
/// A sample's random numbers depend on (seed, place of the transform, epoch, key) alone; see
/// BatchRows. So an image is the same on every rank and thread, and after a resume.
class Pipeline {
 public:
  /// Reads dictionaries. `training`: polygons follow DetResize. If several threads apply it,
  /// disable OpenCV's own threads: cv::setNumThreads(1). Errors: those of Dictionary.
  Pipeline(const std::vector<Transform>& transforms, uint64_t seed, bool training);

  /// Carries out all transforms on a sample loaded by an OcrDataset. Errors: kNotFound, kIo,
  /// kCorrupt, kInvalidArgument, naming the sample as describe() does; the sample is then invalid.
  /// TransformFailed, with the transform's name behind that, for any other exception of one.
  void apply(Sample& sample, int64_t epoch, int64_t key) const;

 private:
  using CarryOut = std::function<void(Sample&, const SampleDraws&)>;
  struct Step {
    std::string name;
    CarryOut carry_out;
  };

  /// Adds a step for the transform at `place`, or for several at once. Returns their number.
  size_t add_step(const std::vector<Transform>& transforms, size_t place);
  CarryOut make_step(const Transform& transform, size_t place) const;

  std::vector<Step> steps_;
  uint64_t seed_;
  bool training_;
};

/// "det_gt.txt:17 (img_1.jpg)", or its known parts: the beginning of messages about a sample.
std::string describe(const Sample& sample);

/// As the configuration names it: also "GridResize", or "IaaAugment.Affine" for a part of an item.
std::string_view transform_name(const Transform& transform);

}  // namespace lockstep::ocr
