#pragma once
// The dictionaries of a recogniser, which are files of their own, against its configuration.

#include "lockstep/train/config/config.h"

namespace lockstep {

/// Reads every dictionary that the configuration has a use for, and compares the one that is taught
/// with model.head. A file may be read as a configuration without them; a run needs them, and asks
/// before anything is started. Nothing to do for other types of models. Cost: milliseconds.
/// Errors: kInvalidArgument with the key, both numbers and what the right one is made of; with the
/// key that names the file: kNotFound, kIo, and those of ocr::Dictionary.
void check_dictionaries(const Config& config);

}  // namespace lockstep
