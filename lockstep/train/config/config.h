#pragma once
// The training configuration, typed: MindOCR's sections and keys for `model.type: cls`, and the
// keys of our own (marked "ours"). Values stand as MindOCR defines them; defaults are MindOCR's.
//
// Keys of MindOCR that change nothing here are checked and then left alone: system.mode (graph or
// eager), system.device_id (this build computes on the CPU), system.refine_batch_size (evaluation
// is exact at any batch size), loader.max_rowsize, train.max_call_depth, pred_cast_fp32,
// dataset.output_columns and the *_column_index lists. Keys that would change the result and cannot
// be honoured yet (ema, other optimizers, ...) are errors, never ignored.

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/amp/amp_level.h"
#include "lockstep/amp/loss_scale.h"
#include "lockstep/train/config/node.h"

namespace lockstep {

enum class LogStyle : uint8_t { kMindocr, kMindspore };

struct SystemConfig {
  std::optional<bool> distribute;  ///< False under a launcher of several ranks is an error.
  int64_t seed = 42;
  std::string log_level = "logging.INFO";
  LogStyle log_style = LogStyle::kMindocr;  ///< Ours.
  int64_t log_interval = 100;               ///< Micro-steps.
  bool val_while_train = false;
  int64_t val_start_epoch = 1;
  int64_t val_interval = 1;                ///< Epochs.
  std::string ckpt_save_policy = "top_k";  ///< "top_k", "latest_k" or "" (null: keep all).
  int64_t ckpt_max_keep = 10;
  AmpLevel amp_level = AmpLevel::kO0;        ///< Of training, and of evaluation within it.
  AmpLevel amp_level_infer = AmpLevel::kO0;  ///< Of evaluation alone.
  /// An optimizer step whose gradients are not all finite is left out, and so is its place in the
  /// learning-rate schedule. Off, with a loss_scaler: such a step ends the run.
  bool drop_overflow_update = false;
};

struct ModelConfig {
  std::string type = "cls";
  std::string backbone = "resnet50";
  std::string stem = "imagenet";    ///< Ours, of the backbone: "imagenet" or "cifar".
  bool zero_init_residual = false;  ///< Ours, of the backbone.
  std::string head = "ClsHead";
  int64_t num_classes = 0;
  std::string pretrained;    ///< Path of weights to start from; empty: none.
  bool resume = false;       ///< Go on from a checkpoint, if there is one.
  std::string resume_path;   ///< Which; empty: the latest in train.ckpt_save_dir.
  std::string name() const;  ///< "{backbone}-None-{head}", as MindOCR's banner has it.
};

struct MetricConfig {
  std::string main_indicator = "acc";  ///< "acc" or "top_5": by which checkpoints are ranked.
};

struct LossConfig {
  double smoothing = 0;  ///< Label smoothing, in [0, 1).
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
  std::string opt = "adam";  ///< "sgd", "momentum", "nesterov" (all SGD), "adam" or "adamw".
  double weight_decay = 0;
  double momentum = 0.9;
  bool nesterov = false;
  /// Biases and the parameters of norms do not decay. (In MindOCR they do in effect, whatever this
  /// key says; here it means what it says.)
  bool filter_bias_and_bn = true;
  std::vector<std::string> no_weight_decay_params;  ///< Parts of names that do not decay.
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
};

/// One item of transform_pipeline: RandomCrop {size, padding}, RandomHorizontalFlip {prob},
/// Normalize {mean, std} of pixels in [0, 1], or NormalizeImage {mean, std} of pixels in [0, 255].
/// ToCHWImage is accepted and left out: images are in that order anyway.
struct TransformConfig {
  std::string name;
  std::map<std::string, std::vector<double>> args;  ///< A single number is a list of one.
  std::string where;                                ///< For errors: "FILE:LINE".
};

struct DatasetConfig {
  std::string type = "Cifar10Dataset";
  std::filesystem::path data_dir;  ///< dataset_root joined. Absent in eval: that of train.
  std::string usage;               ///< "train" or "test": which files. By section if absent.
  double sample_ratio = 1;         ///< The leading part of the records.
  std::vector<TransformConfig> transforms;
};

struct LoaderConfig {
  bool shuffle = false;
  int64_t batch_size = 0;  ///< Per shard: per rank, unless parallel.shards says otherwise.
  bool drop_remainder = false;
  int64_t num_workers = 1;
  int64_t prefetch_size = 4;  ///< Batches in flight.
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
  int64_t ckpt_save_steps = 0;  ///< Ours: save after so many optimizer steps, too; 0: only epochs.
  int64_t max_steps = 0;  ///< Ours: stop after so many optimizer steps in all; 0: no such bound.
  DatasetConfig dataset;
  LoaderConfig loader;
};

struct EvalSection {
  std::string ckpt_load_path;  ///< For evaluation alone; empty: the best in ckpt_save_dir.
  DatasetConfig dataset;
  LoaderConfig loader;
};

/// Ours.
struct ParallelConfig {
  /// Parts of the global batch, each of loader.batch_size samples. 0: one a rank. With S > 0 a run
  /// gives the same bits on every number of ranks that can share S shards; see
  /// DistributedDataParallel.
  int64_t shards = 0;
  /// Intra-op threads of a rank; bits depend on their number. 0: the rank's part of the cores (see
  /// World::threads), but 1 with `shards`, because that part depends on the number of ranks.
  int64_t threads = 0;
  std::string backend = "auto";         ///< Of the process group.
  bool any_order = false;               ///< `order: any`: see GroupOptions::order.
  double bucket_cap_mb = 25;            ///< Of gradient buckets, MiB.
  bool broadcast_buffers = true;        ///< This and the next four: not otherwise with `shards`.
  bool find_unused_parameters = false;  ///< Parameters may be left out of a step's loss.
  /// In every step the same parameters get gradients: the unused ones cost nothing.
  bool static_graph = false;
  /// How gradients travel: "none" (as they are), "fp16" or "bf16" (half the bytes),
  /// "int8" (a quarter) or "powersgd" (matrices as products of thin ones, after 1000 steps);
  /// "auto" takes none or bf16, whichever a trial in the first steps finds faster.
  std::string comm_hook = "none";
  bool sync_bn = false;     ///< Batch norm takes its statistics from the batches of all ranks.
  int64_t timeout_s = 300;  ///< Of every collective.
};

struct Config {
  SystemConfig system;
  ModelConfig model;
  MetricConfig metric;
  LossConfig loss;
  SchedulerConfig scheduler;
  OptimizerConfig optimizer;
  std::optional<LossScalerConfig> loss_scaler;
  TrainSection train;
  std::optional<EvalSection> eval;  ///< Present when the file has the section.
  ParallelConfig parallel;
  Node effective;      ///< All of it, overrides and defaults included; see write_yaml().
  std::string source;  ///< Text of the file as it was read.
};

/// Reads and checks a file. `overrides`: items "key.sub=value", see overrides.h.
/// Errors: kNotFound; kInvalidArgument "FILE:LINE: ..." naming the key and what is allowed.
Config load_config(const std::filesystem::path& path, std::span<const std::string> overrides = {});

/// The same for a tree, which becomes Config::effective.
Config read_config(Node tree);

}  // namespace lockstep
