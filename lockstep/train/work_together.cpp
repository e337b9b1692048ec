#include "lockstep/train/work_together.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <exception>
#include <vector>

#include "lockstep/base/deadline.h"
#include "lockstep/base/error.h"
#include "lockstep/base/mutex.h"
#include "lockstep/base/quiet_thread.h"
#include "lockstep/base/reading_note.h"
#include "lockstep/base/text.h"

namespace lockstep {
namespace {

/// Far below any timeout of a group.
constexpr auto kPause = std::chrono::milliseconds(200);

/// A rank's word on how far it is, given by a thread of its own.
class LifeSigns {
 public:
  LifeSigns(ProcessGroup& group, std::string what, std::chrono::seconds limit)
      : group_(group), what_(std::move(what)), limit_(limit), deadline_(Deadline::after(limit)) {
    thread_ = start_quiet_thread([this] {
      try {
        while (!all_are_done(wait())) continue;
      } catch (...) {
        error_ = std::current_exception();
      }
    });
  }
  ~LifeSigns() {
    tell(State::kFailed);
    if (thread_.joinable()) thread_.join();
  }
  LifeSigns(const LifeSigns&) = delete;
  LifeSigns& operator=(const LifeSigns&) = delete;

  /// This rank is done; waits for the others.
  void finish() {
    tell(State::kDone);
    thread_.join();
    if (error_) std::rethrow_exception(error_);
  }

 private:
  enum class State { kBusy, kDone, kFailed };
  enum Word : int64_t { kIsDone, kIsBusy, kHasWaitedEnough };
  /// The end of a path, with zeros behind it.
  using Path = std::array<char, 256>;

  void tell(State state) {
    const MutexLock lock(mutex_);
    if (state_ != State::kBusy) return;
    state_ = state;
    changed_.notify_all();
  }

  /// Until there is something to say, or the pause is over.
  State wait() {
    MutexLock lock(mutex_);
    const auto until = Deadline::after(kPause).when();
    while (state_ == State::kBusy &&
           changed_.wait_until(lock, until) == std::cv_status::no_timeout) {
    }
    return state_;
  }

  /// One round. Who failed has nothing more to say: the others find its end.
  bool all_are_done(State own) {
    if (own == State::kFailed) return true;
    const int64_t word = own == State::kBusy  ? kIsBusy
                         : deadline_.passed() ? kHasWaitedEnough
                                              : kIsDone;
    std::vector<int64_t> all(static_cast<size_t>(group_.size()));
    group_.all_gather(&word, all.data(), 1, DType::kInt64).wait();
    std::vector<int> late;
    for (int rank = 0; rank < group_.size(); ++rank) {
      if (all[static_cast<size_t>(rank)] == kIsBusy) late.push_back(rank);
    }
    if (late.empty()) return true;
    if (std::count(all.begin(), all.end(), kHasWaitedEnough) == 0) return false;
    end_waiting(own, late);
    return true;
  }

  /// All ranks say what they read; who is not late gives up.
  void end_waiting(State own, const std::vector<int>& late) {
    Path path{};
    const std::string reading = longest_read();
    const size_t kept = std::min(reading.size(), path.size() - 1);
    std::copy(reading.end() - static_cast<ptrdiff_t>(kept), reading.end(), path.begin());
    std::vector<Path> all(static_cast<size_t>(group_.size()));
    group_.all_gather(path.data(), all.data(), std::ssize(path), DType::kInt8).wait();
    if (own == State::kBusy) return;
    std::string files;
    for (const int rank : late) {
      const std::string file = all[static_cast<size_t>(rank)].data();
      if (!file.empty()) files += fmt::format("; rank {} is reading {}", rank, file);
    }
    throw Error(ErrorCode::kTimeout,
                fmt::format("{}: rank {} is not done after {} s (train.disk_timeout_s){}", what_,
                            rank_list(late), limit_.count(), files));
  }

  ProcessGroup& group_;
  std::string what_;
  std::chrono::seconds limit_;
  Deadline deadline_;
  Mutex mutex_;
  CondVar changed_;
  State state_ LOCKSTEP_GUARDED_BY(mutex_) = State::kBusy;
  std::exception_ptr error_;  // the thread's, until it is joined
  std::thread thread_;
};

}  // namespace

void work_together(ProcessGroup& group, const std::string& what, std::chrono::seconds limit,
                   const std::function<void()>& work) {
  if (group.size() == 1) return work();
  LifeSigns signs(group, what, limit);
  work();
  signs.finish();
}

}  // namespace lockstep
