#pragma once
// Items made ahead by worker threads and handed out in order.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "lockstep/base/deadline.h"
#include "lockstep/base/error.h"
#include "lockstep/base/mutex.h"

namespace lockstep {

/// Makes items 0, 1, .. of a round on `threads` threads, at most `depth` of them beyond what the
/// consumer has taken. One consumer thread. The destructor ends the threads; it waits for the items
/// that are being made.
template <typename T>
class Prefetcher {
 public:
  using Make = std::function<T(int64_t item)>;  ///< Called by several threads at once.

  Prefetcher(int threads, int64_t depth)
      : slots_(static_cast<size_t>(std::max(depth, int64_t{1}))) {
    for (int i = 0; i < std::max(threads, 1); ++i) threads_.emplace_back([this] { work(); });
  }
  ~Prefetcher() {
    {
      MutexLock lock(mutex_);
      stopping_ = true;
      work_.notify_all();
    }
    for (auto& thread : threads_) thread.join();
  }
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  /// Begins a round of `count` items; what is left of the one before is dropped.
  void start(int64_t count, Make make) {
    MutexLock lock(mutex_);
    ++round_;
    make_ = std::make_shared<const Make>(std::move(make));
    count_ = count;
    claimed_ = taken_ = 0;
    for (auto& slot : slots_) slot = Slot{};
    work_.notify_all();
  }

  /// The next item of the round, or nothing when all have been taken. Rethrows what making this
  /// very item threw, and ends the round. Errors: kTimeout.
  std::optional<T> next(Deadline deadline) {
    MutexLock lock(mutex_);
    if (taken_ == count_) return std::nullopt;
    Slot& slot = slots_[index(taken_)];
    wait_for(lock, slot, deadline);
    ++taken_;
    work_.notify_one();
    if (slot.error) {
      taken_ = claimed_ = count_;
      std::rethrow_exception(std::exchange(slot.error, nullptr));
    }
    return std::exchange(slot.item, std::nullopt);
  }

  /// Time that next() has waited so far, over all rounds.
  double wait_seconds() const {
    MutexLock lock(mutex_);
    return std::chrono::duration<double>(waited_).count();
  }

 private:
  struct Slot {
    std::optional<T> item;
    std::exception_ptr error;
    bool ready() const { return item.has_value() || error; }
  };

  size_t index(int64_t item) const LOCKSTEP_REQUIRES(mutex_) {
    return static_cast<size_t>(item) % slots_.size();
  }

  void wait_for(MutexLock& lock, const Slot& slot, Deadline deadline) LOCKSTEP_REQUIRES(mutex_) {
    const auto begin = Deadline::Clock::now();
    while (!slot.ready()) {
      if (ready_.wait_until(lock, deadline.when()) == std::cv_status::timeout && !slot.ready()) {
        throw Error(ErrorCode::kTimeout, "item " + std::to_string(taken_) + " of " +
                                             std::to_string(count_) +
                                             " is still being made by a data thread");
      }
    }
    waited_ += Deadline::Clock::now() - begin;
  }

  bool may_claim() const LOCKSTEP_REQUIRES(mutex_) {
    return claimed_ < count_ && claimed_ < taken_ + static_cast<int64_t>(slots_.size());
  }

  void work() {
    MutexLock lock(mutex_);
    while (true) {
      while (!stopping_ && !may_claim()) work_.wait(lock);
      if (stopping_) return;
      const int64_t item = claimed_++;
      const int64_t round = round_;
      const auto make = make_;
      lock.unlock();
      Slot made;
      try {
        made.item = (*make)(item);
      } catch (...) {
        made.error = std::current_exception();
      }
      lock.lock();
      if (round != round_ || item < taken_) continue;  // nobody wants it any more
      slots_[index(item)] = std::move(made);
      ready_.notify_one();
    }
  }

  mutable Mutex mutex_;
  CondVar work_;   // an item may be claimed, or stopping_ turned true
  CondVar ready_;  // a slot was filled
  std::vector<Slot> slots_ LOCKSTEP_GUARDED_BY(mutex_);  // item i in slot i % size
  std::shared_ptr<const Make> make_ LOCKSTEP_GUARDED_BY(mutex_);
  int64_t round_ LOCKSTEP_GUARDED_BY(mutex_) = 0;
  int64_t count_ LOCKSTEP_GUARDED_BY(mutex_) = 0;
  int64_t claimed_ LOCKSTEP_GUARDED_BY(mutex_) = 0;  // items below are made or being made
  int64_t taken_ LOCKSTEP_GUARDED_BY(mutex_) = 0;    // items below were handed out
  bool stopping_ LOCKSTEP_GUARDED_BY(mutex_) = false;
  Deadline::Clock::duration waited_ LOCKSTEP_GUARDED_BY(mutex_){};
  std::vector<std::thread> threads_;  // last: they use all of the above
};

}  // namespace lockstep
