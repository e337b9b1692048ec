#pragma once
// Checkpoints of a training run.
//
//   DIR/step_000020/model.safetensors      parameters and buffers; useful alone, in any language
//                   optimizer.safetensors  the optimizer's memory, by parameter name
//                   *.safetensors          what the caller adds, see ExtraFiles
//                   state.json             TrainingState, and length and SHA-256 of those above
//   DIR/latest -> step_000020              the newest
//   DIR/best   -> step_000010              the best by this run's metric, when there is one
//
// A checkpoint is written in a hidden folder, synced and renamed, then the links are swapped by
// rename: at every instant there is a whole old one or a whole new one. What a crash leaves behind
// (".step_000020.tmp-WRITER") is never read, and the next save on that host, or the job's next
// generation, removes it. One process writes (rank 0); of a job that is started anew the newest
// generation's alone, see writer_fence.h.

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "lockstep/checkpoint_folder.h"
#include "lockstep/keep_policy.h"
#include "lockstep/safetensors.h"
#include "lockstep/training_state.h"
#include "lockstep/weights.h"
#include "lockstep/writer_fence.h"

namespace torch::nn {
class Module;
}
namespace torch::optim {
class Optimizer;
}

namespace lockstep {

/// Further files of a checkpoint, by name ("x.safetensors").
using ExtraFiles = std::map<std::string, LoadedTensors>;

/// What a checkpoint is made of.
struct CheckpointContent {
  TensorMap model;
  TensorMap optimizer;
  std::string optimizer_kind;
  TrainingState state;
  ExtraFiles extra;
};

/// A copy in the host's memory: it stays as it is while training goes on, so that it can be written
/// meanwhile. Cost: that of the copy. Errors: kInvalidArgument (an optimizer that has no name).
CheckpointContent copy_content(const torch::nn::Module& model,
                               const torch::optim::Optimizer& optimizer, const TrainingState& state,
                               const ExtraFiles& extra = {});

/// Writes DIR/step_NNNNNN (of state.step; an older one of that step is replaced), points `latest`
/// and `best` at the right ones and deletes what `policy` does not keep. Returns the folder.
/// `before`: called with the filled folder just before it gets its name.
/// Errors: kIo (disk full among others), kMismatch (see WriterFence): the folder is as it was.
/// kInvalidArgument.
std::filesystem::path write_checkpoint(
    const std::filesystem::path& dir, const CheckpointContent& content, const KeepPolicy& policy,
    const WriterFence& fence = {},
    const std::function<void(const std::filesystem::path&)>& before = {});

/// The same without a copy.
std::filesystem::path save_checkpoint(const std::filesystem::path& dir,
                                      const torch::nn::Module& model,
                                      const torch::optim::Optimizer& optimizer,
                                      const TrainingState& state, const KeepPolicy& policy,
                                      const ExtraFiles& extra = {});

/// Gives the checkpoint of state.step, which is in `dir`, this state; its tensors stay. For what
/// was found out after it was saved: how good the weights are. Links and policy as above. Returns
/// the folder. Errors: kIo, kNotFound, kCorrupt, kMismatch: the folder is as it was.
std::filesystem::path update_checkpoint(const std::filesystem::path& dir,
                                        const TrainingState& state, const KeepPolicy& policy,
                                        const WriterFence& fence = {});

/// Fills model and optimizer from one checkpoint (see find_checkpoint() in checkpoint_folder.h) and
/// returns the rest. The optimizer's learning rate and other options stay: they are configuration,
/// and a schedule sets the rate anew. `model_name` must be the one saved. Everything is read and
/// checked before anything is changed. Errors: kNotFound; kCorrupt naming file and tensor, and, of
/// damaged files, an older checkpoint to go on from when there is one; kInvalidArgument for a
/// checkpoint of another `model_name` or optimizer. Tensors that do not fit `model` are kCorrupt.
TrainingState load_checkpoint(const std::filesystem::path& path, torch::nn::Module& model,
                              torch::optim::Optimizer& optimizer, const std::string& model_name);

/// One of the extra files of a checkpoint; nothing when it was saved without. Errors: kNotFound,
/// kCorrupt.
std::optional<LoadedTensors> load_extra(const std::filesystem::path& path, const std::string& name);

/// State of libtorch's default CPU generator, and back. Errors: kCorrupt when it is not one.
std::string rng_bytes();
void set_rng_bytes(const std::string& bytes);

}  // namespace lockstep
