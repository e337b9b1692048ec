#include <cstdio>

#include "apps/lockstep/verbs.h"
#include "lockstep/error.h"
#include "lockstep/version.h"

namespace lockstep::app {

int verb_version(const std::vector<std::string>& args) {
  if (!args.empty() && (args[0] == "--help" || args[0] == "-h")) {
    std::printf("usage: lockstep version\n\nPrints the version.\n");
    return 0;
  }
  if (!args.empty()) {
    throw Error(ErrorCode::kInvalidArgument,
                "lockstep version: unexpected word '" + args[0] + "'; it takes none");
  }
  std::printf("lockstep %s\n", version().c_str());
  return 0;
}

}  // namespace lockstep::app
