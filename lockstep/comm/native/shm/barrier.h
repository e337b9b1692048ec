#pragma once
// Synchronization of the ranks of a host: headers, barriers, waits, and one error for all.

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "lockstep/base/processor.h"
#include "lockstep/comm/fault_point.h"
#include "lockstep/comm/group_impl.h"
#include "lockstep/comm/native/shm/control.h"
#include "lockstep/comm/op_header.h"
#include "lockstep/error.h"

namespace lockstep::shm {

/// The offset of a rank's data in the memory of the `segment`-th allocate(); 0: it lies elsewhere.
struct SharedOffset {
  uint64_t segment = 0;
  int64_t offset = 0;
};

/// This rank's view of the control segment. enter() and sync() are for one thread at a time; the
/// other calls may run beside them.
class Barrier {
 public:
  Barrier(const GroupSpec& spec, Control control);

  /// Publishes the header (sequence is filled in here) with up to kInlineBytes of data, waits for
  /// all ranks and compares. On return post() and inline_data() of all ranks are valid until this
  /// rank enters the next operation but one.
  void enter(OpHeader header, const SharedOffset& shared, const void* data, int64_t inline_bytes,
             const Waiting& waiting);
  /// Returns when all ranks have called it equally often.
  void sync(const Waiting& waiting);
  /// Ends the operation.
  void finish();
  /// From here on operations are reported and compared as number `number`: the operation of which
  /// they are a part. Without this call, or with 0, each has its own number in this group.
  void tell_as(uint64_t number) { told_as_ = number; }
  /// enter() and sync() also end as if they had timed out when `alarm()` is true.
  void set_alarm(std::function<bool()> alarm) { alarm_ = std::move(alarm); }

  const OpHeader& header() const { return header_; }  ///< Of the operation in progress.
  const Post& post(int rank) const { return control_.slot(rank).posts[sequence_ & 1]; }
  const std::byte* inline_data(int rank, int64_t bytes) const;

  /// Makes `error` the group error, if there is none, and wakes all ranks.
  void fail(const Error& error);
  /// Throws the group error if there is one; if a rank of `among` is gone, makes that the group
  /// error.
  void check(const std::vector<int>& among, const WaitReason& reason);
  /// Throws kTimeout as the group error.
  [[noreturn]] void time_out(const std::vector<int>& missing, const WaitReason& reason);
  /// The ranks for which the first timed-out enter() or sync() waited; for its thread.
  const std::vector<int>& awaited() const { return awaited_; }

  /// Waits for `ready`: first a short spin, which yields the core each turn if there are fewer
  /// cores than ranks. Then it sleeps on `event`, and checks the group error and the ranks of
  /// missing() every few milliseconds. False: timeout, and a rank is missing. Any thread.
  template <class Ready, class Missing, class Reason>
  bool wait(SharedEvent& event, const Ready& ready, const Missing& missing, const Reason& reason,
            const Waiting& waiting) {
    return wait_or_end(event, ready, missing, reason, waiting.spin,
                       [&] { return waiting.deadline.passed(); });
  }

  /// True as soon as ready() is, false after some 40 us. Any thread.
  template <class Ready>
  bool spin(const Ready& ready) {
    if (!enough_cores_) return give_way(ready);
    for (int i = 0; i < kEagerLooks; ++i) {
      if (ready()) return true;
    }
    const auto end = std::chrono::steady_clock::now() + kSpin;
    do {
      for (int i = 0; i < 32; ++i) {
        if (ready()) return true;
        pause_processor();
      }
    } while (std::chrono::steady_clock::now() < end);
    return false;
  }

 private:
  /// Time in which a waiting rank notices another's death. 200 looks per second cost 0.3 % of a
  /// core.
  static constexpr std::chrono::milliseconds kSlice{5};
  /// About the cost of two thread switches: the spin at most doubles the price of sleeping.
  static constexpr std::chrono::microseconds kSpin{40};
  /// The first looks, for a peer that is a moment behind, take about a microsecond: no pause
  /// instruction (50 ns on some processors), no reading of the clock.
  static constexpr int kEagerLooks = 200;

  /// The spin for oversubscribed cores: it yields each turn, so that another rank comes sooner.
  /// Other work may then hold the core for milliseconds. After one slow spin, the next 200 waits do
  /// not spin.
  template <class Ready>
  bool give_way(const Ready& ready) {
    if (const int left = skip_yields_.load(std::memory_order_relaxed); left > 0) {
      skip_yields_.store(left - 1, std::memory_order_relaxed);
      return false;
    }
    const auto start = std::chrono::steady_clock::now();
    auto now = start;
    bool done = false;
    do {
      sched_yield();
      done = ready();
      now = std::chrono::steady_clock::now();
    } while (!done && now < start + kSpin);
    if (now > start + 5 * kSpin) skip_yields_.store(200, std::memory_order_relaxed);
    return done;
  }

  /// False if over() is true and a rank is missing.
  template <class Ready, class Missing, class Reason, class Over>
  bool wait_or_end(SharedEvent& event, const Ready& ready, const Missing& missing,
                   const Reason& reason, bool may_spin, const Over& over) {
    if (may_spin && spin(ready)) return true;
    while (true) {
      event.wait(ready, kSlice);
      if (ready()) return true;
      throw_group_error();
      if (const auto late = missing(); anyone_gone(late)) {
        if (ready()) return true;  // it did its part before it ended
        check(late, reason());
      }
      // No rank is late if the last one came after the check above.
      if (over() && !missing().empty()) return false;
    }
  }
  /// Waits for the other ranks of the operation in progress.
  template <class Ready, class Missing>
  void await_all(const Ready& ready, const Missing& missing, const Waiting& waiting) {
    const auto reason = [this] { return current(); };
    const auto over = [&] { return waiting.deadline.passed() || (alarm_ && alarm_()); };
    while (!wait_or_end(control_.head().event, ready, missing, reason, waiting.spin, over)) {
      // No rank is late if the last one has just come.
      if (const auto late = missing(); !late.empty()) time_out(late, current());
    }
  }

  bool all_posted();
  void compare(int rank);
  bool all_met(uint64_t count) const;
  std::vector<int> not_posted() const;
  std::vector<int> not_met(uint64_t count) const;
  /// "rank 2 (last finished all_reduce #7)" for each.
  std::string whereabouts(const std::vector<int>& ranks, uint64_t sequence) const;
  void throw_group_error() const;
  bool anyone_gone(const std::vector<int>& ranks) const;
  WaitReason current() const {
    return {[this] { return describe(header_); }, sequence_};
  }
  void reach(FaultPoint point) const {
    lockstep::reach(spec_.world_ranks[static_cast<size_t>(spec_.rank)], header_.kind, point);
  }

  const GroupSpec spec_;
  const Control control_;
  bool enough_cores_ = false;
  std::atomic<int> skip_yields_ = 0;  // may lose counts
  uint64_t sequence_ = 0;             // of the operation in progress
  uint64_t told_as_ = 0;
  std::function<bool()> alarm_;
  std::vector<int> awaited_;
  uint64_t rounds_ = 0;
  int compared_ = 0;  // ranks [0, compared_) have posted the same header as this one
  OpHeader header_;
};

}  // namespace lockstep::shm
