#pragma once
// A rank's place as its program gives it itself, by whatever flags: the first of all sources.

#include "lockstep/world.h"
#include "lockstep/world/identity.h"

namespace lockstep {

class Reader;

/// Checked. Errors: kInvalidArgument naming the arguments at fault.
Identity identity_of(const RankArguments& arguments, const Reader& read);

}  // namespace lockstep
