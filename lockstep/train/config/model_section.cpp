#include <fmt/format.h>

#include "lockstep/train/config/sections.h"
#include "lockstep/train/config/weights.h"

namespace lockstep {
namespace {

constexpr auto kNone = "None";
const std::vector<std::string> kDetBackbones = {"det_resnet18",
                                                "det_resnet34",
                                                "det_resnet50",
                                                "det_resnet101",
                                                "det_resnet152",
                                                "det_mobilenet_v3",
                                                "det_mobilenet_v3_enhance"};
const std::vector<std::string> kRecBackbones = {"rec_resnet34", "rec_vgg7"};

const std::vector<std::string> kDetNecks = {"DBFPN", "RSEFPN"};
const std::vector<std::string> kRecNecks = {"RNNEncoder"};

/// Weights: a file, an address, none, or True: MindOCR's address for `name`, which is `known`.
/// `by_default`: an absent key means True.
void read_weights(Section& section, std::string& weights, const std::string& known, bool by_default,
                  const std::string& about) {
  const std::string key = "pretrained";
  section.record(key, "a file, an address, True or False", by_default ? "True" : "", about);
  if (by_default && !section.present(key)) section.read(key, by_default, "");
  const Node* node = section.any(key);
  bool flag = false;
  if (!section.has(key)) return;
  if (!read_flag(*node, &flag)) return section.read(key, weights, "");
  if (flag && known.empty()) {
    section.fail(key, "cannot be True, no weights are known for this name: name a file");
  }
  if (flag) weights = known;
}

void read_resume(Section& section, ModelConfig& config) {
  section.record(
      "resume", "True, False or a checkpoint", "False",
      "resumes from a checkpoint; `DIR/train_resume.ckpt` is the newest in DIR, and True "
      "the newest in `train.ckpt_save_dir`");
  const Node* node = section.any("resume");
  if (!section.has("resume")) {
    section.read("resume", config.resume, "");
  } else if (!read_flag(*node, &config.resume)) {
    section.read("resume", config.resume_path, "");
    config.resume = true;
  }
}

void read_cls_backbone(Section& section, BackboneConfig& config) {
  section.choose(
      "stem", config.stem,
      {{"imagenet", Stem::kImageNet},
       {"cifar", Stem::kCifar},
       {"mindcv", Stem::kMindCv},
       {"mindspore", Stem::kMindSpore}},
      "*ours*: the first layers, for images of 224 or of 32 pixels a side; mindcv: those "
      "of 224 as MindCV's weights need them; mindspore: the whole ResNet of MindSpore's tutorial");
  section.read("zero_init_residual", config.zero_init_residual,
               "*ours*: each block starts as the identity");
  read_weights(section, config.pretrained, "", false, "");
  if (!config.pretrained.empty()) {
    section.fail("pretrained", "cannot load a part of the model: use model.pretrained");
  }
}

void read_mobilenet(Section& section, BackboneConfig& config) {
  section.choose("architecture", config.architecture, {"large", "small"}, "which MobileNetV3");
  section.read("alpha", config.alpha, {0.01, 16}, "factor of all widths");
  const int64_t stages = config.architecture == "large" ? 21 : 17;
  section.read("out_stages", config.out_stages, {0, stages - 1},
               "four stages with outputs for the neck; required");
  if (config.out_stages.size() != 4) {
    section.fail("out_stages", "must name four stages for DBFPN, [5, 8, 14, 20] for 'large'");
  }
  Section block = section.section("bottleneck_params");
  block.choose("se_version", config.squeeze_v2,
               {{"SqueezeExcite", false}, {"SqueezeExciteV2", true}}, "how channels are weighed");
  block.read("always_expand", config.always_expand,
             "blocks that widen nothing have their widening convolution, too");
  block.finish();
}

void read_mobilenet_enhance(Section& section, BackboneConfig& config) {
  section.choose("architecture", config.architecture, {"large", "small"}, "which MobileNetV3");
  section.read("alpha", config.alpha, {0.35, 1.25},
               "factor of all widths: 0.35, 0.5, 0.75, 1 or 1.25");
  for (const double known : {0.35, 0.5, 0.75, 1.0, 1.25}) {
    if (config.alpha == known) {
      section.read("disable_se", config.disable_se, "without squeeze and excitation");
      return;
    }
  }
  section.fail("alpha", fmt::format("must be 0.35, 0.5, 0.75, 1 or 1.25, not {}", config.alpha));
}

BackboneConfig read_backbone(Section section, ModelType type) {
  BackboneConfig config;
  section.require("name", "is missing");
  if (type == ModelType::kCls) {
    section.read("name", config.name, "resnet18, 34, 50, 101 or 152");
    read_cls_backbone(section, config);
    section.finish();
    return config;
  }
  const bool det = type == ModelType::kDet;
  config.name.clear();
  read_name(section, "name", config.name, det ? kDetBackbones : kRecBackbones,
            {"rec_resnet31", "rec_resnet45", "rec_resnet_master_resnet31", "SVTRNet",
             "abinet_backbone", "mobilenet_v1_enhance"},
            det ? "of `det`; det_mobilenet_v3_enhance is PP-OCRv3's" : "of `rec`");
  section.only("in_channels", {"3"}, "images have three channels");
  if (config.name == "det_mobilenet_v3") {
    read_mobilenet(section, config);
  } else if (config.name == "det_mobilenet_v3_enhance") {
    read_mobilenet_enhance(section, config);
  } else if (det) {
    section.read("dcn", config.dcn, "*ours*: deformable convolutions");
  }
  // MindOCR loads weights by default.
  read_weights(section, config.pretrained, known_weights(config), det,
               "weights of the backbone; True: MindOCR's");
  section.finish();
  return config;
}

NeckSpec read_neck(Section section, ModelType type) {
  NeckSpec config;
  const bool det = type == ModelType::kDet;
  read_name(section, "name", config.name, det ? kDetNecks : kRecNecks,
            {"FPN", "PSEFPN", "EASTFPN", "Img2Seq", "Select", "Identity"},
            det ? "of `det`" : "of `rec`");
  if (config.name == "RSEFPN") {
    section.read("out_channels", config.out_channels, {16, 1 << 14}, "a multiple of 16");
    if (config.out_channels % 16 != 0) section.fail("out_channels", "must be a multiple of 16");
    section.read("shortcut", config.shortcut, "attention is added to its input");
  } else if (det) {
    section.read("out_channels", config.out_channels, {4, 1 << 14}, "a multiple of 4");
    if (config.out_channels % 4 != 0) section.fail("out_channels", "must be a multiple of 4");
    section.read("bias", config.bias, "of its convolutions");
    section.read("use_asf", config.use_asf, "adaptive scale fusion: DBNet++");
    section.read("channel_attention", config.channel_attention, "of that fusion");
    accept(section, "weight_init", "HeUniform");
  } else {
    section.read("hidden_size", config.hidden_size, {1, 1 << 14}, "of each direction");
    ignore(section, "batch_size");
  }
  section.finish();
  return config;
}

void read_db_head(Section& section, HeadSpec& config) {
  section.read("k", config.k, {1, 1 << 20},
               "steepness: DBHead computes sigmoid(k binary - thresh), as MindOCR's weights were "
               "trained, DBHeadEnhance the paper's sigmoid(k (binary - thresh))");
  section.read("adaptive", config.adaptive, "thresholds are learnt, too");
  section.read("bias", config.bias, "of its first convolutions");
  accept(section, "weight_init", "HeUniform");
}

void read_ctc_head(Section& section, HeadSpec& config) {
  section.require("out_channels", "is missing: the characters of the dictionary, and the blank");
  section.read("out_channels", config.out_channels, {2, 1 << 24},
               "the characters of the dictionary, and the blank");
  section.read("mid_channels", config.mid_channels, {1, 1 << 20},
               "two layers, with so many channels in between");
  section.read("dropout", config.dropout, {0, 0.999}, "between these two layers");
  section.choose("weight_init", config.weight_init, {"normal", "crnn_customised"},
                 "start values of weights");
  section.choose("bias_init", config.bias_init, {"zeros", "crnn_customised"},
                 "start values of biases");
}

HeadSpec read_head(Section section, ModelType type) {
  HeadSpec config;
  const std::vector<std::string> others = {"ConvHead",      "PSEHead",       "EASTHead",
                                           "AttentionHead", "VisionLANHead", "MasterDecoder",
                                           "SARHead",       "MobileHead",    "RobustScannerHead"};
  if (type == ModelType::kCls) {
    section.read("name", config.name, "ClsHead, of `cls`");
    section.require("num_classes", "is missing");
    section.read("num_classes", config.num_classes, {1, 1 << 24}, "classes of the data");
  } else if (type == ModelType::kDet) {
    config.name.clear();
    read_name(section, "name", config.name, {"DBHead", "DBHeadEnhance"}, others, "of `det`");
    read_db_head(section, config);
  } else {
    config.name.clear();
    read_name(section, "name", config.name, {"CTCHead"}, others, "of `rec`");
    read_ctc_head(section, config);
  }
  section.finish();
  return config;
}

ModelType read_type(Section& section) {
  std::string type = "cls";
  read_name(section, "type", type, {"cls", "det", "rec"}, {"kie", "layout", "table"},
            "classification; detection, or recognition, of text");
  return type == "cls" ? ModelType::kCls : type == "det" ? ModelType::kDet : ModelType::kRec;
}

}  // namespace

std::string ModelConfig::name() const {
  if (!given_name.empty()) return given_name;
  if (network) return network->name;
  return fmt::format("{}-{}-{}", backbone.name, neck.name.empty() ? kNone : neck.name, head.name);
}

namespace {

/// A registered network, which takes the place of backbone, neck and head.
void read_network(Section& section, ModelConfig& config) {
  if (config.type != ModelType::kCls) section.fail("network", "needs type: cls");
  section.only("backbone", {""}, "model.network takes its place");
  section.only("neck", {""}, "model.network takes its place");
  if (networks().parts().empty()) {
    section.fail("network", "names a network, and this program has none: --plugin FILE adds some");
  }
  Section own = section.section("network");
  std::string name;
  read_name(own, "name", name, names_of(networks()), {}, "of the zoo, or registered");
  config.network = read_own_part(own, "name", name, networks());
  own.finish();
  Section head = section.section("head");
  config.head.num_classes = 0;
  head.read("num_classes", config.head.num_classes, {0, 1 << 24}, "");
  head.finish();
}

/// Backbone, neck and head.
void read_parts(Section& section, ModelConfig& config) {
  config.backbone = read_backbone(section.section("backbone"), config.type);
  if (config.type == ModelType::kCls) {
    section.only("neck", {""}, "a classifier has none");
  } else {
    config.neck = read_neck(section.section("neck"), config.type);
  }
  config.head = read_head(section.section("head"), config.type);
}

}  // namespace

const std::vector<std::string>& built_in_networks() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all = {"resnet18", "resnet34", "resnet50", "resnet101", "resnet152"};
    for (const auto* some : {&kDetBackbones, &kRecBackbones}) {
      all.insert(all.end(), some->begin(), some->end());
    }
    return all;
  }();
  return names;
}

ModelConfig read_model(Section section) {
  ModelConfig config;
  config.type = read_type(section);
  section.only("transform", {""}, "no network here transforms its images first");
  section.read("name", config.given_name, "for the log");
  section.record("network", "a mapping", "",
                 "*ours*: a network by name, in the place of backbone and head, with its settings");
  section.has("network") ? read_network(section, config) : read_parts(section, config);
  section.any("network");
  read_weights(section, config.pretrained, "", false, "weights of the whole network");
  read_resume(section, config);
  section.finish();
  return config;
}

}  // namespace lockstep
