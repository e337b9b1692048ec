#pragma once

#include <memory>
#include <string>

#include "lockstep/launch/rendezvous/rendezvous.h"

namespace lockstep {

/// Several hosts, or one where others may come: docs/design/rendezvous.md. `secret` may only be
/// empty where all is on loopback. Errors: kInvalidArgument (no secret, or the back end cannot be
/// used as it is asked for), kIo.
std::unique_ptr<Rendezvous> make_elastic_rendezvous(const RunOptions& options,
                                                    const std::string& secret);

}  // namespace lockstep
