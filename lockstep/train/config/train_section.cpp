#include <map>

#include "lockstep/train/config/sections.h"

namespace lockstep {
namespace {

/// What each transform takes; of the last two, MindOCR's flags about channels are only checked.
const std::map<std::string, std::vector<std::string>> kTransforms = {
    {"RandomCrop", {"size", "padding"}},
    {"RandomHorizontalFlip", {"prob"}},
    {"Normalize", {"mean", "std"}},
    {"NormalizeImage", {"mean", "std"}},
    {"ToCHWImage", {}},
};

void check_channel_flags(Section& args) {
  args.only("is_hwc", {"True", "False", ""}, "it is True or False");
  args.only("bgr_to_rgb", {"False", ""}, "these images are RGB already");
  args.only("rgb_to_bgr", {"False", ""}, "these images stay RGB");
}

/// One item of the pipeline, `Name: {args}` or `Name:`.
TransformConfig read_transform(Section item, const std::string& name) {
  TransformConfig config{name, {}, item.where(name)};
  Section args = item.section(name);
  for (const auto& key : kTransforms.at(name)) {
    if (args.has(key)) config.args[key] = args.number_or_list(key);
    args.any(key);
  }
  if (name == "NormalizeImage") check_channel_flags(args);
  args.finish();
  return config;
}

std::vector<TransformConfig> read_pipeline(Section& section, bool training) {
  Node* node = section.any("transform_pipeline");
  if (node == nullptr || !section.has("transform_pipeline")) return {};
  if (node->kind != Node::Kind::kList) section.fail("transform_pipeline", "must be a list");
  std::vector<TransformConfig> pipeline;
  for (Node& node_of_item : node->items) {
    Section item(node_of_item, section.name_of("transform_pipeline"));
    if (node_of_item.entries.size() != 1) {
      section.fail("transform_pipeline", "must hold items of the form 'Name: {arguments}'");
    }
    for (const auto& [known, args] : kTransforms) item.any(known);
    item.finish();
    const std::string name = node_of_item.entries[0].key;
    if (!training && name.starts_with("Random")) item.fail(name, "is random, evaluation is not");
    auto transform = read_transform(item, name);
    if (name != "ToCHWImage") pipeline.push_back(std::move(transform));
  }
  return pipeline;
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
  if (!training && config.drop_remainder)
    section.fail("drop_remainder", "must be False: evaluation counts every sample");
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
  config.ckpt_save_steps = section.whole("ckpt_save_steps", 0, 0, kMaxCount);
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
