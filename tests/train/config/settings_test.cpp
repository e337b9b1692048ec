// The tables of docs/reference/settings.md come from the readers' records. With
// LOCKSTEP_TEST_WRITE=1 this test writes them.

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>

#include "lockstep/base/env.h"
#include "lockstep/base/file.h"
#include "lockstep/train/config/config.h"
#include "lockstep/train/config/config_section.h"
#include "lockstep/train/config/overrides.h"
#include "lockstep/train/config/yaml_reader.h"

namespace lockstep {
namespace {

// The minimum of each type, and each transform.
constexpr auto kAllOfClassification = R"(model:
  type: cls
  backbone: {name: resnet18}
  head: {num_classes: 10}
train:
  ckpt_save_dir: out
  dataset: {data_dir: d}
  loader: {batch_size: 32}
eval:
  dataset: {data_dir: d}
  loader: {batch_size: 32}
predict:
  dataset: {type: PredictDataset}
  loader: {batch_size: 1}
)";

constexpr auto kAllOfPictures = R"(model:
  type: cls
  backbone: {name: resnet18}
  head: {num_classes: 10}
train:
  ckpt_save_dir: out
  dataset:
    type: ImageFolderDataset
    data_dir: d
    transform_pipeline:
      - Resize: {size: 1}
      - CenterCrop: {size: 1}
      - RandomCrop:
      - RandomResizedCrop: {size: 1}
      - RandomHorizontalFlip:
      - RandomVerticalFlip:
      - ColorJitter:
      - RandAugment:
      - TrivialAugmentWide:
      - Normalize:
      - NormalizeImage:
      - RandomErasing:
      - MixUp:
      - CutMix:
  loader: {batch_size: 32}
eval:
  dataset: {type: ImageListDataset, data_dir: d, label_file: l.csv}
  loader: {batch_size: 32}
)";

constexpr auto kAllOfDetection = R"(model:
  type: det
  backbone: {name: det_resnet18}
  neck: {name: DBFPN}
  head: {name: DBHead}
train:
  ckpt_save_dir: out
  dataset:
    type: DetDataset
    data_dir: images
    label_file: gt.txt
    transform_pipeline:
      - DecodeImage:
      - DetLabelEncode:
      - RandomScale: {scale_range: [1, 2]}
      - RandomColorAdjust:
      - RandomRotate:
      - RandomHorizontalFlip:
      - RandomCropWithBBox:
      - ValidatePolygons:
      - ShrinkBinaryMap:
      - BorderMap:
      - NormalizeImage:
      - ToCHWImage:
  loader: {batch_size: 2}
eval:
  dataset:
    type: DetDataset
    data_dir: images
    label_file: gt.txt
    transform_pipeline:
      - DecodeImage:
      - DetLabelEncode:
      - DetResize:
      - NormalizeImage:
      - ToCHWImage:
  loader: {batch_size: 2}
predict:
  dataset: {type: PredictDataset, transform_pipeline: [{DecodeImage: }]}
  loader: {batch_size: 1}
)";

constexpr auto kAllOfRecognition = R"(model:
  type: rec
  backbone: {name: rec_vgg7}
  neck: {name: RNNEncoder}
  head: {name: CTCHead, out_channels: 37}
loss: {max_label_len: 23}
train:
  ckpt_save_dir: out
  dataset:
    type: LMDBDataset
    data_dir: [a, b]
    transform_pipeline:
      - DecodeImage:
      - RecCTCLabelEncode:
      - Rotate90IfVertical:
      - RecResizeImg: {image_shape: [32, 100]}
      - RecResizeNormForInfer:
      - NormalizeImage:
      - ToCHWImage:
  loader: {batch_size: 2}
eval:
  dataset:
    type: RecDataset
    data_dir: a
    label_file: a
    transform_pipeline:
      - DecodeImage:
      - RecCTCLabelEncode:
      - RecResizeImg: {image_shape: [32, 100]}
      - NormalizeImage:
      - ToCHWImage:
  loader: {batch_size: 2}
)";

/// A key in one configuration.
struct Reading {
  Setting setting;
  std::string table;  ///< The page's table.
  std::string owner;  ///< The part that has the key: a network's, a data set's type.
  std::string where;  ///< The condition for its default.
};

std::string text_at(const Node& root, const std::string& section, const std::string& key) {
  const Node* node = &root;
  for (size_t begin = 0; node != nullptr && begin <= section.size();) {
    const size_t end = std::min(section.find('.', begin), section.size());
    node = node->find(section.substr(begin, end - begin));
    begin = end + 1;
  }
  node = node == nullptr ? nullptr : node->find(key);
  return node == nullptr ? "" : node->text;
}

