#pragma once
// Messages that one rank receives from another: recvs that wait, and the thread that reads for
// them.
//
// At most one thread reads at any time, and it reads for all recvs. A thread in Work::wait() reads
// itself: it may spin, and no thread has to be woken. A thread of the inbox reads if no other has
// done so for a moment (kTick), and ends recvs that wait too long. While recvs are posted it looks
// every kTick, so they need not wake it. Otherwise it looks ever less often (kDoze), and is woken
// to read.

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "lockstep/base/literals.h"
#include "lockstep/base/mutex.h"
#include "lockstep/comm/group_impl.h"
#include "lockstep/comm/message_matcher.h"
#include "lockstep/comm/work_queue.h"

namespace lockstep::inline internal {

class Inbox : public MessageSink, public std::enable_shared_from_this<Inbox> {
 public:
  /// Calls of the group, for one source.
  struct Calls {
    /// As GroupImpl::receive(); throws what ends the group.
    std::function<bool(MessageSink& sink, const Waiting& waiting)> read;
    /// A caller waits for the recv of that number.
    std::function<void(uint64_t number)> awaited;
    /// Called with the number of each ended recv and its result (FlightEvent::failed).
    std::function<void(uint64_t number, uint8_t failed)> ended;
    /// As GroupImpl::why_held_up(). Called without the lock: other recvs continue meanwhile.
    std::function<std::string()> why_held_up;
  };

  Inbox(std::string source, std::string self, std::chrono::milliseconds timeout, Calls calls);
  ~Inbox() override;
  Inbox(const Inbox&) = delete;
  Inbox& operator=(const Inbox&) = delete;

  /// Posts a recv. After the timeout it fails with kTimeout, its memory is not written any more,
  /// and all others continue. A recv that does not fit a message already received ends the group
  /// before this returns.
  std::shared_ptr<WorkState> post(const MessageHeader& wanted, void* data, uint64_t number);
  /// Returns when all recvs have ended, and logs the ones for which it waits; no more may be posted
  /// then.
  void close();

 private:
  static constexpr std::chrono::milliseconds kTick{1};
  static constexpr std::chrono::milliseconds kDoze{50};
  /// Recvs that become late within this time share one reason.
  static constexpr std::chrono::milliseconds kOneReason{1000};
  struct Recv;

  void look() override;
  Destination begin(const MessageHeader& header) override;
  void end() override;
  std::string wanted() override;

  std::optional<Error> find_misfit(const MessageMatcher::Slot* slot) LOCKSTEP_REQUIRES(mutex_);
  void refuse(Recv& recv, const Error& why);
  void await(const Recv& own);
  void run();
  std::chrono::milliseconds rest(std::chrono::milliseconds last) const LOCKSTEP_REQUIRES(mutex_);
  void read_one(MutexLock& lock, Deadline deadline, bool spin) LOCKSTEP_REQUIRES(mutex_);
  void end_late(MutexLock& lock) LOCKSTEP_REQUIRES(mutex_);
  void find_reason(MutexLock& lock) LOCKSTEP_REQUIRES(mutex_);
  /// `failed`: as in FlightEvent.
  void finish(const MessageMatcher::Slot* slot, uint8_t failed, std::optional<CarriedError> failure)
      LOCKSTEP_REQUIRES(mutex_);

  const std::string source_;
  const std::string self_;
  const std::chrono::milliseconds timeout_;
  const Calls calls_;

  Mutex mutex_;
  CondVar changed_;  // signalled when reading_ turns false, and when late recvs have ended
  CondVar work_;     // signalled when the dozing thread has work, or when the inbox closes
  MessageMatcher matcher_ LOCKSTEP_GUARDED_BY(mutex_);
  /// Waiting recvs, in the order of posting, which is that of their deadlines.
  std::map<uint64_t, std::shared_ptr<Recv>> recvs_ LOCKSTEP_GUARDED_BY(mutex_);
  Deadline reading_until_ LOCKSTEP_GUARDED_BY(mutex_) = Deadline::after(0ms);
  bool reading_ LOCKSTEP_GUARDED_BY(mutex_) = false;
  int waiting_ LOCKSTEP_GUARDED_BY(mutex_) = 0;  // threads in await() that may read
  int ending_ LOCKSTEP_GUARDED_BY(mutex_) = 0;   // threads that end late recvs
  std::string reason_ LOCKSTEP_GUARDED_BY(mutex_);
  Deadline reason_until_ LOCKSTEP_GUARDED_BY(mutex_) = Deadline::after(0ms);
  uint64_t posted_ LOCKSTEP_GUARDED_BY(mutex_) = 0;
  bool dozes_ LOCKSTEP_GUARDED_BY(mutex_) = false;
  bool closing_ LOCKSTEP_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace lockstep::inline internal
