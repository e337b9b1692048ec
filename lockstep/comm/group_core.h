#pragma once
// What every process group does whatever its back end: threads, order, and the memory of failure.

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/base/mutex.h"
#include "lockstep/comm/group_impl.h"
#include "lockstep/comm/work_queue.h"

namespace lockstep {

/// The state that copies of a ProcessGroup share. Collectives run one after another: asynchronous
/// and large ones in the group's thread, small blocking ones in the caller's once that thread is
/// idle. Each peer and direction has a thread for send or recv, started when first used.
class GroupCore {
 public:
  GroupCore(GroupSpec spec, std::string backend, std::unique_ptr<GroupImpl> impl);

  /// A blocking call of at most this many bytes runs in the caller's thread: handing it over costs
  /// some 20 us, which this size no longer notices.
  static constexpr int64_t kInlineBytes = 1 << 20;

  const GroupSpec& spec() const { return spec_; }
  const std::string& backend() const { return backend_; }
  const std::string& device() const { return device_; }

  /// Runs `body(impl, waiting)` as a collective of `bytes`, called at `site`. Throws if the group
  /// has failed before; what `body` throws goes to Work::wait().
  template <class Body>
  Work collective(int64_t bytes, const CollectiveOptions& options, CallSite site, Body body) {
    throw_if_failed();
    const bool async = options.async;
    const Waiting waiting{Deadline::after(spec_.timeout), !async, site, options.on_device};
    if (async || bytes > kInlineBytes) {
      return Work(collectives_->push(
          [this, waiting, body = std::move(body)]() mutable { guarded(body, waiting); }));
    }
    collectives_->wait_idle();
    try {
      throw_if_failed();
      guarded(body, waiting);
      return Work();
    } catch (const Error& error) {
      return failed_work({error.code(), error.what()});
    }
  }

  /// Runs `body` at once, in this thread, and throws what it throws.
  template <class Body>
  void blocking(CallSite site, Body body) {
    throw_if_failed();
    collectives_->wait_idle();
    throw_if_failed();
    guarded(body, Waiting{Deadline::after(spec_.timeout), true, site});
  }

  enum class Direction { kSend, kRecv };
  Work point_to_point(Direction direction, int peer, CallSite site,
                      std::function<void(GroupImpl&, const Waiting&)> body);

  /// See ProcessGroup::destroy().
  void destroy();
  /// Throws kInvalidArgument after destroy().
  void check_not_destroyed();

  /// How often a sub-group of exactly these ranks was made before: makes its name unique.
  int count_subgroup(const std::vector<int>& ranks);

 private:
  template <class Body>
  void guarded(Body& body, const Waiting& waiting) {
    try {
      throw_if_failed();  // what was queued before the failure does not start any more
      body(*impl_, waiting);
    } catch (const Error& error) {
      remember(error);
    } catch (const std::exception& error) {
      remember(Error(ErrorCode::kInternal, error.what()));
    }
  }
  void throw_if_failed();
  /// Throws the first fatal error of the group: `error`, if there was none before.
  [[noreturn]] void remember(const Error& error);
  static Work failed_work(CarriedError failure);

  const GroupSpec spec_;
  const std::string backend_;
  const std::string device_;
  std::unique_ptr<GroupImpl> impl_;  // outlives the threads below; null after destroy()

  std::atomic<bool> has_failed_ = false;  // set after failure_
  Mutex mutex_;
  std::optional<CarriedError> failure_ LOCKSTEP_GUARDED_BY(mutex_);
  std::map<std::vector<int>, int> subgroups_ LOCKSTEP_GUARDED_BY(mutex_);
  std::map<std::pair<Direction, int>, std::unique_ptr<WorkQueue>> peers_
      LOCKSTEP_GUARDED_BY(mutex_);
  std::unique_ptr<WorkQueue> collectives_ = std::make_unique<WorkQueue>();
};

}  // namespace lockstep
