#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "lockstep/base/socket.h"
#include "lockstep/deadline.h"

namespace lockstep {

struct NameWait {
  std::function<bool(const std::string&)> known = can_resolve;
  std::chrono::milliseconds say_after{5000};  ///< Then it says for what it waits, once.
  std::chrono::milliseconds pause{200};       ///< Between two lookups.
};

/// `host` once it can be looked up: a pod's name is published some time after the pod has started.
/// An address literal is returned as it is; of a name with a domain that is unknown the short form,
/// where that is known. Errors: kTimeout naming the host and how long it was asked for.
std::string wait_for_name(const std::string& host, Deadline deadline, const NameWait& how = {});

}  // namespace lockstep
