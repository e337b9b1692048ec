#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "lockstep/comm/process_group.h"

namespace lockstep {

/// Collective. Runs `work` on every rank, and returns when all have done theirs. It is for what a
/// disk may hold up for long: who is done waits for the others until `limit`, and not only for the
/// group's timeout, which is made for steps. Meanwhile a thread on each rank says to the others,
/// several times a second, whether it is done. So a rank that died is still found out at once, and
/// one that hangs as a whole within the group's timeout. `work` must not use the group.
///
/// Errors: what `work` throws, on that rank; kTimeout on the others naming `what`, the ranks that
/// are late and the file that each is reading (see ReadingNote); those of the group. Cost, when all
/// are quick: a thread and one reduction.
void work_together(ProcessGroup& group, const std::string& what, std::chrono::seconds limit,
                   const std::function<void()>& work);

}  // namespace lockstep
