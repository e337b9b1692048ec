#pragma once
// The descriptors (files, sockets, shared memory) of this process: their limit, their names, and
// their end before exec.

#include <sys/resource.h>

#include <optional>
#include <string>

namespace lockstep::inline internal {

/// Raises this process's soft limit to the hard one. True if that is more than before. Any thread.
/// Programs started by a launcher begin with the user's limit (UsersDescriptorLimit): some work
/// badly with a large one.
bool raise_soft_descriptor_limit();

/// Whether a server may open one more for a client: some are kept for this process's other work.
/// Raises the soft limit if it has to. `open`: any open descriptor.
bool has_descriptor_for_client(int open);

/// After EMFILE: "40 of limit 40 are open: raise it, ulimit -n"; after ENFILE the system's limit;
/// else "". Does not change errno.
std::string descriptor_shortage(int error_number);

/// The limit before it was raised; nothing if it was not.
std::optional<rlimit> users_descriptor_limit();

/// While it lives, processes that this one starts get the user's limit. Open nothing else
/// meanwhile.
class UsersDescriptorLimit {
 public:
  UsersDescriptorLimit();
  ~UsersDescriptorLimit();
  UsersDescriptorLimit(const UsersDescriptorLimit&) = delete;
  UsersDescriptorLimit& operator=(const UsersDescriptorLimit&) = delete;

 private:
  std::optional<rlimit> raised_;
};

/// Errors: kInvalidArgument if `needed` descriptors and some more exceed the limit. `what` needs
/// them, for the message: "350 ranks".
void check_descriptors(size_t needed, const std::string& what);

/// Closes all descriptors from `lowest` on. Makes only system calls, as a process between fork and
/// exec must.
void close_from(int lowest);

/// "DEVICE:INODE" of a pipe: unique on this host while the pipe is open, and the same for both
/// ends. Empty if it is not a pipe.
std::string pipe_name(int fd);

}  // namespace lockstep::inline internal
