#include "lockstep/training_checkpoint.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Functions.h>
#include <fmt/format.h>
#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include <cstring>
#include <mutex>

#include "lockstep/base/file.h"
#include "lockstep/checkpoint/digested_tensors.h"
#include "lockstep/checkpoint/host_copies.h"
#include "lockstep/checkpoint/keep_policy.h"
#include "lockstep/checkpoint/optimizer_state.h"
#include "lockstep/checkpoint/staged_folder.h"
#include "lockstep/checkpoint/tensor_types.h"
#include "lockstep/checkpoint/training_state_format.h"
#include "lockstep/error.h"
#include "lockstep/weights.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOptimizerFile = "optimizer.safetensors";

void write_parts(const fs::path& folder, const CheckpointContent& content) {
  NewFiles files;
  FileDigests digests;
  const auto save = [&](const std::string& file, const TensorMap& tensors,
                        const StoredMetadata& metadata) {
    digests[file] = write_digested(files, folder / file, tensors, metadata);
  };
  save(kModelFile, content.model, {{"format", "pt"}, {"model", content.state.model}});
  save(kOptimizerFile, content.optimizer,
       {{"format", "pt"}, {"optimizer", content.optimizer_kind}});
  for (const auto& [file, extra] : content.extra) save(file, extra.tensors, extra.metadata);
  files.write(folder / kStateFile, encode_training_state(content.state, digests));
  files.sync();
}

/// Sets the links and deletes checkpoints that are not kept. Checkpoints of later steps come from a
/// run that was reset to an earlier one; they are neither counted nor deleted. Checkpoints ranked
/// by another metric count as without one.
void tidy(const fs::path& dir, const TrainingState& state, const KeepPolicy& policy,
          const WriterFence& fence) {
  const std::string newest = step_folder_name(state.step);
  point_link(dir, "latest", newest, fence);
  std::vector<CheckpointEntry> entries = list_checkpoints(dir, state.metric);
  std::erase_if(entries, [&](const CheckpointEntry& entry) { return entry.step > state.step; });
  if (const auto best = best_checkpoint(entries, policy.higher_is_better)) {
    point_link(dir, "best", best->name, fence);
  } else {
    remove_link(dir, "best");
  }
  for (const std::string& name : plan_removal(entries, policy)) remove_checkpoint(dir, name, fence);
}

/// The advice for a damaged checkpoint. On a disk that breaks the folder above it may not be
/// readable either.
std::string advice(const fs::path& folder) {
  std::string older;
  try {
    for (const CheckpointEntry& entry : list_checkpoints(folder / "..")) {
      if (entry.name == folder.filename()) break;
      older = (folder.parent_path() / entry.name).string();
    }
  } catch (const Error& error) {
    return std::string("; ") + error.what();
  }
  if (older.empty()) return "; there is no older checkpoint beside it, start anew";
  return "; to go on from an older checkpoint name " + older;
}

/// A checkpoint that is the same as when it was saved.
struct Undamaged {
  TrainingState state;
  CheckedFile weights;
  CheckedFile memory;  ///< The optimizer's.
};

CheckedFile check_file(const fs::path& folder, const char* name, const FileDigests& files) {
  return {folder / name, digest_of(files, name, folder / kStateFile)};
}

Undamaged check_files(const fs::path& folder, const std::string& model_name) {
  const fs::path file = folder / kStateFile;
  DecodedTrainingState decoded = decode_training_state(read_file(file), file.string());
  if (decoded.state.model != model_name) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{}: a checkpoint of network '{}', this run has '{}'", folder.string(),
                            decoded.state.model, model_name));
  }
  CheckedFile weights = check_file(folder, kModelFile, decoded.files);
  CheckedFile memory = check_file(folder, kOptimizerFile, decoded.files);
  return {std::move(decoded.state), std::move(weights), std::move(memory)};
}

Undamaged check_or_advise(const fs::path& folder, const std::string& model_name) {
  try {
    return check_files(folder, model_name);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kCorrupt && error.code() != ErrorCode::kNotFound) throw;
    throw Error(ErrorCode::kCorrupt, error.what() + advice(folder));
  }
}

void check_optimizer_kind(const CheckedFile& file, const torch::optim::Optimizer& optimizer) {
  const auto stored = file.metadata().find("optimizer");
  const std::string kind = optimizer_kind(optimizer);
  if (stored == file.metadata().end() || stored->second == kind) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{}: state of {}, this run's optimizer is {}", file.name(),
                          stored->second, kind));
}

