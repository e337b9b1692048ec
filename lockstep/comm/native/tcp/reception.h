#pragma once
// Where a rank's peers on other hosts come: one port for all groups of the rank.
//
// Who connects proves the job secret (base/auth.h, purpose "comm") and says from which rank it
// comes, to which, and for which group. Its connection is kept for that group, which may not be
// made here yet. A foreign connection (port scan, other job, silence) is dropped and delays nobody:
// one thread reads what is there of all of them. It sleeps while nobody comes.

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

/// What the end that connects says after the proof. Ranks are the world's. The other end answers
/// with `to` when it has put the connection where its group finds it.
struct Greeting {
  Digest group{};
  int32_t from = 0;
  int32_t to = 0;
};
static_assert(sizeof(Greeting) == 40);

/// What proves to be of the job.
inline constexpr const char* kPurpose = "comm";

class Reception {
 public:
  /// Listens at `address`, on a port that the kernel chooses. `rank`: this one's, in the world.
  /// Errors: kInvalidArgument (no secret, and not a loopback address), kIo.
  Reception(int rank, const std::string& address, std::string secret);
  ~Reception();
  Reception(const Reception&) = delete;
  Reception& operator=(const Reception&) = delete;

  /// "HOST:PORT".
  const std::string& endpoint() const { return endpoint_; }

  /// The connection that rank `from` made for `group`; none: it has not come yet, or was taken.
  UniqueFd take(const Digest& group, int from);
  /// Readable, for poll(2), when take() has something. Open until that takes it, or forget() or
  /// end(). Errors: kIo.
  int expect(const Digest& group, int from);
  /// What came of `from` for `group` is closed, and not expected any more.
  void forget(const Digest& group, int from);
  /// Nothing is kept for `group` any more: who comes, or came, finds the connection closed.
  void end(const Digest& group);
  /// Why the last stranger was refused: "; last connection refused: WHY", or "".
  std::string last_refusal();

 private:
  struct Guest;
  struct Place {
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
  std::map<std::pair<Digest, int>, Place> places_ LOCKSTEP_GUARDED_BY(mutex_);
  std::set<Digest> ended_ LOCKSTEP_GUARDED_BY(mutex_);
  std::string last_refusal_ LOCKSTEP_GUARDED_BY(mutex_);
  int num_refused_ = 0;  // the thread's
  std::thread thread_;
};

}  // namespace lockstep::tcp
