#pragma once
// How many descriptors (files, sockets, shared memory) this process may have open.

#include <sys/resource.h>

#include <optional>
#include <string>

namespace lockstep {

/// Raises this process's soft limit to the hard one. True when that is more than before. Any
/// thread. Programs that a launcher starts begin with the one that the user gave
/// (UsersDescriptorLimit): some cannot do with many.
bool raise_soft_descriptor_limit();

/// After EMFILE: "40 of limit 40 are open: raise it, ulimit -n"; after ENFILE what is short then;
/// else "". Changes no errno.
std::string descriptor_shortage(int error_number);

/// The limit before it was raised; nothing: it was not.
std::optional<rlimit> users_descriptor_limit();

/// While it lives, what this process starts gets the user's limit. Nothing else must be opened
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

/// Errors: kInvalidArgument where `needed` descriptors and some more are above the limit. `what`
/// needs them: "350 ranks".
void check_descriptors(size_t needed, const std::string& what);

}  // namespace lockstep
