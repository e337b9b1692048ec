// loss, postprocess and metric: what a network is trained for, and how it is judged.

#include <fmt/format.h>

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

LossConfig read_cross_entropy(Section& section) {
  CrossEntropyConfig config;
  config.smoothing = section.number("smoothing", 0, 0, 0.999);
  section.only("aux_factor", {"0.0", "0", ""}, "no model here has auxiliary outputs");
  return config;
}

LossConfig read_db_loss(Section& section) {
  DbLossConfig config;
  config.eps = section.number("eps", 1e-6, 0, 1);
  config.l1_scale = section.number("l1_scale", 10, 0, 1e6);
  config.bce_scale = section.number("bce_scale", 5, 0, 1e6);
  config.dice_for_bce =
      section.choice("bce_replace", "bceloss", {"bceloss", "diceloss"}) == "diceloss";
  return config;
}

LossConfig read_ctc_loss(Section& section) {
  CtcLossConfig config;
  config.pred_seq_len = section.whole("pred_seq_len", 26, 1, 1 << 20);
  config.max_label_len = section.whole("max_label_len", 25, 1, 1 << 20);
  section.whole("batch_size", 32, 1, 1 << 24);
  section.choice("reduction", "mean", {"mean"});
  if (config.pred_seq_len <= config.max_label_len) {
    section.fail("pred_seq_len",
                 fmt::format("must be above max_label_len ({}), not {}: a network has to say more "
                             "than it is asked",
                             config.max_label_len, config.pred_seq_len));
  }
  return config;
}

PostprocessConfig read_db_postprocess(Section& section) {
  ocr::DbPostprocessOptions config;
  config.binary_thresh = section.number("binary_thresh", 0.3, 0, 1);
  config.box_thresh = section.number("box_thresh", 0.7, 0, 1);
  config.max_candidates = static_cast<int>(section.whole("max_candidates", 1000, 1, 1 << 24));
  config.expand_ratio = section.number("expand_ratio", 1.5, 0, 100);
  // MindOCR 0.1 said with a flag whether boxes are polygons.
  const bool polygons = section.has("output_polygon") && section.flag("output_polygon", false);
  section.any("output_polygon");
  const char* fallback = polygons ? "poly" : "quad";
  if (section.choice("box_type", fallback, {"quad", "poly"}) == "poly") {
    config.box_type = ocr::DbPostprocessOptions::Box::kPoly;
  }
  section.choice("pred_name", "binary", {"binary"});
  for (const auto& field : section.texts("rescale_fields")) {
    if (field != "polys") section.fail("rescale_fields", "must be [polys], the only result");
  }
  return config;
}

ocr::RecMetricOptions read_rec_metric(Section& section) {
  ocr::RecMetricOptions config;
  config.character_dict_path = section.text("character_dict_path", "");
  config.ignore_space = section.flag("ignore_space", true);
  config.filter_ood = section.flag("filter_ood", true);
  config.lower = section.flag("lower", true);
  config.ignore_symbol = section.flag("ignore_symbol", false);
  config.print_flag = section.flag("print_flag", false);
  return config;
}

}  // namespace

LossConfig read_loss(Section section, ModelType type) {
  LossConfig config;
  const std::string own = type == ModelType::kCls   ? "CrossEntropySmooth"
                          : type == ModelType::kDet ? "DBLoss"
                                                    : "CTCLoss";
  std::vector<std::string> names = {own};
  if (type == ModelType::kDet) names.emplace_back("L1BalancedCELoss");  // DBLoss in MindOCR 0.1
  read_name(section, "name", own, names, kOtherLosses);
  config = type == ModelType::kCls   ? read_cross_entropy(section)
           : type == ModelType::kDet ? read_db_loss(section)
                                     : read_ctc_loss(section);
  section.finish();
  return config;
}

ocr::CharacterOptions read_characters(Section& section) {
  ocr::CharacterOptions config;
  config.character_dict_path = section.text("character_dict_path", "");
  config.use_space_char = section.flag("use_space_char", false);
  config.blank_at_last = section.flag("blank_at_last", true);
  config.lower = section.flag("lower", false);
  if (!config.blank_at_last) {
    section.fail("blank_at_last", "must be True: for CTCLoss the blank is the last class");
  }
  return config;
}

PostprocessConfig read_postprocess(Section section, ModelType type) {
  PostprocessConfig config;
  if (type == ModelType::kCls) {
    section.choice("name", "ClsPostprocess", {"ClsPostprocess"});
    config = ClassNames{section.texts("label_list")};
  } else if (type == ModelType::kDet) {
    read_name(section, "name", "DBPostprocess", {"DBPostprocess"}, kOtherPostprocess);
    config = read_db_postprocess(section);
  } else {
    read_name(section, "name", "RecCTCLabelDecode", {"RecCTCLabelDecode"}, kOtherPostprocess);
    config = read_characters(section);
  }
  section.finish();
  return config;
}

MetricConfig read_metric(Section section, ModelType type) {
  MetricConfig config;
  std::vector<std::string> indicators = {"acc", "top_5"};
  config.name = "ClsMetric";
  if (type == ModelType::kDet) {
    config.name = "DetMetric";
    indicators = {"f-score", "recall", "precision"};
  } else if (type == ModelType::kRec) {
    config.name = "RecMetric";
    indicators = {"acc", "norm_edit_distance"};
  }
  section.choice("name", config.name, {config.name});
  config.main_indicator = section.choice("main_indicator", indicators[0], indicators);
  if (type == ModelType::kCls) section.any("label_list");
  if (type == ModelType::kDet) config.det.one_to_one = section.flag("one_to_one", false);
  if (type == ModelType::kRec) config.rec = read_rec_metric(section);
  section.finish();
  return config;
}

}  // namespace lockstep
