#pragma once
// Memory that an engine was lent and has not given back.

#include <memory>
#include <vector>

#include "lockstep/base/mutex.h"

namespace lockstep {

/// After a wait that ended with an error, the engine may still be about to read or write what it
/// was lent. Such memory is kept here instead of being freed. Threads: any.
class GivenUp {
 public:
  void keep(std::shared_ptr<void> memory);
  /// Hands everything to the process, which never frees it: for engines that outlive their group.
  void leave_to_process();

 private:
  Mutex mutex_;
  std::vector<std::shared_ptr<void>> kept_ LOCKSTEP_GUARDED_BY(mutex_);
};

}  // namespace lockstep
