#include "lockstep/ocr/convert/det_sets.h"

#include <algorithm>
#include <array>
#include <filesystem>

namespace lockstep::ocr {
namespace {

std::string before_first(const std::string& name, char separator) {
  return name.substr(0, name.find(separator));
}
std::string behind(const std::string& name, size_t begin) {
  return name.substr(std::min(begin, name.size()));
}
std::string bare_name(const std::string& name) {
  return std::filesystem::path(name).stem().string();
}

const std::array<LabelSet, 13> kLabelSets = {{
    {"ic15", Order::kByLabel, ".txt",
     [](const std::string& n) { return behind(bare_name(n), 3) + ".jpg"; }, parse_ic15},
    {"mlt2017", Order::kByPicture, ".txt",
     [](const std::string& n) { return "gt_" + bare_name(n) + ".txt"; }, parse_mlt},
    {"mlt2019", Order::kByPicture, ".txt",
     [](const std::string& n) { return bare_name(n) + ".txt"; }, parse_mlt},
    {"rctw17", Order::kByLabel, ".txt",
     [](const std::string& n) { return before_first(n, '.') + ".jpg"; }, parse_rctw17},
    {"mtwi2018", Order::kByLabel, ".txt",
     [](const std::string& n) { return bare_name(n) + ".jpg"; }, parse_mtwi2018},
    {"td500", Order::kByLabel, ".gt", [](const std::string& n) { return bare_name(n) + ".JPG"; },
     parse_td500},
    {"totaltext", Order::kByLabel, ".txt",
     [](const std::string& n) { return before_first(behind(n, n.rfind('_') + 1), '.') + ".jpg"; },
     parse_totaltext},
    {"ctw1500", Order::kByLabel, ".txt",
     [](const std::string& n) { return behind(before_first(n, '.'), 3) + ".jpg"; }, parse_ctw1500},
    {kCtwTraining, Order::kByLabel, ".xml",
     [](const std::string& n) { return before_first(n, '.') + ".jpg"; }, parse_ctw1500_xml},
    {"casia10k", Order::kByLabel, ".txt",
     [](const std::string& n) { return before_first(n, '.') + ".jpg"; }, parse_casia10k},
    {"sroie", Order::kByLabel, ".txt",
     [](const std::string& n) { return before_first(n, '.') + ".jpg"; }, parse_sroie},
    {"borndigital", Order::kByPicture, ".txt",
     [](const std::string& n) { return "gt_" + bare_name(n) + ".txt"; }, parse_borndigital},
    {"rects", Order::kByPicture, ".json",
     [](const std::string& n) { return bare_name(n) + ".json"; }, parse_rects},
}};

}  // namespace

const LabelSet* find_label_set(std::string_view name) {
  const auto found = std::find_if(kLabelSets.begin(), kLabelSets.end(),
                                  [&](const LabelSet& set) { return set.name == name; });
  return found != kLabelSets.end() ? found : nullptr;
}

}  // namespace lockstep::ocr
