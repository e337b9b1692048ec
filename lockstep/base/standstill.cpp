#include "lockstep/base/standstill.h"

#include <atomic>

#include "lockstep/base/in_child.h"
#include "lockstep/base/signal_blocking_thread.h"

namespace lockstep::inline internal {
namespace {

using Clock = std::chrono::steady_clock;

/// Both numbers of Running in one word, so that a reader sees a consistent pair.
std::atomic<uint64_t> running = 0;
/// Number of Pulses, and the fork_generation() of their process; also in one word: a forked child
/// has none.
std::atomic<uint64_t> pulses = 0;

uint64_t pair_of(uint32_t high, uint32_t low) {
  return static_cast<uint64_t>(high) << 32 | low;
}

uint32_t high_of(uint64_t pair) {
  return static_cast<uint32_t>(pair >> 32);
}

uint32_t low_of(uint64_t pair) {
  return static_cast<uint32_t>(pair);
}

uint32_t num_pulses() {
  const uint64_t all = pulses.load();
  return high_of(all) == fork_generation() ? low_of(all) : 0;
}

void add_pulses(uint32_t more) {
  uint64_t all = pulses.load();
  uint64_t next = 0;
  do {
    const uint32_t here = high_of(all) == fork_generation() ? low_of(all) : 0;
    next = pair_of(fork_generation(), here + more);
  } while (!pulses.compare_exchange_weak(all, next));
}

}  // namespace

Running Running::seen_at(Ticks now, bool watched) const {
  const Tick gap(static_cast<Ticks>(now - seen));
  const bool stood_still = watched && gap > kPulse + kLate;
  return {now, missed + (stood_still ? static_cast<Ticks>((gap - kPulse).count()) : 0)};
}

Moment this_moment() {
  uint64_t known = running.load(std::memory_order_acquire);
  while (true) {
    // In this order, a standstill between the two appears as a gap, and so is noticed.
    const auto now = Clock::now();
    const auto ticks = static_cast<Running::Ticks>(
        std::chrono::duration_cast<Running::Tick>(now.time_since_epoch()).count());
    const Running before{high_of(known), low_of(known)};
    if (before.is_fresh(ticks)) return {now, Running::Tick(before.missed)};
    const Running after = before.seen_at(ticks, num_pulses() > 0);
    if (running.compare_exchange_strong(known, pair_of(after.seen, after.missed)))
      return {now, Running::Tick(after.missed)};
  }
}

std::shared_ptr<Pulse> Pulse::of_process() {
  static Mutex mutex;
  static auto& known = *new std::weak_ptr<Pulse>;
  const MutexLock lock(mutex);
  auto pulse = known.lock();
  if (pulse && pulse->generation_ == fork_generation()) return pulse;
  pulse.reset(new Pulse);
  known = pulse;
  return pulse;
}

Pulse::Pulse() : generation_(fork_generation()) {
  this_moment();  // the time before it is no standstill
  thread_ = start_thread_with_signals_blocked([this] { run(); });
  add_pulses(1);
}

Pulse::~Pulse() {
  if (generation_ != fork_generation()) {
    leave_to_parent(thread_);
    return;
  }
  add_pulses(static_cast<uint32_t>(-1));
  {
    MutexLock lock(mutex_);
    ending_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void Pulse::run() {
  MutexLock lock(mutex_);
  while (!ending_) {
    changed_.wait_for(lock, Running::kPulse);
    this_moment();
  }
}

}  // namespace lockstep::inline internal
