#include "lockstep/tensor/c10d/c10d_backends.h"

#include "lockstep/comm/backends.h"
#include "lockstep/tensor/c10d/gloo_group.h"

namespace lockstep {
namespace {

bool gloo_is_usable(const GroupSpec&, std::string* why_not) {
  return gloo_is_built_in(why_not);
}

}  // namespace

bool register_c10d_backends() {
  static const bool done =
      register_backend({"c10d:gloo", "libtorch's own Gloo, over TCP also within a host",
                        gloo_is_built_in, gloo_is_usable, make_gloo_group});
  return done;
}

}  // namespace lockstep
