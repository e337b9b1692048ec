// Checks the columns of a data set against the inputs of loss and metric.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "lockstep/train/config/sections.h"
#include "lockstep/train/config/task_settings.h"

namespace lockstep::inline internal {
namespace {

using Names = std::vector<std::string>;

/// The columns that a transform adds to a sample.
struct Made {
  Names operator()(const ocr::DecodeImage&) const { return {"image"}; }
  Names operator()(const ocr::DetLabelEncode&) const { return {"polys", "texts", "ignore_tags"}; }
  Names operator()(const ocr::ShrinkBinaryMap&) const { return {"binary_map", "mask"}; }
  Names operator()(const ocr::BorderMap&) const { return {"thresh_map", "thresh_mask"}; }
  Names operator()(const ocr::DetResize&) const { return {"shape_list"}; }
  Names operator()(const ocr::RecCTCLabelEncode&) const {
    return {"text_seq", "text_padded", "text_length", "length"};
  }
  template <typename T>
  Names operator()(const T&) const {
    return {};
  }
};

Names made_by(const DatasetConfig& config) {
  Names names;
  if (config.type == "SynthTextDataset") names = {"polys", "texts", "ignore_tags"};
  for (const auto& transform : config.pipeline) {
    const Names more = std::visit(Made(), transform);
    names.insert(names.end(), more.begin(), more.end());
  }
  return names;
}

const char* maker_of(const std::string& column) {
  if (column == "binary_map" || column == "mask") return "ShrinkBinaryMap";
  if (column == "thresh_map" || column == "thresh_mask") return "BorderMap";
  if (column == "shape_list") return "DetResize";
  return column.starts_with("text") ? "RecCTCLabelEncode" : "DetLabelEncode";
}

/// The columns of a list of indices.
Names chosen(ConfigSection& section, const std::string& key, const Names& columns) {
  Names names;
  const auto last = static_cast<int64_t>(columns.size()) - 1;
  std::vector<int64_t> indices;
  section.read(key, indices, {0, std::max<int64_t>(0, last)}, "");
  for (const int64_t index : indices) {
    if (index > last) section.fail(key, "names columns, but output_columns is empty");
    names.push_back(columns[static_cast<size_t>(index)]);
  }
  return names;
}

void check_labels(ConfigSection& section, const Names& columns, const Names& wanted,
                  bool training) {
  const char* key = "label_column_index";
  Names labels = chosen(section, key, columns);
  if (!section.has(key)) labels.assign(columns.begin() + 1, columns.end());
  // Without a list of labels the metric's columns come first; the rest is extra.
  const bool right = section.has(key) || labels.size() < wanted.size()
                         ? labels == wanted
                         : std::equal(wanted.begin(), wanted.end(), labels.begin());
  if (right) return;
  section.fail(section.has(key) ? key : "output_columns",
               fmt::format("must give the {} [{}], not [{}]", training ? "loss" : "metric",
                           fmt::join(wanted, ", "), fmt::join(labels, ", ")));
}

void check_made(ConfigSection& section, const Names& wanted, const DatasetConfig& config) {
  const Names made = made_by(config);
  for (const auto& column : wanted) {
    if (contains(made, column)) continue;
    section.fail("transform_pipeline",
                 fmt::format("must hold {}, which makes the column {}", maker_of(column), column));
  }
  const bool planar = std::any_of(
      config.pipeline.begin(), config.pipeline.end(),
      [](const auto& transform) { return std::holds_alternative<ocr::ToCHWImage>(transform); });
  if (!planar) section.fail("transform_pipeline", "must hold ToCHWImage: the network needs it");
}

}  // namespace

void check_columns(ConfigSection& section, const DatasetConfig& config, const TaskSettings& task,
                   DataUse use) {
  const bool training = use == DataUse::kTrain;
  Names columns;
  section.read(
      "output_columns", columns,
      "checked, as `net_input_column_index` and `label_column_index`, against loss and metric");
  Names inputs = chosen(section, "net_input_column_index", columns);
  ignore(section, "meta_data_column_index");
  // MindOCR 0.1 used counts: of the network's columns, then of the loss's.
  section.only("num_columns_to_net", {"1", ""}, "the networks here take the image alone");
  ignore(section, "num_keys_of_labels");
  const bool only_lists = !section.has("transform_pipeline");  // see read_ocr_pipeline()
  if (use == DataUse::kPredict || only_lists) {
    ignore(section, "label_column_index");
    return;
  }
  Names wanted = training ? task.loss_columns : task.metric_columns;
  if (!columns.empty()) {
    if (inputs.empty()) inputs = {columns[0]};
    if (inputs != Names{"image"}) {
      section.fail("net_input_column_index",
                   fmt::format("must give the network [image], not [{}]", fmt::join(inputs, ", ")));
    }
    check_labels(section, columns, wanted, training);
  } else {
    ignore(section, "label_column_index");
  }
  const Names& more = task.evaluation_columns;
  if (!training) wanted.insert(wanted.end(), more.begin(), more.end());
  check_made(section, wanted, config);
}

}  // namespace lockstep::inline internal
