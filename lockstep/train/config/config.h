#pragma once
// The training configuration, typed: MindOCR's sections and keys for `model.type: cls`, `det` and
// `rec`, and the keys of our own (marked "ours"). Values stand as MindOCR defines them; defaults
// are MindOCR's.
//
// Keys of MindOCR that change nothing here are checked and then left alone: system.mode (graph or
// eager), system.refine_batch_size (evaluation is exact at any batch size), loader.max_rowsize,
// train.max_call_depth, dataset.use_minddata (who decodes). dataset.output_columns and the
// *_column_index lists must say what loss and metric take. Keys that would change the result and
// cannot be honoured are errors, never ignored.

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "lockstep/amp_level.h"
#include "lockstep/loss_scale.h"
#include "lockstep/models/spec/loss_config.h"
#include "lockstep/models/spec/model_spec.h"
#include "lockstep/ocr/data/options.h"
#include "lockstep/ocr/metrics/options.h"
#include "lockstep/ocr/postprocess/options.h"
#include "lockstep/ocr/transforms/options.h"
#include "lockstep/train/config/node.h"

namespace lockstep {

// `dataset:` and `loader:` of a configuration.

/// One item of a classifier's transform_pipeline: RandomCrop {size, padding}, RandomHorizontalFlip
/// {prob}, Normalize {mean, std} of pixels in [0, 1], or NormalizeImage {mean, std} of pixels in
/// [0, 255]. ToCHWImage is accepted and left out: images are in that order anyway.
struct TransformConfig {
  std::string name;
  std::map<std::string, std::vector<double>> args;  ///< A single number is a list of one.
  std::string where;                                ///< For errors: "FILE:LINE".
};

struct DatasetConfig {
  /// Cifar10Dataset; DetDataset, SynthTextDataset; RecDataset, LMDBDataset; of `predict`
  /// PredictDataset.
  std::string type = "Cifar10Dataset";
  std::string dataset_root;  ///< As written, for the log.
  /// dataset_root joined, unless absolute. At least one but for `predict`; of Cifar10Dataset one,
  /// and in `eval` that of `train` when it is absent.
  std::vector<std::filesystem::path> data_dirs;
  /// The same; as many as data_dirs. None of Cifar10Dataset, LMDBDataset and PredictDataset.
  std::vector<std::filesystem::path> label_files;
  /// One for each of data_dirs. The leading round(n * ratio) of its n records, but with `shuffle`
  /// so many drawn at random, where the type is one of MindOCR's.
  std::vector<double> sample_ratios = {1.0};
  bool shuffle = false;  ///< Of the records when they are read; loader.shuffle is that of an epoch.
  std::string usage;     ///< Cifar10Dataset: "train" or "test": which files. By section if absent.
  std::vector<TransformConfig> transforms;  ///< Of Cifar10Dataset.
  std::vector<ocr::Transform> pipeline;     ///< Of the others.
  ocr::LmdbOptions lmdb;                    ///< Of LMDBDataset.
  std::string where;                        ///< For errors: "FILE:LINE".
};

struct LoaderConfig {
  bool shuffle = false;
  int64_t batch_size =
      0;  ///< Per virtual rank: per rank, unless parallel.virtual_ranks says otherwise.
  bool drop_remainder = false;
  int64_t num_workers = 1;
  int64_t prefetch_size = 4;  ///< Batches in flight at least; see batches_ahead().
};

/// Threads that make batches, where a rank has `cores` of its own.
inline int data_threads(const LoaderConfig& config, int cores) {
  return static_cast<int>(std::min<int64_t>(config.num_workers, cores));
}

/// Batches that `threads` make ahead: prefetch_size, but at least one in the making for each thread
/// and one that is ready.
inline int64_t batches_ahead(const LoaderConfig& config, int threads) {
  return std::max(config.prefetch_size, int64_t{threads} + 1);
}

// `model:` of a configuration: which network, of which parts, and from which weights it starts.

enum class ModelType : uint8_t { kCls, kDet, kRec };

struct BackboneConfig : BackboneSpec {
  /// Weights of this part: a file, or an address whose file lies in the cache (weights.h); empty:
  /// none. `True` is read as the address that MindOCR has for this name.
  std::string pretrained;
};

struct ModelConfig {
  ModelType type = ModelType::kCls;
  BackboneConfig backbone;
  NeckSpec neck;
  HeadSpec head;
  ModelSpec spec() const { return {backbone, neck, head}; }  ///< The network, whatever its weights.
  std::string pretrained;    ///< Weights of the whole model, as BackboneConfig::pretrained.
  bool resume = false;       ///< Go on from a checkpoint, if there is one.
  std::string resume_path;   ///< Which; empty: the latest in train.ckpt_save_dir.
  std::string given_name;    ///< model.name; empty: none.
  std::string name() const;  ///< That, else "{backbone}-{neck}-{head}", as MindOCR's banner has it.
};

// `loss:`, `postprocess:` and `metric:` of a configuration.

/// CrossEntropySmooth.
struct CrossEntropyConfig {
  double smoothing = 0;  ///< Label smoothing, in [0, 1).
};

using LossConfig = std::variant<CrossEntropyConfig, DbLossConfig, CtcLossConfig>;

/// ClsPostprocess.
struct ClassNames {
  std::vector<std::string> label_list;  ///< One for each class, in their order; or none.
};

/// ClsPostprocess, DBPostprocess, RecCTCLabelDecode.
using PostprocessConfig =
    std::variant<ClassNames, ocr::DbPostprocessOptions, ocr::CharacterOptions>;

struct MetricConfig {
  std::string name = "ClsMetric";  ///< Or DetMetric, RecMetric.
  /// By which checkpoints are ranked. ClsMetric: "acc" or "top_5"; DetMetric: "f-score", "recall"
  /// or "precision"; RecMetric: "acc" or "norm_edit_distance".
  std::string main_indicator = "acc";
  ocr::DetMetricOptions det;
  ocr::RecMetricOptions rec;
};

struct Setting;

enum class LogStyle : uint8_t { kMindocr, kMindspore };

struct SystemConfig {
  std::optional<bool> distribute;  ///< False under a launcher of several ranks is an error.
  int64_t device_id = 0;           ///< CUDA device of a program that is alone.
  int64_t seed = 42;
  std::string log_level = "logging.INFO";
  LogStyle log_style = LogStyle::kMindocr;  ///< Ours.
  int64_t log_interval = 100;               ///< Micro-steps.
  int64_t log_interval_seconds = 30;        ///< Ours: a line at least so often; 0: by steps alone.
  bool val_while_train = false;
  int64_t val_start_epoch = 1;
  int64_t val_interval = 1;                ///< Epochs.
  std::string ckpt_save_policy = "top_k";  ///< "top_k", "latest_k" or "" (null: keep all).
  int64_t ckpt_max_keep = 10;
  AmpLevel amp_level = AmpLevel::kO0;        ///< Of training, and of evaluation within it.
  AmpLevel amp_level_infer = AmpLevel::kO0;  ///< Of evaluation alone.
  /// An optimizer step whose loss or gradients are not all finite is left out, and so is its place
  /// in the learning-rate schedule. Off, with a static loss_scaler: such a step ends the run; a
  /// dynamic one leaves it out all the same: see drops_overflows().
  bool drop_overflow_update = false;
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
  bool lr_epoch_stair = false;
  double pct_start = 0.3;         ///< Ours, one_cycle: part of the run in which lr rises.
  double div_factor = 25;         ///< Ours, one_cycle: starts at lr / div_factor.
  double final_div_factor = 1e4;  ///< Ours, one_cycle: ends at that start / final_div_factor.
};

struct OptimizerConfig {
  /// "sgd", "momentum", "nesterov" (all SGD), "adam", "adamw", "adagrad"; "lion", "nadam", "adan",
  /// "rmsprop", "lamb": see RuleOptimizer.
  std::string opt = "adam";
  double weight_decay = 0;
  double momentum = 0.9;
  bool nesterov = false;
  // What does not decay. MindOCR has three keys for it, the first that is set counts, and none of
  // them takes effect: it leaves the group that should not decay without a value of its own, and
  // MindSpore gives it the optimizer's. Figures of its recipes depend on that.
  /// Ours. "exact": the keys below mean what they say. "mindspore": with any of them set (or left
  /// at its default True) everything decays; with none, scales and shifts of norms do not, but of
  /// SGD
  /// ("sgd") and Adan everything does. Unless given, "exact" for model.type cls, else "mindspore".
  bool exact_decay = true;
  std::string grouping_strategy;                    ///< "svtr", "filter_norm_and_bias" or "".
  std::vector<std::string> no_weight_decay_params;  ///< Parts of names that do not decay.
  bool filter_bias_and_bn = true;  ///< Biases and the parameters of norms do not decay.
  double beta1 = 0.9;
  double beta2 = 0.999;
  double beta3 = 0.99;           ///< adan.
  double eps = 1e-8;             ///< In MindOCR of rmsprop alone.
  bool use_amsgrad = false;      ///< adam, adamw.
  double dampening = 0;          ///< sgd.
  double decay = 0.9;            ///< rmsprop.
  bool centered = false;         ///< rmsprop.
  double accum = 0.1;            ///< adagrad: what the sum starts with.
  double schedule_decay = 4e-3;  ///< nadam.
};

/// Its section may be absent, which is a static scale of 1. The scale changes after optimizer
/// steps, not after micro-steps, so that factor and window hold as they are when gradients
/// accumulate.
struct LossScalerConfig {
  bool dynamic = false;         ///< type: "dynamic" or "static".
  double loss_scale = 1;        ///< Static, or the first one.
  double scale_factor = 2;      ///< By which an overflow divides, but not below 1.
  int64_t scale_window = 2000;  ///< Steps without overflow after which it multiplies.
  LossScaleOptions options() const;
};

struct TrainSection {
  std::filesystem::path ckpt_save_dir;
  bool dataset_sink_mode = false;  ///< True: no step lines.
  int64_t gradient_accumulation_steps = 1;
  bool clip_grad = false;
  double clip_norm = 1;
  /// A moving average of all weights, batch norm's statistics too, is evaluated and saved.
  bool ema = false;
  double ema_decay = 0.9999;
  int64_t ckpt_save_steps = 0;  ///< Ours: save after so many optimizer steps, too; 0: only epochs.
  /// Ours: save after every so many epochs. The best, and the last, are saved whenever they come.
  int64_t ckpt_save_epochs = 1;
  /// Ours: seconds that ranks wait for one that reads its data or writes a checkpoint.
  int64_t disk_timeout_s = 1800;
  /// Ours: in which format best.EXT and e{N}.EXT are written beside the checkpoints: "ckpt" (the
  /// default for `det` and `rec`), "safetensors" or "none" (the default for `cls`).
  std::string weights_format = "none";
  int64_t max_steps = 0;  ///< Ours: stop after so many optimizer steps in all; 0: no such bound.
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
  std::optional<DatasetConfig> dataset;  ///< Without one, that of eval.
  std::optional<LoaderConfig> loader;    ///< The same.
};

/// Ours.
struct ParallelConfig {
  /// Parts of the global batch, each of loader.batch_size samples. 0: one a rank. With V > 0 a run
  /// gives the same bits on every number of ranks up to V; see DistributedDataParallel.
  int64_t virtual_ranks = 0;
  /// Intra-op threads of a rank; bits depend on their number. 0: the rank's part of the cores (see
  /// World::threads), but 1 with `virtual_ranks`, because that part depends on the number of ranks.
  int64_t threads = 0;
  std::string device = "auto";    ///< "auto", "cpu", "cuda": see choose_compute_device().
  std::string backend = "auto";   ///< Of the process group.
  bool any_order = false;         ///< `order: any`: see GroupOptions::order.
  double bucket_cap_mb = 25;      ///< Of gradient buckets, MiB.
  bool broadcast_buffers = true;  ///< This and the next four: not otherwise with `virtual_ranks`.
  bool find_unused_parameters = false;  ///< Parameters may be left out of a step's loss.
  /// In every step the same parameters get gradients: the unused ones cost nothing.
  bool static_graph = false;
  /// How gradients travel: "none" (as they are), "fp16" or "bf16" (half the bytes),
  /// "int8" (a quarter) or "powersgd" (matrices as products of thin ones, after 1000 steps);
  /// "auto" takes none or bf16, whichever a trial in the first steps finds faster.
  std::string comm_hook = "none";
  bool sync_bn = false;     ///< Batch norm takes its statistics from the batches of all ranks.
  int64_t timeout_s = 300;  ///< Of every collective.
  /// Whether each step finds out how long this rank waited for the slowest one.
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
  Node effective;      ///< All of it, overrides and defaults included; see write_yaml().
  std::string source;  ///< Text of the file as it was read.
};

/// Reads and checks a file. `overrides`: items "key.sub=value", see overrides.h.
/// Errors: kNotFound; kInvalidArgument "FILE:LINE: ..." naming the key and what is allowed.
Config load_config(const std::filesystem::path& path, std::span<const std::string> overrides = {});

/// The same for a tree, which becomes Config::effective. `settings`, if any, gets a record of each
/// key that was read; see section.h.
Config read_config(Node tree, std::vector<Setting>* settings = nullptr);

/// Whether steps that overflow are left out: as system.drop_overflow_update says, and always with a
/// dynamic loss scaler, which grows until one overflows.
bool drops_overflows(const Config& config);

}  // namespace lockstep
