#include "lockstep/comm/inbox.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lockstep/base/literals.h"
#include "lockstep/base/log.h"
#include "lockstep/base/signal_blocking_thread.h"

namespace lockstep::inline internal {
namespace {

/// After this time, close() logs the message for which it waits.
constexpr auto kSilentFor = 5s;

/// The sink of a read that only ends the group: see GroupImpl::receive().
class Refusal final : public MessageSink {
 public:
  // NOLINTNEXTLINE(bugprone-throw-keyword-missing): it is thrown later
  Refusal(const MessageHeader& wanted, const Error& why) : wanted_(wanted), why_(why) {}

  void look() override { throw Error(why_); }
  Destination begin(const MessageHeader& /*header*/) override { throw Error(why_); }
  void end() override {}
  std::string wanted() override { return describe(wanted_); }

 private:
  const MessageHeader wanted_;
  const Error why_;
};

}  // namespace

struct Inbox::Recv : WorkState {
  Recv(std::shared_ptr<Inbox> of, const MessageMatcher::Slot& waits, uint64_t recorded)
      : inbox(std::move(of)), slot(waits), number(recorded) {}
  void await() override { inbox->await(*this); }

  const std::shared_ptr<Inbox> inbox;
  MessageMatcher::Slot slot;
  const uint64_t number;
  bool is_late = false;  // its end is being reported; guarded by the inbox's mutex
};

Inbox::Inbox(std::string source, std::string self, std::chrono::milliseconds timeout, Calls calls)
    : source_(std::move(source)),
      self_(std::move(self)),
      timeout_(timeout),
      calls_(std::move(calls)),
      matcher_(source_, self_) {}

Inbox::~Inbox() = default;

std::shared_ptr<WorkState> Inbox::post(const MessageHeader& wanted, void* data, uint64_t number) {
  const MessageMatcher::Slot slot{wanted, static_cast<std::byte*>(data), Deadline::after(timeout_)};
  auto recv = std::make_shared<Recv>(shared_from_this(), slot, number);
  std::optional<Error> misfit;
  {
    MutexLock lock(mutex_);
    recv->slot.order = ++posted_;
    const bool filled = matcher_.post(&recv->slot);
    if (!filled) misfit = find_misfit(&recv->slot);
    if (!misfit) {
      recvs_.emplace(posted_, recv);
      if (filled) {
        finish(&recv->slot, 0, std::nullopt);
      } else if (!thread_.joinable()) {
        thread_ = start_thread_with_signals_blocked([this] { run(); });
      } else if (dozes_ && waiting_ == 0) {
        work_.notify_one();
      }
    }
  }
  if (misfit) refuse(*recv, *misfit);
  return recv;
}

/// The error of a received message that does not fit `slot`, which has just been posted; `slot` is
/// then withdrawn.
std::optional<Error> Inbox::find_misfit(const MessageMatcher::Slot* slot) {
  try {
    matcher_.look();
  } catch (const Error& error) {
    matcher_.withdraw(slot);
    return error;
  }
  return std::nullopt;
}

/// Ends it at once: one thread may be in a read, another in a recv, until the timeout.
void Inbox::refuse(Recv& recv, const Error& why) {
  CarriedError failure{why.code(), why.what()};
  try {
    Refusal refusal(recv.slot.wanted, why);
    calls_.read(refusal, Waiting{recv.slot.deadline, false});
  } catch (const Error& error) {
    failure = {error.code(), error.what()};
  } catch (const std::exception& error) {
    failure = {ErrorCode::kInternal, error.what()};
  }
  calls_.ended(recv.number, 1);
  recv.finish(std::move(failure));
}

void Inbox::close() {
  {
    MutexLock lock(mutex_);
    closing_ = true;
    work_.notify_one();
    const auto silent_until = Deadline::after(kSilentFor);
    for (bool said = false; !said && !recvs_.empty();) {
      changed_.wait_for(lock, 10ms);
      if (!silent_until.passed() || recvs_.empty()) continue;
      said = true;
      log_info(fmt::format("{} ends a group and waits for {} to send {}", self_, source_,
                           describe(recvs_.begin()->second->slot.wanted)));
    }
    work_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
}

void Inbox::look() {
  MutexLock lock(mutex_);
  matcher_.look();
}

MessageSink::Destination Inbox::begin(const MessageHeader& header) {
  MutexLock lock(mutex_);
  return matcher_.begin(header, reading_until_);
}

void Inbox::end() {
  MutexLock lock(mutex_);
  if (const auto* slot = matcher_.end()) finish(slot, 0, std::nullopt);
}

std::string Inbox::wanted() {
  MutexLock lock(mutex_);
  const MessageHeader* const one = matcher_.wanted();
  return one == nullptr ? "nothing" : describe(*one);
}

void Inbox::await(const Recv& own) {
  if (own.done()) return;
  calls_.awaited(own.number);
  MutexLock lock(mutex_);
  ++waiting_;
  while (!own.done()) {
    if (own.is_late) {  // another thread reports the reason
      --waiting_;
      changed_.wait(lock);
      ++waiting_;
      continue;
    }
    if (!reading_) {
      read_one(lock, own.slot.deadline, true);
    } else if (own.slot.deadline.passed()) {
      changed_.wait(lock);  // its message is arriving
    } else {
      changed_.wait_until(lock, own.slot.deadline.when());
    }
    --waiting_;
    end_late(lock);
    ++waiting_;
  }
  --waiting_;
  if (dozes_ && waiting_ == 0 && !recvs_.empty()) work_.notify_one();
}

void Inbox::run() {
  MutexLock lock(mutex_);
  uint64_t seen = 0;
  auto pause = kTick;
  while (!closing_ || !recvs_.empty() || ending_ > 0) {
    pause = seen == posted_ ? rest(pause) : kTick;
    seen = posted_;
    dozes_ = pause > kTick;
    if (recvs_.empty() && pause > kDoze && !closing_) {
      work_.wait(lock);
    } else {
      work_.wait_for(lock, pause);
    }
    const bool woken = std::exchange(dozes_, false) && seen != posted_;
    if (woken) continue;  // a thread that has posted may be about to read
    end_late(lock);
    while (!recvs_.empty() && !reading_ && waiting_ == 0) {
      read_one(lock, recvs_.begin()->second->slot.deadline, false);
      end_late(lock);
    }
  }
}

/// The pause after one of `last` in which nothing was posted. More than kDoze: until a recv is
/// posted.
std::chrono::milliseconds Inbox::rest(std::chrono::milliseconds last) const {
  if (recvs_.empty()) return std::min(2 * last, 2 * kDoze);
  // Another thread reads; recvs that wait too long must end in time.
  const auto left = recvs_.begin()->second->slot.deadline.left();
  return std::clamp(left, kTick, std::min(2 * last, kDoze));
}

/// Reads one message, or until `deadline`, without the lock.
void Inbox::read_one(MutexLock& lock, Deadline deadline,
                     bool spin) LOCKSTEP_NO_THREAD_SAFETY_ANALYSIS {
  reading_ = true;
  reading_until_ = deadline;
  lock.unlock();
  std::optional<CarriedError> failure;
  try {
    calls_.read(*this, Waiting{deadline, spin});
  } catch (const Error& error) {
    failure = CarriedError{error.code(), error.what()};
  } catch (const std::exception& error) {
    failure = CarriedError{ErrorCode::kInternal, error.what()};
  }
  lock.lock();
  reading_ = false;
  while (failure && !recvs_.empty()) finish(&recvs_.begin()->second->slot, 1, failure);
  changed_.notify_all();
}

void Inbox::end_late(MutexLock& lock) {
  std::vector<std::shared_ptr<Recv>> late;
  for (auto next = recvs_.begin(); next != recvs_.end() && next->second->slot.deadline.passed();) {
    const auto at = next++;
    if (!matcher_.withdraw(&at->second->slot)) continue;  // its message is arriving
    at->second->is_late = true;
    late.push_back(std::move(at->second));
    recvs_.erase(at);
  }
  if (late.empty()) return;
  ++ending_;
  find_reason(lock);
  --ending_;
  for (const auto& recv : late) {
    calls_.ended(recv->number, 2);
    recv->finish(CarriedError{
        ErrorCode::kTimeout,
        fmt::format("{}{}recv of {}, from {} on {}: timeout after {} s waiting for {}, which sent "
                    "no message with this tag{}",
                    reason_, reason_.empty() ? "" : "; ", describe(recv->slot.wanted), source_,
                    self_, std::chrono::duration<double>(timeout_).count(), source_,
                    matcher_.told_kept())});
  }
  changed_.notify_all();
}

/// Many late recvs end one after the other: other hosts are queried once.
void Inbox::find_reason(MutexLock& lock) LOCKSTEP_NO_THREAD_SAFETY_ANALYSIS {
  if (!reason_until_.passed()) return;
  lock.unlock();
  std::string reason = calls_.why_held_up();
  lock.lock();
  reason_ = std::move(reason);
  reason_until_ = Deadline::after(kOneReason);
}

void Inbox::finish(const MessageMatcher::Slot* slot, uint8_t failed,
                   std::optional<CarriedError> failure) {
  const auto recv = recvs_.extract(slot->order).mapped();
  matcher_.withdraw(&recv->slot);
  calls_.ended(recv->number, failed);
  recv->finish(std::move(failure));
}

}  // namespace lockstep::inline internal
