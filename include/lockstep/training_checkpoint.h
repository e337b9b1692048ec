#pragma once
// This header saves and loads checkpoints of a training run: weights, optimizer and progress.
//
//   DIR/step_000020/model.safetensors      parameters and buffers; useful alone, in any language
//                   optimizer.safetensors  the optimizer's state, by parameter name
//                   *.safetensors          files of the caller, see ExtraFiles
//                   state.json             TrainingState, and length and digest of these files
//   DIR/latest -> step_000020              the newest
//   DIR/best   -> step_000010              the best by this run's metric, if there is one
//
// A checkpoint is written in a hidden folder, synced and renamed; then the links are swapped by
// rename. So at every instant the old or the new checkpoint is complete. Remains of a crash
// (".step_000020.tmp-WRITER") are never read. The next save on that host, or the job's next
// generation, removes them. One process writes (rank 0). With a WriterFence only the newest
// generation of a restarted job does; without one an earlier writer that wakes up may still save.
//
// Use:
//   lockstep::TrainingState state;
//   state.model = "net";
//   const bool resumes = lockstep::has_checkpoint("out");
//   if (resumes) state = lockstep::load_checkpoint("out", *net, optimizer, state.model);
//   while (state.step < num_steps) {
//     train_one_step();
//     if (++state.step % 100 != 0 || world.rank != 0) continue;
//     lockstep::save_checkpoint("out", *net, optimizer, state, {.count = 2});
//   }
//   group.barrier();  // no rank ends while rank 0 still writes
//
// Threads: one thread at a time writes into a folder. Others may load what the policy keeps. A
// thread may write a copy_content() while another one trains. Nothing is collective.
// Cost: a save passes over the bytes once, to digest and write them, and syncs each file to disk. A
// load reads them twice: to check the digest, then into place.
// Errors: kIo, kNotFound, kCorrupt, kMismatch, kInvalidArgument: see each function.

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "lockstep/checkpoint_folder.h"
#include "lockstep/weights.h"

namespace torch::nn {
class Module;
}
namespace torch::optim {
class Optimizer;
}

namespace lockstep {

/// Additional files of a checkpoint, by name ("x.safetensors").
using ExtraFiles = std::map<std::string, LoadedTensors>;

/// The content of a checkpoint.
struct CheckpointContent {
  TensorMap model;
  TensorMap optimizer;
  std::string optimizer_kind;
  TrainingState state;
  ExtraFiles extra;
};

/// A copy in host memory, which can be written while training continues. Cost: that of the copy.
/// Errors: kInvalidArgument (an optimizer without a name).
CheckpointContent copy_content(const torch::nn::Module& model,
                               const torch::optim::Optimizer& optimizer, const TrainingState& state,
                               const ExtraFiles& extra = {});

/// Writes DIR/step_NNNNNN (of state.step; replaces an older one of that step), updates `latest` and
/// `best` and deletes the checkpoints that `policy` does not keep. Returns the folder.
/// `before`: called with the filled folder just before it gets its name.
/// Errors: kIo (disk full among others), kMismatch (see WriterFence), with the folder unchanged;
/// kInvalidArgument.
std::filesystem::path write_checkpoint(
    const std::filesystem::path& dir, const CheckpointContent& content, const KeepPolicy& policy,
    const WriterFence& fence = {},
    const std::function<void(const std::filesystem::path&)>& before = {});

/// copy_content() and write_checkpoint() in one, without the copy. Errors: those of both.
std::filesystem::path save_checkpoint(const std::filesystem::path& dir,
                                      const torch::nn::Module& model,
                                      const torch::optim::Optimizer& optimizer,
                                      const TrainingState& state, const KeepPolicy& policy,
                                      const WriterFence& fence = {}, const ExtraFiles& extra = {});

/// Replaces the state of the checkpoint of state.step in `dir`; its tensors stay. It adds results
/// found after the save, such as the metric of the weights. Links and policy as above. Returns the
/// folder. Errors, with the folder unchanged: kIo, kNotFound, kCorrupt, kMismatch.
std::filesystem::path update_checkpoint(const std::filesystem::path& dir,
                                        const TrainingState& state, const KeepPolicy& policy,
                                        const WriterFence& fence = {});

/// Fills model and optimizer from one checkpoint (see find_checkpoint() in checkpoint_folder.h) and
/// returns the rest. The optimizer's learning rate and other options stay: they are configuration,
/// and a schedule sets the rate anew. `model_name` must be the saved one. Tensors stay where they
/// are. Everything is read and checked before anything is changed. Errors: kNotFound; kCorrupt
/// naming file and tensor; kInvalidArgument for a checkpoint of another `model_name` or optimizer,
/// and as load_module(). For damaged files kCorrupt also names an older checkpoint to resume from,
/// if there is one. Tensors that do not fit `model` are kCorrupt. After kIo, from a disk that fails
/// once the files were checked, some tensors may have the checkpoint's values.
TrainingState load_checkpoint(const std::filesystem::path& path, torch::nn::Module& model,
                              torch::optim::Optimizer& optimizer, const std::string& model_name);

/// One of the extra files of a checkpoint; nothing if the checkpoint has no such file. Errors:
/// kNotFound, kCorrupt, kInvalidArgument (`path` is a file).
std::optional<LoadedTensors> load_extra(const std::filesystem::path& path, const std::string& name);

/// State of libtorch's default CPU generator, and its restoration. No other thread draws from it
/// meanwhile. Errors: kCorrupt for other bytes.
std::string rng_bytes();
void set_rng_bytes(const std::string& bytes);

}  // namespace lockstep
