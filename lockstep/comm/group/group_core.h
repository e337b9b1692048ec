#pragma once
// The part of a process group that does not depend on its back end: threads, order, and the memory
// of failure.

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/base/in_child.h"
#include "lockstep/base/mutex.h"
#include "lockstep/comm/creation/rank_groups.h"
#include "lockstep/comm/device_order.h"
#include "lockstep/comm/group_impl.h"
#include "lockstep/comm/inbox.h"
#include "lockstep/comm/work_queue.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {

/// The state that copies of a ProcessGroup share. Collectives run one after another. Asynchronous
/// and large ones run in the group's thread; small blocking ones run in the caller's once that
/// thread is idle. A send that needs no wait runs in the caller's thread. For other sends each peer
/// has a thread, started on first use. For recvs see inbox.h.
class GroupCore : private RankGroups::Member {
 public:
  GroupCore(GroupSpec spec, std::string backend, std::unique_ptr<GroupImpl> impl);
  ~GroupCore() override { destroy(); }
  GroupCore(const GroupCore&) = delete;
  GroupCore& operator=(const GroupCore&) = delete;

  /// A blocking call of at most this many bytes runs in the caller's thread. A handover costs some
  /// 20 us, which is negligible above this size.
  static constexpr int64_t kInlineBytes = 1 << 20;

  const GroupSpec& spec() const { return spec_; }
  const std::string& backend() const { return backend_; }
  const std::string& device() const { return device_; }

  /// Runs `body(impl, waiting)` as the collective `call` of `bytes`, called at `site`. Throws if
  /// the group has failed before, and kInvalidArgument while another thread is in a blocking call.
  /// An exception of `body` goes to Work::wait(). `call` must stay valid as long as the program
  /// runs.
  template <class Body>
  Work collective(const char* call, int64_t bytes, const CollectiveOptions& options, CallSite site,
                  Body body) {
    throw_if_failed();
    const bool async = options.async;
    Deadline::Clock::time_point now;
    Waiting waiting{Deadline::after(spec_.timeout, now), !async, site, options.on_device,
                    options.order};
    if (async || bytes > kInlineBytes) {
      if (used_by_.load(std::memory_order_acquire) != nullptr) throw_in_use(call, site);
      return Work(collectives_->push(
          [this, waiting, body = std::move(body)]() mutable { guarded(body, waiting); }));
    }
    const InUse in_use(*this, call, site);
    if (collectives_->idle()) {
      waiting.began = now;
    } else {
      collectives_->wait_idle();
    }
    try {
      guarded(body, waiting);
      return Work();
    } catch (const Error& error) {
      return failed_work({error.code(), error.what()});
    }
  }

  /// The same, run at once in this thread; throws the exceptions of `body`.
  template <class Body>
  void blocking(const char* call, CallSite site, Body body) {
    throw_if_failed();
    const InUse in_use(*this, call, site);
    collectives_->wait_idle();
    throw_if_failed();
    guarded(body, Waiting{Deadline::after(spec_.timeout), true, site});
  }

  /// See ProcessGroup. A call that times out before it has begun fails alone; the group continues.
  Work send(const void* data, const MessageHeader& message, int destination, CallSite site);
  Work recv(void* data, const MessageHeader& wanted, int source, CallSite site);

  /// See ProcessGroup::destroy().
  void destroy();
  /// Throws kInvalidArgument after destroy(), and in a forked child.
  void check_not_destroyed();

  /// Number of earlier sub-groups of exactly these ranks: makes the name unique.
  int count_subgroup(const std::vector<int>& ranks);

 private:
  /// Marks that a thread runs a collective itself. Two such threads would each wait for data that
  /// the other has taken, and ranks would disagree on the order. A thread that waits inside is
  /// always detected. Two that enter within the same nanoseconds may not be: the atomic exchange
  /// that would detect them costs each call 10 ns.
  class InUse {
   public:
    InUse(GroupCore& core, const char* call, CallSite site) : core_(core) {
      if (core.used_by_.load(std::memory_order_acquire) != nullptr) core.throw_in_use(call, site);
      core.used_at_file_.store(site.file, std::memory_order_relaxed);
      core.used_at_line_.store(site.line, std::memory_order_relaxed);
      core.used_by_.store(call, std::memory_order_release);
    }
    ~InUse() { core_.used_by_.store(nullptr, std::memory_order_release); }
    InUse(const InUse&) = delete;
    InUse& operator=(const InUse&) = delete;

   private:
    GroupCore& core_;
  };
  [[noreturn]] void throw_in_use(const char* call, CallSite site) const;

  template <class Body>
  void guarded(Body& body, const Waiting& waiting) {
    try {
      throw_if_failed();  // calls queued before the failure do not start any more
      if (waiting.order) waiting.order->before(waiting.deadline);
      body(*impl_, waiting);
      if (waiting.order) waiting.order->after();
    } catch (const Error& error) {
      remember(error);
    } catch (const std::exception& error) {
      remember(Error(ErrorCode::kInternal, error.what()));
    }
  }
  void throw_if_failed();
  /// Throws the first fatal error of the group: `error`, if there was none.
  [[noreturn]] void remember(const Error& error);
  static Work failed_work(CarriedError failure);
  void send_or_throw(const void* data, const MessageHeader& message, int destination,
                     const Waiting& waiting);
  std::shared_ptr<Inbox> make_inbox(int source);
  void give_up(const Error& error, Deadline deadline) noexcept override;

  /// True in a process forked from the group's process.
  bool in_child() const { return fork_generation() != generation_; }
  void leave_to_parent();

  GroupSpec spec_;
  const uint32_t generation_ = fork_generation();
  const std::string backend_;
  const std::string device_;
  std::unique_ptr<GroupImpl> impl_;             // outlives the threads below; null after destroy()
  std::atomic<const char*> used_by_ = nullptr;  // call of InUse, if any; the next two: its site
  std::atomic<const char*> used_at_file_ = nullptr;
  std::atomic<uint32_t> used_at_line_ = 0;
  std::atomic<bool> given_up_ = false;    // with another group, whose loss all ranks know
  Mutex failing_;                         // held by the thread that determines the failure
  std::atomic<bool> has_failed_ = false;  // set after failure_
  Mutex mutex_;
  std::optional<CarriedError> failure_ LOCKSTEP_GUARDED_BY(mutex_);
  std::map<std::vector<int>, int> subgroups_ LOCKSTEP_GUARDED_BY(mutex_);
  std::map<int, std::unique_ptr<WorkQueue>> outboxes_ LOCKSTEP_GUARDED_BY(mutex_);  // by peer
  std::map<int, std::shared_ptr<Inbox>> inboxes_ LOCKSTEP_GUARDED_BY(mutex_);       // by peer
  std::unique_ptr<WorkQueue> collectives_ = std::make_unique<WorkQueue>();
};

}  // namespace lockstep::inline internal
