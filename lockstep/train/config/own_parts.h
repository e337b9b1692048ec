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

/// The built-in parts of a kind, of all tasks: what a registry begins with.
template <typename Made>
std::vector<NamedPart<Made>> built_in_parts() {
  return {};
}
template <>
std::vector<NamedPart<Recipe>> built_in_parts<Recipe>();
template <>
std::vector<NamedPart<BackboneMaker>> built_in_parts<BackboneMaker>();
template <>
std::vector<NamedPart<LoggedLoss>> built_in_parts<LoggedLoss>();
template <>
std::vector<NamedPart<MetricMaker>> built_in_parts<MetricMaker>();
template <>
std::vector<NamedPart<DatasetMaker>> built_in_parts<DatasetMaker>();
template <>
std::vector<NamedPart<PictureTransform>> built_in_parts<PictureTransform>();
template <>
std::vector<NamedPart<OptimizerOfGroups>> built_in_parts<OptimizerOfGroups>();
template <>
std::vector<NamedPart<Schedule>> built_in_parts<Schedule>();

/// An entry of built_in_parts(): `kind` has its name and line.
template <typename Made, typename Kind, typename Read>
NamedPart<Made> built_in_part(const Kind& kind, Read read) {
  const auto read_section = [read](Section& section) {
    return ConfigSection::within(section, read);
  };
  return {.name = kind.name, .about = kind.about, .read = read_section, .built_in = true};
}

/// Of the reader of a built-in part that works as a whole alone. Errors: kInvalidArgument, always.
[[noreturn]] void refuse_as_part(const Section& section, const std::string& name,
                                 const std::string& why);

/// The parts of a kind that are built in, or those that are not.
template <typename Made>
std::vector<NamedPart<Made>> parts_of(const Registry<Made>& registry, bool built_in) {
  std::vector<NamedPart<Made>> parts;
  for (const auto& part : registry.parts()) {
    if (part.built_in == built_in) parts.push_back(part);
  }
  return parts;
}

/// The names of the parts of a kind that are not built in.
template <typename Made>
std::vector<std::string> own_names(const Registry<Made>& registry) {
  return names_of(parts_of(registry, false));
}

/// The `built_in` names of one task, then those that are not built in.
template <typename Made>
std::vector<std::string> joined_names(std::vector<std::string> built_in,
                                      const Registry<Made>& registry) {
  for (auto& name : own_names(registry)) built_in.push_back(std::move(name));
  return built_in;
}

/// Errors: kInvalidArgument if `registered` has the `name` that `key` of `section` selects, and has
/// it twice, or `built_in` has it too.
void refuse_taken(const ConfigSection& section, const std::string& key, const std::string& name,
                  const std::vector<std::string>& registered,
                  const std::vector<std::string>& built_in);

/// The same for the parts of a kind.
template <typename Made>
void refuse_taken(const ConfigSection& section, const std::string& key, const std::string& name,
                  const Registry<Made>& registry) {
  refuse_taken(section, key, name, own_names(registry), names_of(parts_of(registry, true)));
}

/// Calls `read`, which reads the settings of the part `name`. An exception that is no Error becomes
/// one with the place of `key`.
void read_with_name(const ConfigSection& section, const std::string& key, const std::string& name,
                    const std::function<void()>& read);

/// The part `name`, which `key` of `section` selects, with its settings out of `section`; none if
/// it is built in, or none has that name. Errors: those of its reader and of refuse_taken().
template <typename Made>
std::optional<OwnPart<Made>> read_own_part(ConfigSection& section, const std::string& key,
                                           const std::string& name,
                                           const Registry<Made>& registry) {
  refuse_taken(section, key, name, registry);
  const auto own = parts_of(registry, false);
  const auto* part = find_named(own, name);
  if (part == nullptr) return std::nullopt;
  OwnPart<Made> made{name, {}};
  read_with_name(section, key, name, [&] { made.make = part->read(section); });
  return made;
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
