#include "lockstep/checkpoint/background_writer.h"

#include <utility>

#include "lockstep/base/signal_blocking_thread.h"

namespace lockstep::inline internal {

BackgroundWriter::~BackgroundWriter() {
  if (!thread_.joinable()) return;
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void BackgroundWriter::rethrow() {
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void BackgroundWriter::submit(std::function<void()> job) {
  {
    const MutexLock lock(mutex_);
    rethrow();
    jobs_.push_back(std::move(job));
  }
  if (!thread_.joinable()) thread_ = start_thread_with_signals_blocked([this] { run(); });
  changed_.notify_all();
}

void BackgroundWriter::wait() {
  MutexLock lock(mutex_);
  while (!jobs_.empty()) changed_.wait(lock);
  rethrow();
}

bool BackgroundWriter::idle() {
  const MutexLock lock(mutex_);
  rethrow();
  return jobs_.empty();
}

void BackgroundWriter::run() {
  MutexLock lock(mutex_);
  while (true) {
    while (jobs_.empty() && !stopping_) changed_.wait(lock);
    if (jobs_.empty()) return;
    const auto job = jobs_.front();
    lock.unlock();
    std::exception_ptr error;
    try {
      job();
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    jobs_.pop_front();
    if (error) {
      error_ = error;
      jobs_.clear();
    }
    changed_.notify_all();
  }
}

}  // namespace lockstep::inline internal
