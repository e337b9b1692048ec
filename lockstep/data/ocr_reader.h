#pragma once
// Samples of text in images, read for batches. Without libtorch, so that sanitizers reach the code
// of its threads.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lockstep/data/usable_samples.h"
#include "lockstep/ocr/sample.h"

namespace lockstep::inline internal {

/// Samples 0 .. size()-1, read and transformed. Any number of threads may use it.
class OcrSamples {
 public:
  virtual ~OcrSamples() = default;
  virtual int64_t size() const = 0;
  /// Notes about the samples for the log; a note may have several lines.
  virtual std::vector<std::string> notes() const { return {}; }
  /// Random values depend on (epoch, key) alone. Errors: any Error, naming the image.
  virtual ocr::Sample make(int64_t epoch, int64_t index, int64_t key) const = 0;
};

/// The samples of one batch.
struct OcrRows {
  std::vector<ocr::Sample> samples;
  std::vector<std::string> faults;   ///< A line for each unusable sample.
  std::vector<std::string> remarks;  ///< Parts that transforms left out, with the label's place.
};

/// Makes the samples of batches. Read-only once made: any number of threads may read.
class OcrReader {
 public:
  OcrReader(std::shared_ptr<const OcrSamples> samples, BadSample bad, uint64_t seed);

  int64_t size() const { return samples_->size(); }

  /// `keys`: see DrawnSamples. Errors: kCorrupt if a sample and its ten replacements are unusable.
  OcrRows read(int64_t epoch, std::span<const int64_t> indices,
               std::span<const int64_t> keys = {}) const;

 private:
  std::shared_ptr<const OcrSamples> samples_;
  BadSample bad_;
  uint64_t seed_;
};

}  // namespace lockstep::inline internal
