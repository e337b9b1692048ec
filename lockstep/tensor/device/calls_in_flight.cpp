#include "lockstep/tensor/device/calls_in_flight.h"

#include <chrono>
#include <string>

#include "lockstep/base/text.h"

namespace lockstep::inline internal {

CallsInFlight::~CallsInFlight() {
  {
    const MutexLock lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void CallsInFlight::add(std::shared_ptr<DeviceEvent> done, Deadline deadline, const Error& error) {
  if (!thread_.joinable()) thread_ = std::thread([this] { watch(); });
  MutexLock lock(mutex_);
  throw_failure();
  calls_.push_back({std::move(done), deadline, error});
  changed_.notify_all();
  while (calls_.size() > kAhead) changed_.wait(lock);
  throw_failure();
}

void CallsInFlight::check() {
  const MutexLock lock(mutex_);
  throw_failure();
}

void CallsInFlight::throw_failure() {
  if (failure_) throw Error(failure_->code(), failure_->what());
}

/// Nothing: it has ended. Else why it is given up.
std::optional<Error> CallsInFlight::outcome(const Call& call) {
  constexpr auto kPause = std::chrono::microseconds(100);
  try {
    while (!call.done->has_passed()) {
      if (call.deadline.passed()) return call.error;
      std::this_thread::sleep_for(kPause);
    }
    return std::nullopt;
  } catch (const std::exception& error) {  // of the device
    return Error(ErrorCode::kIo, std::string(first_line(error.what())));
  }
}

void CallsInFlight::watch() {
  MutexLock lock(mutex_);
  while (true) {
    while (calls_.empty() && !ending_) changed_.wait(lock);
    if (calls_.empty()) return;
    const Call call = calls_.front();
    lock.unlock();
    const auto error = outcome(call);
    if (error) late_();
    lock.lock();
    calls_.pop_front();
    if (error) {
      failure_ = error;
      calls_.clear();
    }
    changed_.notify_all();
    if (error) return;
  }
}

}  // namespace lockstep::inline internal
