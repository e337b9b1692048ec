#pragma once
// A data set's transform_pipeline, ready to be carried out.

#include <functional>
#include <string>
#include <vector>

#include "lockstep/ocr/sample.h"
#include "lockstep/ocr/transforms/augment.h"
#include "lockstep/ocr/transforms/options.h"

namespace lockstep::ocr {

/// Transforms in their order. Read-only once made: any number of threads may apply it.
///
/// What a sample draws depends on (seed, place of the transform, epoch, index of the sample) alone,
/// so an image is the same whichever rank or thread makes it, and after a resume.
class Pipeline {
 public:
  /// Reads dictionaries. `training`: polygons follow DetResize. Where several threads apply it,
  /// turn OpenCV's own off: cv::setNumThreads(1). Errors: those of Dictionary.
  Pipeline(const std::vector<Transform>& transforms, uint64_t seed, bool training);

  /// Carries out all transforms on a sample as an OcrDataset loaded it.
  /// Errors: kNotFound, kIo, kCorrupt, kInvalidArgument, beginning with describe() of the sample;
  /// the sample is then of no use.
  void apply(Sample& sample, int64_t epoch, int64_t index) const;

 private:
  using Step = std::function<void(Sample&, const SampleDraws&)>;

  /// Adds what carries out the transform at `place`, or several at once. Returns how many.
  size_t add_step(const std::vector<Transform>& transforms, size_t place);
  Step make_step(const Transform& transform, size_t place) const;

  std::vector<Step> steps_;
  uint64_t seed_;
  bool training_;
};

/// "det_gt.txt:17 (img_1.jpg)", or what is known of it: the beginning of messages about a sample.
std::string describe(const Sample& sample);

}  // namespace lockstep::ocr
