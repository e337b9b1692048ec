#pragma once
// Samples of text in images, read for batches. Without libtorch, so that sanitizers reach what
// threads do here.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lockstep/ocr/sample.h"

namespace lockstep {

/// Samples 0 .. size()-1, read and transformed. Any number of threads may ask.
class TextSamples {
 public:
  virtual ~TextSamples() = default;
  virtual int64_t size() const = 0;
  /// What a log should say of them; a note may have several lines.
  virtual std::vector<std::string> notes() const { return {}; }
  /// What chance decides depends on (epoch, index) alone. Errors: any Error, naming the image.
  virtual ocr::Sample make(int64_t epoch, int64_t index) const = 0;
};

/// Of one batch.
struct TextRows {
  std::vector<ocr::Sample> samples;
  std::vector<std::string> faults;   ///< A line for each that could not be made.
  std::vector<std::string> remarks;  ///< What transforms had to leave out, with the label's place.
};

/// What becomes of a sample that cannot be made.
enum class BadSample : uint8_t {
  kReplaced,  ///< Another, drawn by (seed, epoch, its index), stands in its place.
  kLeftOut,
};

/// Makes the samples of batches. Read-only once made: any number of threads may read.
class OcrReader {
 public:
  OcrReader(std::shared_ptr<const TextSamples> samples, BadSample bad, uint64_t seed);

  int64_t size() const { return samples_->size(); }

  /// Errors: kCorrupt when a sample and ten that were to replace it cannot be made.
  TextRows read(int64_t epoch, std::span<const int64_t> indices) const;

 private:
  ocr::Sample replacement(int64_t epoch, int64_t index, std::string& line) const;

  std::shared_ptr<const TextSamples> samples_;
  BadSample bad_;
  uint64_t seed_;
};

}  // namespace lockstep
