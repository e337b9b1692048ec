#pragma once
// Finding and starting a worker's program.

#include <sys/types.h>

#include <string>
#include <vector>

#include "lockstep/error.h"
#include "lockstep/world/environment.h"

namespace lockstep {

/// Where a shell would find a program, or why it would not.
struct Program {
  std::string path;
  int exit_code = 0;    ///< 0: found; 127: not there; 126: there, but not to be run.
  std::string problem;  ///< One line, where exit_code is not 0.
};

/// Looks for `name` in the folders of `search_path` ("a:b"), or where it points if it has a slash.
Program find_program(const std::string& name, const std::string& search_path);

/// Folders for find_program(): those of PATH, then the folder of the running program, so that
/// `lockstep run -- lockstep train ...` works with a `lockstep` that was called by its path.
std::string program_search_path();

/// kIo: a program that is there cannot be executed.
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
  int kept_fd = -1;       ///< Stays open in it, under the same number; -1: none.
  std::vector<int> cpus;  ///< To which it is bound; empty: as the caller.
};

/// Starts a process as the leader of a session and process group of its own, with no signal blocked
/// or ignored that was not when `original_mask` was taken, and the user's limit of descriptors. The
/// kernel kills it when the calling thread ends, so call it from the main thread. Cost: a vfork.
/// Errors: ExecError, kIo.
pid_t spawn(const Spawn& spawn, const sigset_t& original_mask);

}  // namespace lockstep
