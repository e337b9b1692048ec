#include "lockstep/train/config/own_parts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "lockstep/base/text.h"
#include "lockstep/error.h"
#include "lockstep/recipe.h"
#include "lockstep/train/config/node.h"
#include "lockstep/train/config/sections.h"

namespace lockstep::inline internal {
namespace {

/// The `built_in` parts, then the registered ones.
template <typename Made>
std::vector<ListedPart> listed(const Registry<Made>& registry,
                               std::vector<ListedPart> built_in = {}) {
  auto parts = std::move(built_in);
  for (const auto& part : parts_of(registry, false)) {
    parts.push_back({part.name, part.about, settings_of(part.name, part.read)});
  }
  return parts;
}

struct ListedKind {
  std::string name;
  std::string key;  ///< Of the configuration.
  std::vector<ListedPart> (*parts)();
};

std::vector<ListedKind> all_kinds() {
  return {
      {"tasks", "model.type", [] { return listed(tasks(), built_in_tasks()); }},
      {"networks", "model.network.name", [] { return listed(networks()); }},
      {"backbones", "model.backbone.name; registered ones: of det and rec",
       [] { return listed(backbones(), built_in_backbones()); }},
      {"losses", "loss.name", [] { return listed(losses(), built_in_losses()); }},
      {"metrics", "metric.name", [] { return listed(metrics(), built_in_metrics()); }},
      {"datasets", "train.dataset.type", [] { return listed(datasets(), built_in_datasets()); }},
      {"transforms", "an item of transform_pipeline; built-in ones: of cls",
       [] { return listed(transforms(), built_in_class_transforms()); }},
      {"optimizers", "optimizer.opt", [] { return listed(optimizers(), built_in_optimizers()); }},
      {"schedules", "scheduler.scheduler",
       [] { return listed(schedules(), built_in_schedules()); }},
      {"callbacks", "callbacks: a list of {name: ...}", [] { return listed(callbacks()); }}};
}

/// A line of the manual without its marks: "*ours*, one_cycle: ", "; [keys](#groups)", "; see
/// [own images](../guide/own_images.md)".
std::string plain(std::string about) {
  if (about.starts_with("*ours*")) about.erase(0, about.find(": ") + 2);
  about = about.substr(0, about.find("; [keys]"));
  return about.substr(0, about.find("; see ["));
}

std::string describe(const ListedKind& kind) {
  std::string text = fmt::format("{} ({}):\n", kind.name, kind.key);
  const auto parts = kind.parts();
  for (const auto& [name, about, settings] : parts) {
    text += fmt::format("  {}: {}\n", name, about);
    for (const auto& setting : settings) {
      text += fmt::format("    {}: {}; {}{}\n", setting.key, plain(setting.about), setting.kind,
                          setting.fallback.empty() ? ""
                          : setting.is_required()  ? "; " + setting.fallback
                                                   : "; default " + setting.fallback);
    }
  }
  if (parts.empty()) text += "  none\n";
  return text;
}

/// While it lives, a part is being read by Registry::read().
class PartBeingRead {
 public:
  explicit PartBeingRead(const std::string& name) { all().push_back(name); }
  ~PartBeingRead() { all().pop_back(); }
  PartBeingRead(const PartBeingRead&) = delete;
  PartBeingRead& operator=(const PartBeingRead&) = delete;

  /// From the outermost on.
  static std::vector<std::string>& all() {
    thread_local std::vector<std::string> names;
    return names;
  }
};

template <typename Made>
Registry<Made>& registry_of() {
  static Registry<Made> registry(built_in_parts<Made>());
  return registry;
}

}  // namespace
}  // namespace lockstep::inline internal

