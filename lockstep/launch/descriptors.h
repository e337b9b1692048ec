#pragma once
// How many files this process may have open: an agent needs several for each rank and host.

#include <sys/resource.h>

#include <string>

namespace lockstep {

/// Raises this process's soft limit of descriptors to the hard one. Programs that it starts begin
/// with the one that the user gave: some cannot do with many. Call it once, before threads start.
void raise_descriptor_limit();

/// What it was before; null: it was not raised.
const rlimit* users_descriptor_limit();

/// While it lives, what this process starts gets the user's limit. Nothing else must be opened
/// meanwhile.
class UsersDescriptorLimit {
 public:
  UsersDescriptorLimit();
  ~UsersDescriptorLimit();
  UsersDescriptorLimit(const UsersDescriptorLimit&) = delete;
  UsersDescriptorLimit& operator=(const UsersDescriptorLimit&) = delete;

 private:
  rlimit raised_{};
};

/// Errors: kInvalidArgument where `needed` descriptors and some more are above the limit. `what`
/// needs them: "350 ranks".
void check_descriptors(size_t needed, const std::string& what);

}  // namespace lockstep
