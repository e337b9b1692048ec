#include "lockstep/ocr/convert/convert.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "lockstep/base/file.h"
#include "lockstep/base/text.h"
#include "lockstep/error.h"
#include "lockstep/ocr/convert/label_set.h"

namespace lockstep::ocr {
namespace {

namespace fs = std::filesystem;

// All sets of MindOCR's converter.
const std::vector<std::string> kSets = {
    "casia10k", "ccpd",    "borndigital", "ic15",     "totaltext",   "lsvt",
    "mlt2017",  "mlt2019", "mtwi2018",    "sroie",    "syntext150k", "svt",
    "td500",    "ctw1500", "synthtext",   "synthadd", "ctw",         "textocr",
    "rctw17",   "rects",   "ic19_art",    "cocotext", "pubtabnet",   "publaynet"};
const std::vector<std::string> kTasks = {"det", "rec", "rec_lmdb"};

[[noreturn]] void refuse(const std::string& what) {
  throw Error(ErrorCode::kInvalidArgument, what);
}

bool converts(const std::string& set, const std::string& task) {
  if (task == "det") return has_det_labels(set);
  return task == "rec" ? has_rec_labels(set) : set == "ic15";
}

void check_set(const ConvertOptions& options) {
  const std::string& name = options.dataset_name;
  std::vector<std::string> ours;
  std::copy_if(kSets.begin(), kSets.end(), std::back_inserter(ours),
               [&](const std::string& set) { return converts(set, options.task); });
  if (std::find(ours.begin(), ours.end(), name) != ours.end()) return;
  const bool known = std::find(kSets.begin(), kSets.end(), name) != kSets.end();
  refuse(fmt::format("--dataset_name {}: {}{}; for task {}: {}", name,
                     known ? "not converted here" : "unknown",
                     known ? "" : did_you_mean(name, kSets), options.task, fmt::join(ours, ", ")));
}

void check_options(const ConvertOptions& options) {
  if (std::find(kTasks.begin(), kTasks.end(), options.task) == kTasks.end()) {
    refuse(fmt::format("--task {}: unknown{} (known: {})", options.task,
                       did_you_mean(options.task, kTasks), fmt::join(kTasks, ", ")));
  }
  check_set(options);
  if (options.path_mode != "relative" && options.path_mode != "abs") {
    refuse(fmt::format("--path_mode {}: must be relative or abs", options.path_mode));
  }
  if (options.dataset_name == "cocotext") {
    if (options.split.empty()) refuse("--split is missing: train, val or test of cocotext");
  } else if (!options.split.empty()) {
    refuse(fmt::format("--split {}: {} is not one of several sets in one file", options.split,
                       options.dataset_name));
  }
  if (options.label_dir.empty())
    refuse("--label_dir is missing: the folder of labels, or their file");
  std::error_code fault;
  if (!fs::exists(options.label_dir, fault)) {
    throw Error(ErrorCode::kNotFound, options.label_dir + ": no such folder or file of labels");
  }
}

}  // namespace

std::string default_output(const ConvertOptions& options) {
  const size_t slash = options.label_dir.rfind('/');
  const std::string root = slash == std::string::npos ? "" : options.label_dir.substr(0, slash);
  const std::string images = options.image_dir.substr(options.image_dir.rfind('/') + 1);
  const char* ending = options.task == "rec_lmdb" ? "" : "_gt.txt";
  return (fs::path(root) / (images + "_" + options.task + ending)).string();
}

ConvertResult convert_labels(const ConvertOptions& options, const ConvertProgress& progress) {
  check_options(options);
  ConvertResult result;
  result.output = options.output_path.empty() ? default_output(options) : options.output_path;
  if (options.task == "rec_lmdb") {
    write_rec_lmdb(options, progress, result);
  } else {
    write_file_atomically(result.output, options.task == "det"
                                             ? det_label_file(options, progress, result)
                                             : rec_label_file(options, result));
  }
  return result;
}

}  // namespace lockstep::ocr
