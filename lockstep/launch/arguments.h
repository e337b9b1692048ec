#pragma once
// A rank's place as its program gives it itself, by whatever flags: the first of all sources.

#include "lockstep/launch/identity.h"
#include "lockstep/world.h"

namespace lockstep {

class Reader;

/// Checked. Errors: kInvalidArgument naming the arguments at fault.
Identity identity_of(const RankArguments& arguments, const Reader& read);

}  // namespace lockstep
