#pragma once
// The connections of one rank, and the one primitive that all collectives between hosts use.

#include <sys/uio.h>

#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lockstep/base/mutex.h"
#include "lockstep/base/unique_fd.h"
#include "lockstep/comm/native/tcp/frame.h"
#include "lockstep/comm/native/tcp/peers.h"
#include "lockstep/deadline.h"

namespace lockstep::tcp {

/// The end of a message about a peer whose connection ended.
inline constexpr const char* kMostLikelyFailed =
    ". See that rank's log; it most likely failed first";

/// The condition of a message: something of the same exchange has happened this often. The
/// callbacks below count.
struct Gate {
  const int64_t* count = nullptr;  ///< Null: open.
  int64_t at_least = 0;
  bool open() const { return count == nullptr || *count >= at_least; }
};

/// A message to a peer, sent from its place: no copy in user space.
struct Outbound {
  int peer = -1;
  Frame frame;
  const void* data = nullptr;
  Gate gate = {};                   ///< Open when `data` is valid; later messages wait too.
  std::function<void()> make = {};  ///< If set, called before the first byte is sent; fills `data`.
};

/// A message expected from a peer, received into its final place. `arrived(n)`, if set, is called
/// each time more has come: the first n bytes are there. For an empty message it is called once,
/// with 0. Its work overlaps with the kernel's receiving of the next bytes.
struct Inbound {
  int peer = -1;
  Frame frame;
  void* data = nullptr;
  std::function<void(int64_t bytes)> arrived;
  Gate gate = {};  ///< Open when there is room at `data`; until then the kernel keeps the data.
};

/// Non-blocking connections to some ranks, used by one thread at a time.
class Links {
 public:
  /// `sockets[p]` leads to rank p of the group, for both directions; empty if there is none.
  /// `peers` makes a missing one on demand: for both directions in meet(), else one for each.
  /// `name` turns a group rank into text ("rank 3") for errors. `world_rank`: this rank's, for
  /// fault_hook. A wait also ends as if it had timed out when `alarm()` is true; it is called ten
  /// times per second. It has no descriptor until it has a connection.
  Links(int rank, std::vector<UniqueFd> sockets, std::function<std::string(int)> name,
        int world_rank, std::function<bool()> alarm = {}, const Peers* peers = nullptr);
  ~Links();
  Links(const Links&) = delete;
  Links& operator=(const Links&) = delete;

  /// Makes the missing connections for both directions with `fellows`. Each of them calls it with
  /// this rank, in the same operation `now`. Cost: two round trips per fellow the first time,
  /// nothing afterwards. Errors: those of exchange(), by the same `deadline`.
  void meet(std::span<const int> fellows, const OpHeader& now, Deadline deadline);

  /// Sends and receives all messages at once, in both directions. Returns when the last byte has
  /// arrived and the kernel has the last byte to send. Messages to (from) one peer go (come) in the
  /// order given. It waits for a receiver that reads late; data of a peer that sends early stays in
  /// the kernel's buffers. A wait sleeps in epoll after at most `spin`. Gates must open in the end
  /// if all ranks' messages before the gated ones arrive.
  ///
  /// Before sleeping, it also checks links on which it expects no data. A message of another call
  /// in the place of this one is a mismatch.
  ///
  /// Errors: kMismatch (names both calls), kTimeout (names the peers that sent nothing, or do not
  /// read), kPeerLost (names the peer), kCorrupt. After an error the state of the streams is
  /// unknown: call shut_down() and make a new group.
  void exchange(std::span<const Outbound> out, std::span<const Inbound> in, Deadline deadline,
                std::chrono::microseconds spin = {});

  /// After a kPeerLost of exchange(): that peer. After a kTimeout: the peers that sent the least of
  /// the expected data (others may lack data from these), else the peers that did not read.
  const std::vector<int>& awaited() const { return awaited_; }

  /// Ends all streams, so that every peer that waits for this rank wakes up. Any thread.
  void shut_down() noexcept;

 private:
  struct Link;

  void add(int peer, UniqueFd socket);
  Link& link_to(int peer, const OpHeader& now, Deadline deadline);
  std::unique_ptr<Link> open(int peer, const OpHeader& now, Deadline deadline);
  void claim(Link& link);
  void watch(int fd, uint32_t events, Link& link, size_t source);
  void pump(std::span<const Outbound> out, std::span<const Inbound> in, Deadline deadline,
            std::chrono::microseconds spin);
  bool pump_out(Link& link);
  bool pump_in(Link& link);
  bool read_ahead(Link& link);
  bool read_frame(Link& link);
  Frame parse(const Link& link, const OpHeader& now) const;
  bool read_payload(Link& link);
  bool look(std::span<Link* const> busy, Deadline::Clock::time_point end, Deadline deadline);
  void sleep(const OpHeader& now, Deadline deadline);
  int take_events(int milliseconds);
  void check_unasked(const OpHeader& now);
  void check_shut_down();
  Error did_not_come(const OpHeader& now, const std::string& how) const;
  std::vector<int> furthest_back() const;
  std::vector<int> deaf() const;
  std::string names_of(const std::vector<int>& peers) const;
  [[noreturn]] void throw_timeout();
  [[noreturn]] void throw_lost(const Link& link, const std::string& how);

  int rank_;
  int world_rank_;
  std::function<std::string(int)> name_;
  std::function<bool()> alarm_;
  const Peers* peers_;
  UniqueFd epoll_;  // made with the first connection
  /// By rank; null if there is none. One thread changes and reads it; the mutex protects a
  /// shut_down() in another thread from a change.
  std::vector<std::unique_ptr<Link>> links_;
  Mutex changing_;
  bool is_shut_down_ LOCKSTEP_GUARDED_BY(changing_) = false;
  std::vector<int> awaited_;
};

}  // namespace lockstep::tcp
