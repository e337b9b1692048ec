#pragma once
// The plan of `lockstep predict`: its networks, their weights, and the pictures.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/ocr/transforms/options.h"
#include "lockstep/train/config/config.h"

namespace lockstep::inline internal {

/// The options of the command line.
struct PredictOptions {
  std::string config;                  ///< YAML of one network; may be empty.
  std::vector<std::string> det;        ///< For the detector: a YAML file, weights, or both.
  std::vector<std::string> rec;        ///< The same for the recogniser.
  std::vector<std::string> cls;        ///< The same for a classifier.
  std::string input;                   ///< Picture or folder; empty: predict.dataset.data_dir.
  std::string output;                  ///< Empty: predict.output_save_dir.
  std::vector<std::string> overrides;  ///< For every configuration, see overrides.h.
  double drop_score = 0.5;             ///< Least confidence of a text in a result of both networks.
  bool draw = true;                    ///< Write a copy of each picture with the results.
};

/// One network.
struct PredictStage {
  Config config;
  std::filesystem::path weights;
};

/// A classifier, or at least one of the two networks for text; with both, the recogniser reads the
/// detector's regions.
struct PredictPlan {
  std::optional<PredictStage> cls;
  std::optional<PredictStage> det;
  std::optional<PredictStage> rec;
  std::filesystem::path input;
  std::filesystem::path output;
  double drop_score = 0;
  bool draw = false;

  /// The first network for the pictures.
  const PredictStage& first() const { return cls ? *cls : det ? *det : *rec; }
  /// Whether a picture itself is needed once the network's input is made: to draw it, or to cut
  /// text out for the recogniser. Words are not drawn.
  bool keeps_pictures() const { return (det && rec) || (draw && (cls || det)); }
  /// "cls_results.txt", "det_results.txt", "rec_results.txt" or "system_results.txt".
  std::string result_file() const;
  /// "cls_results.csv" of a classifier; else empty: there is none.
  std::string table_file() const { return cls ? "cls_results.csv" : ""; }
};

/// Reads the configurations and checks that the weights exist. Weights that are not named:
/// predict.ckpt_load_path, else eval.ckpt_load_path, else the best of train.ckpt_save_dir, else its
/// latest. Errors: kInvalidArgument (contradicting options, a key; naming it), kNotFound (a file).
PredictPlan plan_prediction(const PredictOptions& options);

/// The data set section with the transforms of a classifier's picture: that of `predict` if it has
/// transforms, or of `eval`. Errors: kInvalidArgument if there is neither, or if that of `eval` is
/// a registered one, which makes batches and not pictures. The same if its transforms take small
/// images and training had others, or the reverse.
const DatasetConfig& picture_dataset(const Config& config);

/// Class names of a classifier: postprocess.label_list, else those that training left beside the
/// weights (see trained_class_names()), else those of the training data if these are there. Where
/// names are missing they are "0", "1", ... The training data's are the names in batches.meta.txt,
/// or those of a data set of pictures in files. Errors: kInvalidArgument if the list's length
/// differs from model.head.num_classes, if there are more names than that, or if it is missing;
/// those of read_list().
std::vector<std::string> class_names(const Config& config,
                                     const std::filesystem::path& weights = {});

/// Transforms from a picture's file to the network's input: the pipeline of `predict`, or of `eval`
/// without the encoding of labels. The decoded picture is kept beside its resized form. Errors:
/// kInvalidArgument if there is neither.
std::vector<ocr::Transform> picture_pipeline(const Config& config);

/// A classifier's classes of a picture in the results: predict.top_k, at most all.
size_t shown_classes(const Config& config);

/// The loader for pictures: that of `predict`, or of `eval`, else one at a time.
LoaderConfig picture_loader(const Config& config);

/// The same pipeline for a crop, which is already decoded.
std::vector<ocr::Transform> crop_pipeline(const Config& config);

/// The order of channels after DecodeImage of that pipeline.
ocr::ImageMode picture_mode(const Config& config);

}  // namespace lockstep::inline internal
