#pragma once
// Samples of text in images as the tensors of a batch.

#include <memory>
#include <vector>

#include "lockstep/batch.h"
#include "lockstep/data/ocr_reader.h"
#include "lockstep/ocr/sample.h"

namespace lockstep::inline internal {

/// Ground truth of an evaluation.
struct OcrGroundTruth {
  std::vector<ocr::Sample> samples;     ///< Of a built-in data set, without their pixels.
  std::vector<TextPicture> pictures{};  ///< See text_pictures().
};

/// The parts of a batch of text besides its images.
enum class OcrColumns : uint8_t {
  /// Targets of DBLoss: binary_map (N, 1, H, W), mask, thresh_map, thresh_mask (N, H, W), float32.
  kDetection,
  /// Target of CTCLoss: text_seq (N, max_text_len) int32.
  kRecognition,
  /// No targets, but Batch::ground_truth: for evaluation.
  kGroundTruth,
};

/// Batches of `samples`: images (N, C, H, W) float32 and the `columns`. The replacement of an
/// unusable sample depends on `seed`.
///
/// An unusable sample costs a line in Batch::faults. With targets (training) another one replaces
/// it. With kGroundTruth (evaluation) it is left out, and so is the padding behind the samples that
/// count: batches may be smaller, or empty.
///
/// This turns off OpenCV's own threads for the whole process, because samples are made in parallel.
/// It also keeps freed memory from the system (keep_freed_memory()).
/// Errors of a batch: those of OcrReader::read(); kInvalidArgument naming sample and size: images
/// of different sizes, a column that the samples lack.
///
/// With `byte_values`, those of ocr::ByteForm, the samples are of its transforms. Images are then
/// (N, H, W, 3) uint8, with Batch::byte_values.
std::unique_ptr<const BatchMaker> ocr_batches(std::shared_ptr<const OcrSamples> samples,
                                              OcrColumns columns, uint64_t seed,
                                              const cv::Mat& byte_values = {});

}  // namespace lockstep::inline internal
