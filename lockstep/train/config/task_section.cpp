// The sections loss and postprocess.

#include <fmt/format.h>

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

}  // namespace

std::vector<std::string> built_in_losses() {
  return {"CrossEntropySmooth", "DBLoss", "CTCLoss"};
}

LossConfig read_loss(Section section, ModelType type) {
  std::string name = built_in_losses()[static_cast<size_t>(type)];
  std::vector<std::string> names = {name};
  if (type == ModelType::kDet) names.emplace_back("L1BalancedCELoss");  // DBLoss in MindOCR 0.1
  if (type == ModelType::kCls) append(names, names_of(losses()));
  read_name(section, "name", name, names, kOtherLosses, "");
  LossConfig config;
  OwnLoss own;
  if (type == ModelType::kCls) own = read_own_part(section, "name", name, losses());
  if (own.make) {
    config = own;
  } else {
    config = type == ModelType::kCls   ? read_cross_entropy(section)
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
