#include <fmt/format.h>

#include "lockstep/train/config/sections.h"
#include "lockstep/train/config/task_settings.h"

namespace lockstep::inline internal {
namespace {

void read_checkpoints(ConfigSection& section, TrainSection& config) {
  section.read("ckpt_save_steps", config.ckpt_save_steps, {0, kMaxCount},
               "*ours*: optimizer steps from one checkpoint to the next, besides those of epochs; "
               "0: only epochs");
  section.read("ckpt_save_epochs", config.ckpt_save_epochs, {1, kMaxCount},
               "*ours*: epochs from one checkpoint to the next; the last is saved in any case, and "
               "with evaluation the best");
  section.read("disk_timeout_s", config.disk_timeout_s, {1, 1 << 30},
               "*ours*: how long ranks wait for one that downloads weights, indexes or reads its "
               "data, or writes a checkpoint, in seconds; `parallel.timeout_s` is not for that");
  section.choose("weights_format", config.weights_format, {"ckpt", "safetensors", "none"},
                 "*ours*: of the files best.EXT and e{N}.EXT beside the checkpoints");
}

void read_early_stopping(ConfigSection& section, TrainSection& config) {
  const std::string key = "early_stopping";
  const auto read = [](ConfigSection own) {
    PatienceConfig patience;
    read_patience(own, patience, "*ours*: ");
    own.only("mode", {""}, "the metric determines whether less is better");
    own.finish();
    return patience;
  };
  section.record(key, "a mapping", "",
                 "*ours*: ends the run once a metric no longer improves; [keys](#early_stopping)");
  if (section.settings() != nullptr) {
    Node none;
    read(ConfigSection(none, section.name_of(key), section.settings()));
  }
  section.any(key);
  if (!section.has(key)) return;
  config.early_stopping = read(ConfigSection(*section.any(key), section.name_of(key)));
}

/// Errors: loader.sampler is balanced, and the data set does not give its classes before the first
/// epoch, or something else makes the order.
void check_sampler(const ConfigSection& loader, const TrainSection& config,
                   const TaskSettings& task) {
  const DatasetConfig& dataset = config.dataset;
  if (!config.loader.balanced) return;
  const auto refuse = [&](const std::string& why) {
    loader.fail("sampler", "cannot be balanced: " + why);
  };
  if (dataset.own) {
    refuse(fmt::format("{} is a data set of one's own, whose BatchMaker::weights() do that",
                       dataset.type));
  }
  if (task.read_dataset != read_class_dataset) refuse(dataset.type + " has no classes");
  if (dataset.shuffle_buffer > 0) refuse("dataset.shuffle_buffer makes the order");
  if (!config.loader.shuffle) refuse("loader.shuffle is False");
}

}  // namespace

TrainSection read_train(ConfigSection section, const TaskSettings& task) {
  TrainSection config;
  std::string save_dir;
  if (section.has("ckpt_save_dir")) section.read("ckpt_save_dir", save_dir, "");
  if (save_dir.empty()) section.missing("ckpt_save_dir", "is missing: a folder for results");
  config.ckpt_save_dir = save_dir;
  section.record(
      "ckpt_save_dir", "a text", "required",
      "one run at a time. An earlier one's results are moved to DIR.1, .2; from one that "
      "cannot be moved (a mount point, `.`) or is a symbolic link to DIR/earlier.1, .2");
  section.read("dataset_sink_mode", config.dataset_sink_mode, "True: no lines within an epoch");
  section.read("gradient_accumulation_steps", config.gradient_accumulation_steps, {1, 1 << 20},
               "an epoch's last optimizer step takes the micro-steps that are left; MindOCR's "
               "counter runs on into the next epoch");
  section.read("clip_grad", config.clip_grad,
               "by the norm of all gradients, which `metrics.jsonl` has as `grad_norm`");
  section.read("clip_norm", config.clip_norm, {1e-12, 1e12}, "the largest norm, with `clip_grad`");
  config.weights_format = task.weights_format;
  read_checkpoints(section, config);
  section.read("max_steps", config.max_steps, {0, kMaxCount},
               "*ours*: stops after so many optimizer steps in all; 0: no such bound");
  read_early_stopping(section, config);
  section.read("ema", config.ema, "a moving average of the weights is evaluated and saved");
  section.read("ema_decay", config.ema_decay, {0, 1}, "share of that average that a step keeps");
  ignore(section, "pred_cast_fp32");
  ignore(section, "max_call_depth");
  config.dataset = read_dataset(section.section("dataset"), task, DataUse::kTrain);
  const ConfigSection loader = section.section("loader");
  config.loader = read_loader(loader, DataUse::kTrain);
  check_sampler(loader, config, task);
  section.finish();
  return config;
}

EvalSection read_eval(ConfigSection section, const TaskSettings& task) {
  EvalSection config;
  section.read(
      "ckpt_load_path", config.ckpt_load_path,
      "null: the best of `ckpt_save_dir`; of a checkpoint's folder, with `ema`, its moving "
      "average");
  ignore(section, "dataset_sink_mode");
  ignore(section, "pred_cast_fp32");
  config.dataset = read_dataset(section.section("dataset"), task, DataUse::kEval);
  config.loader = read_loader(section.section("loader"), DataUse::kEval);
  section.finish();
  return config;
}

PredictSection read_predict(ConfigSection section, const TaskSettings& task) {
  PredictSection config;
  section.read(
      "ckpt_load_path", config.ckpt_load_path,
      "null: the best of `ckpt_save_dir`; of a checkpoint's folder, with `ema`, its moving "
      "average");
  std::string save_dir = config.output_save_dir;
  section.read("output_save_dir", save_dir, "a folder for results");
  config.output_save_dir = save_dir;
  section.read("vis_font_path", config.vis_font_path, "a font file; null: the system's");
  section.read("top_k", config.top_k, {1, 1 << 24},
               "*ours*: of `cls`: so many classes of each picture are in the results");
  ignore(section, "dataset_sink_mode");
  ignore(section, "pred_cast_fp32");
  if (section.has("dataset")) {
    config.dataset = read_dataset(section.section("dataset"), task, DataUse::kPredict);
  }
  if (section.has("loader")) {
    config.loader = read_loader(section.section("loader"), DataUse::kPredict);
  }
  section.any("dataset");
  section.any("loader");
  section.finish();
  return config;
}

}  // namespace lockstep::inline internal
