#include "lockstep/checkpoint/weight_names.h"

#include <algorithm>
#include <array>
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "lockstep/checkpoint/timm_names.h"

namespace lockstep::inline internal {
namespace {

using NamePair = std::pair<std::string_view, std::string_view>;

// MindSpore's, PyTorch's. The last part of a name.
constexpr std::array<NamePair, 4> kLastParts = {{{"gamma", "weight"},
                                                 {"beta", "bias"},
                                                 {"moving_mean", "running_mean"},
                                                 {"moving_variance", "running_var"}}};
constexpr NamePair kShortcut = {".down_sample.", ".downsample."};
constexpr NamePair kLastLayer = {"classifier.", "fc."};
constexpr std::string_view kDdp = "module.";

void replace_inside(std::string& name, std::string_view from, std::string_view to) {
  const size_t at = name.find(from);
  if (at != std::string::npos) name.replace(at, from.size(), to);
}

void replace_front(std::string& name, std::string_view from, std::string_view to) {
  if (name.starts_with(from)) name.replace(0, from.size(), to);
}

std::pair<std::string, std::string> split_last(const std::string& name) {
  const size_t dot = name.rfind('.');
  if (dot == std::string::npos) return {"", name};
  return {name.substr(0, dot + 1), name.substr(dot + 1)};
}

/// The form that all names of a parameter share.
std::string common_name(std::string name) {
  replace_front(name, kDdp, "");
  replace_front(name, kLastLayer.first, kLastLayer.second);
  replace_inside(name, kShortcut.first, kShortcut.second);
  auto [layer, last] = split_last(name);
  for (const auto& [mindspore, pytorch] : kLastParts) {
    if (last == mindspore) return layer + std::string(pytorch);
  }
  return name;
}

}  // namespace

std::vector<std::optional<size_t>> match_names(const std::vector<std::string>& network,
                                               const std::vector<std::string>& file,
                                               std::string_view prefix) {
  std::vector<std::string> plain = file;
  for (std::string& name : plain) replace_front(name, kDdp, "");
  const auto translated = torchvision_names(plain);
  std::unordered_map<std::string, size_t> exact, common, timm;
  for (size_t i = 0; i < file.size(); ++i) {
    exact.emplace(file[i], i);
    common.emplace(common_name(file[i]), i);
    timm.emplace(translated[i], i);
  }
  std::vector<std::optional<size_t>> matches(network.size());
  for (size_t i = 0; i < network.size(); ++i) {
    if (!network[i].starts_with(prefix)) continue;
    const std::string name = network[i].substr(prefix.size());
    if (const auto found = exact.find(name); found != exact.end()) {
      matches[i] = found->second;
    } else if (const auto near = common.find(common_name(name)); near != common.end()) {
      matches[i] = near->second;
    } else if (const auto other = timm.find(name); other != timm.end()) {
      matches[i] = other->second;
    }
  }
  return matches;
}

namespace {

/// The prefixes that most of the names begin with, "a.b.".
std::vector<std::string> shared_prefixes(const std::vector<std::string>& names) {
  constexpr size_t kMostParts = 4, kMostPrefixes = 16;
  std::map<std::string_view, size_t> uses;
  for (const std::string_view name : names) {
    size_t dot = name.find('.');
    for (size_t parts = 0; parts < kMostParts && dot != std::string_view::npos; ++parts) {
      ++uses[name.substr(0, dot + 1)];
      dot = name.find('.', dot + 1);
    }
  }
  std::vector<std::pair<std::string_view, size_t>> sorted(uses.begin(), uses.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  if (sorted.size() > kMostPrefixes) sorted.resize(kMostPrefixes);
  std::vector<std::string> prefixes;
  for (const auto& [prefix, count] : sorted) prefixes.emplace_back(prefix);
  return prefixes;
}

}  // namespace

size_t NameMatches::count() const {
  return static_cast<size_t>(std::count_if(of_network.begin(), of_network.end(),
                                           [](const auto& match) { return match.has_value(); }));
}

NameMatches match_names_by_prefix(const std::vector<std::string>& network,
                                  const std::vector<std::string>& file, std::string_view prefix) {
  NameMatches best{match_names(network, file, prefix), ""};
  if (best.count() > 0) return best;
  const auto wanted = static_cast<size_t>(
      std::count_if(network.begin(), network.end(),
                    [&](const std::string& name) { return name.starts_with(prefix); }));
  const size_t least = std::max<size_t>(1, (wanted + 1) / 2);
  if (file.size() < least) return best;
  for (const std::string& stripped : shared_prefixes(file)) {
    std::vector<std::string> names = file;
    for (std::string& name : names) replace_front(name, stripped, "");
    NameMatches other{match_names(network, names, prefix), stripped};
    if (other.count() >= least && other.count() > best.count()) best = std::move(other);
  }
  return best;
}

std::vector<std::string> mindspore_names(const std::vector<std::string>& network) {
  std::unordered_set<std::string> norms;  // layers with running statistics
  for (const std::string& name : network) {
    const auto [layer, last] = split_last(name);
    if (last == "running_mean") norms.insert(layer);
  }
  std::vector<std::string> names;
  for (const std::string& own : network) {
    auto [layer, last] = split_last(own);
    std::string& name = names.emplace_back();
    if (last == "num_batches_tracked") continue;
    for (const auto& [mindspore, pytorch] : kLastParts) {
      if (norms.contains(layer) && last == pytorch) last = mindspore;
    }
    name = layer + last;
    replace_inside(name, kShortcut.second, kShortcut.first);
    replace_front(name, kLastLayer.second, kLastLayer.first);
  }
  return names;
}

}  // namespace lockstep::inline internal
