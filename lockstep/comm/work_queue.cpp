#include "lockstep/comm/work_queue.h"

#include "lockstep/base/signal_blocking_thread.h"

namespace lockstep::inline internal {
namespace {

std::optional<CarriedError> attempt(const std::function<void()>& task) {
  try {
    task();
    return std::nullopt;
  } catch (const Error& error) {
    return CarriedError{error.code(), error.what()};
  } catch (const std::exception& error) {
    return CarriedError{ErrorCode::kInternal, error.what()};
  }
}

}  // namespace

void WorkState::await() {
  MutexLock lock(mutex_);
  while (!done()) finished_.wait(lock);
}

void WorkState::wait() {
  if (!done()) await();
  if (failure_) failure_->raise();
  if (has_last_.load(std::memory_order_acquire)) run_last();
}

void WorkState::then(std::function<void()> last) {
  MutexLock lock(last_mutex_);
  last_.push_back(std::move(last));
  has_last_.store(true, std::memory_order_release);
}

void WorkState::run_last() {
  MutexLock lock(last_mutex_);
  // None is left if another thread was first. If one throws, the next wait() tries it again.
  for (; num_run_ < last_.size(); ++num_run_) last_[num_run_]();
  last_.clear();  // together, because a later one may use memory that an earlier one keeps
  num_run_ = 0;
  has_last_.store(false, std::memory_order_release);
}

void WorkState::finish(std::optional<CarriedError> failure) {
  MutexLock lock(mutex_);
  failure_ = std::move(failure);
  done_.store(true, std::memory_order_release);
  finished_.notify_all();
}

WorkQueue::~WorkQueue() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

std::shared_ptr<WorkState> WorkQueue::push(std::function<void()> task) {
  auto state = std::make_shared<WorkState>();
  MutexLock lock(mutex_);
  if (!thread_.joinable()) thread_ = start_thread_with_signals_blocked([this] { run(); });
  items_.push_back({std::move(task), state});
  pending_.fetch_add(1, std::memory_order_relaxed);
  changed_.notify_all();
  return state;
}

void WorkQueue::wait_idle() {
  if (idle()) return;
  MutexLock lock(mutex_);
  while (!idle()) changed_.wait(lock);
}

void WorkQueue::run() {
  while (true) {
    Item item;
    {
      MutexLock lock(mutex_);
      while (items_.empty() && !stopping_) changed_.wait(lock);
      if (items_.empty()) return;
      item = std::move(items_.front());
      items_.pop_front();
    }
    auto failure = attempt(item.task);
    item.task = nullptr;
    item.state->finish(std::move(failure));
    MutexLock lock(mutex_);
    if (pending_.fetch_sub(1, std::memory_order_release) == 1) changed_.notify_all();
  }
}

}  // namespace lockstep::inline internal
