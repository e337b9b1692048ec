#pragma once
// Immediate detection of another process's death.
//
// The kernel closes sockets and wakes waitpid only after it has freed a dying process's memory,
// which takes a second for 8 GiB. It releases robust mutexes before that. So each rank has a thread
// that holds one in shared memory for as long as the group lives.

#include <thread>

#include "lockstep/base/mutex.h"
#include "lockstep/comm/native/shm/control.h"

namespace lockstep::shm {

/// Holds slot.life from construction to destruction, in a thread that does nothing else. At the end
/// it marks the slot as left before it releases it.
class LifeKeeper {
 public:
  explicit LifeKeeper(RankSlot& slot);
  ~LifeKeeper();
  LifeKeeper(const LifeKeeper&) = delete;
  LifeKeeper& operator=(const LifeKeeper&) = delete;

 private:
  void hold();

  RankSlot& slot_;
  Mutex mutex_;
  CondVar changed_;  // signalled when one of the next two turns true
  bool holds_ LOCKSTEP_GUARDED_BY(mutex_) = false;
  bool stopping_ LOCKSTEP_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

enum class Life { kAlive, kLeft, kDead };
/// Checks a rank that has attached. Cost: some 50 ns.
Life look_at(RankSlot& slot);

}  // namespace lockstep::shm
