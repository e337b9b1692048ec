#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/ocr/sample.h"

namespace lockstep::ocr {

/// Images with their text, 0 .. size()-1. Read-only after construction: any number of threads may
/// load.
class OcrDataset {
 public:
  virtual ~OcrDataset() = default;

  virtual int64_t size() const = 0;

  /// Remarks about the data for the log; a note may have several lines.
  virtual std::vector<std::string> notes() const { return {}; }

  /// Sample `index` before any transform: `source`, `label` or `regions`, and `encoded` if the
  /// image is no file of its own. Errors (a bad sample): kCorrupt, kIo, kNotFound, naming it.
  virtual Sample load(int64_t index) const = 0;
};

}  // namespace lockstep::ocr
