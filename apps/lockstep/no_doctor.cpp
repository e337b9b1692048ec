// `lockstep doctor` in a build without the part DOCTOR.

#include "apps/lockstep/verbs.h"
#include "lockstep/error.h"

namespace lockstep::app {

int verb_doctor(const std::vector<std::string>&) {
  throw Error(ErrorCode::kUnavailable,
              "this lockstep was built without doctor; configure with -DLOCKSTEP_WITH_DOCTOR=ON");
}

}  // namespace lockstep::app
