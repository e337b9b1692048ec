#pragma once

#include <string>

#include "lockstep/train/config/node.h"

namespace lockstep::inline internal {

/// The tree as YAML text that parse_yaml() and Python's yaml read back to the same values.
/// Mappings have one key per line; lists of scalars are on one line.
std::string write_yaml(const Node& root);

/// A number that YAML 1.1 reads as a float: "0.1", "1.0", "1.0e-06" ("1e-06" would be a text).
std::string yaml_number(double value);

/// "True" or "False", as MindOCR writes them.
const char* yaml_flag(bool value);

}  // namespace lockstep::inline internal
