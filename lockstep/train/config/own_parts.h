#pragma once
// Reading of the parts that a program registered; see registry.h.

#include <string>
#include <vector>

#include "lockstep/registry.h"

namespace lockstep {

/// A registered part whose settings have been read.
template <typename Made>
struct OwnPart {
  std::string name;
  Made make;
};

template <typename Made>
std::vector<std::string> names_of(const Registry<Made>& registry) {
  std::vector<std::string> names;
  for (const auto& part : registry.parts()) names.push_back(part.name);
  return names;
}

/// Errors: kInvalidArgument if `key` of `section`, whose value is `name`, is registered twice.
void refuse_twice(const Section& section, const std::string& key, const std::string& name,
                  const std::vector<std::string>& names);

/// The part `name`, which `key` of `section` selects, with its settings out of `section`; `make` is
/// empty if none of that name is registered. Errors: those of its reader; a name registered twice.
template <typename Made>
OwnPart<Made> read_own_part(Section& section, const std::string& key, const std::string& name,
                            const Registry<Made>& registry) {
  refuse_twice(section, key, name, names_of(registry));
  for (const auto& part : registry.parts()) {
    if (part.name == name) return {name, part.read(section)};
  }
  return {};
}

/// A part as --list shows it.
struct ListedPart {
  std::string name;
  std::string about;
  Settings settings;
};

/// Takes the settings out of `parts` that all have, for one more part, which shows them once.
ListedPart take_common(std::vector<ListedPart>& parts);

/// For `lockstep train --list KIND`: each part of the kind with its line and settings, and the
/// built-in names. `kind`: "" for all. Errors: kInvalidArgument naming the kinds.
std::string list_parts(const std::string& kind);

}  // namespace lockstep