/// The place of a key on the page. The sections train, eval and predict share one table.
Reading place(Setting setting, const Node& effective) {
  std::string& section = setting.section;
  const std::string top = section.substr(0, section.find('.'));
  Reading reading{
      {}, top, text_at(effective, section, "name"), text_at(effective, "model", "type")};
  const size_t below = section.find('.');
  const std::string pipeline = ".dataset.transform_pipeline.";
  if (const size_t found = section.find(pipeline); found != std::string::npos) {
    setting.key = section.substr(found + pipeline.size()) + "." + setting.key;
    reading = {{}, "transforms", "", ""};
  } else if (top == "model" && below != std::string::npos) {
    const std::string part = section.substr(0, section.find('.', below + 1));
    reading.owner = text_at(effective, part, "name");
    setting.key = section.substr(below + 1) + "." + setting.key;
  } else if (below != std::string::npos) {
    reading.table = section.substr(below + 1);
    reading.where = top;
    if (reading.table == "dataset") reading.owner = text_at(effective, section, "type");
  } else if (top == "optimizer") {
    reading.owner = text_at(effective, top, "opt");
    if (setting.key != "weight_decay_groups") reading.where = reading.owner;
  }
  if (section == "model") reading.owner.clear();
  if (reading.owner.ends_with("resnet18"))
    reading.owner.replace(reading.owner.size() - 2, 2, "\\*");
  reading.setting = std::move(setting);
  return reading;
}

std::vector<std::pair<const char*, std::vector<std::string>>> variants() {
  std::vector<std::pair<const char*, std::vector<std::string>>> all = {
      {kAllOfClassification, {"loss_scaler={type: static, loss_scale: 1}"}},
      {kAllOfClassification, {"train.dataset.type=Cifar100Dataset"}},
      {kAllOfClassification, {"train.dataset.type=MnistDataset"}},
      {kAllOfClassification, {"train.dataset.type=FashionMnistDataset"}},
      {kAllOfClassification, {"loss.name=FocalLoss", "metric.name=TopKMetric"}},
      {kAllOfClassification, {"loss.name=BCEWithLogitsLoss", "metric.name=F1Metric"}},
      {kAllOfClassification, {"loss.name=DistillationLoss", "metric.name=AucMetric"}},
      {kAllOfClassification, {"metric.name=MapMetric"}},
      {kAllOfPictures, {}},
      {kAllOfPictures, {"eval.dataset.type=ImageFolderDataset", "eval.dataset.label_file=null"}},
      {kAllOfPictures, {"eval.dataset={type: WebDataset, shards: s.tar}"}},
      {kAllOfDetection, {}},
      {kAllOfRecognition, {}},
      {kAllOfRecognition, {"model.backbone={name: rec_resnet34}"}},
      {kAllOfDetection, {"train.dataset.type=SynthTextDataset"}},
      {kAllOfDetection, {"model.backbone={name: det_mobilenet_v3, out_stages: [5, 8, 14, 20]}"}},
      {kAllOfDetection, {"model.backbone={name: det_mobilenet_v3_enhance, pretrained: False}"}},
      {kAllOfDetection, {"model.neck={name: RSEFPN}"}},
      {kAllOfDetection, {"model.head={name: DBHeadEnhance}"}}};
  for (const char* opt : {"sgd", "momentum", "nesterov", "adam", "adamw", "lion", "nadam", "adan",
                          "rmsprop", "adagrad", "lamb"}) {
    all.push_back({kAllOfClassification, {std::string("optimizer.opt=") + opt}});
  }
  return all;
}

std::vector<Reading> read_all() {
  std::vector<Reading> all;
  for (const auto& [text, overrides] : variants()) {
    Node tree = parse_yaml(text, "variant");
    apply_overrides(tree, overrides);
    Settings settings;
    const Config config = read_config(std::move(tree), &settings);
    for (auto& setting : settings) all.push_back(place(std::move(setting), config.effective));
  }
  return all;
}

/// A row of a table: one key with equal descriptions.
struct Row {
  Setting setting;
  std::vector<std::string> owners;
  std::map<std::string, std::set<std::string>> where_by_default;
  std::vector<std::string> defaults;  ///< In the order of first occurrence.
};

