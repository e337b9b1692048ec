#pragma once

#include <map>
#include <string>

#include "lockstep/base/text.h"
#include "lockstep/error.h"
#include "lockstep/world/detect/reader.h"

namespace lockstep::inline internal {

/// Variables from "A=1 B=2"; of repeated names the last counts. `files` by path.
inline Inputs inputs_of(const std::string& variables,
                        const std::map<std::string, std::string>& files = {}) {
  Inputs inputs;
  for (const std::string& item : split(variables, ' ')) {
    const size_t equals = item.find('=');
    if (equals != std::string::npos)
      inputs.variables[item.substr(0, equals)] = item.substr(equals + 1);
  }
  inputs.read_file = [files](const std::string& path) {
    const auto found = files.find(path);
    if (found == files.end()) throw Error(ErrorCode::kNotFound, path + " does not exist");
    return found->second;
  };
  inputs.read_secret = inputs.read_file;
  inputs.is_own_host = [](const std::string& host) { return host == "this_host"; };
  inputs.typed_below = [](const std::string& process) { return process == "36"; };
  inputs.ask_pmix = [] { return PmixJob{4, 1, 2}; };
  return inputs;
}

}  // namespace lockstep::inline internal
