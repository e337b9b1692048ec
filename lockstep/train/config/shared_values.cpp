#include "lockstep/train/config/shared_values.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <vector>

#include "lockstep/train/config/node.h"
#include "lockstep/train/config/yaml_writer.h"

namespace lockstep::inline internal {
namespace {

using Values = std::map<std::string, std::string>;

/// In any section.
constexpr std::array<std::string_view, 11> kOfAHost = {
    "dataset_root",        "data_dir",      "label_file",     "shards",
    "character_dict_path", "pretrained",    "ckpt_load_path", "vis_font_path",
    "num_workers",         "prefetch_size", "max_rowsize"};
/// Full names.
constexpr std::array<std::string_view, 8> kOfARank = {"model.resume",
                                                      "system.device_id",
                                                      "system.log_level",
                                                      "system.log_style",
                                                      "system.log_interval",
                                                      "system.log_interval_seconds",
                                                      "predict",
                                                      "common"};

template <size_t N>
bool contains(const std::array<std::string_view, N>& list, std::string_view name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

std::string text_of(const Node& node) {
  bool flag = false;
  int64_t whole = 0;
  double number = 0;
  if (node.kind == Node::Kind::kNull) return "null";
  if (read_flag(node, &flag)) return yaml_flag(flag);
  if (read_whole(node, &whole)) return std::to_string(whole);
  if (read_number(node, &number)) return fmt::format("{}", number);
  return node.text;
}

bool is_leaf(const Node& node) {
  return node.kind == Node::Kind::kNull || node.kind == Node::Kind::kScalar;
}

void collect(const Node& node, const std::string& path, Values& values);

void collect_items(const Node& list, const std::string& path, Values& values) {
  if (std::all_of(list.items.begin(), list.items.end(), is_leaf)) {
    std::vector<std::string> texts;
    for (const Node& item : list.items) texts.push_back(text_of(item));
    values[path] = fmt::format("[{}]", fmt::join(texts, ", "));
    return;
  }
  for (size_t i = 0; i < list.items.size(); ++i) {
    collect(list.items[i], fmt::format("{}[{}]", path, i), values);
  }
}

void collect(const Node& node, const std::string& path, Values& values) {
  if (node.kind == Node::Kind::kList) return collect_items(node, path, values);
  if (is_leaf(node)) {
    values[path] = text_of(node);
    return;
  }
  if (node.entries.empty()) values[path] = "{}";  // a transform, of which only the name counts
  for (const auto& [key, place, value] : node.entries) {
    const std::string name = path.empty() ? key : path + "." + key;
    if (contains(kOfAHost, key) || contains(kOfARank, name)) continue;
    collect(value, name, values);
  }
}

std::string plain_path(const std::filesystem::path& path) {
  std::string text = path.lexically_normal().string();
  while (text.size() > 1 && text.ends_with('/')) text.pop_back();
  return text;
}

}  // namespace

Values shared_values(const Config& config) {
  Values values;
  collect(config.effective, "", values);
  if (config.parallel.virtual_ranks == 0) values.erase("parallel.threads");
  values["train.ckpt_save_dir"] = plain_path(config.train.ckpt_save_dir);
  return values;
}

std::string first_difference(const Values& a, const std::string& on_a, const Values& b,
                             const std::string& on_b) {
  const auto in = [](const Values& values, const std::string& key) {
    const auto found = values.find(key);
    return found == values.end() ? std::string("absent") : found->second;
  };
  Values all = a;
  all.insert(b.begin(), b.end());
  std::erase_if(all, [&](const auto& value) { return in(a, value.first) == in(b, value.first); });
  if (all.empty()) return "";
  const std::string& key = all.begin()->first;
  const size_t more = all.size() - 1;
  return fmt::format("{} is {} on {}, {} on {}{}", key, in(a, key), on_a, in(b, key), on_b,
                     more == 0 ? ""
                               : fmt::format(" ({} other key{} differ{})", more,
                                             more == 1 ? "" : "s", more == 1 ? "s" : ""));
}

}  // namespace lockstep::inline internal
