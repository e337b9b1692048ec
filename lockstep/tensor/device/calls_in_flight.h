#pragma once
// The watch over calls that a device has not finished yet.

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <thread>

#include "lockstep/base/mutex.h"
#include "lockstep/deadline.h"
#include "lockstep/error.h"
#include "lockstep/tensor/device/stream_order.h"

namespace lockstep::inline internal {

/// A device runs calls after they have returned on the host. A thread, started by the first, sees
/// that each ends before its deadline.
class CallsInFlight {
 public:
  /// `late` is called once, in that thread, when a call has not ended in time. It ends the engine's
  /// calls, so that the device's streams can go on.
  explicit CallsInFlight(std::function<void()> late) : late_(std::move(late)) {}
  /// Waits for the rest, until their deadlines.
  ~CallsInFlight();
  CallsInFlight(const CallsInFlight&) = delete;
  CallsInFlight& operator=(const CallsInFlight&) = delete;

  /// `error` is thrown by all later add() and check(), if the call does not pass `done` in time.
  /// Returns when at most kAhead calls are in flight.
  void add(std::shared_ptr<DeviceEvent> done, Deadline deadline, const Error& error);
  void check();

  /// So many calls may wait on the device: enough that it is never idle between two.
  static constexpr size_t kAhead = 4;

 private:
  struct Call {
    std::shared_ptr<DeviceEvent> done;
    Deadline deadline;
    Error error;
  };
  static std::optional<Error> outcome(const Call& call);
  void watch();
  void throw_failure() LOCKSTEP_REQUIRES(mutex_);

  const std::function<void()> late_;
  Mutex mutex_;
  CondVar changed_;
  std::deque<Call> calls_ LOCKSTEP_GUARDED_BY(mutex_);
  std::optional<Error> failure_ LOCKSTEP_GUARDED_BY(mutex_);
  bool ending_ LOCKSTEP_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace lockstep::inline internal
