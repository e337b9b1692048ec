#pragma once
// How the ranks of a host come together: headers, barriers, waiting, and one verdict for all.

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "lockstep/comm/group_impl.h"
#include "lockstep/comm/native/fault_point.h"
#include "lockstep/comm/native/shm/control.h"
#include "lockstep/comm/op_header.h"
#include "lockstep/error.h"

namespace lockstep::shm {

/// Where this rank's data lies: in the memory of the `segment`-th allocate(), or 0 for elsewhere.
struct Place {
  uint64_t segment = 0;
  int64_t offset = 0;
};

/// What a wait is for, in messages. `sequence`: of a collective; 0 for point to point.
struct Doing {
  std::string text;
  uint64_t sequence = 0;
};

/// This rank's view of the control segment. enter() and sync() are for one thread at a time; the
/// rest may be called beside them.
class Barrier {
 public:
  Barrier(const GroupSpec& spec, Control control);

  /// Publishes the header (sequence is filled in here) with up to kInlineBytes of data, waits for
  /// all ranks and compares. On return post() and inline_data() of all ranks are valid until this
  /// rank enters the next operation but one.
  void enter(OpHeader header, const Place& place, const void* data, int64_t inline_bytes,
             const Waiting& waiting);
  /// Returns when all ranks have called it as often.
  void sync(const Waiting& waiting);
  /// Ends the operation.
  void finish();
  /// Operations from here on are told, and compared, as number `number`: that of the operation of
  /// which they are a part. Else, or with 0, as what they are here, the n-th of this group.
  void tell_as(uint64_t number) { told_as_ = number; }
  /// enter() and sync() also end as if their time were over when `alarm()` is true.
  void set_alarm(std::function<bool()> alarm) { alarm_ = std::move(alarm); }

  const OpHeader& header() const { return header_; }  ///< Of the operation under way.
  const Post& post(int rank) const { return control_.slot(rank).posts[sequence_ & 1]; }
  const std::byte* inline_data(int rank, int64_t bytes) const;

  /// Makes `error` the verdict, if there is none, and wakes everybody.
  void fail(const Error& error);
  /// Throws the verdict if there is one, or makes one if a rank of `among` is gone.
  void check(const std::vector<int>& among, const Doing& doing);
  /// Throws kTimeout as the verdict.
  [[noreturn]] void time_out(const std::vector<int>& missing, const Doing& doing);
  /// For whom the enter() or sync() waited whose time was over first; for its thread.
  const std::vector<int>& awaited() const { return awaited_; }

  /// Waits for `ready`: a short spin (with fewer cores than ranks, each time round giving the core
  /// to whoever wants it), then asleep on `event`, looking at the verdict and at the ranks that
  /// missing() names every few milliseconds. False: the time is over, and somebody is missing. Any
  /// thread.
  template <class Ready, class Missing, class Doing>
  bool wait(Event& event, const Ready& ready, const Missing& missing, const Doing& doing,
            const Waiting& waiting) {
    return wait_or_end(event, ready, missing, doing, waiting.spin,
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
        pause();
      }
    } while (std::chrono::steady_clock::now() < end);
    return false;
  }

 private:
  /// How soon a waiting rank sees that another died. 200 looks a second cost 0.3 % of a core.
  static constexpr std::chrono::milliseconds kSlice{5};
  /// About what two switches of a thread cost: the spin at most doubles the price of sleeping.
  static constexpr std::chrono::microseconds kSpin{40};
  /// Before that, for a peer that is a moment behind, without a pause (50 ns on some processors)
  /// and without a look at the clock: about a microsecond.
  static constexpr int kEagerLooks = 200;

  /// Spinning where the core may be wanted: by another rank, which then comes the sooner, or by
  /// other work, to which each such turn may lose milliseconds. After that, no more for a while.
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
  static void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }

  /// False when over() says so, and somebody is missing.
  template <class Ready, class Missing, class Doing, class Over>
  bool wait_or_end(Event& event, const Ready& ready, const Missing& missing, const Doing& doing,
                   bool may_spin, const Over& over) {
    if (may_spin && spin(ready)) return true;
    while (true) {
      event.wait(ready, kSlice);
      if (ready()) return true;
      throw_verdict();
      if (const auto late = missing(); anyone_gone(late)) {
        if (ready()) return true;  // it did its part before it went
        check(late, doing());
      }
      // None is late where the last one came after the look above.
      if (over() && !missing().empty()) return false;
    }
  }
  /// Waits for the other ranks of the operation under way.
  template <class Ready, class Missing>
  void await_all(const Ready& ready, const Missing& missing, const Waiting& waiting) {
    const auto doing = [this] { return current(); };
    const auto over = [&] { return waiting.deadline.passed() || (alarm_ && alarm_()); };
    while (!wait_or_end(control_.head().event, ready, missing, doing, waiting.spin, over)) {
      // None is late where the last one has come just now.
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
  void throw_verdict() const;
  bool anyone_gone(const std::vector<int>& ranks) const;
  Doing current() const {
    return {describe(header_), sequence_};
  }
  void reach(FaultPoint point) const {
    lockstep::reach(spec_.world_ranks[static_cast<size_t>(spec_.rank)], header_.kind, point);
  }

  const GroupSpec spec_;
  const Control control_;
  bool enough_cores_ = false;
  std::atomic<int> skip_yields_ = 0;  // may lose counts
  uint64_t sequence_ = 0;             // of the operation under way
  uint64_t told_as_ = 0;
  std::function<bool()> alarm_;
  std::vector<int> awaited_;
  uint64_t rounds_ = 0;
  int compared_ = 0;  // ranks [0, compared_) have posted the same header as we
  OpHeader header_;
};

}  // namespace lockstep::shm
