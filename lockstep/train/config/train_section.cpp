#include "lockstep/train/config/sections.h"

namespace lockstep {

TrainSection read_train(Section section, ModelType type) {
  TrainSection config;
  if (section.has("ckpt_save_dir")) config.ckpt_save_dir = section.text("ckpt_save_dir", "");
  if (config.ckpt_save_dir.empty())
    section.missing("ckpt_save_dir", "is missing: a folder for results");
  config.dataset_sink_mode = section.flag("dataset_sink_mode", false);
  config.gradient_accumulation_steps = section.whole("gradient_accumulation_steps", 1, 1, 1 << 20);
  config.clip_grad = section.flag("clip_grad", false);
  config.clip_norm = section.number("clip_norm", 1, 1e-12, 1e12);
  config.ckpt_save_steps = section.whole("ckpt_save_steps", 0, 0, kMaxCount);
  config.ckpt_save_epochs = section.whole("ckpt_save_epochs", 1, 1, kMaxCount);
  config.disk_timeout_s = section.whole("disk_timeout_s", 1800, 1, 1 << 30);
  config.weights_format = section.choice(
      "weights_format", type == ModelType::kCls ? "none" : "ckpt", {"ckpt", "safetensors", "none"});
  config.max_steps = section.whole("max_steps", 0, 0, kMaxCount);
  config.ema = section.flag("ema", false);
  config.ema_decay = section.number("ema_decay", 0.9999, 0, 1);
  ignore(section, "pred_cast_fp32");
  ignore(section, "max_call_depth");
  config.dataset = read_dataset(section.section("dataset"), type, DataUse::kTrain);
  config.loader = read_loader(section.section("loader"), DataUse::kTrain);
  section.finish();
  return config;
}

EvalSection read_eval(Section section, ModelType type) {
  EvalSection config;
  config.ckpt_load_path = section.text("ckpt_load_path", "");
  ignore(section, "dataset_sink_mode");
  ignore(section, "pred_cast_fp32");
  config.dataset = read_dataset(section.section("dataset"), type, DataUse::kEval);
  config.loader = read_loader(section.section("loader"), DataUse::kEval);
  section.finish();
  return config;
}

PredictSection read_predict(Section section, ModelType type) {
  PredictSection config;
  config.ckpt_load_path = section.text("ckpt_load_path", "");
  config.output_save_dir = section.text("output_save_dir", "output");
  config.vis_font_path = section.text("vis_font_path", "");
  ignore(section, "dataset_sink_mode");
  ignore(section, "pred_cast_fp32");
  if (section.has("dataset")) {
    config.dataset = read_dataset(section.section("dataset"), type, DataUse::kPredict);
  }
  if (section.has("loader")) {
    config.loader = read_loader(section.section("loader"), DataUse::kPredict);
  }
  section.any("dataset");
  section.any("loader");
  section.finish();
  return config;
}

}  // namespace lockstep
