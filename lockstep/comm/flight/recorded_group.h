#pragma once
// Any back end, with its operations in the flight recorder.

#include <memory>

#include "lockstep/comm/group_impl.h"

namespace lockstep {

/// `impl`, each of whose operations is recorded where it begins and where it ends. All ranks must
/// wrap theirs: the n-th collective of a group has the number n on each.
std::unique_ptr<GroupImpl> recorded(const GroupSpec& spec, std::unique_ptr<GroupImpl> impl);

}  // namespace lockstep
