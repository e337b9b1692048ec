#pragma once
// Everything for a program that trains a network of its own with Lockstep's trainer, and keeps the
// whole command line of `lockstep train`: link lockstep::train.
//
//   #include <lockstep/train.h>
//
//   const lockstep::NetworkPart kTwoConvs("two_convs", "...", [](lockstep::Section& settings)
//   {...});
//
//   int main(int argc, char** argv) { return lockstep::train_main(argc, argv); }
//
// The program runs on one process or, under any launcher, on many.

#include "lockstep/batch.h"
#include "lockstep/metric.h"
#include "lockstep/model.h"
#include "lockstep/recipe.h"
#include "lockstep/registry.h"
#include "lockstep/section.h"

namespace lockstep {

/// `lockstep train`, and with --eval as the first word `lockstep eval`: the body of main(). Call it
/// first there, as warm_start() demands. Returns the exit status: 0; 2 for bad input; 1 for other
/// errors; 128 + the signal that ended the run. Errors are printed, in one line.
int train_main(int argc, char** argv);

}  // namespace lockstep
