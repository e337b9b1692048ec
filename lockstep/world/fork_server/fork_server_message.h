#pragma once
// How an agent recognises a program that calls start_fork_server(), and their messages while the
// program waits there. They use a SEQPACKET socket whose number is in the environment.

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "lockstep/base/unique_fd.h"
#include "lockstep/deadline.h"
#include "lockstep/world/environment.h"

namespace lockstep::inline internal {

/// Whether the program in this file calls start_fork_server(), by an ELF note linked with it. False
/// for a file that is no program of this architecture. Cost: reads its first page.
bool supports_fork_server(const std::string& path);

// The note's owner and type, as in Elf64_Nhdr.
inline constexpr char kForkServerNoteOwner[] = "Lockstep";
inline constexpr unsigned kForkServerNoteType = 0x666f726b;  // "fork"

inline constexpr char kForkServerFdVariable[] = "LOCKSTEP_FORK_SERVER_FD";

/// To the program: start a rank.
struct ForkRequest {
  int32_t number = 0;    ///< Comes back in the answer.
  UniqueFd environment;  ///< Memory: each "NAME=VALUE\0".
  UniqueFd out;          ///< Its standard output.
  UniqueFd err;          ///< Its standard error.
};

/// To the agent. The first is ready, or not; each further one answers a request.
struct ForkAnswer {
  int32_t number = 0;   ///< Of the request; answers may come in any order.
  int32_t error = 0;    ///< errno; 0: success.
  int32_t pid = 0;      ///< Of the rank, which is now the agent's child.
  int32_t threads = 0;  ///< First answer: threads that a fork would lack.
};

/// An environment in the format of ForkRequest. Errors: kIo.
UniqueFd environment_memory(const Environment& environment);

/// The caller keeps the descriptors. False: the other side is gone.
bool send_request(int socket, int32_t number, const std::array<int, 3>& environment_out_err);

/// Nothing: the other side is gone.
std::optional<ForkRequest> receive_request(int socket);

bool send_answer(int socket, const ForkAnswer& answer);
/// Nothing: the other side is gone, or silent until the deadline, or until `interrupt` (a
/// descriptor; -1: none) is readable.
std::optional<ForkAnswer> receive_answer(int socket, Deadline deadline, int interrupt = -1);

}  // namespace lockstep::inline internal
