#pragma once
// The identity of a host: processes with equal ones can share memory.

#include <string>

namespace lockstep::inline internal {

/// Identity of this host, as in World::host_id. LOCKSTEP_HOST_ID overrides it (for tests). Errors:
/// kUnavailable without /proc, kIo.
std::string this_host_id();

}  // namespace lockstep::inline internal
