#pragma once
// lockstep convert: converts published data sets' annotations to MindOCR's label files.

#include <functional>
#include <string>
#include <vector>

namespace lockstep::ocr {

/// Options and defaults of MindOCR's tools/dataset_converters/convert.py.
struct ConvertOptions {
  std::string dataset_name = "ic15";
  std::string task = "det";  ///< det, rec, rec_lmdb.
  std::string image_dir = "./ic15/det/images/";
  std::string label_dir;               ///< Folder of label files, or the one file.
  std::string output_path;             ///< Empty: default_output().
  std::string path_mode = "relative";  ///< Or abs: with image_dir in front.
  std::string split;                   ///< For cocotext, which has several in one file.
};

/// {folder of label_dir}/{last part of image_dir}_{task}_gt.txt; for rec_lmdb, which is a folder,
/// without "_gt.txt". An image_dir that ends with a slash has an empty last part, as in MindOCR.
std::string default_output(const ConvertOptions& options);

struct ConvertResult {
  std::string output;
  int64_t images = 0;
  std::vector<std::string> notes;  ///< Omitted parts, one per line.
};

/// Called with the number of finished pictures and the total.
using ConvertProgress = std::function<void(int64_t done, int64_t total)>;

/// Reads all labels, then writes the output whole or not at all. Its bytes are those of MindOCR's
/// converters. rec_lmdb is ours: the pictures of a rec label file, under MindOCR's keys. Errors:
/// kInvalidArgument (an unsupported data set, task or mode; the text lists the supported ones),
/// kNotFound (labels, or a picture that a label names), kCorrupt (FILE:LINE), kIo.
ConvertResult convert_labels(const ConvertOptions& options, const ConvertProgress& progress = {});

}  // namespace lockstep::ocr
