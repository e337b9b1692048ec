// The sections loss and postprocess.

#include <fmt/format.h>

#include "lockstep/train/config/node.h"
#include "lockstep/train/config/own_parts.h"
#include "lockstep/train/config/sections.h"

namespace lockstep {
namespace {

const std::vector<std::string> kOtherLosses = {"SARLoss",          "AttentionLoss",
                                               "VisionLANLoss",    "PSEDiceLoss",
                                               "EASTLoss",         "MasterLoss",
                                               "ABINetLoss",       "TableMasterLoss",
                                               "CrossEntropyLoss", "VQASerTokenLayoutLMLoss"};
const std::vector<std::string> kOtherPostprocess = {
    "PSEPostprocess",     "EASTPostprocess",
    "RecAttnLabelDecode", "VisionLANPostProcess",
    "SARLabelDecode",     "RecMasterLabelDecode",
    "ABINetLabelDecode",  "VQASerTokenLayoutLMPostProcess"};

void append(std::vector<std::string>& names, const std::vector<std::string>& more) {
  names.insert(names.end(), more.begin(), more.end());
}

LossConfig read_cross_entropy(Section& section) {
  CrossEntropyConfig config;
  section.read("smoothing", config.smoothing, {0, 0.999},
               "of labels; the loss of an evaluation has it, too");
  section.only("aux_factor", {"0.0", "0", ""}, "no model here has auxiliary outputs");
  return config;
}

/// No number, one for all classes, or one for each.
std::vector<double> read_class_weights(Section& section, const std::string& key,
                                       const std::string& about) {
  section.record(key, "a number from 0 up, or a list of one for each class", "1.0", about);
  const auto weights = section.number_or_list(key);
  for (const double weight : weights) {
    if (weight < 0) section.fail(key, fmt::format("must be numbers from 0 up, not {}", weight));
  }
  return weights;
}

LossConfig read_focal_loss(Section& section) {
  FocalConfig config;
  section.read("gamma", config.gamma, {0, 100},
               "*ours*: how little samples count whose class is sure; 0: cross entropy");
  config.alpha = read_class_weights(section, "alpha", "*ours*: weights of the classes");
  return config;
}

LossConfig read_bce_loss(Section& section) {
  BceConfig config;
  section.read("smoothing", config.smoothing, {0, 0.999},
               "*ours*: of labels, but not of targets with several classes a sample");
  config.pos_weight = read_class_weights(section, "pos_weight",
                                         "*ours*: how much a class counts where it is present");
  section.read("sum_classes", config.sum_classes,
               "*ours*: the sum over classes, not their mean; of samples it is the mean");
  return config;
}

LossConfig read_distillation(Section& section) {
  DistillationConfig config;
  constexpr auto kWhat = "the section `model` of a trained network; `pretrained` has its weights";
  section.require("teacher", std::string("is missing: ") + kWhat);
  section.record("teacher", "a mapping", "", std::string("*ours*: ") + kWhat);
  section.read("temperature", config.temperature, {0.01, 1000},
               "*ours*: divides the scores of both networks");
  section.read("weight", config.weight, {0, 1},
               "*ours*: of the teacher; the labels have the rest, and an evaluation only them");
  section.read("smoothing", config.smoothing, {0, 0.999}, "*ours*: of labels");
  Node* teacher = section.any("teacher");
  if (teacher == nullptr) {  // keys are being listed
    config.teacher.head.num_classes = 0;
    return config;
  }
  // Its keys are those of `model`, and are listed there.
  const Section own(*teacher, section.name_of("teacher"));
  config.teacher = read_model(own);
  if (config.teacher.type != ModelType::kCls) own.fail("type", "must be cls");
  if (config.teacher.resume) own.fail("resume", "must be False: a teacher is not trained");
  if (config.teacher.pretrained.empty()) {
    own.fail("pretrained", "is missing: the file, or the checkpoint, with the teacher's weights");
  }
  return config;
}

LossConfig read_class_loss(Section& section, const std::string& name) {
  if (name == "FocalLoss") return read_focal_loss(section);
  if (name == "BCEWithLogitsLoss") return read_bce_loss(section);
  if (name == "DistillationLoss") return read_distillation(section);
  return read_cross_entropy(section);
}

LossConfig read_db_loss(Section& section) {
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

LossConfig read_ctc_loss(Section& section) {
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

PostprocessConfig read_db_postprocess(Section& section) {
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

/// The first is the default.
std::vector<std::string> losses_of(ModelType type) {
  if (type == ModelType::kDet) return {"DBLoss"};
  if (type == ModelType::kRec) return {"CTCLoss"};
  return {"CrossEntropySmooth", "FocalLoss", "BCEWithLogitsLoss", "DistillationLoss"};
}

}  // namespace

std::vector<std::string> built_in_losses() {
  std::vector<std::string> all;
  for (const auto type : {ModelType::kCls, ModelType::kDet, ModelType::kRec}) {
    append(all, losses_of(type));
  }
  return all;
}

LossConfig read_loss(Section section, ModelType type) {
  std::vector<std::string> names = losses_of(type);
  std::string name = names.front();
  if (type == ModelType::kDet) names.emplace_back("L1BalancedCELoss");  // DBLoss in MindOCR 0.1
  if (type == ModelType::kCls) append(names, names_of(losses()));
  read_name(section, "name", name, names, kOtherLosses,
            type == ModelType::kCls ? "*ours*, but for CrossEntropySmooth" : "");
  LossConfig config;
  OwnLoss own;
  if (type == ModelType::kCls) own = read_own_part(section, "name", name, losses());
  if (own.make) {
    config = own;
  } else {
    config = type == ModelType::kCls   ? read_class_loss(section, name)
             : type == ModelType::kDet ? read_db_loss(section)
                                       : read_ctc_loss(section);
  }
  section.finish();
  return config;
}

ocr::CharacterOptions read_characters(Section& section) {
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

PostprocessConfig read_postprocess(Section section, ModelType type) {
  PostprocessConfig config;
  if (type == ModelType::kCls) {
    std::string name = "ClsPostprocess";
    section.choose("name", name, {name}, "");
    ClassNames classes;
    section.read(
        "label_list", classes.label_list,
        "a name for each class, for `predict`; else the names in `batches.meta.txt` beside "
        "the data, else numbers");
    config = classes;
  } else if (type == ModelType::kDet) {
    std::string name = "DBPostprocess";
    read_name(section, "name", name, {name}, kOtherPostprocess, "");
    config = read_db_postprocess(section);
  } else {
    std::string name = "RecCTCLabelDecode";
    read_name(section, "name", name, {name}, kOtherPostprocess, "");
    config = read_characters(section);
  }
  section.finish();
  return config;
}

}  // namespace lockstep
