#include "lockstep/world/environment.h"

#include <unistd.h>

#include <string_view>

#include "lockstep/base/env.h"

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

Wire wire_of(const Environment& environment) {
  const auto found = environment.find("LOCKSTEP_TLS");
  const bool given = found != environment.end() && !found->second.empty();
  return given && parse_yes(found->second, found->first) ? Wire::kTls : Wire::kPlain;
}

}  // namespace lockstep
