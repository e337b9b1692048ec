#pragma once

#include <span>
#include <string>

#include "lockstep/train/config/node.h"

namespace lockstep::inline internal {

/// Puts `key.sub=value` items (the `-o` options, in their order) into the tree. The value is YAML
/// and may contain '='. Missing mappings on the way are created, so the reader of the tree finds an
/// unknown key and names its override. Errors: kInvalidArgument naming the item: no '=', an empty
/// key, a path through something that is no mapping, a value that is not YAML, or a key under
/// `common`, whose anchors are resolved already.
/// `from`: in front of an item, in errors.
void apply_overrides(Node& root, std::span<const std::string> items,
                     const std::string& from = "-o ");

/// Replaces ${NAME} in every scalar by that environment variable, and ${NAME:-text} by `text` where
/// it is unset or empty. Errors: kInvalidArgument with the place and the unset variable, or for a
/// "${" without its end.
void expand_variables(Node& root);

}  // namespace lockstep::inline internal
