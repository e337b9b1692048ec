#pragma once
// The TCP store's client: one connection for all threads of a process, and no thread of its own.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "lockstep/base/in_child.h"
#include "lockstep/base/mutex.h"
#include "lockstep/base/tls.h"
#include "lockstep/base/unique_fd.h"
#include "lockstep/store/request_store.h"
#include "lockstep/store/tcp/protocol.h"
#include "lockstep/store/tcp/spinning.h"

namespace lockstep {

/// Threads that wait for replies take turns at the socket: one of them, the leader, polls and hands
/// out what comes; when its own reply is there it leaves, and another leads. A lone caller thus
/// sends and receives by itself, without a context switch.
class TcpStoreClient final : public RequestStore {
 public:
  /// `fd`: connected and authenticated. `tls`: what authenticate_client() has made.
  TcpStoreClient(UniqueFd fd, std::unique_ptr<TlsSession> tls, std::string server);

 private:
  /// A call in progress; it lives on its thread's stack.
  struct Call {
    std::optional<StoreReply> reply;
    bool may_spin = false;
    uint64_t queued_until = 0;  ///< Its bytes are out when so many have been sent.
    CondVar wake;  ///< Its reply is there, the connection is lost, there is room, or nobody leads.
  };
  class Registration;

  StoreReply call(StoreRequest request, Deadline deadline) override;
  std::string name() const override { return "store at " + server_; }

  std::string send_request(uint64_t id, StoreRequest request, Call& own) LOCKSTEP_REQUIRES(mutex_);
  void wait_for_room(MutexLock& lock, Call& own, Deadline deadline) LOCKSTEP_REQUIRES(mutex_);
  void wait_for_reply(MutexLock& lock, Call& own, Deadline deadline) LOCKSTEP_REQUIRES(mutex_);
  void step(MutexLock& lock, Call& own, Deadline deadline) LOCKSTEP_REQUIRES(mutex_);
  void lead_once(bool may_spin, Deadline deadline) LOCKSTEP_REQUIRES(mutex_);
  void push_once(Deadline deadline) LOCKSTEP_REQUIRES(mutex_);
  void flush_for_all() LOCKSTEP_REQUIRES(mutex_);
  void queue(std::string frame, Call& own) LOCKSTEP_REQUIRES(mutex_);
  void flush() LOCKSTEP_REQUIRES(mutex_);
  void receive() LOCKSTEP_REQUIRES(mutex_);
  void take(std::string_view bytes) LOCKSTEP_REQUIRES(mutex_);
  void deliver() LOCKSTEP_REQUIRES(mutex_);
  void lose(const std::string& why) LOCKSTEP_REQUIRES(mutex_);
  void wake_all() LOCKSTEP_REQUIRES(mutex_);
  void check_connection() const LOCKSTEP_REQUIRES(mutex_);

  const UniqueFd fd_;
  const NotInChild not_in_child_;  ///< Else a helper that a rank forks would hide the rank's death.
  const std::string server_;

  Mutex mutex_;
  const std::unique_ptr<TlsSession> tls_ LOCKSTEP_GUARDED_BY(mutex_);
  uint64_t last_id_ LOCKSTEP_GUARDED_BY(mutex_) = 0;
  std::map<uint64_t, Call*> calls_ LOCKSTEP_GUARDED_BY(mutex_);
  bool led_ LOCKSTEP_GUARDED_BY(mutex_) = false;    ///< A thread polls the socket for replies.
  std::string output_ LOCKSTEP_GUARDED_BY(mutex_);  ///< What the socket did not take yet.
  uint64_t sent_ LOCKSTEP_GUARDED_BY(mutex_) = 0;   ///< Bytes that it did take.
  Spinning spinning_;                               ///< Used by the thread that leads.
  FrameReader reader_ LOCKSTEP_GUARDED_BY(mutex_){kMaxReplyBody};
  /// What became of the connection ("is gone: ..."); empty: nothing.
  std::string lost_ LOCKSTEP_GUARDED_BY(mutex_);
};

}  // namespace lockstep