void add_once(std::vector<std::string>& list, const std::string& text) {
  if (std::find(list.begin(), list.end(), text) == list.end()) list.push_back(text);
}

void add(std::vector<Row>& rows, const Reading& reading) {
  const Setting& setting = reading.setting;
  auto row = std::find_if(rows.begin(), rows.end(), [&](const Row& one) {
    return one.setting.key == setting.key && one.setting.kind == setting.kind &&
           one.setting.about == setting.about;
  });
  if (row == rows.end()) row = rows.insert(rows.end(), Row{setting, {}, {}, {}});
  add_once(row->owners, reading.owner);
  add_once(row->defaults, setting.fallback);
  row->where_by_default[setting.fallback].insert(reading.where);
}

/// The most frequent default, then the others, each with its condition.
std::string shown_default(const Row& row) {
  const auto shown = [](const std::string& text) { return text.empty() ? "null" : text; };
  const auto count = [&](const std::string& text) { return row.where_by_default.at(text).size(); };
  std::vector<std::string> defaults = row.defaults;
  std::stable_sort(defaults.begin(), defaults.end(),
                   [&](const auto& a, const auto& b) { return count(a) > count(b); });
  std::string text = shown(defaults[0]);
  for (size_t i = 1; i < defaults.size(); ++i) {
    text += fmt::format("; {}: {}", fmt::join(row.where_by_default.at(defaults[i]), ", "),
                        shown(defaults[i]));
  }
  return text;
}

std::string table_of(const std::string& name, const std::vector<Reading>& readings) {
  std::vector<Row> rows;
  std::map<std::string, std::set<std::string>> owners;  // of all keys with the same beginning
  const auto part = [](const Row& row) {
    return row.setting.key.substr(0, row.setting.key.find('.') + 1);
  };
  for (const auto& reading : readings) {
    if (reading.table == name) add(rows, reading);
  }
  for (const auto& row : rows) owners[part(row)].insert(row.owners.begin(), row.owners.end());
  std::string text = "| key | value | default | |\n|---|---|---|---|\n";
  for (const auto& row : rows) {
    const bool everywhere = row.owners.size() == owners[part(row)].size();
    const std::string of = everywhere || ("." + row.setting.key).ends_with(".name")
                               ? ""
                               : fmt::format("{}: ", fmt::join(row.owners, ", "));
    text += fmt::format("| `{}` | {} | {} | {}{} |\n", row.setting.key, row.setting.kind,
                        shown_default(row), of, row.setting.about);
  }
  return text;
}

/// The page with new generated parts, "<!-- settings NAME -->" to "<!-- end of settings -->".
/// `names`: receives their names.
std::string with_tables(const std::string& page, std::set<std::string>& names) {
  const std::string begin = "<!-- settings ", end = "<!-- end of settings -->";
  const auto readings = read_all();
  std::string text;
  size_t done = 0;
  for (size_t at = page.find(begin); at != std::string::npos; at = page.find(begin, done)) {
    const size_t from = page.find(" -->\n", at);
    const size_t to = page.find(end, at);
    if (from == std::string::npos || to == std::string::npos) break;
    const std::string name = page.substr(at + begin.size(), from - at - begin.size());
    names.insert(name);
    text += page.substr(done, from + 5 - done) + table_of(name, readings);
    done = to;
  }
  return text + page.substr(done);
}

TEST(Settings, PageHasWhatTheReadersSay) {
  const std::filesystem::path path = std::filesystem::path(env_or("LOCKSTEP_SOURCE_DIR", ".")) /
                                     "docs" / "reference" / "settings.md";
  const std::string page = read_file(path, 1 << 20);
  std::set<std::string> names;
  const std::string wanted = with_tables(page, names);
  if (env_or("LOCKSTEP_TEST_WRITE", "") == "1") {
    std::ofstream(path) << wanted;
    return;
  }
  for (const auto& reading : read_all()) {
    EXPECT_TRUE(names.contains(reading.table)) << "no table of " << reading.table;
  }
  EXPECT_TRUE(page == wanted) << "run this test with LOCKSTEP_TEST_WRITE=1";
}

TEST(Settings, EveryKeyHasALine) {
  for (const auto& reading : read_all()) {
    EXPECT_EQ(reading.setting.about.find('\n'), std::string::npos) << reading.setting.key;
    EXPECT_EQ(reading.setting.about.find('|'), std::string::npos) << reading.setting.key;
    EXPECT_FALSE(reading.setting.kind.empty()) << reading.setting.key;
  }
}

}  // namespace
}  // namespace lockstep
