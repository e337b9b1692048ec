#pragma once

#include <algorithm>
#include <stdexcept>
#include <string>

#include "lockstep/models/zoo/zoo.h"

namespace lockstep::inline internal {

/// The network `name` of the zoo.
inline const ZooNetwork& zoo_network(const std::string& name) {
  const auto found = std::find_if(zoo().begin(), zoo().end(),
                                  [&](const ZooNetwork& each) { return each.name == name; });
  if (found == zoo().end()) throw std::runtime_error("the zoo has no " + name);
  return *found;
}

}  // namespace lockstep::inline internal
