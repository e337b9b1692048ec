#include "lockstep/comm/group_core.h"

#include "lockstep/comm/verdict.h"

namespace lockstep {
namespace {

constexpr const char* kDestroyed = "this process group was destroyed";

}  // namespace

GroupCore::GroupCore(GroupSpec spec, std::string backend, std::unique_ptr<GroupImpl> impl)
    : spec_(std::move(spec)),
      backend_(std::move(backend)),
      device_(impl->device()),
      impl_(std::move(impl)) {}

Work GroupCore::point_to_point(Direction direction, int peer, CallSite site,
                               std::function<void(GroupImpl&, const Waiting&)> body) {
  throw_if_failed();
  const Waiting waiting{Deadline::after(spec_.timeout), false, site};
  MutexLock lock(mutex_);
  auto& queue = peers_[{direction, peer}];
  if (!queue) queue = std::make_unique<WorkQueue>();
  return Work(queue->push([this, waiting, body]() mutable { guarded(body, waiting); }));
}

void GroupCore::destroy() {
  if (!impl_) return;
  std::map<std::pair<Direction, int>, std::unique_ptr<WorkQueue>> peers;
  {
    MutexLock lock(mutex_);
    peers = std::move(peers_);
    peers_.clear();
  }
  peers.clear();  // each does what it was given first
  collectives_.reset();
  impl_.reset();
  MutexLock lock(mutex_);
  failure_ = CarriedError{ErrorCode::kInvalidArgument, kDestroyed};
  has_failed_.store(true, std::memory_order_release);
}

void GroupCore::check_not_destroyed() {
  if (!impl_) CarriedError{ErrorCode::kInvalidArgument, kDestroyed}.raise();
}

int GroupCore::count_subgroup(const std::vector<int>& ranks) {
  MutexLock lock(mutex_);
  return subgroups_[ranks]++;
}

void GroupCore::throw_if_failed() {
  if (!has_failed_.load(std::memory_order_acquire)) return;
  MutexLock lock(mutex_);
  failure_->raise();
}

void GroupCore::remember(const Error& error) {
  if (is_harmless(error.code())) CarriedError{error.code(), error.what()}.raise();
  MutexLock lock(mutex_);
  if (!failure_) failure_ = CarriedError{error.code(), error.what()};
  has_failed_.store(true, std::memory_order_release);
  failure_->raise();
}

Work GroupCore::failed_work(CarriedError failure) {
  auto state = std::make_shared<WorkState>();
  state->finish(std::move(failure));
  return Work(std::move(state));
}

}  // namespace lockstep
