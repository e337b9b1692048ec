#include "lockstep/launch/rendezvous/meeting/meeting_place.h"

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/launch/rendezvous/meeting/built_in_place.h"

namespace lockstep {

std::unique_ptr<MeetingPlace> make_place(const RunOptions& options, const std::string& secret) {
  return std::make_unique<BuiltInPlace>(options, secret);
}

}  // namespace lockstep
