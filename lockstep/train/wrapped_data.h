#pragma once
// Built-in data sets as parts of a program's own.

#include "lockstep/train/config/built_in_makers.h"

namespace lockstep::inline internal {

/// Its batches are those that the trainer would make of the same section, bit for bit, but for
/// pixels, which are never bytes. What the trainer would log about the data goes to standard error.
/// Errors of the maker: kInvalidArgument (the section is for the other use, or has a random
/// transform to evaluate); those of make_data().
DatasetMaker wrapped_dataset_maker(const WrappedDataset& dataset);

}  // namespace lockstep::inline internal
