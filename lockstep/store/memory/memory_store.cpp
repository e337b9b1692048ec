#include "lockstep/store/memory/memory_store.h"

#include "lockstep/base/mutex.h"
#include "lockstep/store/request_store.h"
#include "lockstep/store/store_state.h"

namespace lockstep {
namespace {

class MemoryStore final : public RequestStore {
 private:
  /// A thread that waits; it lives on that thread's stack and is filed until it is answered.
  struct Waiting {
    std::optional<StoreReply> reply;
    CondVar answered;
  };

  StoreReply call(StoreRequest request, Deadline deadline) override {
    MutexLock lock(mutex_);
    Waiting own;
    const StoreTicket ticket{0, ++last_request_};
    waiting_[ticket.request] = &own;
    for (auto& answer : state_.submit(ticket, std::move(request))) deliver(answer);
    while (!own.reply && !deadline.passed()) own.answered.wait_until(lock, deadline.when());
    if (!own.reply) deliver({ticket, state_.cancel(ticket).value()});
    return std::move(*own.reply);
  }

  void deliver(StoreAnswer answer) LOCKSTEP_REQUIRES(mutex_) {
    Waiting& waiting = *waiting_.extract(answer.to.request).mapped();
    waiting.reply = std::move(answer.reply);
    waiting.answered.notify_one();
  }

  std::string name() const override { return "store in memory"; }

  Mutex mutex_;
  StoreState state_ LOCKSTEP_GUARDED_BY(mutex_);
  uint64_t last_request_ LOCKSTEP_GUARDED_BY(mutex_) = 0;
  std::unordered_map<uint64_t, Waiting*> waiting_ LOCKSTEP_GUARDED_BY(mutex_);
};

}  // namespace

std::shared_ptr<Store> make_memory_store() {
  return std::make_shared<MemoryStore>();
}

}  // namespace lockstep
