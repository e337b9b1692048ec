#pragma once
// How processes of one host reach each other's descriptors: by pid through /proc, which asks
// nothing of the owner, or from the owner's own hand.
//
// /proc serves where both number processes alike and the kernel lets one look into the other. It
// does not in containers of their own user or pid namespace, nor in a process with file
// capabilities or a changed user. So a process with groups has a door: a thread that hands
// descriptors of Lockstep's memory and flight recorders, and of no other file, to processes of this
// user, over a unix socket of the abstract namespace. That is one for each network namespace: a
// host, here.

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "lockstep/base/in_child.h"
#include "lockstep/base/unique_fd.h"

namespace lockstep::shm {

/// A descriptor of some process of this host. Has a place in shared memory.
struct RemoteFd {
  int64_t pid = 0;
  uint64_t pid_space = 0;  ///< As lockstep::pid_space() of its owner.
  uint64_t door = 0;       ///< A random word, the name of its owner's door.
  int32_t fd = -1;
};

/// Open while it lives.
class Door {
 public:
  /// Errors: kIo.
  Door();
  ~Door();
  Door(const Door&) = delete;
  Door& operator=(const Door&) = delete;

  uint64_t word() const { return word_; }
  /// A forked child has its parent's object, and not the thread.
  bool is_of_this_process() const { return generation_ == fork_generation(); }

 private:
  const uint32_t generation_ = fork_generation();
  const uint64_t word_;
  const UniqueFd listener_;
  const NotInChild not_in_child_;
  std::thread thread_;
};

/// This process's door: one for all that hold it. Null where it cannot be had; others then take
/// /proc, or do without shared memory.
std::shared_ptr<const Door> open_door();

/// `fd`, one of this process, for others to open: at the door too, if somebody holds it open.
RemoteFd to_remote(int fd);

/// "PID PID_SPACE DOOR FD", for the store.
std::string to_string(const RemoteFd& remote);
std::optional<RemoteFd> parse_remote_fd(const std::string& text);

/// Opens it, with `flags` where /proc serves, else with its owner's access. Nothing but memory and
/// flight recorders of Lockstep is opened. Empty, and errno says why, where it cannot be had: EPERM
/// where it is another user's, ECONNREFUSED where there is no such door. Takes at most ten seconds,
/// and those only if the owner stands still.
UniqueFd open_remote(const RemoteFd& remote, int flags);

}  // namespace lockstep::shm
