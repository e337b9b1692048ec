#pragma once
// Operations that change a folder of checkpoints, whole or not at all. Each takes the fence of its
// writer (see WriterFence) and checks it just before it creates or removes a name. So each may
// also fail with kMismatch.

#include <filesystem>
#include <functional>
#include <string>

#include "lockstep/checkpoint_folder.h"

namespace lockstep::inline internal {

/// A folder being filled under a hidden name; removed with this object unless it was published.
class StagedFolder {
 public:
  /// Creates DIR (if need be) and DIR/.NAME.tmp-WRITER. Errors: kIo.
  StagedFolder(const std::filesystem::path& dir, const std::string& name,
               const WriterFence& fence = {});
  ~StagedFolder();
  StagedFolder(const StagedFolder&) = delete;
  StagedFolder& operator=(const StagedFolder&) = delete;

  const std::filesystem::path& path() const { return staged_; }
  /// Syncs, and gives the folder its name; an older folder of that name is replaced in one step if
  /// the file system supports it. Errors: kIo.
  void publish();

 private:
  WriterFence fence_;
  std::filesystem::path staged_;
  std::filesystem::path final_;
  bool published_ = false;
};

/// Replaces DIR/NAME (which may lie in a folder below), whole or not at all, by a file that `fill`
/// makes at a hidden path. Errors: kIo, those of `fill`.
void replace_file(const std::filesystem::path& dir, const std::filesystem::path& name,
                  const WriterFence& fence,
                  const std::function<void(const std::filesystem::path&)>& fill);

/// The same by a hard link to the file `equal`, at no cost; false if the file system has no hard
/// links. Errors: kIo.
bool replace_by_link(const std::filesystem::path& dir, const std::filesystem::path& name,
                     const std::filesystem::path& equal, const WriterFence& fence);

/// Makes DIR/NAME a symbolic link to `target`; replaces an older link by rename. Where the file
/// system has no links, one warning. Errors: kIo.
void point_link(const std::filesystem::path& dir, const std::string& name,
                const std::string& target, const WriterFence& fence = {});
/// Removes the symbolic link DIR/NAME, if there is one. Errors: kIo.
void remove_link(const std::filesystem::path& dir, const std::string& name);

/// Deletes a checkpoint; it is hidden first, so that it is never seen in parts. What is hidden
/// and cannot be deleted costs a warning, and remove_leftovers() tries again. Errors: kIo.
void remove_checkpoint(const std::filesystem::path& dir, const std::string& name,
                       const WriterFence& fence = {});

/// Removes unfinished files of other writers in `dir` that are of no more use: see is_left_over().
/// Of a writer of another host nothing shows whether it lives. Its files go if none of them was
/// written within a day: a pod that was killed leaves them under a name that no later pod has.
/// Never removes a complete checkpoint, nor unfinished files of a living writer.
void remove_leftovers(const std::filesystem::path& dir, const WriterFence& fence = {});

}  // namespace lockstep::inline internal