/// Checks all that can be wrong, then reads.
void fill(torch::nn::Module& model, torch::optim::Optimizer& optimizer, Undamaged& saved) {
  const TensorMap own = module_tensors(model);
  for (const auto& [name, tensor] : own) check_fillable(name, tensor);
  const TensorMap weights = saved.weights.lay_out(own);
  check_module(model, weights, saved.weights.name());
  check_optimizer_kind(saved.memory, optimizer);
  load_optimizer(model, optimizer, saved.memory.lay_out(optimizer_slots(model, optimizer)),
                 saved.memory.name());
  saved.weights.fill();
  saved.memory.fill();
  load_module(model, weights, saved.weights.name());  // those with other memory
}

}  // namespace

CheckpointContent copy_content(const torch::nn::Module& model,
                               const torch::optim::Optimizer& optimizer, const TrainingState& state,
                               const ExtraFiles& extra) {
  CheckpointContent content{host_copies(module_tensors(model)),
                            host_copies(optimizer_tensors(model, optimizer)),
                            optimizer_kind(optimizer),
                            state,
                            {}};
  for (const auto& [file, one] : extra) {
    content.extra[file] = {host_copies(one.tensors), one.metadata};
  }
  return content;
}

fs::path write_checkpoint(const fs::path& dir, const CheckpointContent& content,
                          const KeepPolicy& policy, const WriterFence& fence,
                          const std::function<void(const fs::path&)>& before) {
  policy.validate();
  remove_leftovers(dir, fence);
  const std::string name = step_folder_name(content.state.step);
  try {
    StagedFolder staged(dir, name, fence);
    write_parts(staged.path(), content);
    if (before) before(staged.path());
    staged.publish();
  } catch (const Error&) {
    fence.check();  // a newer generation that removed the folder is the reason
    throw;
  }
  tidy(dir, content.state, policy, fence);
  return dir / name;
}

fs::path save_checkpoint(const fs::path& dir, const torch::nn::Module& model,
                         const torch::optim::Optimizer& optimizer, const TrainingState& state,
                         const KeepPolicy& policy, const WriterFence& fence,
                         const ExtraFiles& extra) {
  return write_checkpoint(dir,
                          {module_tensors(model), optimizer_tensors(model, optimizer),
                           optimizer_kind(optimizer), state, extra},
                          policy, fence);
}

fs::path update_checkpoint(const fs::path& dir, const TrainingState& state,
                           const KeepPolicy& policy, const WriterFence& fence) {
  policy.validate();
  const fs::path name = fs::path(step_folder_name(state.step)) / kStateFile;
  const auto saved = decode_training_state(read_file(dir / name), (dir / name).string());
  TrainingState now = state;
  now.rng = saved.state.rng;  // from the time of the save
  replace_file(dir, name, fence, [&](const fs::path& hidden) {
    write_file_atomically(hidden, encode_training_state(now, saved.files));
  });
  tidy(dir, state, policy, fence);
  return dir / step_folder_name(state.step);
}

TrainingState load_checkpoint(const fs::path& path, torch::nn::Module& model,
                              torch::optim::Optimizer& optimizer, const std::string& model_name) {
  const fs::path folder = find_checkpoint(path);
  Undamaged saved = check_or_advise(folder, model_name);
  try {
    fill(model, optimizer, saved);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kCorrupt) throw;
    throw Error(ErrorCode::kCorrupt,  // an older one would not fit either
                std::string(error.what()) +
                    "; the file is as it was saved, so this run has another network or optimizer");
  }
  return std::move(saved.state);
}

std::optional<LoadedTensors> load_extra(const fs::path& path, const std::string& name) {
  const fs::path folder = find_checkpoint(path);
  const fs::path state = folder / kStateFile;
  const auto files = decode_training_state(read_file(state), state.string()).files;
  const auto stored = files.find(name);
  if (stored == files.end()) return std::nullopt;
  CheckedFile file(folder / name, stored->second);
  return LoadedTensors{file.lay_out({}), file.metadata()};
}

std::string rng_bytes() {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::scoped_lock lock(generator.mutex());
  const at::Tensor state = generator.get_state();
  return std::string(static_cast<const char*>(state.data_ptr()), state.nbytes());
}

void set_rng_bytes(const std::string& bytes) {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const at::Tensor state = at::empty({static_cast<int64_t>(bytes.size())}, at::kByte);
  std::memcpy(state.data_ptr(), bytes.data(), bytes.size());
  try {
    const std::scoped_lock lock(generator.mutex());
    generator.set_state(state);
  } catch (const c10::Error&) {
    throw Error(ErrorCode::kCorrupt,
                fmt::format("random state of {} bytes is not one of this libtorch", bytes.size()));
  }
}

}  // namespace lockstep
