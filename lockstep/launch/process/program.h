#pragma once
// Finding and starting a worker's program.

#include <sys/types.h>

#include <string>
#include <vector>

#include "lockstep/error.h"
#include "lockstep/world/environment.h"

namespace lockstep::inline internal {

/// Where a shell would find a program, or why it would not.
struct Program {
  std::string path;
  int exit_code = 0;    ///< 0: found; 127: missing; 126: it exists but cannot be executed.
  std::string problem;  ///< One line if exit_code is not 0.
};

/// Looks for `name` in the folders of `search_path` ("a:b"), or at its own path if it has a slash.
Program find_program(const std::string& name, const std::string& search_path);

/// Folders for find_program(): those of PATH, then the folder of the running program. So `lockstep
/// run -- lockstep train ...` works even if `lockstep` was called by its path.
std::string program_search_path();

/// kIo: an existing program cannot be executed.
class ExecError : public Error {
 public:
  using Error::Error;
};

struct Spawn {
  std::string path;
  std::vector<std::string> argv;
  const Environment* environment = nullptr;
  int stdout_fd = -1;
  int stderr_fd = -1;
  int kept_fd = -1;       ///< Stays open in the process, with the same number; -1: none.
  std::vector<int> cpus;  ///< CPUs to bind it to; empty: the caller's.
};

/// Starts a process as the leader of its own session and process group. No signal is blocked or
/// ignored that was not when `original_mask` was taken. The limit of descriptors is the user's. The
/// kernel kills it when the calling thread ends, so call this from the main thread. Cost: a vfork.
/// Errors: ExecError, kIo.
pid_t spawn(const Spawn& spawn, const sigset_t& original_mask);

}  // namespace lockstep::inline internal
