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

#include "lockstep/base/mutex.h"
#include "lockstep/deadline.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {

/// Makes items 0, 1, .. of a round on `threads` threads, at most `depth` of them beyond the
/// consumer's last one. One consumer thread. The destructor waits for unfinished items, then ends
/// the threads.
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

  /// Begins a round of `count` items; the rest of earlier ones is dropped.
  void start(int64_t count, Make make) {
    MutexLock lock(mutex_);
    current_ = {0, count, std::make_shared<const Make>(std::move(make))};
    drop_all(0);
    work_.notify_all();
  }

  /// Announces the next round: its first items are made while the last of this one are taken.
  void follow(int64_t count, Make make) {
    MutexLock lock(mutex_);
    if (following_) throw Error(ErrorCode::kInternal, "a round has one follower");
    following_ = {current_.end, current_.end + count,
                  std::make_shared<const Make>(std::move(make))};
    work_.notify_all();
  }

  /// Begins the announced round. False if there is none (an error drops it, too), or if items of
  /// this round were not taken: then call start().
  bool go_on() {
    MutexLock lock(mutex_);
    if (!following_ || taken_ != current_.end) return false;
    current_ = *following_;
    following_.reset();
    return true;
  }

  /// The next item of the round, or nothing when all have been taken. Rethrows the exception of
  /// making this item, and ends the round and its follower. Errors: kTimeout.
  std::optional<T> next(Deadline deadline) {
    MutexLock lock(mutex_);
    if (taken_ == current_.end) return std::nullopt;
    Slot& slot = slots_[index(taken_)];
    wait_for(lock, slot, deadline);
    ++taken_;
    work_.notify_one();
    if (slot.error) {
      const auto error = slot.error;
      drop_all(current_.end);
      std::rethrow_exception(error);
    }
    return std::exchange(slot.item, std::nullopt);
  }

  /// Whether the next `count` calls of next() would not wait. False if they are more than `depth`.
  bool ready(int64_t count) const {
    MutexLock lock(mutex_);
    const int64_t end = std::min(taken_ + count, current_.end);
    if (end - taken_ > std::ssize(slots_)) return false;
    for (int64_t item = taken_; item < end; ++item) {
      if (!slots_[index(item)].ready()) return false;
    }
    return true;
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
      ready_.wait_until(lock, deadline.when());
      if (deadline.passed() && !slot.ready()) {
        throw Error(ErrorCode::kTimeout, "item " + std::to_string(taken_ - current_.begin) +
                                             " of " +
                                             std::to_string(current_.end - current_.begin) +
                                             " is still being made by a data thread");
      }
    }
    waited_ += Deadline::Clock::now() - begin;
  }

  /// Item numbers continue from round to round.
  struct Round {
    int64_t begin = 0;
    int64_t end = 0;
    std::shared_ptr<const Make> make{};
  };

  /// Drops all items, also unfinished ones; the next item would be `next`.
  void drop_all(int64_t next) LOCKSTEP_REQUIRES(mutex_) {
    ++dropped_;
    following_.reset();
    claimed_ = taken_ = next;
    for (auto& slot : slots_) slot = Slot{};
  }

  bool may_claim() const LOCKSTEP_REQUIRES(mutex_) {
    const int64_t end = following_ ? following_->end : current_.end;
    return claimed_ < end && claimed_ < taken_ + static_cast<int64_t>(slots_.size());
  }

  void work() {
    MutexLock lock(mutex_);
    while (true) {
      while (!stopping_ && !may_claim()) work_.wait(lock);
      if (stopping_) return;
      const int64_t item = claimed_++;
      const int64_t dropped = dropped_;
      const Round round = item < current_.end ? current_ : *following_;
      lock.unlock();
      Slot made;
      try {
        made.item = (*round.make)(item - round.begin);
      } catch (...) {
        made.error = std::current_exception();
      }
      lock.lock();
      if (dropped != dropped_) continue;  // the item was dropped
      slots_[index(item)] = std::move(made);
      ready_.notify_one();
    }
  }

  mutable Mutex mutex_;
  CondVar work_;   // an item may be claimed, or stopping_ turned true
  CondVar ready_;  // a slot was filled
  std::vector<Slot> slots_ LOCKSTEP_GUARDED_BY(mutex_);  // item i in slot i % size
  Round current_ LOCKSTEP_GUARDED_BY(mutex_);
  std::optional<Round> following_ LOCKSTEP_GUARDED_BY(mutex_);  // begins where current_ ends
  int64_t dropped_ LOCKSTEP_GUARDED_BY(mutex_) = 0;             // counts drop_all(): makers see it
  int64_t claimed_ LOCKSTEP_GUARDED_BY(mutex_) = 0;  // items below are made or being made
  int64_t taken_ LOCKSTEP_GUARDED_BY(mutex_) = 0;    // items below were handed out
  bool stopping_ LOCKSTEP_GUARDED_BY(mutex_) = false;
  Deadline::Clock::duration waited_ LOCKSTEP_GUARDED_BY(mutex_){};
  std::vector<std::thread> threads_;  // last: they use all of the above
};

}  // namespace lockstep::inline internal
