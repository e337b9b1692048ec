#include "lockstep/checkpoint/weight_names.h"

#include <algorithm>
#include <array>
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

/// The prefixes that most of the names begin with, "a.b.", in the order of their first names.
std::vector<std::string> shared_prefixes(const std::vector<std::string>& names) {
  constexpr size_t kMostParts = 4, kMostPrefixes = 16;
  struct Uses {
    std::string_view prefix;
    size_t place = 0;
    size_t count = 0;
  };
  std::vector<Uses> all;
  std::unordered_map<std::string_view, size_t> places;
  for (const std::string_view name : names) {
    size_t dot = name.find('.');
    for (size_t parts = 0; parts < kMostParts && dot != std::string_view::npos; ++parts) {
      const auto [found, is_new] = places.emplace(name.substr(0, dot + 1), all.size());
      if (is_new) all.push_back({found->first, all.size(), 0});
      ++all[found->second].count;
      dot = name.find('.', dot + 1);
    }
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Uses& a, const Uses& b) { return a.count > b.count; });
  if (all.size() > kMostPrefixes) all.resize(kMostPrefixes);
  std::sort(all.begin(), all.end(), [](const Uses& a, const Uses& b) { return a.place < b.place; });
  std::vector<std::string> prefixes;
  for (const Uses& uses : all) prefixes.emplace_back(uses.prefix);
  return prefixes;
}

size_t count_fitting(const std::vector<std::optional<size_t>>& matches, const Fits& fits) {
  size_t count = 0;
  for (size_t i = 0; i < matches.size(); ++i) {
    if (matches[i] && (!fits || fits(i, *matches[i]))) ++count;
  }
  return count;
}

struct PrefixChoice {
  NameMatches matches;
  size_t left_over = 0;  ///< Of the file's names with the prefix, those without a match.
};

bool is_better_choice(const PrefixChoice& a, const PrefixChoice& b) {
  if (a.matches.count != b.matches.count) return a.matches.count > b.matches.count;
  return a.left_over < b.left_over;
}

PrefixChoice match_without(const std::string& stripped, const std::vector<std::string>& network,
                           const std::vector<std::string>& file, std::string_view prefix,
                           const Fits& fits) {
  std::vector<std::string> names = file;
  for (std::string& name : names) replace_front(name, stripped, "");
  PrefixChoice choice;
  choice.matches.of_network = match_names(network, names, prefix);
  choice.matches.stripped = stripped;
  choice.matches.count = count_fitting(choice.matches.of_network, fits);
  std::vector<bool> used(file.size());
  for (const auto& match : choice.matches.of_network) {
    if (match) used[*match] = true;
  }
  for (size_t i = 0; i < file.size(); ++i) {
    if (!used[i] && file[i].starts_with(stripped)) ++choice.left_over;
  }
  return choice;
}

}  // namespace

NameMatches match_names_by_prefix(const std::vector<std::string>& network,
                                  const std::vector<std::string>& file, std::string_view prefix,
                                  const Fits& fits) {
  NameMatches plain;
  plain.of_network = match_names(network, file, prefix);
  plain.count = count_fitting(plain.of_network, fits);
  const auto wanted = static_cast<size_t>(
      std::count_if(network.begin(), network.end(),
                    [&](const std::string& name) { return name.starts_with(prefix); }));
  const size_t least = std::max({size_t{1}, (wanted + 1) / 2, 2 * plain.count + 1});
  if (least > wanted || file.size() < least) return plain;
  std::vector<PrefixChoice> choices;
  for (const std::string& stripped : shared_prefixes(file)) {
    PrefixChoice choice = match_without(stripped, network, file, prefix, fits);
    if (choice.matches.count >= least) choices.push_back(std::move(choice));
  }
  if (choices.empty()) return plain;
  const auto first = std::min_element(choices.begin(), choices.end(), is_better_choice);
  NameMatches best = std::move(first->matches);
  std::erase_if(choices, [&](const PrefixChoice& choice) {
    const std::string& other = choice.matches.stripped;
    return other.starts_with(best.stripped) || best.stripped.starts_with(other);
  });
  const auto second = std::min_element(choices.begin(), choices.end(), is_better_choice);
  if (second != choices.end()) best.runner_up = second->matches.stripped;
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
