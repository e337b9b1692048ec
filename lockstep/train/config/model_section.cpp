#include <fmt/format.h>

#include "lockstep/train/config/sections.h"

namespace lockstep {
namespace {

constexpr auto kNone = "None";

/// Weights: a path, or nothing. MindOCR also takes True (its own download) and addresses.
std::string read_weights(Section& section, const std::string& key) {
  Node* node = section.any(key);
  bool flag = false;
  if (node == nullptr || !section.has(key)) return "";
  if (read_flag(*node, &flag)) {
    if (flag) section.fail(key, "cannot be True, there are no weights to load: name a file");
    return "";
  }
  std::string path = section.text(key, "");
  if (path.starts_with("http:") || path.starts_with("https:")) {
    section.fail(key, "cannot be an address: load the file and name it");
  }
  return path;
}

void read_resume(Section& section, ModelConfig& config) {
  Node* node = section.any("resume");
  if (node == nullptr || !section.has("resume")) {
    section.flag("resume", false);
  } else if (!read_flag(*node, &config.resume)) {
    config.resume_path = section.text("resume", "");
    config.resume = true;
  }
}

void read_backbone(Section section, ModelConfig& config) {
  if (!section.has("name")) section.fail("name", "is missing");
  config.backbone = section.text("name", "");
  config.stem = section.choice("stem", "imagenet", {"imagenet", "cifar"});
  config.zero_init_residual = section.flag("zero_init_residual", false);
  const std::string weights = read_weights(section, "pretrained");
  if (!weights.empty()) {
    section.fail("pretrained", "cannot load a part of the model: use model.pretrained");
  }
  section.finish();
}

void read_head(Section section, ModelConfig& config) {
  config.head = section.text("name", "ClsHead");
  if (!section.has("num_classes")) section.fail("num_classes", "is missing");
  config.num_classes = section.whole("num_classes", 0, 1, 1 << 24);
  section.finish();
}

}  // namespace

std::string ModelConfig::name() const {
  return fmt::format("{}-{}-{}", backbone, kNone, head);
}

ModelConfig read_model(Section section) {
  ModelConfig config;
  section.only("type", {"cls"}, "only 'cls' (image classification) can be trained");
  config.type = section.text("type", "cls");
  section.only("transform", {""}, "a classifier has none");
  section.only("neck", {""}, "a classifier has none");
  section.any("name");
  read_backbone(section.section("backbone"), config);
  read_head(section.section("head"), config);
  config.pretrained = read_weights(section, "pretrained");
  read_resume(section, config);
  section.finish();
  return config;
}

void check_postprocess(Section section) {
  section.choice("name", "ClsPostprocess", {"ClsPostprocess"});
  section.texts("label_list");
  section.any("label_list");
  section.finish();
}

MetricConfig read_metric(Section section) {
  MetricConfig config;
  section.choice("name", "ClsMetric", {"ClsMetric"});
  section.any("label_list");
  config.main_indicator = section.choice("main_indicator", "acc", {"acc", "top_5"});
  section.finish();
  return config;
}

LossConfig read_loss(Section section) {
  LossConfig config;
  section.choice("name", "CrossEntropySmooth", {"CrossEntropySmooth"});
  config.smoothing = section.number("smoothing", 0, 0, 0.999);
  section.only("aux_factor", {"0.0", "0", ""}, "no model here has auxiliary outputs");
  section.finish();
  return config;
}

}  // namespace lockstep
