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

/// Weights: a file, an address, nothing, or True: MindOCR's address for `name`.
std::string read_weights(Section& section, const std::string& key, const std::string& known) {
  Node* node = section.any(key);
  bool flag = false;
  if (node == nullptr || !section.has(key)) return "";
  if (!read_flag(*node, &flag)) return section.text(key, "");
  if (flag && known.empty()) {
    section.fail(key, "cannot be True, no weights are known for this name: name a file");
  }
  return flag ? known : "";
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

void read_cls_backbone(Section& section, BackboneConfig& config) {
  config.stem = section.choice("stem", "imagenet", {"imagenet", "cifar"});
  config.zero_init_residual = section.flag("zero_init_residual", false);
  if (!read_weights(section, "pretrained", "").empty()) {
    section.fail("pretrained", "cannot load a part of the model: use model.pretrained");
  }
}

void read_mobilenet(Section& section, BackboneConfig& config) {
  config.architecture = section.choice("architecture", "large", {"large", "small"});
  config.alpha = section.number("alpha", 1, 0.01, 16);
  const int64_t stages = config.architecture == "large" ? 21 : 17;
  config.out_stages = section.wholes("out_stages", 0, stages - 1);
  if (config.out_stages.size() != 4) {
    section.fail("out_stages", "must name four stages for DBFPN, [5, 8, 14, 20] for 'large'");
  }
  Section block = section.section("bottleneck_params");
  config.squeeze_v2 = block.choice("se_version", "SqueezeExcite",
                                   {"SqueezeExcite", "SqueezeExciteV2"}) == "SqueezeExciteV2";
  config.always_expand = block.flag("always_expand", false);
  block.finish();
}

void read_mobilenet_enhance(Section& section, BackboneConfig& config) {
  config.architecture = section.choice("architecture", "large", {"large", "small"});
  config.alpha = section.number("alpha", 1, 0.35, 1.25);
  for (const double known : {0.35, 0.5, 0.75, 1.0, 1.25}) {
    if (config.alpha == known) {
      config.disable_se = section.flag("disable_se", false);
      return;
    }
  }
  section.fail("alpha", fmt::format("must be 0.35, 0.5, 0.75, 1 or 1.25, not {}", config.alpha));
}

BackboneConfig read_backbone(Section section, ModelType type) {
  BackboneConfig config;
  if (!section.has("name")) section.missing("name", "is missing");
  config.name = section.text("name", "");
  if (type == ModelType::kCls) {
    read_cls_backbone(section, config);
    section.finish();
    return config;
  }
  const bool det = type == ModelType::kDet;
  read_name(section, "name", "", det ? kDetBackbones : kRecBackbones,
            {"rec_resnet31", "rec_resnet45", "rec_resnet_master_resnet31", "SVTRNet",
             "abinet_backbone", "mobilenet_v1_enhance"});
  section.only("in_channels", {"3"}, "images have three channels");
  if (config.name == "det_mobilenet_v3") {
    read_mobilenet(section, config);
  } else if (config.name == "det_mobilenet_v3_enhance") {
    read_mobilenet_enhance(section, config);
  } else if (det) {
    config.dcn = section.flag("dcn", false);
  }
  // MindOCR loads weights unless told not to.
  if (det && !section.present("pretrained")) section.flag("pretrained", true);
  config.pretrained = read_weights(section, "pretrained", known_weights(config));
  section.finish();
  return config;
}

NeckConfig read_neck(Section section, ModelType type) {
  NeckConfig config;
  const bool det = type == ModelType::kDet;
  config.name = read_name(section, "name", "", det ? kDetNecks : kRecNecks,
                          {"FPN", "PSEFPN", "EASTFPN", "Img2Seq", "Select", "Identity"});
  if (config.name == "RSEFPN") {
    config.out_channels = section.whole("out_channels", 256, 16, 1 << 14);
    if (config.out_channels % 16 != 0) section.fail("out_channels", "must be a multiple of 16");
    config.shortcut = section.flag("shortcut", true);
  } else if (det) {
    config.out_channels = section.whole("out_channels", 256, 4, 1 << 14);
    if (config.out_channels % 4 != 0) section.fail("out_channels", "must be a multiple of 4");
    config.bias = section.flag("bias", false);
    config.use_asf = section.flag("use_asf", false);
    config.channel_attention = section.flag("channel_attention", true);
    section.choice("weight_init", "HeUniform", {"HeUniform"});
  } else {
    config.hidden_size = section.whole("hidden_size", 512, 1, 1 << 14);
    ignore(section, "batch_size");
  }
  section.finish();
  return config;
}

void read_db_head(Section& section, HeadConfig& config) {
  config.k = section.whole("k", 50, 1, 1 << 20);
  config.adaptive = section.flag("adaptive", true);
  config.bias = section.flag("bias", false);
  section.choice("weight_init", "HeUniform", {"HeUniform"});
}

void read_ctc_head(Section& section, HeadConfig& config) {
  if (!section.has("out_channels")) {
    section.missing("out_channels", "is missing: the characters of the dictionary, and the blank");
  }
  config.out_channels = section.whole("out_channels", 0, 2, 1 << 24);
  if (section.has("mid_channels"))
    config.mid_channels = section.whole("mid_channels", 0, 1, 1 << 20);
  section.any("mid_channels");
  config.dropout = section.number("dropout", 0, 0, 0.999);
  config.weight_init = section.choice("weight_init", "normal", {"normal", "crnn_customised"});
  config.bias_init = section.choice("bias_init", "zeros", {"zeros", "crnn_customised"});
}

HeadConfig read_head(Section section, ModelType type) {
  HeadConfig config;
  const std::vector<std::string> others = {"ConvHead",      "PSEHead",       "EASTHead",
                                           "AttentionHead", "VisionLANHead", "MasterDecoder",
                                           "SARHead",       "MobileHead",    "RobustScannerHead"};
  if (type == ModelType::kCls) {
    config.name = section.text("name", "ClsHead");
    if (!section.has("num_classes")) section.missing("num_classes", "is missing");
    config.num_classes = section.whole("num_classes", 0, 1, 1 << 24);
  } else if (type == ModelType::kDet) {
    config.name = read_name(section, "name", "", {"DBHead", "DBHeadEnhance"}, others);
    read_db_head(section, config);
  } else {
    config.name = read_name(section, "name", "", {"CTCHead"}, others);
    read_ctc_head(section, config);
  }
  section.finish();
  return config;
}

ModelType read_type(Section& section) {
  const std::string type =
      read_name(section, "type", "cls", {"cls", "det", "rec"}, {"kie", "layout", "table"});
  return type == "cls" ? ModelType::kCls : type == "det" ? ModelType::kDet : ModelType::kRec;
}

}  // namespace

std::string ModelConfig::name() const {
  if (!given_name.empty()) return given_name;
  return fmt::format("{}-{}-{}", backbone.name, neck.name.empty() ? kNone : neck.name, head.name);
}

ModelConfig read_model(Section section) {
  ModelConfig config;
  config.type = read_type(section);
  section.only("transform", {""}, "no network here transforms its images first");
  config.given_name = section.text("name", "");
  config.backbone = read_backbone(section.section("backbone"), config.type);
  if (config.type == ModelType::kCls) {
    section.only("neck", {""}, "a classifier has none");
  } else {
    config.neck = read_neck(section.section("neck"), config.type);
  }
  config.head = read_head(section.section("head"), config.type);
  config.pretrained = read_weights(section, "pretrained", "");
  read_resume(section, config);
  section.finish();
  return config;
}

}  // namespace lockstep
