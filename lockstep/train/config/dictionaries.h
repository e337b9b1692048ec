#pragma once
// Checks the dictionaries of a recogniser, which are separate files, against its configuration.

#include "lockstep/train/config/config.h"

namespace lockstep::inline internal {

/// Reads every dictionary that the configuration uses, and compares the one that is trained with
/// model.head. A file can be read as a configuration without them. A run needs them, so it calls
/// this before anything starts. No effect for other types of models. Cost: milliseconds. Errors:
/// kInvalidArgument with the key, both numbers and the contents of the right dictionary; kNotFound,
/// kIo and those of ocr::Dictionary, with the key that names the file.
void check_dictionaries(const Config& config);

}  // namespace lockstep::inline internal
