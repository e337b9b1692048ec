// Detection and recognition of text: the sections that are theirs.

#include <fmt/format.h>

#include "lockstep/train/config/sections.h"
#include "lockstep/train/config/task_settings.h"
#include "lockstep/train/config/weights.h"

namespace lockstep::inline internal {
namespace {

// Functions, because a program's parts ask for them before main(), perhaps before objects here are.
BuiltInParts det_backbones() {
  return {{"det_resnet18", "ResNet of 18 layers"},
          {"det_resnet34", "ResNet of 34 layers"},
          {"det_resnet50", "ResNet of 50 layers"},
          {"det_resnet101", "ResNet of 101 layers"},
          {"det_resnet152", "ResNet of 152 layers"},
          {"det_mobilenet_v3", "MobileNetV3"},
          {"det_mobilenet_v3_enhance", "MobileNetV3 of PP-OCRv3"}};
}
BuiltInParts rec_backbones() {
  return {{"rec_resnet34", "ResNet of 34 layers"}, {"rec_vgg7", "VGG of 7 layers, as CRNN has it"}};
}

// Parts of MindOCR that are not built in.
const std::vector<std::string> kOtherBackbones = {
    "rec_resnet31", "rec_resnet45",    "rec_resnet_master_resnet31",
    "SVTRNet",      "abinet_backbone", "mobilenet_v1_enhance"};
const std::vector<std::string> kOtherNecks = {"FPN",     "PSEFPN", "EASTFPN",
                                              "Img2Seq", "Select", "Identity"};
const std::vector<std::string> kOtherHeads = {
    "ConvHead",      "PSEHead", "EASTHead",   "AttentionHead",    "VisionLANHead",
    "MasterDecoder", "SARHead", "MobileHead", "RobustScannerHead"};
const std::vector<std::string> kOtherPostprocess = {
    "PSEPostprocess",     "EASTPostprocess",
    "RecAttnLabelDecode", "VisionLANPostProcess",
    "SARLabelDecode",     "RecMasterLabelDecode",
    "ABINetLabelDecode",  "VQASerTokenLayoutLMPostProcess"};

void read_only_name(ConfigSection& section, std::string name,
                    const std::vector<std::string>& others) {
  read_name(section, "name", name, {name}, others, "");
}

void read_mobilenet(ConfigSection& section, BackboneConfig& config) {
  section.choose("architecture", config.architecture, {"large", "small"}, "which MobileNetV3");
  section.read("alpha", config.alpha, {0.01, 16}, "factor of all widths");
  const int64_t stages = config.architecture == "large" ? 21 : 17;
  const std::string four = "must name four stages for DBFPN, [5, 8, 14, 20] for 'large'";
  section.require("out_stages", four);
  section.read("out_stages", config.out_stages, {0, stages - 1},
               "four stages with outputs for the neck");
  if (section.has("out_stages") && config.out_stages.size() != 4) section.fail("out_stages", four);
  ConfigSection block = section.section("bottleneck_params");
  block.choose("se_version", config.squeeze_v2,
               {{"SqueezeExcite", false}, {"SqueezeExciteV2", true}}, "how channels are weighed");
  block.read("always_expand", config.always_expand,
             "blocks that widen nothing have their widening convolution, too");
  block.finish();
}

void read_mobilenet_enhance(ConfigSection& section, BackboneConfig& config) {
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

/// A registered one has read its own keys.
void read_ocr_backbone_keys(ConfigSection& section, BackboneConfig& config) {
  section.only("in_channels", {"3"}, "images have three channels");
  if (config.own) return;
  if (config.name == "det_mobilenet_v3") {
    read_mobilenet(section, config);
  } else if (config.name == "det_mobilenet_v3_enhance") {
    read_mobilenet_enhance(section, config);
  } else if (config.name.starts_with("det_")) {
    section.read("dcn", config.dcn, "*ours*: deformable convolutions");
  }
}

BackboneConfig read_ocr_backbone(ConfigSection& section, const BuiltInParts& built_in,
                                 const std::string& about) {
  BackboneConfig config;
  section.require("name", "is missing");
  config.name.clear();
  config.own = read_part(section, "name", config.name, names_of(built_in), backbones(), about,
                         kOtherBackbones);
  read_ocr_backbone_keys(section, config);
  const auto known = config.own ? "" : known_weights(config);
  // MindOCR loads a detector's by default.
  const bool by_default = !config.own && config.name.starts_with("det_");
  read_weights(section, config.pretrained, known, by_default,
               "weights of the backbone; True: MindOCR's");
  return config;
}

BackboneConfig read_det_backbone(ConfigSection& section) {
  return read_ocr_backbone(section, det_backbones(),
                           "of `det`; det_mobilenet_v3_enhance is PP-OCRv3's");
}

BackboneConfig read_rec_backbone(ConfigSection& section) {
  return read_ocr_backbone(section, rec_backbones(), "of `rec`");
}

NeckSpec read_det_neck(ConfigSection& section) {
  NeckSpec config;
  read_name(section, "name", config.name, {"DBFPN", "RSEFPN"}, kOtherNecks, "of `det`");
  if (config.name == "RSEFPN") {
    section.read("out_channels", config.out_channels, {16, 1 << 14}, "a multiple of 16");
    if (config.out_channels % 16 != 0) section.fail("out_channels", "must be a multiple of 16");
    section.read("shortcut", config.shortcut, "attention is added to its input");
  } else {
    section.read("out_channels", config.out_channels, {4, 1 << 14}, "a multiple of 4");
    if (config.out_channels % 4 != 0) section.fail("out_channels", "must be a multiple of 4");
    section.read("bias", config.bias, "of its convolutions");
    section.read("use_asf", config.use_asf, "adaptive scale fusion: DBNet++");
    section.read("channel_attention", config.channel_attention, "of that fusion");
    accept(section, "weight_init", "HeUniform");
  }
  return config;
}

NeckSpec read_rec_neck(ConfigSection& section) {
  NeckSpec config;
  read_name(section, "name", config.name, {"RNNEncoder"}, kOtherNecks, "of `rec`");
  section.read("hidden_size", config.hidden_size, {1, 1 << 14}, "of each direction");
  ignore(section, "batch_size");
  return config;
}

HeadSpec read_db_head(ConfigSection& section) {
  HeadSpec config;
  config.name.clear();
  read_name(section, "name", config.name, {"DBHead", "DBHeadEnhance"}, kOtherHeads, "of `det`");
  section.read("k", config.k, {1, 1 << 20},
               "steepness: DBHead computes sigmoid(k binary - thresh), as MindOCR's weights were "
               "trained, DBHeadEnhance the paper's sigmoid(k (binary - thresh))");
  section.read("adaptive", config.adaptive, "thresholds are learnt, too");
  section.read("bias", config.bias, "of its first convolutions");
  accept(section, "weight_init", "HeUniform");
  return config;
}

/// `about`: for the manual.
void read_text_classes(ConfigSection& section, HeadSpec& config, const std::string& about) {
  section.require("out_channels", "is missing: the characters of the dictionary, and the blank");
  section.read("out_channels", config.out_channels, {2, 1 << 24}, about);
}

HeadSpec read_ctc_head(ConfigSection& section) {
  HeadSpec config;
  config.name.clear();
  read_name(section, "name", config.name, {"CTCHead"}, kOtherHeads, "of `rec`");
  read_text_classes(section, config, "the characters of the dictionary, and the blank");
  section.read("mid_channels", config.mid_channels, {1, 1 << 20},
               "two layers, with so many channels in between");
  section.read("dropout", config.dropout, {0, 0.999}, "between these two layers");
  section.choose("weight_init", config.weight_init, {"normal", "crnn_customised"},
                 "start values of weights");
  section.choose("bias_init", config.bias_init, {"zeros", "crnn_customised"},
                 "start values of biases");
  return config;
}

void read_det_neck_and_head(ConfigSection& model, ModelConfig& config) {
  config.neck = read_all_of(model.section("neck"), read_det_neck);
  config.head = read_all_of(model.section("head"), read_db_head);
}

void read_rec_neck_and_head(ConfigSection& model, ModelConfig& config) {
  config.neck = read_all_of(model.section("neck"), read_rec_neck);
  config.head = read_all_of(model.section("head"), read_ctc_head);
}

void read_head_of_detector(ConfigSection& model, ModelConfig&) {
  model.only("head", {""}, "model.network takes its place, and a detector has no classes");
}

void read_head_of_recogniser(ConfigSection& model, ModelConfig& config) {
  ConfigSection head = model.section("head");
  read_text_classes(head, config.head, "");
  head.finish();
}

LossConfig read_db_loss(ConfigSection& section) {
  DbLossConfig config;
  section.read("eps", config.eps, {0, 1}, "added to each denominator");
  section.read("l1_scale", config.l1_scale, {0, 1e6},
               "weight of `loss_thresh`; `metrics.jsonl` has the terms `loss_binary`, "
               "`loss_thresh`, `loss_thresh_binary`");
  section.read("bce_scale", config.bce_scale, {0, 1e6}, "weight of `loss_binary`");
  section.choose("bce_replace", config.dice_for_bce, {{"bceloss", false}, {"diceloss", true}},
                 "`loss_binary` is balanced cross entropy, or dice loss");
  return config;
}

LossConfig read_ctc_loss(ConfigSection& section) {
  CtcLossConfig config;
  section.read("pred_seq_len", config.pred_seq_len, {1, 1 << 20}, "only so many frames count");
  section.read("max_label_len", config.max_label_len, {1, 1 << 20},
               "must be `max_text_len` of the labels, and below `pred_seq_len`");
  int64_t batch_size = 32;
  section.read("batch_size", batch_size, {1, 1 << 24}, "of no effect: the network's output has it");
  accept(section, "reduction", "mean");
  if (config.pred_seq_len <= config.max_label_len) {
    section.fail("pred_seq_len",
                 fmt::format("must be above max_label_len ({}), not {}: more frames than "
                             "characters are needed",
                             config.max_label_len, config.pred_seq_len));
  }
  return config;
}

PostprocessConfig read_db_postprocess(ConfigSection& section) {
  read_only_name(section, "DBPostprocess", kOtherPostprocess);
  ocr::DbPostprocessOptions config;
  section.read("binary_thresh", config.binary_thresh, {0, 1}, "pixels above it are text");
  section.read("box_thresh", config.box_thresh, {0, 1}, "regions with a lower mean are left out");
  section.read("max_candidates", config.max_candidates, {1, 1 << 24},
               "contours that are looked at in an image");
  section.read("expand_ratio", config.expand_ratio, {0, 100},
               "by how much regions grow, which were learnt shrunk");
  // MindOCR 0.1 selected polygons with a flag.
  using Box = ocr::DbPostprocessOptions::Box;
  std::optional<bool> polygons;
  section.read("output_polygon", polygons, "");
  if (polygons.value_or(false)) config.box_type = Box::kPoly;
  section.choose("box_type", config.box_type, {{"quad", Box::kQuad}, {"poly", Box::kPoly}},
                 "rectangles or polygons");
  accept(section, "pred_name", "binary");
  std::vector<std::string> fields;
  section.read("rescale_fields", fields, "polys, the only result");
  for (const auto& field : fields) {
    if (field != "polys") section.fail("rescale_fields", "must be [polys], the only result");
  }
  return config;
}

PostprocessConfig read_rec_postprocess(ConfigSection& section) {
  read_only_name(section, "RecCTCLabelDecode", kOtherPostprocess);
  return read_characters(section);
}

void read_det_keys(ConfigSection& section, MetricConfig& config) {
  section.read("one_to_one", config.det.one_to_one,
               "*ours*: a target takes one detection, as ICDAR's protocol has it");
}

void read_rec_keys(ConfigSection& section, MetricConfig& config) {
  auto& rec = config.rec;
  section.read("character_dict_path", rec.character_dict_path, "null: 0-9 and a-z");
  section.read("ignore_space", rec.ignore_space, "spaces do not count");
  section.read("filter_ood", rec.filter_ood,
               "characters of a target that the dictionary lacks do not count");
  section.read("lower", rec.lower, "upper and lower case are the same");
  section.read("ignore_symbol", rec.ignore_symbol,
               "only letters, digits, `^` and Chinese characters count");
  section.read("print_flag", rec.print_flag, "writes each text and its target");
}

/// Names of the built-in metric and of registered ones, and their settings.
MetricConfig read_ocr_metric(ConfigSection& section, const TaskSettings& task) {
  MetricConfig config;
  config.names = read_metric_names(section, joined_names(names_of(task.metrics), metrics()), "");
  read_own_metrics(section, config);
  read_built_in_metrics(section, task, config);
  return config;
}

}  // namespace

ocr::CharacterOptions read_characters(ConfigSection& section) {
  ocr::CharacterOptions config;
  section.read("character_dict_path", config.character_dict_path, "null: 0-9 and a-z");
  section.read("use_space_char", config.use_space_char, "the dictionary has a space, too");
  section.read("blank_at_last", config.blank_at_last,
               "True only: for CTCLoss the blank is the last class");
  section.read("lower", config.lower, "texts are brought to lower case");
  if (!config.blank_at_last) {
    section.fail("blank_at_last", "must be True: for CTCLoss the blank is the last class");
  }
  return config;
}

TaskSettings detection_task() {
  return {.name = "det",
          .about = "detection of text in pictures",
          .backbones = det_backbones(),
          .losses = {{"DBLoss", "of DBNet's maps: binary, thresh and thresh_binary", read_db_loss},
                     {"L1BalancedCELoss", "DBLoss under its name in MindOCR 0.1", read_db_loss}},
          .metrics = {{"DetMetric", "f-score, recall and precision of polygons", read_det_keys}},
          .datasets = {{"DetDataset", "pictures, and a file with the polygons in each"},
                       {"SynthTextDataset", "SynthText's pictures, with polygons in its gt.mat"}},
          .loss_columns = {"binary_map", "mask", "thresh_map", "thresh_mask"},
          .metric_columns = {"polys", "ignore_tags"},
          .evaluation_columns = {"shape_list"},
          .feature_maps = 4,
          .read_backbone = read_det_backbone,
          .read_backbone_keys = read_ocr_backbone_keys,
          .read_neck_and_head = read_det_neck_and_head,
          .read_head_of_network = read_head_of_detector,
          .read_metric = read_ocr_metric,
          .read_postprocess = read_db_postprocess,
          .read_dataset = read_ocr_dataset,
          .complete = [](Config&, ConfigSection&) {}};
}

TaskSettings recognition_task() {
  return {.name = "rec",
          .about = "recognition of text: pictures of a word or a line",
          .backbones = rec_backbones(),
          .losses = {{"CTCLoss", "of texts without places of their characters", read_ctc_loss}},
          .metrics = {{"RecMetric", "acc of whole texts, and norm_edit_distance", read_rec_keys}},
          .datasets = {{"RecDataset", "pictures of a text each, and a file with the texts"},
                       {"LMDBDataset", "pictures and texts in LMDB"}},
          .loss_columns = {"text_seq"},
          .metric_columns = {"text_padded", "text_length"},
          .read_backbone = read_rec_backbone,
          .read_backbone_keys = read_ocr_backbone_keys,
          .read_neck_and_head = read_rec_neck_and_head,
          .read_head_of_network = read_head_of_recogniser,
          .read_metric = read_ocr_metric,
          .read_postprocess = read_rec_postprocess,
          .read_dataset = read_ocr_dataset,
          .complete = check_recogniser};
}

}  // namespace lockstep::inline internal
