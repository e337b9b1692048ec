#include "lockstep/world/later_generation.h"

#include <cstdlib>

namespace lockstep {
namespace {

long number(const Environment& environment, const char* name) {
  const auto found = environment.find(name);
  return found == environment.end() ? 0 : std::strtol(found->second.c_str(), nullptr, 10);
}

}  // namespace

bool is_later_generation(const Environment& environment) {
  return number(environment, "LOCKSTEP_GENERATION") > 1 ||
         number(environment, "TORCHELASTIC_RESTART_COUNT") > 0;
}

}  // namespace lockstep
