#pragma once
// train.ckpt_save_dir: the folder for a run's results.

#include <filesystem>
#include <optional>

#include "lockstep/base/folder.h"
#include "lockstep/deadline.h"

namespace lockstep::inline internal {

/// Whether this process can write to `dir`, or create it. It creates nothing; call it before there
/// is anything to write. Errors: kInvalidArgument, naming the key and the folder in the way.
void check_results_folder(const std::filesystem::path& dir);

/// Locks `dir`, if it exists, for the run that writes into it. Waits for a run that is just ending.
/// Errors: kInvalidArgument naming the key, if another run still holds it at `deadline`.
std::optional<FolderLock> hold_results_folder(const std::filesystem::path& dir, Deadline deadline);

/// Whether a run left a checkpoint or metrics in `dir`.
bool has_results(const std::filesystem::path& dir);

/// Keeps an earlier run's results in `dir` apart from a new run's: the folder is moved to DIR.1
/// (.2, ...). A folder that cannot be moved, such as a mount point or ".", stays. So does a
/// symbolic link, which selects the disk for results. Then only the results in it are moved, to
/// DIR/earlier.1 (.2, ...). Returns the new place, or nothing if there was no such run. Errors:
/// kIo.
std::filesystem::path move_earlier_results(const std::filesystem::path& dir);

/// Whether `checkpoint` is the folder of a checkpoint in `dir`, however the two paths are written.
bool is_checkpoint_of(const std::filesystem::path& checkpoint, const std::filesystem::path& dir);

}  // namespace lockstep::inline internal
