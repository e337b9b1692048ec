#pragma once

#include <string>

#include "lockstep/base/deadline.h"

namespace lockstep {

/// `host` once it can be looked up: a pod's name is published some time after the pod has started.
/// An address literal is returned as it is; of a name with a domain that is unknown the short form,
/// where that is known. Says so once when it takes longer than two seconds.
/// Errors: kTimeout naming the host.
std::string wait_for_name(const std::string& host, Deadline deadline);

}  // namespace lockstep
