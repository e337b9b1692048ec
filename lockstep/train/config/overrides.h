#pragma once

#include <span>
#include <string>

#include "lockstep/train/config/node.h"

namespace lockstep {

/// Puts `key.sub=value` items (the `-o` options, in their order) into the tree. The value is YAML
/// and may contain '='; mappings on the way are made where missing, so that an unknown key is
/// found, and named with its override, by whoever reads the tree. Errors: kInvalidArgument naming
/// the item (no '=', an empty key, a way through something that is no mapping, a value that is not
/// YAML, a key under `common`, whose anchors are resolved already).
void apply_overrides(Node& root, std::span<const std::string> items);

/// Replaces ${NAME} in every scalar by that variable of the environment, and ${NAME:-text} by
/// `text` where it is unset or empty. Errors: kInvalidArgument with the place and the variable that
/// is not set, or a "${" without its end.
void expand_variables(Node& root);

}  // namespace lockstep
