#include "lockstep/store/memory/memory_store.h"

#include "lockstep/base/mutex.h"
#include "lockstep/error.h"
#include "lockstep/store/request_store.h"
#include "lockstep/store/store_state.h"

namespace lockstep::inline internal {
namespace {

/// Shared by all clients.
class MemoryServer {
 public:
  uint64_t new_client() {
    const MutexLock lock(mutex_);
    return ++last_client_;
  }

  StoreReply call(uint64_t client, StoreRequest request, Deadline deadline) {
    MutexLock lock(mutex_);
    Waiting own;
    const StoreTicket ticket{client, ++last_request_};
    waiting_[ticket.request] = &own;
    deliver(state_.submit(ticket, std::move(request)));
    while (!own.reply && !deadline.passed()) own.answered.wait_until(lock, deadline.when());
    if (!own.reply) deliver({ticket, state_.cancel(ticket).value()});
    return std::move(*own.reply);
  }

  void drop(uint64_t client) {
    const MutexLock lock(mutex_);
    deliver(state_.drop_client(client));
  }

 private:
  /// A waiting thread; it lives on that thread's stack and is registered until its answer.
  struct Waiting {
    std::optional<StoreReply> reply;
    CondVar answered;
  };

  void deliver(std::vector<StoreAnswer> answers) LOCKSTEP_REQUIRES(mutex_) {
    for (auto& answer : answers) deliver(std::move(answer));
  }
  void deliver(StoreAnswer answer) LOCKSTEP_REQUIRES(mutex_) {
    Waiting& waiting = *waiting_.extract(answer.to.request).mapped();
    waiting.reply = std::move(answer.reply);
    waiting.answered.notify_one();
  }

  Mutex mutex_;
  StoreState state_ LOCKSTEP_GUARDED_BY(mutex_);
  uint64_t last_client_ LOCKSTEP_GUARDED_BY(mutex_) = 0;
  uint64_t last_request_ LOCKSTEP_GUARDED_BY(mutex_) = 0;
  std::unordered_map<uint64_t, Waiting*> waiting_ LOCKSTEP_GUARDED_BY(mutex_);
};

class MemoryStore final : public RequestStore {
 public:
  explicit MemoryStore(std::shared_ptr<MemoryServer> server)
      : server_(std::move(server)), id_(server_->new_client()) {}
  ~MemoryStore() override { server_->drop(id_); }
  MemoryStore(const MemoryStore&) = delete;
  MemoryStore& operator=(const MemoryStore&) = delete;

  const std::shared_ptr<MemoryServer>& server() const { return server_; }

 private:
  StoreReply call(StoreRequest request, Deadline deadline) override {
    return server_->call(id_, std::move(request), deadline);
  }
  std::string name() const override { return "store in memory"; }

  std::shared_ptr<MemoryServer> server_;
  uint64_t id_;
};

}  // namespace

std::shared_ptr<Store> make_memory_store() {
  return std::make_shared<MemoryStore>(std::make_shared<MemoryServer>());
}

std::shared_ptr<Store> make_memory_client(const std::shared_ptr<Store>& store) {
  const auto* known = dynamic_cast<const MemoryStore*>(store.get());
  if (known == nullptr) {
    throw Error(ErrorCode::kInvalidArgument,
                "make_memory_client: the store is not one that make_memory_store() made");
  }
  return std::make_shared<MemoryStore>(known->server());
}

}  // namespace lockstep::inline internal
