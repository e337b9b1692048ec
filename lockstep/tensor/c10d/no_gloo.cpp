// Replaces gloo_group.cpp if Gloo's headers were not found.

#include "lockstep/error.h"
#include "lockstep/tensor/c10d/gloo_group.h"

namespace lockstep::inline internal {

bool gloo_is_built_in(std::string* why_not) {
  *why_not = "built without the headers of libtorch's Gloo (Debian: libgloo-dev)";
  return false;
}

std::unique_ptr<GroupImpl> make_gloo_group(const GroupSpec&, Deadline) {
  std::string why_not;
  gloo_is_built_in(&why_not);
  throw Error(ErrorCode::kUnavailable, "back end c10d:gloo: " + why_not);
}

}  // namespace lockstep::inline internal
