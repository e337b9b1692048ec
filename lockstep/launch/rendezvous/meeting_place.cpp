#include "lockstep/launch/rendezvous/meeting_place.h"

#include "lockstep/launch/rendezvous/built_in_place.h"
#include "lockstep/launch/rendezvous/store_place.h"

namespace lockstep {

std::unique_ptr<MeetingPlace> make_place(const RunOptions& options, const std::string& secret) {
  if (options.rdzv_backend == "static" || options.rdzv_backend == "c10d") {
    return std::make_unique<BuiltInPlace>(options, secret);
  }
  return std::make_unique<StorePlace>(options, secret);
}

}  // namespace lockstep
