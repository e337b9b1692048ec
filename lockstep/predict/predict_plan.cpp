#include "lockstep/predict/predict_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/data/pictures/folder.h"
#include "lockstep/data/pictures/list.h"
#include "lockstep/data/small_images.h"
#include "lockstep/error.h"
#include "lockstep/recipe.h"
#include "lockstep/train/config/task_settings.h"
#include "lockstep/train/config/weights.h"

namespace lockstep::inline internal {
namespace {

namespace fs = std::filesystem;

Error wrong(const std::string& text) {
  return Error(ErrorCode::kInvalidArgument, text);
}

bool is_config(const std::string& path) {
  return path.ends_with(".yaml") || path.ends_with(".yml");
}

std::string option_of(ModelType type) {
  return std::string("--") + task_settings(type).name;
}

/// The files given to one of --cls, --det and --rec.
struct StageFiles {
  std::string config;
  std::string weights;
};

StageFiles sort_out(const std::vector<std::string>& values, ModelType type) {
  StageFiles files;
  for (const std::string& value : values) {
    std::string& place = is_config(value) ? files.config : files.weights;
    if (!place.empty()) {
      throw wrong(
          fmt::format("{} takes one .yaml file and one file of weights; '{}' and '{}' are "
                      "two of a kind",
                      option_of(type), place, value));
    }
    place = value;
  }
  return files;
}

fs::path best_of(const TrainSection& train) {
  auto best = best_weights(train);
  if (!best.empty()) return best;
  if (fs::exists(train.ckpt_save_dir / "latest")) return train.ckpt_save_dir / "latest";
  throw Error(ErrorCode::kNotFound,
              fmt::format("no weights: predict.ckpt_load_path is not set and there is no best.ckpt "
                          "in train.ckpt_save_dir ({})",
                          train.ckpt_save_dir.string()));
}

fs::path existing(const std::string& path, const std::string& named_by) {
  if (fs::exists(path)) return path;
  throw Error(ErrorCode::kNotFound, fmt::format("weights {} ({}) do not exist", path, named_by));
}

fs::path weights_of(const Config& config, const std::string& given) {
  if (!given.empty()) return existing(given, option_of(config.model.type));
  if (config.predict && !config.predict->ckpt_load_path.empty()) {
    return existing(config.predict->ckpt_load_path, "predict.ckpt_load_path");
  }
  if (config.eval && !config.eval->ckpt_load_path.empty()) {
    return existing(config.eval->ckpt_load_path, "eval.ckpt_load_path");
  }
  return best_of(config.train);
}

PredictStage make_stage(Config config, const StageFiles& files) {
  const auto& task = config.model.task;
  if (task && task->num_classes == 0) {
    throw wrong(
        fmt::format("model.type {} has no classes (Recipe::num_classes), and predict is "
                    "for classifiers",
                    task->name));
  }
  // Checks that pictures can be processed.
  if (std::holds_alternative<ClassNames>(config.postprocess)) {
    picture_dataset(config);
  } else {
    picture_pipeline(config);
  }
  PredictStage stage{std::move(config), {}};
  stage.weights = weights_of(stage.config, files.weights);
  if (std::holds_alternative<ClassNames>(stage.config.postprocess)) {
    class_names(stage.config, stage.weights);
  }
  return stage;
}

/// The stage of `type`, from its own option or from --config.
std::optional<PredictStage> find_stage(ModelType type, const std::vector<std::string>& values,
                                       const std::optional<Config>& common,
                                       const PredictOptions& options) {
  const StageFiles files = sort_out(values, type);
  const bool in_common = common && common->model.type == type;
  if (!files.config.empty()) {
    if (in_common) {
      throw wrong(fmt::format("--config {} and {} {} are both for model.type {}", options.config,
                              option_of(type), files.config, task_settings(type).name));
    }
    Config own = load_config(files.config, options.overrides);
    if (own.model.type != type) {
      throw wrong(fmt::format("{} {}: its model.type is {}", option_of(type), files.config,
                              task_settings(own.model.type).name));
    }
    return make_stage(std::move(own), files);
  }
  if (in_common) return make_stage(*common, files);
  if (files.weights.empty()) return std::nullopt;
  throw wrong(
      fmt::format("{} {} are weights, of a network that no .yaml file describes; give its "
                  "file by --config or by a second {}",
                  option_of(type), files.weights, option_of(type)));
}

bool encodes_labels(const ocr::Transform& step) {
  return std::holds_alternative<ocr::DetLabelEncode>(step) ||
         std::holds_alternative<ocr::RecCTCLabelEncode>(step);
}

bool decodes(const ocr::Transform& step) {
  return std::holds_alternative<ocr::DecodeImage>(step);
}

const ocr::DecodeImage* decoder(const std::vector<ocr::Transform>& pipeline) {
  const auto found = std::find_if(pipeline.begin(), pipeline.end(), decodes);
  return found == pipeline.end() ? nullptr : &std::get<ocr::DecodeImage>(*found);
}

fs::path input_of(const PredictOptions& options, const PredictStage& first) {
  if (!options.input.empty()) return options.input;
  const auto& predict = first.config.predict;
  if (predict && predict->dataset && !predict->dataset->data_dirs.empty()) {
    return predict->dataset->data_dirs.front();
  }
  throw wrong("nothing to predict: --input IMAGE|FOLDER, or the key predict.dataset.data_dir");
}

fs::path output_of(const PredictOptions& options, const PredictStage& first) {
  if (!options.output.empty()) return options.output;
  return first.config.predict ? first.config.predict->output_save_dir : fs::path("output");
}

std::vector<std::string> names_of_small_images(const DatasetConfig& train) {
  return small_images(train.type, train.coarse).class_names(train.data_dirs.front());
}

std::vector<std::string> names_of_pictures(const Config& config) {
  const DatasetConfig& train = config.train.dataset;
  if (train.type == "WebDataset") return {};  // its classes are numbers
  const fs::path& folder = train.data_dirs.front();
  try {
    if (train.type == "ImageFolderDataset") return folder_classes(folder).names;
    ListOptions options{folder, config.model.head.num_classes, {}};
    options.looks = false;
    return read_list(train.label_files.front(), options).classes().names;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kNotFound) throw;
    return {};  // weights may be used where the data are not
  }
}

}  // namespace

