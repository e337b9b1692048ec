#include "lockstep/train/disk_work.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <exception>
#include <optional>
#include <vector>

#include "lockstep/base/mutex.h"
#include "lockstep/base/reading_note.h"
#include "lockstep/base/signal_blocking_thread.h"
#include "lockstep/base/text.h"
#include "lockstep/deadline.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

/// Far below any timeout of a group.
constexpr auto kPause = std::chrono::milliseconds(200);

}  // namespace

/// Reports a rank's progress to the others, from its own thread.
class DiskWork::Heartbeats {
 public:
  Heartbeats(ProcessGroup& group, std::string what, std::chrono::seconds limit,
             std::chrono::milliseconds computes)
      : group_(group), what_(std::move(what)), limit_(limit), computes_(computes) {
    thread_ = start_thread_with_signals_blocked([this] {
      try {
        while (!all_are_done(wait())) continue;
      } catch (...) {
        error_ = std::current_exception();
      }
    });
  }
  ~Heartbeats() {
    tell(State::kFailed);
    if (thread_.joinable()) thread_.join();
  }
  Heartbeats(const Heartbeats&) = delete;
  Heartbeats& operator=(const Heartbeats&) = delete;

  void begin_read() {
    const MutexLock lock(mutex_);
    read_until_ = Deadline::after(limit_);
    changed_.notify_all();
  }
  void end_read() {
    const MutexLock lock(mutex_);
    read_until_.reset();
    silent_from_ = Deadline::after(computes_);
  }

  /// This rank is done; waits for the others.
  void finish() {
    tell(State::kDone);
    thread_.join();
    if (error_) std::rethrow_exception(error_);
  }

 private:
  enum class State { kBusy, kDone, kFailed };
  enum Word : int64_t { kIsDone, kIsBusy, kIsLate };
  /// The end of a path, padded with zeros.
  using Path = std::array<char, 256>;

  void tell(State state) {
    const MutexLock lock(mutex_);
    if (state_ != State::kBusy) return;
    state_ = state;
    changed_.notify_all();
  }

  /// Waits until there is something to report; nothing if this rank has failed. A busy rank reports
  /// after a pause, unless it has read nothing for too long.
  std::optional<Word> wait() {
    MutexLock lock(mutex_);
    const auto until = Deadline::after(kPause).when();
    while (state_ == State::kBusy) {
      if (!read_until_ && silent_from_.passed()) {
        changed_.wait(lock);
      } else if (changed_.wait_until(lock, until) == std::cv_status::timeout) {
        if (read_until_ || !silent_from_.passed()) break;
      }
    }
    if (state_ == State::kFailed) return std::nullopt;
    if (state_ == State::kDone) return kIsDone;
    return read_until_ && read_until_->passed() ? kIsLate : kIsBusy;
  }

  /// One round. A failed rank reports nothing more; the others detect its end.
  bool all_are_done(std::optional<Word> own) {
    if (!own) return true;
    const int64_t word = *own;
    std::vector<int64_t> all(static_cast<size_t>(group_.size()));
    group_.all_gather(&word, all.data(), 1, DType::kInt64).wait();
    std::vector<int> busy, late;
    for (int rank = 0; rank < group_.size(); ++rank) {
      const int64_t said = all[static_cast<size_t>(rank)];
      if (said != kIsDone) busy.push_back(rank);
      if (said == kIsLate) late.push_back(rank);
    }
    if (busy.empty()) return true;
    // If all ranks are late, none waits and so none gives up.
    if (late.empty() || std::ssize(late) == group_.size()) return false;
    end_waiting(*own, late);
    return true;
  }

  /// Exchanges the paths that all ranks read; ranks that are not late give up.
  void end_waiting(Word own, const std::vector<int>& late) {
    Path path{};
    const std::string reading = longest_read();
    const size_t kept = std::min(reading.size(), path.size() - 1);
    std::copy(reading.end() - static_cast<ptrdiff_t>(kept), reading.end(), path.begin());
    std::vector<Path> all(static_cast<size_t>(group_.size()));
    group_.all_gather(path.data(), all.data(), std::ssize(path), DType::kInt8).wait();
    if (own == kIsLate) return;
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
  std::chrono::milliseconds computes_;
  Mutex mutex_;
  CondVar changed_;
  State state_ LOCKSTEP_GUARDED_BY(mutex_) = State::kBusy;
  std::optional<Deadline> read_until_ LOCKSTEP_GUARDED_BY(mutex_);  // while it reads
  Deadline silent_from_ LOCKSTEP_GUARDED_BY(mutex_) = Deadline::after(computes_);
  std::exception_ptr error_;  // the thread's, until it is joined
  std::thread thread_;
};

DiskWork::DiskWork(ProcessGroup& group, const std::string& what, std::chrono::seconds limit,
                   std::chrono::milliseconds computes) {
  if (group.size() > 1) heartbeats_ = std::make_unique<Heartbeats>(group, what, limit, computes);
}

DiskWork::~DiskWork() = default;

void DiskWork::read(const std::function<void()>& work) {
  if (!heartbeats_) return work();
  heartbeats_->begin_read();
  try {
    work();
  } catch (...) {
    heartbeats_->end_read();
    throw;
  }
  heartbeats_->end_read();
}

void DiskWork::finish() {
  if (heartbeats_) heartbeats_->finish();
}

void do_disk_work(ProcessGroup& group, const std::string& what, std::chrono::seconds limit,
                  const std::function<void()>& work) {
  DiskWork shared(group, what, limit);
  shared.read(work);
  shared.finish();
}

}  // namespace lockstep::inline internal
