#include "lockstep/comm/given_up.h"

#include <utility>

namespace lockstep {

void GivenUp::keep(std::shared_ptr<void> memory) {
  MutexLock lock(mutex_);
  kept_.push_back(std::move(memory));
}

void GivenUp::leave_to_process() {
  static auto& of_process = *new GivenUp;  // never destroyed
  MutexLock lock(mutex_);
  for (auto& memory : kept_) of_process.keep(std::move(memory));
  kept_.clear();
}

}  // namespace lockstep
