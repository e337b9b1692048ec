#include "lockstep/comm/native/shm/life.h"

#include <cerrno>

#include "lockstep/base/signal_blocking_thread.h"

namespace lockstep::shm {
namespace {

void make_robust(pthread_mutex_t* mutex) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(mutex, &attributes);
  pthread_mutexattr_destroy(&attributes);
}

}  // namespace

LifeKeeper::LifeKeeper(RankSlot& slot) : slot_(slot) {
  make_robust(&slot_.life);
  thread_ = start_thread_with_signals_blocked([this] { hold(); });
  MutexLock lock(mutex_);
  while (!holds_) changed_.wait(lock);
}

LifeKeeper::~LifeKeeper() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void LifeKeeper::hold() {
  pthread_mutex_lock(&slot_.life);
  {
    MutexLock lock(mutex_);
    holds_ = true;
    changed_.notify_all();
    while (!stopping_) changed_.wait(lock);
  }
  slot_.left.store(1);
  pthread_mutex_unlock(&slot_.life);
}

Life look_at(RankSlot& slot) {
  if (slot.dead.load() != 0) return Life::kDead;
  const int result = pthread_mutex_trylock(&slot.life);
  if (result == EBUSY) return slot.left.load() != 0 ? Life::kLeft : Life::kAlive;
  const bool died = slot.left.load() == 0;
  // Recorded before the mutex is released. If a mutex is not recoverable, glibc's trylock reports
  // that to the first caller only, and appears busy to all later ones.
  if (died) slot.dead.store(1);
  if (result == 0 || result == EOWNERDEAD) pthread_mutex_unlock(&slot.life);
  return died ? Life::kDead : Life::kLeft;
}

}  // namespace lockstep::shm
