#pragma once
// The folders of checkpoints on the disk, without what is in them: see training_checkpoint.h.

#include <filesystem>
#include <string>
#include <vector>

#include "lockstep/checkpoint/keep_policy.h"
#include "lockstep/checkpoint/training_state.h"

namespace lockstep {

/// Parameters and buffers, in each checkpoint's folder.
inline constexpr const char* kModelFile = "model.safetensors";
/// The moving average of both, where a run keeps one: what it judges.
inline constexpr const char* kEmaFile = "ema.safetensors";

/// "step_000020"; more digits when needed.
std::string step_folder_name(int64_t step);

/// Every whole checkpoint of `dir` by step, with the value of metric `metric` that its state.json
/// holds (none when it holds another metric, or is damaged). Empty when there is no such folder.
std::vector<CheckpointEntry> list_checkpoints(const std::filesystem::path& dir,
                                              const std::string& metric = "");

/// The folder of one checkpoint: `path` itself when it holds a state.json, else what its `latest`
/// points to, else its newest step_*. Errors: kNotFound saying what was looked for,
/// kInvalidArgument for a file.
std::filesystem::path find_checkpoint(const std::filesystem::path& path);
/// Whether find_checkpoint() would find one: to start or to resume.
bool has_checkpoint(const std::filesystem::path& path);

/// The file of weights that `path` stands for: itself, or of a checkpoint's folder (see
/// find_checkpoint()) kModelFile; with `averaged` kEmaFile, where there is one.
std::filesystem::path weights_in(const std::filesystem::path& path, bool averaged);

/// A folder being filled under a hidden name; gone with this object unless it was published.
class StagedFolder {
 public:
  /// Makes DIR (if need be) and DIR/.NAME.tmp-PID. Errors: kIo.
  StagedFolder(const std::filesystem::path& dir, const std::string& name);
  ~StagedFolder();
  StagedFolder(const StagedFolder&) = delete;
  StagedFolder& operator=(const StagedFolder&) = delete;

  const std::filesystem::path& path() const { return staged_; }
  /// Syncs, and gives the folder its name; an older folder of that name is replaced in one step
  /// where the file system can. Errors: kIo.
  void publish();

 private:
  std::filesystem::path staged_;
  std::filesystem::path final_;
  bool published_ = false;
};

/// Makes DIR/NAME a symbolic link to `target`, replacing an older link by rename. Errors: kIo.
void point_link(const std::filesystem::path& dir, const std::string& name,
                const std::string& target);
/// Removes the symbolic link DIR/NAME, if there is one. Errors: kIo.
void remove_link(const std::filesystem::path& dir, const std::string& name);

/// Deletes a checkpoint; hidden first, so that it is never seen in parts. Errors: kIo.
void remove_checkpoint(const std::filesystem::path& dir, const std::string& name);

/// Removes what crashed saves left in `dir`: hidden folders and links, halves of files of weights
/// (best.EXT, e{N}.EXT), never a whole checkpoint.
void remove_leftovers(const std::filesystem::path& dir);

/// Length and SHA-256 of a file. Errors: kNotFound, kIo.
FileDigest digest_file(const std::filesystem::path& path);

}  // namespace lockstep
