#pragma once
// train.ckpt_save_dir: the folder that a run's results go to.

#include <filesystem>
#include <optional>

#include "lockstep/base/folder.h"
#include "lockstep/deadline.h"

namespace lockstep {

/// Whether this process can write to `dir`, or make it. Asked before there is anything to write;
/// makes nothing. Errors: kInvalidArgument, naming the key and the folder that is in the way.
void check_results_folder(const std::filesystem::path& dir);

/// Holds `dir`, where it exists, for the run that writes into it. Waits for one that is just
/// ending. Errors: kInvalidArgument naming the key, when another run still holds it at `deadline`.
std::optional<FolderLock> hold_results_folder(const std::filesystem::path& dir, Deadline deadline);

/// An earlier run's results in `dir` are not mixed with a new one's, nor lost: the folder is moved
/// to DIR.1 (.2, ...). One that cannot be moved, such as a mount point or ".", stays, and so does a
/// symbolic link, which says on what disk results shall be; the results in it, nothing else, are
/// moved to DIR/earlier.1 (.2, ...). Returns where to, or nothing when there was no such run.
/// Errors: kIo.
std::filesystem::path move_earlier_results(const std::filesystem::path& dir);

/// Whether `checkpoint`, a folder of one, is one of those in `dir`, however the two are written.
bool is_checkpoint_of(const std::filesystem::path& checkpoint, const std::filesystem::path& dir);

}  // namespace lockstep
