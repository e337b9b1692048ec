#pragma once
// Parses YAML text to a tree, within bounds: an untrusted file cannot exhaust stack or memory.

#include <cstdint>
#include <string>
#include <string_view>

#include "lockstep/train/config/node.h"

namespace lockstep::inline internal {

struct YamlLimits {
  int64_t text_bytes = 1 << 20;   ///< Of the input.
  int64_t key_bytes = 200;        ///< Below YAML's 1024, even with escapes.
  int depth = 64;                 ///< Of nested mappings and lists.
  int64_t tree_bytes = 32 << 20;  ///< Of the result: aliases (`*name`) are copies.
};

/// The one document of `text`, as YAML 1.1. Anchors and aliases are resolved and merge keys (`<<:
/// *name`, also a list of them) applied; keys of the mapping itself take precedence.
/// `source` names the text in places and errors.
/// Errors: kInvalidArgument "SOURCE:LINE: why" (not YAML, a duplicate key, a key that is not a
/// scalar, an unknown alias, several documents, a bound exceeded).
Node parse_yaml(std::string_view text, const std::string& source, const YamlLimits& limits = {});

}  // namespace lockstep::inline internal
