#include "lockstep/world/environment.h"

#include <unistd.h>

#include <cstdlib>
#include <string_view>

#include "lockstep/base/env.h"

namespace lockstep::inline internal {
namespace {

long number(const Environment& environment, const char* name) {
  return std::strtol(value_in(environment, name).c_str(), nullptr, 10);
}

}  // namespace

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

std::string value_in(const Environment& environment, std::string_view name) {
  const auto found = environment.find(name);
  return found == environment.end() ? "" : found->second;
}

Wire wire_of(const Environment& environment) {
  const std::string value = value_in(environment, "LOCKSTEP_TLS");
  return !value.empty() && parse_yes(value, "LOCKSTEP_TLS") ? Wire::kTls : Wire::kPlain;
}

bool is_later_generation(const Environment& environment) {
  return number(environment, "LOCKSTEP_GENERATION") > 1 ||
         number(environment, "TORCHELASTIC_RESTART_COUNT") > 0;
}

}  // namespace lockstep::inline internal
