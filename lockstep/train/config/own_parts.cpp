#include "lockstep/train/config/own_parts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "lockstep/base/text.h"
#include "lockstep/error.h"
#include "lockstep/train/config/node.h"
#include "lockstep/train/config/sections.h"

namespace lockstep {
namespace {

struct ListedPart {
  std::string name;
  std::string about;
  Settings settings;
};

/// What the reader asks for, without any of it in a file.
template <typename Made>
Settings settings_of(const NamedPart<Made>& part) {
  Node empty;
  Settings settings;
  Section section(empty, part.name, &settings);
  part.read(section);
  return settings;
}

template <typename Made>
std::vector<ListedPart> listed(const Registry<Made>& registry) {
  std::vector<ListedPart> parts;
  for (const auto& part : registry.parts()) {
    parts.push_back({part.name, part.about, settings_of(part)});
  }
  return parts;
}

struct ListedKind {
  std::string name;
  std::string key;  ///< Of the configuration.
  std::vector<ListedPart> parts;
  std::vector<std::string> built_in;
};

std::vector<ListedKind> all_kinds() {
  return {{"networks", "model.network.name", listed(networks()), built_in_networks()},
          {"losses", "loss.name", listed(losses()), built_in_losses()},
          {"metrics", "metric.name", listed(metrics()), built_in_metrics()},
          {"datasets", "train.dataset.type", listed(datasets()), built_in_datasets()}};
}

std::string describe(const ListedKind& kind) {
  std::string text = fmt::format("{} ({}):\n", kind.name, kind.key);
  for (const auto& [name, about, settings] : kind.parts) {
    text += fmt::format("  {}: {}\n", name, about);
    for (const auto& setting : settings) {
      text += fmt::format("    {}: {}; {}{}\n", setting.key, setting.about, setting.kind,
                          setting.fallback.empty()         ? ""
                          : setting.fallback == "required" ? "; required"
                                                           : "; default " + setting.fallback);
    }
  }
  return text + fmt::format("  built in: {}\n", fmt::join(kind.built_in, ", "));
}

}  // namespace

Registry<NetworkMaker>& networks() {
  static Registry<NetworkMaker> registry;
  return registry;
}

Registry<LossFunction>& losses() {
  static Registry<LossFunction> registry;
  return registry;
}

Registry<MetricMaker>& metrics() {
  static Registry<MetricMaker> registry;
  return registry;
}

Registry<DatasetMaker>& datasets() {
  static Registry<DatasetMaker> registry;
  return registry;
}

void refuse_twice(const Section& section, const std::string& key, const std::string& name,
                  const std::vector<std::string>& names) {
  if (std::count(names.begin(), names.end(), name) < 2) return;
  section.fail(key, fmt::format("'{}' is registered twice: give one of them another name", name));
}

std::string list_parts(const std::string& kind) {
  std::string text;
  std::vector<std::string> names;
  for (const auto& each : all_kinds()) {
    names.push_back(each.name);
    if (kind.empty() || kind == each.name) text += describe(each);
  }
  if (!text.empty()) return text;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("--list: no kind of part '{}'{} (there are: {})", kind,
                          did_you_mean(kind, names), fmt::join(names, ", ")));
}

}  // namespace lockstep
