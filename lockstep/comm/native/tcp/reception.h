#pragma once
// Accepts connections of a rank's peers on other hosts: one port for all groups of the rank.
//
// A client proves the job secret (base/auth.h, purpose "comm") and sends its rank, the destination
// rank, and the group. Its connection is kept for that group, which may not exist here yet. A
// foreign connection (port scan, other job, silence) is dropped and delays no other: one thread
// reads the available data of all of them. It sleeps while no data comes.

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "lockstep/base/auth.h"
#include "lockstep/base/in_child.h"
#include "lockstep/base/mutex.h"
#include "lockstep/base/unique_fd.h"

namespace lockstep::tcp {

/// The message of the connecting end after the proof. Rank numbers are the world's. The other end
/// answers with `to` once the group can find the connection.
struct Greeting {
  Digest group{};
  int32_t from = 0;
  int32_t to = 0;
};
static_assert(sizeof(Greeting) == 40);

/// The purpose of the proof of the job secret.
inline constexpr const char* kPurpose = "comm";

class Reception {
 public:
  /// Listens where others reach it at `address` (see listen_host()), on a port chosen by the
  /// kernel. `rank`: this one's, in the world. Errors: kInvalidArgument (no secret, and not a
  /// loopback address), kIo.
  Reception(int rank, const std::string& address, std::string secret);
  ~Reception();
  Reception(const Reception&) = delete;
  Reception& operator=(const Reception&) = delete;

  /// "HOST:PORT".
  const std::string& endpoint() const { return endpoint_; }

  /// The connection that rank `from` made for `group`; none: it has not arrived, or was taken.
  UniqueFd take(const Digest& group, int from);
  /// A descriptor that is readable, for poll(2), when take() has a connection. Open until take()
  /// returns it, or until forget() or end(). Errors: kIo.
  int expect(const Digest& group, int from);
  /// Closes a connection of `from` for `group`, and no longer expects one.
  void forget(const Digest& group, int from);
  /// No connection is kept for `group` any more: earlier and later clients find it closed.
  void end(const Digest& group);
  /// The reason why the last stranger was refused: "; last connection refused: WHY", or "".
  std::string last_refusal();

 private:
  struct Guest;
  struct Slot {
    UniqueFd socket;
    std::unique_ptr<NotInChild> not_in_child;
    UniqueFd arrived;
  };

  void serve();
  void accept_all(std::vector<Guest>& guests);
  void cannot_accept(std::vector<Guest>& guests);
  bool stays(Guest& guest);
  void admit(Guest& guest);
  void refuse(const Error& error);

  const int rank_;
  const std::string secret_;
  const uint32_t generation_ = fork_generation();
  UniqueFd listener_;
  std::string endpoint_;
  UniqueFd stop_;
  std::unique_ptr<NotInChild> not_in_child_;
  Mutex mutex_;
  std::map<std::pair<Digest, int>, Slot> slots_ LOCKSTEP_GUARDED_BY(mutex_);
  std::set<Digest> ended_ LOCKSTEP_GUARDED_BY(mutex_);
  std::string last_refusal_ LOCKSTEP_GUARDED_BY(mutex_);
  int num_refused_ = 0;  // used by the thread only
  std::thread thread_;
};

}  // namespace lockstep::tcp
