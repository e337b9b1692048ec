#pragma once
// The TCP store's server: one epoll loop that drives StoreState. Everything but stop() runs in the
// thread that calls run().

#include <sys/epoll.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "lockstep/base/in_child.h"
#include "lockstep/base/mutex.h"
#include "lockstep/base/unique_fd.h"
#include "lockstep/deadline.h"
#include "lockstep/store/heartbeats.h"
#include "lockstep/store/store_state.h"
#include "lockstep/store/tcp/acceptor.h"
#include "lockstep/store/tcp/call_slot.h"
#include "lockstep/store/tcp/server_connection.h"
#include "lockstep/store/tcp/spinning.h"
#include "lockstep/store/tcp/strangers.h"

namespace lockstep::inline internal {

class StoreServerLoop {
 public:
  /// `own_user_only`: see TcpStoreServerOptions. Errors: kUnavailable (it is set, and there is no
  /// shortcut).
  StoreServerLoop(UniqueFd listener, std::string secret, Wire wire,
                  std::chrono::milliseconds handshake_limit, bool own_user_only,
                  std::function<void(const std::string& why)> on_full);

  /// Serves until stop().
  void run();
  /// From any thread.
  void stop();
  /// From any thread: waits until no client is connected. False if the deadline passes first.
  bool wait_until_unused(Deadline deadline);

 private:
  std::optional<std::chrono::milliseconds> time_to_sleep() const;
  int wait_for_events(std::vector<epoll_event>& events,
                      std::optional<std::chrono::milliseconds> sleep);

  void accept_clients(const UniqueFd& listener);
  bool may_come_in(const UniqueFd& listener, const UniqueFd& fd);
  void add_client(UniqueFd fd);
  void report_full();

  void report_refused(const ServerConnection& client, const std::string& what);
  void serve(ServerConnection& client, uint32_t events);
  void serve_call_slots();
  ServerConnection::OnRequest handler_of(ServerConnection& client);
  template <class Work>
  void attend(ServerConnection& client, const Work& work);
  void handle(ServerConnection& client, RequestFrame frame);
  void answer(const StoreAnswer& answer);
  void answer(const std::vector<StoreAnswer>& answers);
  void update_interest(ServerConnection& client);

  void drop(uint64_t id);
  void count_clients();
  void drop_strangers();
  void drop_doomed();
  void drop_silent();

  const std::string secret_;
  const Wire wire_;
  const bool own_user_only_;
  std::function<void(const std::string& why)> on_full_;  ///< Empty once it has been called.
  UniqueFd listener_;
  UniqueFd shortcut_;  ///< Listens for clients of this host; empty if unavailable.
  NotInChild listener_not_in_child_;
  std::optional<NotInChild> shortcut_not_in_child_;
  UniqueFd epoll_;
  UniqueFd wake_;  ///< eventfd; stop() writes it.
  Spinning spinning_;
  StoreState state_;
  ListeningClock clock_;
  ListeningClock::Time now_;  ///< By clock_, of this turn.
  Heartbeats heartbeats_;     ///< Of clients with leased keys.
  uint64_t next_id_;
  std::unordered_map<uint64_t, std::unique_ptr<ServerConnection>> clients_;

  Strangers strangers_;  ///< Clients that have not proved the secret yet.
  Refusals refusals_;
  CallSlots call_slots_;
  std::vector<uint64_t> doomed_;  ///< Found broken while another was being served.
  Mutex count_mutex_;
  CondVar count_changed_;
  size_t num_clients_ LOCKSTEP_GUARDED_BY(count_mutex_) = 0;  ///< clients_.size(), for others.
  Acceptor acceptor_{epoll_.get(), strangers_};
  std::optional<Deadline> report_full_again_;  ///< The next warning comes no earlier.
};

}  // namespace lockstep::inline internal
