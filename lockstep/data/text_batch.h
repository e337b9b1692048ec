#pragma once
// Samples of text in images as the tensors of one batch.

#include <vector>

#include "lockstep/data/batch.h"
#include "lockstep/ocr/sample.h"

namespace lockstep {

/// What a batch of text has besides its images.
enum class TextColumns : uint8_t {
  /// Targets of DBLoss: binary_map (N, 1, H, W), mask, thresh_map, thresh_mask (N, H, W), float32.
  kDetection,
  /// Target of CTCLoss: text_seq (N, max_text_len) int32.
  kRecognition,
  /// No targets, but Batch::truths: for evaluation.
  kTruths,
};

/// Images (N, C, H, W) float32 and what `columns` says; all of them count. The samples are used up.
/// Errors: kInvalidArgument naming sample and size: images of different sizes, a column that the
/// samples lack.
Batch make_text_batch(std::vector<ocr::Sample> samples, TextColumns columns);

}  // namespace lockstep
