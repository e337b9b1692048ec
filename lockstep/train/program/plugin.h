#pragma once

#include <string>
#include <vector>

#include "lockstep/base/options.h"

namespace lockstep::inline internal {

/// Loads shared libraries whose parts register themselves (registry.h), in their order. They stay
/// loaded. Errors: kInvalidArgument with the loader's reason; kMismatch (built for another version
/// of registry.h).
void load_plugins(const std::vector<std::string>& paths);

/// --plugin of a verb, into Request::plugins.
template <class Request>
Option<Request> plugin_option() {
  return {"plugin",
          0,
          OptionKind::kList,
          "FILE",
          "a shared library with networks, losses and other parts of one's own; see "
          "docs/guide/own_parts.md",
          add_text<&Request::plugins>};
}

}  // namespace lockstep::inline internal
