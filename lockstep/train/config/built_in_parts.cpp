// The built-in parts of all tasks: their names, and what --list shows of them.

#include <fmt/format.h>

#include <utility>

#include "lockstep/error.h"
#include "lockstep/recipe.h"
#include "lockstep/train/config/built_in_makers.h"
#include "lockstep/train/config/node.h"
#include "lockstep/train/config/own_parts.h"
#include "lockstep/train/config/sections.h"
#include "lockstep/train/config/task_settings.h"

namespace lockstep::inline internal {
namespace {

/// A kind of part, as a file names it: `key` of `section`.
struct PartKind {
  const char* section;
  const char* key;
  void (*read)(ConfigSection section, const TaskSettings& task);
};

/// What `read` asks for if the section has this name alone. Keys of sub-sections get their names.
Settings settings_named(const PartKind& kind, const std::string& name, const TaskSettings& task) {
  Node node;
  node.kind = Node::Kind::kMap;
  node.entries.push_back({kind.key, {}, Node::scalar(name)});
  Settings settings;
  kind.read(ConfigSection(node, kind.section, &settings), task);
  std::erase_if(settings, [&](const Setting& setting) {
    return setting.section == kind.section && setting.key == kind.key;
  });
  for (auto& setting : settings) {
    setting.key =
        (setting.section + "." + setting.key).substr(std::string(kind.section).size() + 1);
  }
  return settings;
}

template <typename Part>
std::string line_of_part(const Part& part, const TaskSettings& task) {
  return fmt::format("{}; of {}", part.about, task.name);
}

template <typename Parts>
std::vector<ListedPart> list_of_tasks(Parts TaskSettings::*parts, const PartKind& kind) {
  std::vector<ListedPart> listed;
  for (const auto& task : all_tasks()) {
    for (const auto& part : task.*parts) {
      listed.push_back(
          {part.name, line_of_part(part, task), settings_named(kind, part.name, task)});
    }
  }
  return listed;
}

/// The entries of all tasks' parts. `read`: of (ConfigSection&, part, task).
template <typename Made, typename Parts, typename Read>
std::vector<NamedPart<Made>> parts_of_tasks(Parts TaskSettings::*parts, Read read) {
  std::vector<NamedPart<Made>> all;
  for (const auto& task : all_tasks()) {
    for (const auto& part : task.*parts) {
      all.push_back(built_in_part<Made>(part, [&part, &task, read](ConfigSection& section) {
        return read(section, part, task);
      }));
    }
  }
  return all;
}

}  // namespace

template <>
std::vector<NamedPart<BackboneMaker>> built_in_parts() {
  return parts_of_tasks<BackboneMaker>(
      &TaskSettings::backbones,
      [](ConfigSection& section, const BuiltInPart& part, const TaskSettings& task) {
        BackboneConfig config;
        config.name = part.name;
        task.read_backbone_keys(section, config);
        return built_in_makers().backbone(config);
      });
}

template <>
std::vector<NamedPart<LoggedLoss>> built_in_parts() {
  return parts_of_tasks<LoggedLoss>(
      &TaskSettings::losses,
      [](ConfigSection& section, const BuiltInLoss& part, const TaskSettings&) {
        if (part.alone != nullptr) refuse_as_part(section, part.name, part.alone);
        return built_in_makers().loss(part.read(section));
      });
}

template <>
std::vector<NamedPart<MetricMaker>> built_in_parts() {
  return parts_of_tasks<MetricMaker>(
      &TaskSettings::metrics,
      [](ConfigSection& section, const BuiltInMetric& part, const TaskSettings&) {
        if (part.alone != nullptr) refuse_as_part(section, part.name, part.alone);
        MetricConfig config;
        if (part.read != nullptr) part.read(section, config);
        return built_in_makers().metric(config, part.name);
      });
}

template <>
std::vector<NamedPart<DatasetMaker>> built_in_parts() {
  return parts_of_tasks<DatasetMaker>(
      &TaskSettings::datasets,
      [](ConfigSection& section, const BuiltInPart& part, const TaskSettings& task) {
        return built_in_makers().dataset(read_wrapped_dataset(section, part.name, task));
      });
}

template <>
std::vector<NamedPart<Recipe>> built_in_parts() {
  std::vector<NamedPart<Recipe>> parts;
  for (const auto& task : all_tasks()) {
    parts.push_back({.name = task.name,
                     .about = task.about,
                     .read = [&task](Section& section) -> Recipe {
                       refuse_as_part(section, task.name,
                                      "a recipe has no neck and no postprocessing");
                     },
                     .built_in = true});
  }
  return parts;
}

std::vector<ListedPart> built_in_tasks() {
  std::vector<ListedPart> listed;
  for (const auto& task : all_tasks()) listed.push_back({task.name, task.about, {}});
  return listed;
}

std::vector<ListedPart> built_in_backbones() {
  return list_of_tasks(
      &TaskSettings::backbones,
      {"model.backbone", "name",
       [](ConfigSection section, const TaskSettings& task) { task.read_backbone(section); }});
}

std::vector<ListedPart> built_in_losses() {
  std::vector<ListedPart> parts;
  for (const auto& task : all_tasks()) {
    for (const auto& part : task.losses) {
      parts.push_back({part.name, line_of_part(part, task), settings_of(part.name, part.read)});
    }
  }
  return parts;
}

std::vector<ListedPart> built_in_metrics() {
  return list_of_tasks(&TaskSettings::metrics,
                       {"metric", "name", [](ConfigSection section, const TaskSettings& task) {
                          task.read_metric(section, task);
                        }});
}

std::vector<ListedPart> built_in_datasets() {
  return list_of_tasks(
      &TaskSettings::datasets,
      {"train.dataset", "type", [](ConfigSection section, const TaskSettings& task) {
         read_dataset(std::move(section), task, DataUse::kTrain);
       }});
}

}  // namespace lockstep::inline internal
