#pragma once
// Reading of the parts that a program registered; see registry.h.

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/registry.h"
#include "lockstep/train/config/config_section.h"

namespace lockstep {
struct Recipe;
}

namespace lockstep::inline internal {

/// A registered part whose settings have been read.
template <typename Made>
struct OwnPart {
  std::string name;
  Made make;
};

/// The names in a table of built-in parts.
template <typename Table>
std::vector<std::string> names_of(const Table& kinds) {
  std::vector<std::string> names;
  for (const auto& kind : kinds) names.emplace_back(kind.name);
  return names;
}

/// The entry of that name in a table; null if there is none.
template <typename Table>
auto find_named(const Table& kinds, std::string_view name) {
  const auto found =
      std::find_if(kinds.begin(), kinds.end(), [&](const auto& kind) { return kind.name == name; });
  return found == kinds.end() ? nullptr : &*found;
}

/// The names of the `built_in` parts of a kind, then those of the registered ones.
template <typename Made>
std::vector<std::string> joined_names(std::vector<std::string> built_in,
                                      const Registry<Made>& registry) {
  for (const auto& part : registry.parts()) built_in.push_back(part.name);
  return built_in;
}

/// The names of a kind that registered parts may not have: those of built-in ones, of any task.
template <typename Made>
std::vector<std::string> built_in_names() {
  return {};
}
template <>
std::vector<std::string> built_in_names<Recipe>();
template <>
std::vector<std::string> built_in_names<BackboneMaker>();
template <>
std::vector<std::string> built_in_names<LoggedLoss>();
template <>
std::vector<std::string> built_in_names<MetricMaker>();
template <>
std::vector<std::string> built_in_names<DatasetMaker>();
template <>
std::vector<std::string> built_in_names<PictureTransform>();
template <>
std::vector<std::string> built_in_names<OptimizerOfGroups>();
template <>
std::vector<std::string> built_in_names<Schedule>();

/// Errors: kInvalidArgument if `registered` has the `name` that `key` of `section` selects, and has
/// it twice, or `built_in` has it too.
void refuse_taken(const ConfigSection& section, const std::string& key, const std::string& name,
                  const std::vector<std::string>& registered,
                  const std::vector<std::string>& built_in);

/// The same for the parts of a kind.
template <typename Made>
void refuse_taken(const ConfigSection& section, const std::string& key, const std::string& name,
                  const Registry<Made>& registry) {
  refuse_taken(section, key, name, joined_names({}, registry), built_in_names<Made>());
}

/// The part `name`, which `key` of `section` selects, with its settings out of `section`; none if
/// none of that name is registered. Errors: those of its reader and of refuse_taken().
template <typename Made>
std::optional<OwnPart<Made>> read_own_part(ConfigSection& section, const std::string& key,
                                           const std::string& name,
                                           const Registry<Made>& registry) {
  refuse_taken(section, key, name, registry);
  const auto* part = find_named(registry.parts(), name);
  if (part == nullptr) return std::nullopt;
  return OwnPart<Made>{name, part->read(section)};
}

/// Reads a name out of `built_in`. A name out of `others`, which MindOCR has too, is reported as
/// not built in. If `value` is empty, the key is required.
void read_name(ConfigSection& section, const std::string& key, std::string& value,
               const std::vector<std::string>& built_in, const std::vector<std::string>& others,
               const std::string& about);

/// The same for a name that is built in or registered; then as read_own_part().
template <typename Made>
std::optional<OwnPart<Made>> read_part(ConfigSection& section, const std::string& key,
                                       std::string& value, std::vector<std::string> built_in,
                                       const Registry<Made>& registry, const std::string& about,
                                       const std::vector<std::string>& others = {}) {
  read_name(section, key, value, joined_names(std::move(built_in), registry), others, about);
  return read_own_part(section, key, value, registry);
}

/// Errors: `key` has a name that is none of `names`; --plugin adds `kinds`.
void refuse_unknown(ConfigSection& section, const std::string& key,
                    const std::vector<std::string>& names, const std::string& kinds);

/// A part as --list shows it.
struct ListedPart {
  std::string name;
  std::string about;
  Settings settings;
};

/// What `read`, the reader of the part `name`, asks for, without any of it in a file.
Settings settings_of(const std::string& name,
                     const std::function<void(ConfigSection& settings)>& read);

/// Takes the settings out of `parts` that all have, for one more part, which shows them once.
ListedPart take_common(std::vector<ListedPart>& parts);

/// For `lockstep train --list KIND`: each part of the kind, built in or registered, with its line
/// and settings. `kind`: "" for all. Errors: kInvalidArgument naming the kinds.
std::string list_parts(const std::string& kind);

}  // namespace lockstep::inline internal
