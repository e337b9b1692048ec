#pragma once
// What `lockstep predict` shall do: which networks, with which weights, on which pictures.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/ocr/transforms/options.h"
#include "lockstep/train/config/config.h"

namespace lockstep {

/// As given on the command line.
struct PredictOptions {
  std::string config;                  ///< YAML of one network; may be empty.
  std::vector<std::string> det;        ///< For the detector: a YAML file, weights, or both.
  std::vector<std::string> rec;        ///< The same for the recogniser.
  std::vector<std::string> cls;        ///< The same for a classifier.
  std::string input;                   ///< Picture or folder; empty: predict.dataset.data_dir.
  std::string output;                  ///< Empty: predict.output_save_dir.
  std::vector<std::string> overrides;  ///< Of every configuration, see overrides.h.
  double drop_score = 0.5;             ///< Least confidence of a text in a result of both networks.
  bool draw = true;                    ///< A copy of each picture, with what was found.
};

/// One network.
struct PredictStage {
  Config config;
  std::filesystem::path weights;
};

/// A classifier, or at least one of the two networks for text; with both, the recogniser reads what
/// the detector finds.
struct PredictPlan {
  std::optional<PredictStage> cls;
  std::optional<PredictStage> det;
  std::optional<PredictStage> rec;
  std::filesystem::path input;
  std::filesystem::path output;
  double drop_score = 0.5;
  bool draw = true;

  /// What sees the pictures first.
  const PredictStage& first() const { return cls ? *cls : det ? *det : *rec; }
  /// "cls_results.txt", "det_results.txt", "rec_results.txt" or "system_results.txt".
  std::string result_file() const;
};

/// Weights that are not named: predict.ckpt_load_path, else eval.ckpt_load_path, else the best of
/// train.ckpt_save_dir, else its latest. Reads the configurations and looks whether the weights
/// exist. Errors: kInvalidArgument (contradicting options, a key; naming it), kNotFound (a file).
PredictPlan plan_prediction(const PredictOptions& options);

/// What becomes of a classifier's picture: the data set of `predict` where it has transforms, or of
/// `eval`. Errors: kInvalidArgument when there is neither.
const DatasetConfig& picture_dataset(const Config& config);

/// Of a classifier: postprocess.label_list, else the first names in batches.meta.txt beside the
/// data to train on, else "0", "1", ... Errors: kInvalidArgument when the list is of another length
/// than model.head.num_classes.
std::vector<std::string> class_names(const Config& config);

/// From a picture's file to the network's input: the pipeline of `predict`, or of `eval` without
/// the encoding of labels. The picture is kept as decoded beside its resized form.
/// Errors: kInvalidArgument when there is neither.
std::vector<ocr::Transform> picture_pipeline(const Config& config);

/// How pictures are read: the loader of `predict`, or of `eval`, else one at a time.
LoaderConfig picture_loader(const Config& config);

/// The same pipeline for a crop, which is decoded.
std::vector<ocr::Transform> crop_pipeline(const Config& config);

/// How DecodeImage of that pipeline leaves the channels.
ocr::ImageMode picture_mode(const Config& config);

}  // namespace lockstep
