#include <fmt/format.h>

#include <algorithm>

#include "lockstep/train/config/sections.h"

namespace lockstep {
namespace {

constexpr int64_t kMaxCount = int64_t{1} << 40;

void read_normalize(Section section, TransformConfig& config) {
  config.mean = section.numbers("mean", config.mean);
  config.std = section.numbers("std", config.std);
  for (const auto* key : {"mean", "std"}) {
    const auto& list = key == std::string("mean") ? config.mean : config.std;
    if (list.size() != 3) section.fail(key, "must have 3 numbers: red, green, blue");
  }
  if (std::any_of(config.std.begin(), config.std.end(), [](double v) { return v <= 0; })) {
    section.fail("std", "must be above 0");
  }
  section.flag("is_hwc", true);
  section.only("bgr_to_rgb", {"False", ""}, "these images are RGB already");
  section.only("rgb_to_bgr", {"False", ""}, "these images stay RGB");
  section.finish();
}

/// One item of the pipeline, `Name: {args}` or `Name:`; returns its place in the fixed order.
int read_transform(Section item, const std::string& name, TransformConfig& config) {
  Section args = item.section(name);
  if (name == "RandomCrop") {
    args.only("size", {"32", ""}, "CIFAR-10 images are 32 x 32");
    config.crop_padding = args.whole("padding", 4, 0, 32);
  } else if (name == "RandomHorizontalFlip") {
    config.flip = args.number("p", 0.5, 0, 1);
  } else if (name == "NormalizeImage") {
    read_normalize(args, config);
    return 3;
  }
  args.finish();
  return name == "RandomCrop" ? 1 : name == "RandomHorizontalFlip" ? 2 : 4;
}

TransformConfig read_pipeline(Section& section, bool training) {
  static const std::vector<std::string> kKnown = {"RandomCrop", "RandomHorizontalFlip",
                                                  "NormalizeImage", "ToCHWImage"};
  TransformConfig config;
  Node* node = section.any("transform_pipeline");
  if (node == nullptr || !section.has("transform_pipeline")) return config;
  if (node->kind != Node::Kind::kList) section.fail("transform_pipeline", "must be a list");
  const auto path = section.name_of("transform_pipeline");
  int last = 0;
  for (Node& node_of_item : node->items) {
    Section item(node_of_item, path);
    if (node_of_item.entries.size() != 1) {
      section.fail("transform_pipeline", "must hold items of the form 'Name: {arguments}'");
    }
    const std::string name = node_of_item.entries[0].key;
    for (const auto& known : kKnown) item.any(known);
    item.finish();
    const int order = read_transform(item, name, config);
    if (order <= last) {
      item.fail(name, fmt::format("is out of order: {}, each once", fmt::join(kKnown, ", ")));
    }
    if (!training && order <= 2) item.fail(name, "is random, evaluation is not");
    last = order;
  }
  return config;
}

void accept_columns(Section& section) {
  for (const auto* key : {"output_columns", "net_input_column_index", "label_column_index",
                          "meta_data_column_index", "shuffle"}) {
    ignore(section, key);
  }
}

}  // namespace

DatasetConfig read_dataset(Section section, bool training) {
  DatasetConfig config;
  config.type = section.choice("type", "Cifar10Dataset", {"Cifar10Dataset"});
  const std::string root = section.text("dataset_root", "");
  config.data_dir = section.text("data_dir", "");
  if (!root.empty() && !config.data_dir.empty()) config.data_dir = root / config.data_dir;
  section.only("label_file", {""}, "the records of Cifar10Dataset hold their labels");
  config.usage = section.choice("usage", training ? "train" : "test", {"train", "test"});
  config.sample_ratio = section.number("sample_ratio", 1, 1e-9, 1);
  config.transforms = read_pipeline(section, training);
  accept_columns(section);
  section.finish();
  return config;
}

LoaderConfig read_loader(Section section, bool training) {
  LoaderConfig config;
  config.shuffle = section.flag("shuffle", training);
  if (!section.has("batch_size")) section.fail("batch_size", "is missing");
  config.batch_size = section.whole("batch_size", 0, 1, 1 << 24);
  config.drop_remainder = section.flag("drop_remainder", training);
  config.num_workers = section.whole("num_workers", 1, 1, 1024);
  config.prefetch_size = section.whole("prefetch_size", 4, 1, 1 << 16);
  ignore(section, "max_rowsize");
  if (!training && config.shuffle)
    section.fail("shuffle", "must be False: evaluation needs no order");
  section.finish();
  return config;
}

TrainSection read_train(Section section) {
  TrainSection config;
  config.ckpt_save_dir = section.text("ckpt_save_dir", "");
  if (config.ckpt_save_dir.empty())
    section.fail("ckpt_save_dir", "is missing: a folder for results");
  config.dataset_sink_mode = section.flag("dataset_sink_mode", false);
  config.gradient_accumulation_steps = section.whole("gradient_accumulation_steps", 1, 1, 1 << 20);
  config.clip_grad = section.flag("clip_grad", false);
  config.clip_norm = section.number("clip_norm", 1, 1e-12, 1e12);
  config.max_steps = section.whole("max_steps", 0, 0, kMaxCount);
  section.only("ema", {"False", ""}, "a moving average of the weights is not kept yet");
  section.number("ema_decay", 0.9999, 0, 1);
  ignore(section, "pred_cast_fp32");
  ignore(section, "max_call_depth");
  config.dataset = read_dataset(section.section("dataset"), true);
  config.loader = read_loader(section.section("loader"), true);
  section.finish();
  return config;
}

EvalSection read_eval(Section section) {
  EvalSection config;
  config.ckpt_load_path = section.text("ckpt_load_path", "");
  ignore(section, "dataset_sink_mode");
  ignore(section, "pred_cast_fp32");
  config.dataset = read_dataset(section.section("dataset"), false);
  config.loader = read_loader(section.section("loader"), false);
  section.finish();
  return config;
}

}  // namespace lockstep
