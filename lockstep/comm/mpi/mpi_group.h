#pragma once
// The back end "mpi": every collective by the MPI library that lockstep_mpi.so was built with.

#include <memory>
#include <string>

#include "lockstep/comm/group_impl.h"
#include "lockstep/deadline.h"

namespace lockstep {

/// For ranks that an MPI launcher started, all in one MPI job; MPI's numbering may be another than
/// the world's. Collective.
///
/// What MPI does not do is done here: before each collective the ranks compare what they are about
/// to do (one 16-byte all_reduce more; uneven kinds also their counts), so that a disagreement is
/// kMismatch and not garbage; every wait has its deadline; the first error goes into the store as
/// the verdict of all. A rank that dies usually ends the whole job: that is the MPI launcher's
/// part. MPI_Finalize waits for all ranks; a process in which a group has failed waits for them no
/// longer than that group's timeout, and then ends without it.
///
/// Differences to native: sums have MPI's order, so bits may differ with the number of ranks;
/// allocate() gives memory of this rank alone; neither buffer of a collective may have more than
/// 2^31 - 1 elements, complex ones counting twice (kInvalidArgument). A group's communicators live
/// until the process ends: to free them would be collective, which leaving a group is not. After an
/// error MPI may still write to the caller's buffers.
/// Errors: kMismatch (ranks of several MPI jobs, also those that another library's launcher has
/// started), kUnavailable (a library without threads).
std::unique_ptr<GroupImpl> make_mpi_group(const GroupSpec& spec, Deadline deadline);

/// Is there a library, and did an MPI launcher start this process?
bool mpi_usable(const GroupSpec& spec, std::string* why_not);

}  // namespace lockstep
