#pragma once
// Private to the layer.

#include <cstdint>
#include <string>

#include "lockstep/ocr/convert/convert.h"

namespace lockstep::ocr {

/// Maximum size of a label file.
inline constexpr int64_t kMaxLabelBytes = int64_t{1} << 32;

/// The output file of task det for one data set, as text. Sets the notes and the count of `result`.
std::string det_label_file(const ConvertOptions& options, const ConvertProgress& progress,
                           ConvertResult& result);
bool has_det_labels(const std::string& dataset_name);

/// The output file of task rec.
std::string rec_label_file(const ConvertOptions& options, ConvertResult& result);
bool has_rec_labels(const std::string& dataset_name);

/// Writes the folder of an LMDB with the pictures of a rec label file (ICDAR 2015's, or MindOCR's
/// own with tabs).
void write_rec_lmdb(const ConvertOptions& options, const ConvertProgress& progress,
                    ConvertResult& result);

}  // namespace lockstep::ocr
