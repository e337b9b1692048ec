#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "lockstep/recipe.h"
#include "lockstep/train/config/built_in_makers.h"
#include "lockstep/train/config/sections.h"
#include "lockstep/train/config/task_settings.h"

namespace lockstep::inline internal {
namespace {

namespace fs = std::filesystem;

void accept_columns(ConfigSection& section) {
  for (const auto* key : {"output_columns", "net_input_column_index", "label_column_index",
                          "meta_data_column_index", "shuffle"}) {
    ignore(section, key);
  }
}

/// dataset_root joined, as os.path.join does: an absolute path stands for itself.
std::vector<fs::path> read_paths(ConfigSection& section, const std::string& key,
                                 const std::string& root) {
  std::vector<fs::path> paths;
  std::vector<std::string> texts;
  section.read(key, texts,
               key == "data_dir" ? "folders; see [files and folders](#files-and-folders)"
                                 : "a file for each of them");
  for (const auto& text : texts) {
    if (text.empty()) section.fail(key, "holds an empty path");
    paths.push_back(fs::path(root) / text);
  }
  return paths;
}

/// Its default; empty, if that follows DatasetUse.
std::string usage_of(DataUse use) {
  if (use == DataUse::kEither) return "";
  return use == DataUse::kTrain ? "train" : "test";
}

/// Cifar10Dataset, Cifar100Dataset, MnistDataset and FashionMnistDataset.
void read_small_images(ConfigSection& section, DatasetConfig& config, DataUse use) {
  std::string dir;
  section.read("data_dir", dir, "a folder; in `eval` that of `train` unless given");
  config.data_dirs = {config.dataset_root.empty() || dir.empty()
                          ? fs::path(dir)
                          : config.dataset_root / fs::path(dir)};
  section.only("label_file", {""}, fmt::format("{} has its labels in its files", config.type));
  if (config.type == "Cifar100Dataset") {
    section.choose("labels", config.coarse, {{"fine", false}, {"coarse", true}},
                   "100 classes, or 20 groups of them");
  } else if (config.type.ends_with("MnistDataset")) {
    config.channels = 3;
    section.choose("channels", config.channels, {{"3", int64_t{3}}, {"1", int64_t{1}}},
                   "of the network's input; 3: equal ones, for the networks of the zoo; in `eval` "
                   "those of `train` unless given");
  }
  config.usage = usage_of(use);
  section.choose("usage", config.usage, {"train", "test", "all"},
                 "which images; all: training and test images");
  section.read("sample_ratio", config.sample_ratios[0], {1e-9, 1}, "part of the records");
  read_class_pipeline(section, config, use != DataUse::kEval, ImageKind::kSmall);
  accept_columns(section);
}

/// Reads the keys of all pictures in files.
void read_picture_steps(ConfigSection& section, DatasetConfig& config, DataUse use) {
  section.read("reduced_decoding", config.reduced_decoding,
               "*ours*: JPEGs are decoded at 1/2, 1/4 or 1/8 of their size where Resize or "
               "RandomResizedCrop, as the first transform, needs no more");
  read_class_pipeline(section, config, use != DataUse::kEval, ImageKind::kInFiles);
  accept_columns(section);
}

/// ImageFolderDataset and ImageListDataset.
void read_picture_files(ConfigSection& section, DatasetConfig& config, DataUse use) {
  const bool training = use != DataUse::kEval;
  const bool folder = config.type == "ImageFolderDataset";
  std::string dir;
  const std::string missing = "is missing: a folder with a sub-folder for each class";
  if (folder && training) section.require("data_dir", missing);
  section.read("data_dir", dir,
               folder ? "a folder with a sub-folder of pictures for each class; in `eval` with "
                        "`held_out` that of `train` unless given"
                      : "a folder, in front of relative paths of the list; in `eval` that of "
                        "`train` unless given");
  config.usage = usage_of(use);
  if (folder) {
    section.only("label_file", {""}, "the sub-folders are the labels");
    section.read("held_out", config.held_out, {0, 1 << 20},
                 "*ours*: of each class one of so many pictures, by a hash of its name, is for "
                 "`usage: test`; 0: every picture is for either");
    if (config.held_out == 1) section.fail("held_out", "must be 0 or at least 2, not 1");
    section.choose("usage", config.usage, {"train", "test", "all"},
                   "with `held_out`: which pictures");
  } else {
    std::string file;
    section.require("label_file", "is missing: a list of pictures and labels");
    section.read("label_file", file,
                 "a list of paths and labels: .csv, .tsv or .jsonl; see [own "
                 "images](../guide/own_images.md)");
    config.label_files = {config.dataset_root / fs::path(file)};
    section.only("usage", {""}, "ImageListDataset uses every picture of its list");
  }
  const bool has_own_folder = !dir.empty() || !folder || (!training && config.held_out > 0);
  if (!has_own_folder && section.settings() == nullptr) {
    section.missing("data_dir",
                    training ? missing : "is missing: a folder, or `held_out` as `train` has it");
  }
  config.data_dirs = {dir.empty() && folder ? fs::path() : config.dataset_root / fs::path(dir)};
  section.read("sample_ratio", config.sample_ratios[0], {1e-9, 1},
               folder ? "the leading part of each class" : "the leading part of the list");
  read_picture_steps(section, config, use);
}

/// WebDataset.
void read_shards(ConfigSection& section, DatasetConfig& config, DataUse use) {
  std::string shards;
  section.require("shards", "is missing: tar archives, such as train-{000..127}.tar");
  section.read("shards", shards,
               "tar archives such as train-{000..127}.tar; see [own images](../guide/"
               "own_images.md)");
  config.label_files = {config.dataset_root / fs::path(shards)};
  config.data_dirs = {fs::path(".")};
  for (const auto* key : {"data_dir", "label_file"}) {
    section.only(key, {""}, "WebDataset has its pictures and labels in `shards`");
  }
  config.usage = usage_of(use);
  section.only("usage", {""}, "WebDataset uses every sample of its shards");
  section.read("sample_ratio", config.sample_ratios[0], {1e-9, 1},
               "the leading part of the samples");
  section.read("shuffle_buffer", config.shuffle_buffer, {0, 1 << 30},
               "*ours*: an epoch goes through the shards in turn and draws from a buffer of so "
               "many samples, so that reads lie close together; 0: it is shuffled over all "
               "shards; of no effect in `eval`");
  read_picture_steps(section, config, use);
}

/// Pictures from files, for a classifier.
void read_pictures(ConfigSection& section, DatasetConfig& config, bool small_images) {
  config.data_dirs = read_paths(section, "data_dir", config.dataset_root);
  for (const auto* key : {"label_file", "sample_ratio", "usage"}) ignore(section, key);
  read_class_pipeline(section, config, false,
                      small_images ? ImageKind::kSmall : ImageKind::kInFiles);
  accept_columns(section);
}

void read_ratios(ConfigSection& section, std::vector<double>& ratios, size_t count) {
  const auto given = section.number_or_list("sample_ratio");
  if (given.empty()) {
    section.read("sample_ratio", ratios[0], {0, 1}, "part of the records; or one for each folder");
  } else {
    ratios = given;
  }
  for (const double ratio : ratios) {
    if (ratio <= 0 || ratio > 1) section.fail("sample_ratio", "must lie above 0, and at most at 1");
  }
  if (ratios.size() == 1) ratios.resize(count, ratios[0]);
  if (ratios.size() != count) {
    section.fail("sample_ratio", fmt::format("must be one number, or a list of {}, one for each "
                                             "data_dir, not of {}",
                                             count, ratios.size()));
  }
}

void read_lmdb(ConfigSection& section, ocr::LmdbOptions& options) {
  section.only("label_file", {""}, "the records of LMDBDataset hold their labels");
  section.read("filter_max_len", options.filter_max_len,
               "labels above `max_text_len` are left out");
  section.read("extra_count_if_repeat", options.extra_count_if_repeat,
               "in that length an equal neighbour counts as one more");
  if (options.filter_max_len && !section.has("max_text_len")) {
    section.missing("max_text_len", "is missing: filter_max_len: True needs it");
  }
  std::optional<int64_t> longest;
  section.read("max_text_len", longest, {1, 1 << 20}, "of a label, with `filter_max_len`");
  options.max_text_len = longest.value_or(options.max_text_len);
  section.read("filter_zero_text_image", options.filter_zero_text_image,
               "labels without a character of the dictionary are left out");
  section.read("character_dict_path", options.character_dict_path, "null: 0-9 and a-z");
  section.read("label_standandize", options.label_standandize,
               "labels are brought to Unicode's form NFKD");
  bool chooses = true;
  section.read("random_choice_if_none", chooses, "True only: a sample that fails never ends a run");
  if (!chooses) {
    section.fail("random_choice_if_none",
                 "must be True: a sample that fails never ends the run; in training another "
                 "replaces it, in evaluation it is left out");
  }
  section.read("check_rec_image", options.check_rec_image,
               "images of at most 6 pixels a side, or undecodable, are left out");
}

void read_label_files(ConfigSection& section, DatasetConfig& config) {
  config.label_files = read_paths(section, "label_file", config.dataset_root);
  const size_t dirs = config.data_dirs.size();
  if (config.label_files.size() == dirs) return;
  section.refuse_misspelt("label_file");
  section.fail("label_file", fmt::format("must be as many as data_dir ({}), not {}", dirs,
                                         config.label_files.size()));
}

}  // namespace

void read_class_dataset(ConfigSection& section, DatasetConfig& config, const TaskSettings& task,
                        DataUse use) {
  if (use == DataUse::kPredict) return read_pictures(section, config, task.small_images);
  const auto read = config.type == "WebDataset"  ? read_shards
                    : config.has_picture_files() ? read_picture_files
                                                 : read_small_images;
  read(section, config, use);
}

void read_ocr_dataset(ConfigSection& section, DatasetConfig& config, const TaskSettings& task,
                      DataUse use) {
  const std::string missing = "is missing: a folder, or a list of them";
  if (use != DataUse::kPredict) section.require("data_dir", missing);
  config.data_dirs = read_paths(section, "data_dir", config.dataset_root);
  if (use != DataUse::kPredict) {
    if (section.has("data_dir") && config.data_dirs.empty()) section.missing("data_dir", missing);
    const bool lmdb = config.type == "LMDBDataset";
    lmdb ? read_lmdb(section, config.lmdb) : read_label_files(section, config);
    read_ratios(section, config.sample_ratios, lmdb ? 1 : config.data_dirs.size());
  } else {
    ignore(section, "label_file");
    ignore(section, "sample_ratio");
  }
  config.shuffle = use == DataUse::kTrain;
  section.read("shuffle", config.shuffle, "of the records, once");
  ignore(section, "use_minddata");
  config.pipeline = read_ocr_pipeline(section, use);
  check_columns(section, config, task, use);
}

namespace {

std::string where_of_source(const ConfigSection& section) {
  for (const auto* key : {"shards", "label_file", "data_dir"}) {
    if (section.has(key)) return section.where(key);
  }
  return section.where("type");
}

/// The keys of a built-in one, but for `type`.
void read_data_keys(ConfigSection& section, DatasetConfig& config, const TaskSettings& task,
                    DataUse use) {
  section.read("dataset_root", config.dataset_root,
               "in front of `data_dir` and `label_file`, unless they are absolute");
  config.source_where = where_of_source(section);
  task.read_dataset(section, config, task, use);
}

/// What a section is for in which a data set of one's own reads another. A recipe reads its data
/// out of `model`, and they are for both.
DataUse use_of_place(const ConfigSection& section) {
  const bool is_listed = section.settings() != nullptr;
  if (is_listed || section.path().starts_with("train.dataset")) return DataUse::kTrain;
  return section.path().starts_with("eval.dataset") ? DataUse::kEval : DataUse::kEither;
}

/// The data sets within train.dataset and eval.dataset of the configuration that is being read, in
/// their order. `train` is read first.
struct WrappedInSections {
  std::vector<DatasetConfig> train, eval;
};
WrappedInSections& wrapped_in_sections() {
  thread_local WrappedInSections wrapped;
  return wrapped;
}

/// With as many data sets of a type within train.dataset as in eval.dataset their order pairs them.
std::optional<DatasetConfig> training_of(const DatasetConfig& config) {
  const auto& [train, eval] = wrapped_in_sections();
  const auto is_same = [&](const DatasetConfig& one) { return one.type == config.type; };
  auto number = std::count_if(eval.begin(), eval.end(), is_same);
  for (const auto& one : train) {
    if (is_same(one) && number-- == 0) return one;
  }
  return std::nullopt;
}

/// Errors: what the trainer does with a data set of its own making, beyond its batches.
void refuse_work_of_trainer(const ConfigSection& section, const DatasetConfig& config) {
  if (config.mixing.any()) {
    section.fail("transform_pipeline",
                 fmt::format("cannot have MixUp or CutMix where {} is a part of another data set: "
                             "they need the number of classes",
                             config.type));
  }
  if (config.shuffle_buffer > 0) {
    section.fail("shuffle_buffer",
                 fmt::format("must be 0 where {} is a part of another data set, which has no order "
                             "of its own",
                             config.type));
  }
}

}  // namespace

WrappedDataset read_wrapped_dataset(ConfigSection& section, const std::string& type,
                                    const TaskSettings& task) {
  const DataUse use = use_of_place(section);
  const bool has_columns = !task.loss_columns.empty();
  if (has_columns && use == DataUse::kEither) {
    section.fail("", fmt::format("{} cannot be a part of a recipe: its columns for training are "
                                 "others than for evaluation; take it within train.dataset and "
                                 "eval.dataset",
                                 type));
  }
  WrappedDataset made{static_cast<ModelType>(&task - all_tasks().data()), {}, std::nullopt};
  if (use != DataUse::kEither) made.training = use == DataUse::kTrain;
  DatasetConfig& config = made.config;
  config.type = type;
  config.where = section.where("type");
  const bool has_list = type == "ImageListDataset" || type == "WebDataset";
  if (!has_columns && !has_list && use != DataUse::kTrain) {
    // That of `train` is not known here.
    section.require("data_dir", "is missing: a folder");
  }
  read_data_keys(section, config, task, use);
  refuse_work_of_trainer(section, config);
  if (use == DataUse::kEval) made.of_training = training_of(config);
  if (use == DataUse::kTrain) wrapped_in_sections().train.push_back(config);
  if (use == DataUse::kEval) wrapped_in_sections().eval.push_back(config);
  return made;
}

DatasetConfig read_dataset(ConfigSection section, const TaskSettings& task, DataUse use) {
  DatasetConfig config;
  config.where = config.source_where = section.where("type");
  if (use == DataUse::kTrain) wrapped_in_sections() = {};
  const bool predicts = use == DataUse::kPredict;
  if (task.recipe != nullptr && task.recipe->data && !predicts) {
    config.type = task.name;
    config.own = {config.type, task.recipe->data};
    section.finish();
    return config;
  }
  config.type = predicts ? "" : task.default_dataset;
  static const Registry<DatasetMaker> none;
  config.own =
      read_part(section, "type", config.type,
                predicts ? std::vector<std::string>{"PredictDataset"} : names_of(task.datasets),
                predicts ? none : datasets(), "the kind of data",
                {"PublayNetDataset", "KieDataset", "PubTabDataset"});
  if (!config.own) {
    if (use == DataUse::kTrain) section.refuse_wrong_name("sampler", "train.loader.sampler");
    read_data_keys(section, config, task, use);
  }
  section.finish();
  return config;
}

LoaderConfig read_loader(ConfigSection section, DataUse use) {
  LoaderConfig config;
  const bool training = use == DataUse::kTrain;
  config.shuffle = training;
  config.drop_remainder = training;
  section.read("shuffle", config.shuffle, "of an epoch; False only in `eval`");
  if (training) {
    section.choose("sampler", config.balanced, {{"random", false}, {"balanced", true}},
                   "*ours*: only in `train`; random: an epoch has each sample once; balanced: of a "
                   "built-in data set of `cls` it draws as many, with replacement, and each class "
                   "as often as any other");
  } else {
    section.only("sampler", {""}, "it is for training alone");
  }
  section.require("batch_size", "is missing");
  section.read("batch_size", config.batch_size, {1, 1 << 24},
               "of a rank, or of each of its virtual ranks");
  section.read("drop_remainder", config.drop_remainder,
               "of no effect in `eval`, where every sample counts");
  section.read("num_workers", config.num_workers, {1, 1024},
               "*ours*: threads that make batches, at most the cores that a rank has");
  section.read("prefetch_size", config.prefetch_size, {1, 1 << 16},
               "*ours*: batches that are made ahead; at least `num_workers` + 1");
  ignore(section, "max_rowsize");
  section.finish();
  if (use != DataUse::kEval) return config;
  if (config.shuffle) section.fail("shuffle", "must be False: evaluation needs no order");
  // MindOCR chooses evaluation's batches small enough to leave no remainder; here the last one may
  // be smaller. Either way every sample counts.
  config.drop_remainder = false;
  return config;
}

}  // namespace lockstep::inline internal
