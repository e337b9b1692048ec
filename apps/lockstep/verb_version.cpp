#include <cstdio>

#include "apps/lockstep/verbs.h"
#include "lockstep/base/version.h"

namespace lockstep::app {

int verb_version(const std::vector<std::string>&) {
  std::printf("lockstep %s\n", version().c_str());
  return 0;
}

}  // namespace lockstep::app
