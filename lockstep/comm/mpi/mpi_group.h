#pragma once
// The back end "mpi": every collective by the MPI library with which lockstep_mpi.so was built.

#include <memory>
#include <string>

#include "lockstep/comm/group_impl.h"
#include "lockstep/deadline.h"

namespace lockstep::inline internal {

/// For ranks that an MPI launcher started, all in one MPI job; MPI's numbering may differ from the
/// world's. Collective.
///
/// This back end adds the error contract that MPI lacks. Before each collective the ranks compare
/// their calls (one 16-byte all_reduce more; uneven kinds also their counts): a disagreement is
/// kMismatch and not garbage. Every wait has its deadline. The first error goes into the store as
/// the error of the group. The death of a rank usually ends the whole job: the MPI launcher does
/// that. MPI_Finalize waits for all ranks. A process in which a group has failed waits at most that
/// group's timeout, and then ends without it.
///
/// Differences to native: sums have MPI's order, so bits may differ with the number of ranks.
/// allocate() returns memory of this rank alone. Each buffer of a collective has at most 2^31 - 1
/// elements, complex ones counting twice (kInvalidArgument). A group's communicators live until the
/// process ends: freeing them would be collective, but leaving a group is not. After an error MPI
/// may still write to the caller's buffers. Errors: kMismatch (ranks of several MPI jobs, also
/// ranks that another library's launcher started), kUnavailable (a library without threads).
std::unique_ptr<GroupImpl> make_mpi_group(const GroupSpec& spec, Deadline deadline);

/// True if there is a library, and an MPI launcher started this process.
bool mpi_usable(const GroupSpec& spec, std::string* why_not);

}  // namespace lockstep::inline internal
