#pragma once
// The training configuration, typed: MindOCR's sections and keys for `model.type: cls`, `det` and
// `rec`, and our own keys (marked "ours"). Values and defaults are those of MindOCR.
//
// Some keys of MindOCR are checked and then ignored, because they change nothing here: system.mode,
// system.refine_batch_size (evaluation is exact at any batch size), loader.max_rowsize,
// train.max_call_depth, dataset.use_minddata. dataset.output_columns and the *_column_index lists
// must match the inputs of loss and metric. A key that would change the result is never ignored.

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "lockstep/amp_policy.h"
#include "lockstep/data/mixing.h"
#include "lockstep/data/steps.h"
#include "lockstep/models/spec/loss_config.h"
#include "lockstep/models/spec/model_spec.h"
#include "lockstep/ocr/options.h"
#include "lockstep/ocr/transforms/options.h"
#include "lockstep/train/config/node.h"
#include "lockstep/train/config/own_parts.h"

namespace lockstep {
struct Recipe;
}

namespace lockstep::inline internal {

/// One item of a classifier's transform_pipeline. ToCHWImage is accepted and left out: images are
/// in that order anyway.
struct TransformConfig {
  PictureStep step;
  std::string where;  ///< For errors: "FILE:LINE".

  /// A registered one; null for a built-in one.
  const OwnTransform* own() const { return std::get_if<OwnTransform>(&step); }
};

struct DatasetConfig {
  /// Those of small_images(), ImageFolderDataset, ImageListDataset, WebDataset; DetDataset,
  /// SynthTextDataset; RecDataset, LMDBDataset; for `predict` PredictDataset.
  std::string type = "Cifar10Dataset";
  std::string dataset_root;  ///< As written, for the log.
  /// dataset_root joined, unless absolute. At least one, except for `predict`. The classifier's
  /// have one; in `eval` its default is that of `train`.
  std::vector<std::filesystem::path> data_dirs;
  /// The same; as many as data_dirs. WebDataset: its shards, see expand_braces(). Empty for small
  /// images, ImageFolderDataset, LMDBDataset and PredictDataset.
  std::vector<std::filesystem::path> label_files;
  /// One for each of data_dirs: the leading round(n * ratio) of its n records. With `shuffle`
  /// MindOCR's types draw as many at random.
  std::vector<double> sample_ratios = {1.0};
  bool shuffle = false;  ///< Of the records when they are read; loader.shuffle applies per epoch.
  /// Small images, ImageFolderDataset: "train", "test" or "all"; default by section.
  std::string usage;
  int64_t held_out = 0;           ///< ImageFolderDataset: see FolderOptions.
  int64_t shuffle_buffer = 0;     ///< WebDataset: see buffer_order(); 0: torch_randperm().
  bool reduced_decoding = false;  ///< Pictures in files: see PicturePipeline.
  bool coarse = false;            ///< Cifar100Dataset: the 20 groups are the classes.
  /// Of the network's input; 0: those of the data. MnistDataset, FashionMnistDataset: 3 or 1.
  int64_t channels = 0;
  bool has_picture_files() const {
    return type == "ImageFolderDataset" || type == "ImageListDataset" || type == "WebDataset";
  }
  /// Those in a file for all, such as CIFAR-10's.
  bool has_small_images() const { return !own && pipeline.empty() && !has_picture_files(); }
  std::vector<TransformConfig> transforms;   ///< Of the classifier's.
  Mixing mixing;                             ///< The same: MixUp and CutMix, in training.
  std::vector<ocr::Transform> pipeline;      ///< Of the others.
  ocr::LmdbOptions lmdb;                     ///< Of LMDBDataset.
  std::optional<OwnPart<DatasetMaker>> own;  ///< A registered one; all of the above is unused.
  std::string where;                         ///< For errors: "FILE:LINE".
  /// The same of `label_file` or `shards`, else of `data_dir`, whichever has what is read first.
  std::string source_where;
};

struct LoaderConfig {
  bool shuffle = false;
  bool balanced = false;   ///< In training: see balanced_weights().
  int64_t batch_size = 0;  ///< Per virtual rank, which is a rank without parallel.virtual_ranks.
  bool drop_remainder = false;
  int64_t num_workers = 1;
  int64_t prefetch_size = 4;  ///< Minimum number of batches in flight; see batches_ahead().
};

/// Threads that make batches; `cores`: of this rank.
inline int data_threads(const LoaderConfig& config, int cores) {
  return static_cast<int>(std::min<int64_t>(config.num_workers, cores));
}

/// Batches that `threads` make ahead: prefetch_size, but at least one per thread and one that is
/// ready.
inline int64_t batches_ahead(const LoaderConfig& config, int threads) {
  return std::max(config.prefetch_size, int64_t{threads} + 1);
}

// `model:` of a configuration: the network, its parts, and its initial weights.

enum class ModelType : uint8_t { kCls, kDet, kRec };

struct BackboneConfig : BackboneSpec {
  std::optional<OwnPart<BackboneMaker>> own;  ///< A registered one, for kDet and kRec.
  /// Weights of this part: a file, or an address whose file is in the cache (weights.h); empty:
  /// none. `True` is read as MindOCR's address for this name.
  std::string pretrained;
};

struct ModelConfig {
  ModelType type = ModelType::kCls;
  /// A registered task; `type` is kCls then, and `network` the recipe's.
  std::shared_ptr<const Recipe> task;
  std::optional<OwnPart<NetworkMaker>> network;  ///< In the place of the parts.
  BackboneConfig backbone;
  NeckSpec neck;
  HeadSpec head;
  ModelSpec spec() const { return {backbone, neck, head}; }  ///< The network, whatever its weights.
  std::string pretrained;       ///< Weights of the whole model, as BackboneConfig::pretrained.
  bool resume = false;          ///< Resume from a checkpoint, if there is one.
  std::string resume_path;      ///< Its path; empty: the latest in train.ckpt_save_dir.
  std::string given_name;       ///< model.name; empty: none.
  int64_t num_classes() const;  ///< For NetworkMaker and MetricMaker, see there.
  /// given_name, or the network's, or MindOCR's "{backbone}-{neck}-{head}".
  std::string name() const;
};

// `loss:`, `postprocess:` and `metric:` of a configuration.

/// CrossEntropySmooth.
struct CrossEntropyConfig {
  double smoothing = 0;  ///< Label smoothing, in [0, 1).
};

/// FocalLoss, ours.
struct FocalConfig {
  double gamma = 2;             ///< 0: cross entropy.
  std::vector<double> alpha{};  ///< Weights of classes: none, one for all, or one for each.
};

/// BCEWithLogitsLoss, ours.
struct BceConfig {
  double smoothing = 0;              ///< Of labels, in [0, 1); not of several a sample.
  std::vector<double> pos_weight{};  ///< Weights of what is present, as FocalConfig::alpha.
  bool sum_classes = false;          ///< The mean over samples of the sum over classes.
};

/// DistillationLoss, ours: (1 - weight) cross entropy + weight temperature^2 KL(teacher, network),
/// both softened by the temperature. An evaluation has the cross entropy alone.
/// Source: Hinton et al., "Distilling the Knowledge in a Neural Network", 2015.
struct DistillationConfig {
  ModelConfig teacher;     ///< With `pretrained`.
  double temperature = 4;  ///< Above 0.
  double weight = 0.5;     ///< In [0, 1].
  double smoothing = 0;    ///< As CrossEntropyConfig's.
};

using OwnLoss = OwnPart<LoggedLoss>;
using LossConfig = std::variant<CrossEntropyConfig, FocalConfig, BceConfig, DistillationConfig,
                                DbLossConfig, CtcLossConfig, OwnLoss>;
/// That of a classifier's built-in loss in a file; empty for others.
std::string class_loss_name(const LossConfig& loss);

/// ClsPostprocess.
struct ClassNames {
  std::vector<std::string> label_list;  ///< One for each class, in class order; or none.
};

/// ClsPostprocess, DBPostprocess, RecCTCLabelDecode.
using PostprocessConfig =
    std::variant<ClassNames, ocr::DbPostprocessOptions, ocr::CharacterOptions>;

/// How figures of classes become one: the mean over classes; the figure of all classes' counts
/// together; or one figure for each class.
enum class Average : uint8_t { kMacro, kMicro, kClass };

using OwnMetric = OwnPart<MetricMaker>;

struct MetricConfig {
  /// One or more of ClsMetric, TopKMetric, F1Metric, AucMetric, MapMetric, or DetMetric, or
  /// RecMetric, by the type of the model, and registered ones. The log has their figures in this
  /// order.
  std::vector<std::string> names = {"ClsMetric"};
  std::vector<OwnMetric> own;  ///< The registered ones of `names`.
  /// Ranks the checkpoints: one of the figures, by default the first.
  std::string main_indicator = "acc";
  /// TopKMetric without `k`; 5 only if there are more than 5 classes.
  static constexpr std::array<int64_t, 2> kDefaultTopK = {1, 5};
  std::vector<int64_t> top_k;  ///< TopKMetric; empty: see top_ks().
  /// top_k, or by default those of kDefaultTopK that fit `classes`; 0: unknown.
  std::vector<int64_t> top_ks(int64_t classes) const;
  std::vector<Average> averages = {Average::kMacro};  ///< F1Metric.
  ocr::DetMetricOptions det;
  ocr::RecMetricOptions rec;
};

enum class LogStyle : uint8_t { kMindocr, kMindspore };

struct SystemConfig {
  std::optional<bool> distribute;  ///< False under a launcher of several ranks is an error.
  int64_t device_id = 0;           ///< CUDA device of a program without a launcher.
  int64_t seed = 42;
  std::string log_level = "logging.INFO";
  LogStyle log_style = LogStyle::kMindocr;  ///< Ours.
  int64_t log_interval = 100;               ///< Micro-steps.
  int64_t log_interval_seconds = 30;        ///< Ours: most time between lines; 0: no limit.
  bool tensorboard = false;                 ///< Ours: event files beside metrics.jsonl.
  bool val_while_train = false;
  int64_t val_start_epoch = 1;
  int64_t val_interval = 1;                ///< Epochs.
  std::string ckpt_save_policy = "top_k";  ///< "top_k", "latest_k" or "" (null: keep all).
  int64_t ckpt_max_keep = 10;
  AmpLevel amp_level = AmpLevel::kO0;        ///< Of training, and of evaluation within it.
  AmpLevel amp_level_infer = AmpLevel::kO0;  ///< Of evaluation alone.
  /// Skips an optimizer step whose loss or gradients are not all finite, and its place in the
  /// learning-rate schedule. If off, such a step ends the run with a static loss_scaler. A dynamic
  /// one always skips it: see drops_overflows().
  bool drop_overflow_update = false;
};

/// When a metric of evaluation no longer improves. Ours.
struct PatienceConfig {
  /// "loss", of which less is better, or one of the task's, as its metric has it; empty in a file:
  /// main_indicator.
  std::string metric;
  int64_t patience = 5;  ///< So many evaluations in a row.
  double min_delta = 0;  ///< A smaller gain is none.
};

struct SchedulerConfig {
  std::string scheduler = "constant";
  double lr = 0.01;  ///< Peak.
  double min_lr = 1e-6;
  double warmup_epochs = 3;
  double warmup_factor = 0;  ///< Warm-up starts at lr * warmup_factor.
  double decay_epochs = 10;
  double decay_rate = 0.9;
  std::vector<int64_t> milestones;  ///< Epochs, from the end of warm-up.
  int64_t num_epochs = 200;
  int64_t num_cycles = 1;
  double cycle_decay = 1;
  double cycle_factor = 1;  ///< Ours: of the length from one cycle to the next.
  bool lr_epoch_stair = false;
  double pct_start = 0.3;         ///< Ours, one_cycle: part of the run in which lr rises.
  double div_factor = 25;         ///< Ours, one_cycle: starts at lr / div_factor.
  double final_div_factor = 1e4;  ///< Ours, one_cycle: ends at that start / final_div_factor.
  PatienceConfig plateau;         ///< Ours, reduce_on_plateau.
  std::optional<OwnPart<Schedule>> own;  ///< A registered one, after warm-up.
};

/// One of optimizer.groups. Ours.
struct GroupConfig {
  std::vector<std::string> params;     ///< Patterns: see selects().
  std::optional<double> lr_scale;      ///< Of scheduler.lr; none: that of the layer.
  std::optional<double> weight_decay;  ///< None: that of the optimizer.
  bool frozen = false;
  bool keep_statistics = false;  ///< Of batch norm; with `frozen`.
  std::string where;             ///< For errors: "FILE:LINE".
};

struct OptimizerConfig {
  /// "sgd", "momentum", "nesterov" (all SGD), "adam", "adamw", "adagrad"; "lion", "nadam", "adan",
  /// "rmsprop", "lamb": see RuleOptimizer.
  std::string opt = "adam";
  double weight_decay = 0;
  double momentum = 0.9;
  bool nesterov = false;
  // Exceptions from weight decay. MindOCR has three keys for them, of which the first that is set
  // counts. None takes effect: the group without decay gets no value of its own, and MindSpore
  // gives it the optimizer's. Figures of its recipes depend on that.
  /// Ours. "exact": the keys below apply as documented. "mindspore": everything decays if any of
  /// them is set (or left at its default True). With none, the scales and shifts of norms do not
  /// decay, except with SGD ("sgd") and Adan. Default: "exact" for model.type cls, else
  /// "mindspore".
  bool exact_decay = true;
  std::string grouping_strategy;                    ///< "svtr", "filter_norm_and_bias" or "".
  std::vector<std::string> no_weight_decay_params;  ///< Parts of names that do not decay.
  bool filter_bias_and_bn = true;  ///< Biases and the parameters of norms do not decay.
  double beta1 = 0.9;
  double beta2 = 0.999;
  double beta3 = 0.99;              ///< adan.
  double eps = 1e-8;                ///< In MindOCR only for rmsprop.
  bool use_amsgrad = false;         ///< adam, adamw.
  double dampening = 0;             ///< sgd.
  double decay = 0.9;               ///< rmsprop.
  bool centered = false;            ///< rmsprop.
  double accum = 0.1;               ///< adagrad: initial value of the sum.
  double schedule_decay = 4e-3;     ///< nadam.
  std::vector<GroupConfig> groups;  ///< Ours. The first that selects a parameter counts.
  double layer_decay = 1;           ///< Ours: see layer_scales().
  std::optional<OwnPart<OptimizerOfGroups>> own;  ///< A registered one.
};

/// An absent section means a static scale of 1. The scale changes after optimizer steps, not
/// micro-steps, so factor and window keep their meaning under gradient accumulation.
struct LossScalerConfig {
  bool dynamic = LossScaleOptions().dynamic;          ///< type: "dynamic" or "static".
  double loss_scale = LossScaleOptions().init_scale;  ///< Static, or the initial one.
  /// An overflow divides by it, but not below 1.
  double scale_factor = LossScaleOptions().growth_factor;
  /// Steps without overflow before the scale is multiplied.
  int64_t scale_window = LossScaleOptions().growth_interval;
  LossScaleOptions options() const;
};

struct TrainSection {
  std::filesystem::path ckpt_save_dir;
  bool dataset_sink_mode = false;  ///< True: no step lines.
  int64_t gradient_accumulation_steps = 1;
  bool clip_grad = false;
  double clip_norm = 1;
  /// Evaluates and saves a moving average of all weights, including batch norm's statistics.
  bool ema = false;
  double ema_decay = 0.9999;
  int64_t ckpt_save_steps = 0;  ///< Ours: also after so many optimizer steps; 0: never.
  /// Ours: save every so many epochs. The best and the last are always saved.
  int64_t ckpt_save_epochs = 1;
  /// Ours: seconds that ranks wait for a rank that reads data or writes a checkpoint.
  int64_t disk_timeout_s = 1800;
  /// Ours: format of best.EXT and e{N}.EXT, written beside the checkpoints: "ckpt" (the default for
  /// `det` and `rec`), "safetensors" or "none" (the default for `cls`).
  std::string weights_format = "none";
  int64_t max_steps = 0;  ///< Ours: stop after so many optimizer steps in total; 0: no limit.
  std::optional<PatienceConfig> early_stopping;  ///< Ours.
  DatasetConfig dataset;
  LoaderConfig loader;
};

struct EvalSection {
  std::string ckpt_load_path;  ///< For evaluation alone; empty: the best in ckpt_save_dir.
  DatasetConfig dataset;
  LoaderConfig loader;
};

/// Of `lockstep predict`.
struct PredictSection {
  std::string ckpt_load_path;
  std::filesystem::path output_save_dir = "output";
  std::string vis_font_path;             ///< A font file; empty: the system's.
  int64_t top_k = 5;                     ///< Ours: a classifier's classes of a picture in results.
  std::optional<DatasetConfig> dataset;  ///< Default: that of eval.
  std::optional<LoaderConfig> loader;    ///< The same.
};

/// How learning rates follow the global batch.
enum class RateScale : uint8_t { kNone, kLinear, kSqrt };

/// Ours.
struct ParallelConfig {
  /// Parts of the global batch, each of loader.batch_size samples. 0: one per rank. With V > 0 a
  /// run gives the same bits on every number of ranks up to V; see DistributedDataParallel.
  int64_t virtual_ranks = 0;
  /// Intra-op threads of a rank; bits depend on their number. 0: the rank's share of the cores (see
  /// World::threads). With `virtual_ranks` it is 1, as that share depends on the number of ranks.
  int64_t threads = 0;
  std::string device = "auto";    ///< "auto", "cpu", "cuda": see choose_compute_device().
  std::string backend = "auto";   ///< Of the process group.
  bool any_order = false;         ///< `order: any`: see GroupOptions::order.
  double bucket_cap_mb = 25;      ///< Of gradient buckets, MiB.
  bool broadcast_buffers = true;  ///< This and the next four: defaults only with `virtual_ranks`.
  bool find_unused_parameters = false;  ///< Parameters may be left out of a step's loss.
  /// Every step uses the same parameters, so the search for unused ones costs nothing.
  bool static_graph = false;
  /// Format of gradients in transit: "none" (as they are), "fp16" or "bf16" (half the bytes),
  /// "int8" (a quarter) or "powersgd" (low-rank factors of matrices, after 1000 steps). "auto"
  /// tries none and bf16 in the first steps and takes the faster one.
  std::string comm_hook = "none";
  bool sync_bn = false;     ///< Batch norm computes its statistics over the batches of all ranks.
  int64_t timeout_s = 300;  ///< Of every collective.
  /// Multiplies every learning rate by the global batch's share of reference_batch, or its root.
  RateScale scale_rate = RateScale::kNone;
  int64_t reference_batch = 0;  ///< Samples, for which scheduler.lr is meant; with scale_rate.
  /// Samples of an optimizer step over all ranks, whatever their number; see share_global_batch().
  /// 0: they grow with the ranks.
  int64_t global_batch = 0;
  /// Measures in each step how long this rank waited for the slowest one.
  bool measure_wait = false;
};

struct Config {
  SystemConfig system;
  ModelConfig model;
  MetricConfig metric;
  LossConfig loss;
  PostprocessConfig postprocess;
  SchedulerConfig scheduler;
  OptimizerConfig optimizer;
  std::optional<LossScalerConfig> loss_scaler;
  TrainSection train;
  std::optional<EvalSection> eval;        ///< Present when the file has the section.
  std::optional<PredictSection> predict;  ///< The same.
  ParallelConfig parallel;
  std::vector<OwnPart<CallbackMaker>> callbacks;  ///< Ours: registered ones.
  Node effective;      ///< All of it, overrides and defaults included; see write_yaml().
  std::string source;  ///< Text of the file as it was read.
  std::string recipe;  ///< Path of the file, if it is an installed recipe.
};

/// Reads and checks a file or installed recipe (recipe_file.h). `overrides`: as in overrides.h.
/// Errors: kNotFound; kInvalidArgument "FILE:LINE: ...", with the key and what is allowed.
Config load_config(const std::filesystem::path& path, std::span<const std::string> overrides = {});

/// The same for a tree, which becomes Config::effective. `settings`, if any, gets a record of each
/// key that was read.
Config read_config(Node tree, Settings* settings = nullptr);

/// The warning for training and evaluation that take parts of one folder by different `held_out`;
/// else empty.
std::string held_out_note(const Config& config);

/// Whether steps that overflow are skipped: with system.drop_overflow_update or a dynamic scaler.
bool drops_overflows(const Config& config);

}  // namespace lockstep::inline internal
