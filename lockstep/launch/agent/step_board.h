#pragma once
// Where workers tell their agent whether they have come to their first step: a byte each, in
// memory that outlives them. The workers' side: launch/progress.h.

#include <string>

#include "lockstep/base/unique_fd.h"
#include "lockstep/launch/agent/failure.h"

namespace lockstep {

class StepBoard {
 public:
  /// Errors: kIo.
  explicit StepBoard(int workers);

  /// How workers open it: LOCKSTEP_STEPS of their environment.
  std::string path() const;

  /// kSome as soon as one worker has made a step, kNone if one has said that it will report them.
  Steps steps() const;

 private:
  UniqueFd memory_;
  size_t size_;
};

}  // namespace lockstep
