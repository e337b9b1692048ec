#pragma once
// The client of a TCP store, once it is connected.

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/in_child.h"
#include "lockstep/base/mutex.h"
#include "lockstep/base/passed_descriptors.h"
#include "lockstep/base/tls.h"
#include "lockstep/base/unique_fd.h"
#include "lockstep/store/request_store.h"
#include "lockstep/store/tcp/call_slot.h"
#include "lockstep/store/tcp/out_buffer.h"
#include "lockstep/store/tcp/protocol.h"
#include "lockstep/store/tcp/spinning.h"

namespace lockstep::inline internal {

/// Threads that wait for replies take turns at the socket. One of them, the leader, polls and
/// distributes replies; after its own reply it leaves, and another leads. A lone caller thus sends
/// and receives by itself, without a context switch.
///
/// On the server's host short calls go through shared memory (call_slot.h), one at a time, once
/// there have been some calls. No call may overtake an earlier one whose caller has given up. So
/// the slot is not used while such a one has no answer. And the server looks into the slot before
/// it serves messages that it has received.
class TcpStoreClient final : public RequestStore {
 public:
  /// `fd`: connected and authenticated. `tls`: as authenticate_client() returned it. `server`: its
  /// address, for errors.
  TcpStoreClient(UniqueFd fd, std::unique_ptr<TlsSession> tls, std::string server);

 private:
  /// A call in progress; it lives on its thread's stack.
  struct Call {
    uint64_t id = 0;
    std::optional<StoreReply> reply;
    bool is_short = false;  ///< It does not wait for others: its answer mostly comes at once.
    bool is_sent = false;
    bool at_slot = false;       ///< Its thread waits at the call slot, not for `wake`.
    uint64_t queued_until = 0;  ///< Its bytes are out once this many have been sent.
    CondVar wake;  ///< Its reply is there, the connection is lost, there is room, or nobody leads.
  };
  class Registration;
  using Received = std::array<char, 1 << 14>;
  /// Requests that an unresponsive server may leave here, before callers wait for room.
  static constexpr size_t kMaxOutput = 2 * kMaxRequestBytes;

  StoreReply call(StoreRequest request, Deadline deadline) override;
  std::string name() const override { return "store at " + server_; }

  std::string send_request(StoreRequest request, Call& own) LOCKSTEP_REQUIRES(mutex_);
  bool put_into_slot(Call& own, std::string_view frame) LOCKSTEP_REQUIRES(mutex_);
  void ask_for_slot(Call& own) LOCKSTEP_REQUIRES(mutex_);
  void take_slot(const StoreReply& reply) LOCKSTEP_REQUIRES(mutex_);
  void wait_at_slot(Call& own, Deadline deadline) LOCKSTEP_REQUIRES(mutex_);
  void empty_slot() LOCKSTEP_REQUIRES(mutex_);
  void wait_for_room(MutexLock& lock, Call& own, Deadline deadline) LOCKSTEP_REQUIRES(mutex_);
  void wait_for_reply(MutexLock& lock, Call& own, Deadline deadline) LOCKSTEP_REQUIRES(mutex_);
  void step(MutexLock& lock, Call& own, Deadline deadline) LOCKSTEP_REQUIRES(mutex_);
  void lead_once(bool is_short, Deadline deadline) LOCKSTEP_REQUIRES(mutex_);
  void lead_in_recv(int wait_ms) LOCKSTEP_REQUIRES(mutex_);
  void push_once(Deadline deadline) LOCKSTEP_REQUIRES(mutex_);
  void flush_for_all() LOCKSTEP_REQUIRES(mutex_);
  void queue(std::string frame, Call& own) LOCKSTEP_REQUIRES(mutex_);
  uint64_t sent() const LOCKSTEP_REQUIRES(mutex_) { return queued_ - output_.size(); }
  void flush() LOCKSTEP_REQUIRES(mutex_);
  void sending_failed() LOCKSTEP_REQUIRES(mutex_);
  void receive() LOCKSTEP_REQUIRES(mutex_);
  bool took(const Received& buffer, ssize_t got) LOCKSTEP_REQUIRES(mutex_);
  ssize_t receive_bytes(Received& buffer, int flags, std::vector<UniqueFd>& passed) const {
    return receive_with_descriptors(fd_.get(), buffer, &passed, flags);
  }
  void take(std::string_view bytes) LOCKSTEP_REQUIRES(mutex_);
  void deliver() LOCKSTEP_REQUIRES(mutex_);
  void deliver(ReplyFrame frame) LOCKSTEP_REQUIRES(mutex_);
  void wake_next_leader() LOCKSTEP_REQUIRES(mutex_);
  void lose(const std::string& why) LOCKSTEP_REQUIRES(mutex_);
  void wake_all() LOCKSTEP_REQUIRES(mutex_);
  void check_connection() const LOCKSTEP_REQUIRES(mutex_);

  const UniqueFd fd_;
  const NotInChild not_in_child_;  ///< Else a rank's forked child would hide its death.
  const std::string server_;

  Mutex mutex_;
  const std::unique_ptr<TlsSession> tls_ LOCKSTEP_GUARDED_BY(mutex_);
  uint64_t last_id_ LOCKSTEP_GUARDED_BY(mutex_) = 0;
  std::map<uint64_t, Call*> calls_ LOCKSTEP_GUARDED_BY(mutex_);
  bool led_ LOCKSTEP_GUARDED_BY(mutex_) = false;     ///< A thread polls the socket for replies.
  OutBuffer output_ LOCKSTEP_GUARDED_BY(mutex_);     ///< Bytes that the socket did not take yet.
  uint64_t queued_ LOCKSTEP_GUARDED_BY(mutex_) = 0;  ///< Bytes sent so far, and output_.
  Spinning spinning_;                                ///< Used by the thread that leads.
  FrameReader reader_ LOCKSTEP_GUARDED_BY(mutex_){kMaxReplyBody};

  int64_t given_up_ LOCKSTEP_GUARDED_BY(mutex_) = 0;  ///< Calls that ended without their answer,
                                                      ///< which is still to come.
  int until_slot_ LOCKSTEP_GUARDED_BY(mutex_);  ///< Calls until a slot is asked for; 0: never.
  uint64_t slot_request_ LOCKSTEP_GUARDED_BY(mutex_) = 0;     ///< That request; 0: none is out.
  std::vector<UniqueFd> passed_ LOCKSTEP_GUARDED_BY(mutex_);  ///< Descriptors from the server.
  std::unique_ptr<ClientCallSlot> call_slot_ LOCKSTEP_GUARDED_BY(mutex_);
  uint64_t in_slot_ LOCKSTEP_GUARDED_BY(mutex_) = 0;  ///< The request in it; 0: none.
  Spinning slot_spinning_ LOCKSTEP_GUARDED_BY(mutex_);
  /// Why the connection was lost ("is gone: ..."); empty: it was not.
  std::string lost_ LOCKSTEP_GUARDED_BY(mutex_);
};

}  // namespace lockstep::inline internal
