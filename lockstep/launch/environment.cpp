#include "lockstep/launch/environment.h"

#include <unistd.h>

#include <string_view>

namespace lockstep {

Environment this_environment() {
  Environment variables;
  for (char** entry = ::environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const size_t equals = text.find('=');
    if (equals == 0 || equals == std::string_view::npos) continue;
    variables.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return variables;
}

}  // namespace lockstep
