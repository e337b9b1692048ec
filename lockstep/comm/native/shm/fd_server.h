#pragma once
// Access to other processes' descriptors on one host: through /proc by pid, which does not involve
// the owner, or from the owner itself.
//
// /proc works if both processes share the pid numbering and the kernel allows access. It does not
// work in containers with their own user or pid namespace, nor in a process with file capabilities
// or a changed user. So a process with groups has a descriptor server: a thread that serves
// processes of this user over a unix socket of the abstract namespace. It hands out descriptors of
// Lockstep's memory and flight recorders, and of no other file. The socket exists once per network
// namespace, which is a host here.

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "lockstep/base/in_child.h"
#include "lockstep/base/unique_fd.h"

namespace lockstep::shm {

/// A descriptor of another process on this host. Can be stored in shared memory.
struct RemoteFd {
  int64_t pid = 0;
  uint64_t pid_space = 0;  ///< As lockstep::pid_space() of its owner.
  uint64_t server = 0;     ///< A random number, the name of its owner's descriptor server.
  int32_t fd = -1;
};

/// Accepts requests while it lives.
class FdServer {
 public:
  /// Errors: kIo.
  FdServer();
  ~FdServer();
  FdServer(const FdServer&) = delete;
  FdServer& operator=(const FdServer&) = delete;

  uint64_t word() const { return word_; }
  /// A forked child has a copy of its parent's object, but not the thread.
  bool is_of_this_process() const { return generation_ == fork_generation(); }

 private:
  const uint32_t generation_ = fork_generation();
  const uint64_t word_;
  const UniqueFd listener_;
  const NotInChild not_in_child_;
  std::thread thread_;
};

/// This process's descriptor server: one for all its groups. Null if it cannot be made; others then
/// use /proc, or do without shared memory.
std::shared_ptr<const FdServer> start_fd_server();

/// Describes `fd` of this process so that others can open it; also by its descriptor server, while
/// a group holds that.
RemoteFd to_remote(int fd);

/// "PID PID_SPACE SERVER FD", for the store.
std::string to_string(const RemoteFd& remote);
std::optional<RemoteFd> parse_remote_fd(const std::string& text);

/// Opens it: through /proc with `flags`, else with its owner's access mode. Nothing but memory and
/// flight recorders of Lockstep is opened. Empty if it cannot be opened; errno then has the reason:
/// EPERM if it is another user's, ECONNREFUSED if there is no such server. Takes at most ten
/// seconds, and only if the owner stands still.
UniqueFd open_remote(const RemoteFd& remote, int flags);

}  // namespace lockstep::shm
