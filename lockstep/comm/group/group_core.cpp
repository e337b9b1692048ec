#include "lockstep/comm/group/group_core.h"

#include <fmt/format.h>

#include <string_view>

#include "lockstep/base/literals.h"
#include "lockstep/comm/group_error.h"

namespace lockstep::inline internal {
namespace {

constexpr auto kTellLimit = 1s;
constexpr const char* kDestroyed = "this process group was destroyed";
constexpr const char* kForked =
    "this process was forked from a rank; the rank's process groups are not the child's to use";

/// "barrier at trainer.cpp:88"
std::string told(const char* call, CallSite site) {
  if (site.file == nullptr || site.line == 0) return call;
  const std::string_view file = site.file;
  return fmt::format("{} at {}:{}", call, file.substr(file.rfind('/') + 1), site.line);
}

}  // namespace

GroupCore::GroupCore(GroupSpec spec, std::string backend, std::unique_ptr<GroupImpl> impl)
    : spec_(std::move(spec)),
      backend_(std::move(backend)),
      device_(impl->device()),
      impl_(std::move(impl)) {
  if (spec_.rank_groups) spec_.rank_groups->add(this);
}

void GroupCore::give_up(const Error& error, Deadline deadline) noexcept {
  given_up_ = true;
  impl_->give_up(error, deadline);
}

Work GroupCore::send(const void* data, const MessageHeader& message, int destination,
                     CallSite site) {
  throw_if_failed();
  const Waiting waiting{Deadline::after(spec_.timeout), false, site};
  MutexLock lock(mutex_);
  auto& outbox = outboxes_[destination];
  if (!outbox) outbox = std::make_unique<WorkQueue>();
  if (outbox->idle() && impl_->try_send(data, message, destination, site)) return Work();
  return Work(outbox->push([this, data, message, destination, waiting] {
    send_or_throw(data, message, destination, waiting);
  }));
}

void GroupCore::send_or_throw(const void* data, const MessageHeader& message, int destination,
                              const Waiting& waiting) {
  bool sent = false;
  const auto body = [&](GroupImpl& impl, const Waiting&) {
    sent = impl.send(data, message, destination, waiting);
  };
  guarded(body, waiting);
  if (sent) return;
  const auto peer = spec_.rank_name(destination);
  const auto why = impl_->why_held_up(destination);
  throw Error(ErrorCode::kTimeout,
              fmt::format("{}{}send of {}, to {} on {}: timeout after {} s waiting for {}, which "
                          "does not receive it",
                          why, why.empty() ? "" : "; ", describe(message), peer,
                          spec_.rank_name(spec_.rank),
                          std::chrono::duration<double>(spec_.timeout).count(), peer));
}

Work GroupCore::recv(void* data, const MessageHeader& wanted, int source, CallSite site) {
  throw_if_failed();
  std::shared_ptr<Inbox> inbox;
  {
    MutexLock lock(mutex_);
    auto& made = inboxes_[source];
    if (!made) made = make_inbox(source);
    inbox = made;
  }
  return Work(inbox->post(wanted, data, impl_->recv_begins(wanted, source, site)));
}

std::shared_ptr<Inbox> GroupCore::make_inbox(int source) {
  const auto read = [this, source](MessageSink& sink, const Waiting& waiting) {
    bool came = false;
    const auto body = [&](GroupImpl& impl, const Waiting&) {
      came = impl.receive(source, sink, waiting);
    };
    guarded(body, waiting);
    return came;
  };
  const Inbox::Calls calls{
      read, [this](uint64_t number) { impl_->recv_awaited(number); },
      [this](uint64_t number, uint8_t failed) { impl_->recv_ended(number, failed); },
      [this, source] { return impl_->why_held_up(source); }};
  return std::make_shared<Inbox>(spec_.rank_name(source), spec_.rank_name(spec_.rank),
                                 spec_.timeout, calls);
}

/// The threads do not exist in the child, and their state belongs to the parent: nothing of it is
/// touched.
void GroupCore::leave_to_parent() LOCKSTEP_NO_THREAD_SAFETY_ANALYSIS {
  lockstep::leave_to_parent(impl_);
  lockstep::leave_to_parent(collectives_);
  lockstep::leave_to_parent(outboxes_);
  lockstep::leave_to_parent(inboxes_);
}

void GroupCore::destroy() {
  if (!impl_) return;
  if (in_child()) return leave_to_parent();
  if (spec_.rank_groups) spec_.rank_groups->remove(this);
  std::map<int, std::unique_ptr<WorkQueue>> outboxes;
  std::map<int, std::shared_ptr<Inbox>> inboxes;
  {
    MutexLock lock(mutex_);
    outboxes.swap(outboxes_);
    inboxes.swap(inboxes_);
  }
  outboxes.clear();  // each first finishes its queued work
  for (const auto& [peer, inbox] : inboxes) inbox->close();
  collectives_.reset();
  impl_.reset();
  spec_.rank_groups.reset();  // and frees its port, if this was the rank's last group
  MutexLock lock(mutex_);
  failure_ = CarriedError{ErrorCode::kInvalidArgument, kDestroyed};
  has_failed_.store(true, std::memory_order_release);
}

void GroupCore::check_not_destroyed() {
  if (in_child()) CarriedError{ErrorCode::kInvalidArgument, kForked}.raise();
  if (!impl_) CarriedError{ErrorCode::kInvalidArgument, kDestroyed}.raise();
}

int GroupCore::count_subgroup(const std::vector<int>& ranks) {
  MutexLock lock(mutex_);
  return subgroups_[ranks]++;
}

void GroupCore::throw_if_failed() {
  if (in_child()) CarriedError{ErrorCode::kInvalidArgument, kForked}.raise();
  if (!has_failed_.load(std::memory_order_acquire)) return;
  MutexLock lock(mutex_);
  failure_->raise();
}

void GroupCore::remember(const Error& error) {
  if (is_harmless(error.code())) CarriedError{error.code(), error.what()}.raise();
  const MutexLock one_at_a_time(failing_);
  throw_if_failed();
  if (spec_.rank_groups) spec_.rank_groups->note_failure();
  // This runs before the program learns of the error: the program may end then, and other ranks
  // could take it for the lost rank. They may still be making this group or a part of it, or be in
  // other groups.
  const bool is_lost = error.code() == ErrorCode::kPeerLost;
  if ((is_lost || error.code() == ErrorCode::kTimeout) && spec_.rank_groups && !given_up_) {
    try_to_agree(spec_, error, Deadline::after(kTellLimit));
    if (is_lost) spec_.rank_groups->lost(this, spec_.world_ranks, error);
  }
  MutexLock lock(mutex_);
  failure_ = CarriedError{error.code(), error.what()};
  has_failed_.store(true, std::memory_order_release);
  failure_->raise();
}

void GroupCore::throw_in_use(const char* call, CallSite site) const {
  const char* const other = used_by_.load(std::memory_order_relaxed);
  const CallSite there{used_at_file_.load(std::memory_order_relaxed),
                       used_at_line_.load(std::memory_order_relaxed)};
  throw Error(
      ErrorCode::kInvalidArgument,
      fmt::format("{}: another thread of {} is in {} of the same group, '{}': one thread at "
                  "a time calls a group's collectives; give each thread a group of its own",
                  told(call, site), spec_.rank_name(spec_.rank),
                  other == nullptr ? "a collective" : told(other, there), spec_.name));
}

Work GroupCore::failed_work(CarriedError failure) {
  auto state = std::make_shared<WorkState>();
  state->finish(std::move(failure));
  return Work(std::move(state));
}

}  // namespace lockstep::inline internal
