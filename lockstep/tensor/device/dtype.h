#pragma once
// The two names of an element type: in libtorch and in the collectives.

#include <c10/core/ScalarType.h>

#include "lockstep/types.h"

namespace lockstep::inline internal {

/// Errors: kInvalidArgument for a type that collectives do not support (quantized, complex32);
/// names it and the allowed ones.
DType to_dtype(c10::ScalarType type);

c10::ScalarType to_scalar_type(DType dtype);

}  // namespace lockstep::inline internal