std::string PredictPlan::result_file() const {
  if (cls) return "cls_results.txt";
  if (det && rec) return "system_results.txt";
  return det ? "det_results.txt" : "rec_results.txt";
}

PredictPlan plan_prediction(const PredictOptions& options) {
  std::optional<Config> common;
  if (!options.config.empty()) common = load_config(options.config, options.overrides);
  PredictPlan plan;
  plan.cls = find_stage(ModelType::kCls, options.cls, common, options);
  plan.det = find_stage(ModelType::kDet, options.det, common, options);
  plan.rec = find_stage(ModelType::kRec, options.rec, common, options);
  if (!plan.cls && !plan.det && !plan.rec) {
    throw wrong(
        "no network: --config FILE, --cls FILE, --det FILE or --rec FILE, a .yaml file each");
  }
  if (plan.cls && (plan.det || plan.rec)) {
    throw wrong("a classifier (model.type cls) works alone, without --det and --rec");
  }
  plan.input = input_of(options, plan.first());
  plan.output = output_of(options, plan.first());
  plan.drop_score = options.drop_score;
  plan.draw = options.draw;
  return plan;
}

namespace {

/// Pictures are made as in training: those of small images get their size first, and need a list
/// that is meant for it.
void check_same_steps(const DatasetConfig& train, const DatasetConfig& eval) {
  if (eval.transforms.empty() || train.has_small_images() == !eval.has_picture_files()) return;
  throw wrong(fmt::format(
      "{}: eval.dataset.type is {}, train.dataset.type is {}: to predict, the configuration needs "
      "a section predict with a dataset.transform_pipeline",
      eval.where, eval.type, train.type));
}

}  // namespace

const DatasetConfig& picture_dataset(const Config& config) {
  const auto& predict = config.predict;
  if (predict && predict->dataset && !predict->dataset->transforms.empty()) {
    return *predict->dataset;
  }
  if (config.eval && !config.eval->dataset.own) {
    check_same_steps(config.train.dataset, config.eval->dataset);
    return config.eval->dataset;
  }
  if (config.eval) {
    throw wrong(fmt::format(
        "to predict after training on '{}', the configuration needs a section predict with a "
        "dataset.transform_pipeline: what makes the network's input of a picture",
        config.eval->dataset.own->name));
  }
  throw wrong(
      "to predict, the configuration needs a section predict or eval with a "
      "dataset.transform_pipeline");
}

std::vector<std::string> class_names(const Config& config, const fs::path& weights) {
  const auto count = static_cast<size_t>(config.model.head.num_classes);
  if (count == 0) throw wrong("model.head.num_classes is missing: to predict, it is needed");
  auto names = std::get<ClassNames>(config.postprocess).label_list;
  if (!names.empty() && names.size() != count) {
    throw wrong(fmt::format("postprocess.label_list has {} names, model.head.num_classes is {}",
                            names.size(), count));
  }
  if (!names.empty()) return names;
  if (!weights.empty()) names = trained_class_names(weights);
  const std::string from = names.empty() ? "the data of training have" : "classes.txt has";
  const DatasetConfig& train = config.train.dataset;
  if (names.empty() && !train.own) {
    names = train.has_picture_files() ? names_of_pictures(config) : names_of_small_images(train);
  }
  if (names.size() > count) {
    throw wrong(
        fmt::format("{} {} names of classes, model.head.num_classes is {}: name those of the "
                    "weights by postprocess.label_list",
                    from, names.size(), count));
  }
  while (names.size() < count) names.push_back(std::to_string(names.size()));
  return names;
}

std::vector<ocr::Transform> picture_pipeline(const Config& config) {
  std::vector<ocr::Transform> pipeline;
  if (config.predict && config.predict->dataset) {
    pipeline = config.predict->dataset->pipeline;
  } else if (config.eval) {
    pipeline = config.eval->dataset.pipeline;
  }
  std::erase_if(pipeline, encodes_labels);
  const auto decode = std::find_if(pipeline.begin(), pipeline.end(), decodes);
  if (decode == pipeline.end()) {
    throw wrong(
        "to predict, the configuration needs a section predict or eval whose "
        "dataset.transform_pipeline begins with DecodeImage");
  }
  std::get<ocr::DecodeImage>(*decode).keep_ori = true;
  return pipeline;
}

size_t shown_classes(const Config& config) {
  const auto most =
      static_cast<size_t>(config.predict ? config.predict->top_k : PredictSection().top_k);
  return std::min(most, static_cast<size_t>(config.model.head.num_classes));
}

LoaderConfig picture_loader(const Config& config) {
  if (config.predict && config.predict->loader) return *config.predict->loader;
  if (config.eval) return config.eval->loader;
  LoaderConfig single;
  single.batch_size = 1;
  return single;
}

std::vector<ocr::Transform> crop_pipeline(const Config& config) {
  auto pipeline = picture_pipeline(config);
  std::erase_if(pipeline, decodes);
  return pipeline;
}

ocr::ImageMode picture_mode(const Config& config) {
  return decoder(picture_pipeline(config))->img_mode;
}

}  // namespace lockstep::inline internal
