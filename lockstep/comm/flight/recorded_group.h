#pragma once
// Any back end, with its operations in the flight recorder.

#include <memory>

#include "lockstep/comm/group_impl.h"

namespace lockstep::inline internal {

/// Wraps `impl`; records the beginning and the end of each of its operations. All ranks must wrap
/// theirs: the n-th collective of a group has the number n on each rank.
std::unique_ptr<GroupImpl> recorded(const GroupSpec& spec, std::unique_ptr<GroupImpl> impl);

}  // namespace lockstep::inline internal
