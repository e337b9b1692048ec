#include "lockstep/train/config/parameter_names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "lockstep/base/text.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

bool matches(const std::string& pattern, const std::string& name) {
  return ::fnmatch(pattern.c_str(), name.c_str(), FNM_NOESCAPE) == 0;
}

std::string top_of(const std::string& name) {
  return name.substr(0, name.find('.'));
}

/// The name, and those of the modules around it.
std::vector<std::string> paths_of(const std::string& name) {
  std::vector<std::string> paths;
  for (size_t end = name.find('.'); end != std::string::npos; end = name.find('.', end + 1)) {
    paths.push_back(name.substr(0, end));
  }
  paths.push_back(name);
  return paths;
}

[[noreturn]] void refuse(const GroupConfig& group, const std::string& pattern,
                         const std::string& why) {
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{}: optimizer.groups: '{}' {}", group.where, pattern, why));
}

[[noreturn]] void refuse_stranger(const GroupConfig& group, const std::string& pattern,
                                  const std::vector<std::string>& names) {
  std::set<std::string> near;
  std::vector<std::string> tops;
  for (const auto& name : names) {
    for (const auto& path : paths_of(name)) near.insert({path, path + ".*"});
    if (tops.empty() || tops.back() != top_of(name)) tops.push_back(top_of(name));
  }
  const std::vector<std::string> candidates(near.begin(), near.end());
  refuse(group, pattern,
         fmt::format("selects no parameter of the network{} (it has {})",
                     did_you_mean(pattern, candidates), fmt::join(tops, ", ")));
}

bool is_numbered(const std::string& part) {
  const size_t before = part.find_last_not_of("0123456789");
  if (before == std::string::npos) return !part.empty();
  return before + 1 < part.size() && part[before] == '_';
}

/// The path of the parameter's block; empty: it is in none.
std::string block_of(const std::string& name) {
  for (const auto& path : paths_of(name)) {
    if (path != name && is_numbered(path.substr(path.rfind('.') + 1))) return path;
  }
  return "";
}

/// The layer of each parameter by name; empty: that of the one before.
std::vector<std::string> layer_names(const std::vector<std::string>& names) {
  const std::string last = top_of(names.back());
  const bool has_head = top_of(names.front()) != last;
  const auto in_head = [&](const auto& name) { return has_head && top_of(name) == last; };
  const bool has_blocks = std::any_of(names.begin(), names.end(), [&](const auto& name) {
    return !in_head(name) && !block_of(name).empty();
  });
  std::vector<std::string> layers;
  for (const auto& name : names) {
    const bool by_top = in_head(name) || !has_blocks;
    layers.push_back(by_top ? top_of(name) : block_of(name));
  }
  return layers;
}

}  // namespace

bool selects(const std::string& pattern, const std::string& name) {
  const auto paths = paths_of(name);
  return std::any_of(paths.begin(), paths.end(),
                     [&](const auto& path) { return matches(pattern, path); });
}

int group_of(const std::vector<GroupConfig>& groups, const std::string& name) {
  for (size_t i = 0; i < groups.size(); ++i) {
    const auto& patterns = groups[i].params;
    if (std::any_of(patterns.begin(), patterns.end(),
                    [&](const auto& pattern) { return selects(pattern, name); })) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

void check_groups(const std::vector<GroupConfig>& groups, const std::vector<std::string>& names) {
  for (size_t i = 0; i < groups.size(); ++i) {
    for (const auto& pattern : groups[i].params) {
      std::vector<int> owners;
      for (const auto& name : names) {
        if (selects(pattern, name)) owners.push_back(group_of(groups, name));
      }
      if (owners.empty()) refuse_stranger(groups[i], pattern, names);
      if (std::find(owners.begin(), owners.end(), static_cast<int>(i)) != owners.end()) continue;
      refuse(groups[i], pattern,
             "has no effect: earlier groups have all its parameters, and the first group that "
             "selects a parameter counts");
    }
  }
}

std::vector<int64_t> layers_of(const std::vector<std::string>& names) {
  if (names.empty()) return {};
  std::vector<int64_t> layers;
  std::string current;
  int64_t layer = -1;
  for (const auto& own : layer_names(names)) {
    if (own.empty()) {
      layer = std::max<int64_t>(layer, 0);
    } else if (own != current) {
      ++layer;
      current = own;
    }
    layers.push_back(layer);
  }
  return layers;
}

std::vector<double> layer_scales(double decay, const std::vector<std::string>& names) {
  std::vector<double> scales(names.size(), 1);
  if (decay == 1) return scales;
  const auto layers = layers_of(names);
  for (size_t i = 0; i < names.size(); ++i) {
    scales[i] = std::pow(decay, static_cast<double>(layers.back() - layers[i]));
  }
  return scales;
}

}  // namespace lockstep::inline internal