namespace lockstep {

Registry<NetworkMaker>& networks() {
  return registry_of<NetworkMaker>();
}

Registry<BackboneMaker>& backbones() {
  return registry_of<BackboneMaker>();
}

Registry<LoggedLoss>& losses() {
  return registry_of<LoggedLoss>();
}

Registry<MetricMaker>& metrics() {
  return registry_of<MetricMaker>();
}

Registry<DatasetMaker>& datasets() {
  return registry_of<DatasetMaker>();
}

Registry<PictureTransform>& transforms() {
  return registry_of<PictureTransform>();
}

Registry<OptimizerOfGroups>& optimizers() {
  return registry_of<OptimizerOfGroups>();
}

Registry<Schedule>& schedules() {
  return registry_of<Schedule>();
}

Registry<CallbackMaker>& callbacks() {
  return registry_of<CallbackMaker>();
}

Registry<Recipe>& tasks() {
  return registry_of<Recipe>();
}

void Section::read_part(const std::string& name, const std::vector<std::string>& names,
                        const std::function<void()>& read) const {
  constexpr size_t kDeepest = 16;
  const auto count = std::count(names.begin(), names.end(), name);
  if (count > 1) {
    fail("", fmt::format("several parts are named '{}': give your own another name", name));
  }
  if (count == 0) {
    fail("",
         fmt::format("no part '{}' is registered{} (there {})", name, did_you_mean(name, names),
                     names.empty() ? "is none" : fmt::format("are: {}", fmt::join(names, ", "))));
  }
  const PartBeingRead part(name);
  const auto& parts = PartBeingRead::all();
  if (parts.size() > kDeepest) {
    fail("", fmt::format("parts read one another without an end: '{}'",
                         fmt::join(parts.end() - 3, parts.end(), "', '")));
  }
  read();
}

}  // namespace lockstep

namespace lockstep::inline internal {

void refuse_as_part(const Section& section, const std::string& name, const std::string& why) {
  section.fail("", fmt::format("{} cannot be a part of another: {}", name, why));
}

Settings settings_of(const std::string& name,
                     const std::function<void(ConfigSection& settings)>& read) {
  Node empty;
  Settings settings;
  ConfigSection section(empty, name, &settings);
  try {
    read(section);
  } catch (const std::exception& error) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("--list: {}: {}", name, error.what()));
  }
  for (auto& setting : settings) {  // of a sub-section, as "base.gamma"
    setting.key = (setting.section + "." + setting.key).substr(name.size() + 1);
  }
  return settings;
}

ListedPart take_common(std::vector<ListedPart>& parts) {
  ListedPart common{"any of these", "has these settings, too", parts.front().settings};
  const auto has = [](const ListedPart& part, const Setting& setting) {
    return std::any_of(part.settings.begin(), part.settings.end(), [&](const Setting& own) {
      return own.key == setting.key && own.fallback == setting.fallback;
    });
  };
  std::erase_if(common.settings, [&](const Setting& setting) {
    return !std::all_of(parts.begin(), parts.end(),
                        [&](const auto& part) { return has(part, setting); });
  });
  for (auto& part : parts) {
    std::erase_if(part.settings, [&](const Setting& setting) { return has(common, setting); });
  }
  return common;
}

void refuse_taken(const ConfigSection& section, const std::string& key, const std::string& name,
                  const std::vector<std::string>& registered,
                  const std::vector<std::string>& built_in) {
  const auto count = std::count(registered.begin(), registered.end(), name);
  const auto subject = key == name ? "" : fmt::format("'{}' ", name);  // an item of a pipeline
  if (count > 1) {
    section.fail(key, subject + "is registered twice: give one of them another name");
  }
  if (count == 1 && contains(built_in, name)) {
    section.fail(key, subject + "is the name of a built-in part, too: give your own another name");
  }
}

void read_with_name(const ConfigSection& section, const std::string& key, const std::string& name,
                    const std::function<void()>& read) {
  try {
    read();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    section.fail(key, fmt::format("'{}' cannot read its settings: {}", name, error.what()));
  }
}

void refuse_unknown(ConfigSection& section, const std::string& key,
                    const std::vector<std::string>& names, const std::string& kinds) {
  std::string name;
  section.read(key, name, "");
  if (name.empty() || contains(names, name)) return;
  const auto hint = did_you_mean(name, names);
  section.fail(key, fmt::format("must be one of {}, not '{}'{} --plugin FILE adds {} of one's own",
                                fmt::join(names, ", "), name, hint.empty() ? ";" : hint, kinds));
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

}  // namespace lockstep::inline internal
