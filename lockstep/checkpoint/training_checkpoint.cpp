#include "lockstep/checkpoint/training_checkpoint.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Functions.h>
#include <fmt/format.h>

#include <cstring>
#include <mutex>

#include "lockstep/base/error.h"
#include "lockstep/base/file.h"
#include "lockstep/checkpoint/module_state.h"
#include "lockstep/checkpoint/optimizer_state.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOptimizerFile = "optimizer.safetensors";
constexpr const char* kStateFile = "state.json";

void write_parts(const fs::path& folder, const torch::nn::Module& model,
                 const torch::optim::Optimizer& optimizer, const TrainingState& state,
                 const ExtraFiles& extra) {
  save_tensors(folder / kModelFile, module_tensors(model),
               {{"format", "pt"}, {"model", state.model}});
  save_tensors(folder / kOptimizerFile, optimizer_tensors(model, optimizer),
               {{"format", "pt"}, {"optimizer", optimizer_kind(optimizer)}});
  FileDigests digests;
  for (const char* file : {kModelFile, kOptimizerFile}) digests[file] = digest_file(folder / file);
  for (const auto& [file, content] : extra) {
    save_tensors(folder / file, content.tensors, content.metadata);
    digests[file] = digest_file(folder / file);
  }
  write_file_atomically(folder / kStateFile, encode_training_state(state, digests));
}

/// Points the links and deletes what is not kept. Checkpoints of later steps come from a run that
/// was taken back to an earlier one; they are neither counted nor deleted. Those ranked by another
/// metric count as without one.
void tidy(const fs::path& dir, const TrainingState& state, const KeepPolicy& policy) {
  const std::string newest = step_folder_name(state.step);
  point_link(dir, "latest", newest);
  std::vector<CheckpointEntry> entries = list_checkpoints(dir, state.metric);
  std::erase_if(entries, [&](const CheckpointEntry& entry) { return entry.step > state.step; });
  if (const auto best = best_checkpoint(entries, policy.higher_is_better)) {
    point_link(dir, "best", best->name);
  } else {
    remove_link(dir, "best");
  }
  for (const std::string& name : plan_removal(entries, policy)) remove_checkpoint(dir, name);
}

/// What to do about a damaged checkpoint.
std::string advice(const fs::path& folder) {
  std::string older;
  for (const CheckpointEntry& entry : list_checkpoints(folder / "..")) {
    if (entry.name == folder.filename()) break;
    older = (folder.parent_path() / entry.name).string();
  }
  if (older.empty()) return "; there is no older checkpoint beside it, start anew";
  return "; to go on from an older checkpoint name " + older;
}

void check_digest(const fs::path& file, const FileDigest& stored) {
  const FileDigest found = digest_file(file);
  if (found == stored) return;
  throw Error(
      ErrorCode::kCorrupt,
      found.bytes != stored.bytes
          ? fmt::format("{}: {} bytes, {} were saved", file.string(), found.bytes, stored.bytes)
          : fmt::format("{}: the bytes are not those saved (SHA-256 differs)", file.string()));
}

DecodedTrainingState read_state(const fs::path& folder, const std::string& model_name) {
  const fs::path file = folder / kStateFile;
  DecodedTrainingState decoded = decode_training_state(read_file(file), file.string());
  if (decoded.state.model != model_name) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{}: a checkpoint of network '{}', this run has '{}'", folder.string(),
                            decoded.state.model, model_name));
  }
  for (const char* name : {kModelFile, kOptimizerFile}) {
    if (decoded.files.contains(name)) {
      check_digest(folder / name, decoded.files.at(name));
    } else {
      throw Error(ErrorCode::kCorrupt,
                  fmt::format("{}: 'files.{}' is missing", file.string(), name));
    }
  }
  return decoded;
}

void check_optimizer_kind(const LoadedTensors& loaded, const torch::optim::Optimizer& optimizer,
                          const std::string& file) {
  const auto stored = loaded.metadata.find("optimizer");
  const std::string kind = optimizer_kind(optimizer);
  if (stored == loaded.metadata.end() || stored->second == kind) return;
  throw Error(
      ErrorCode::kInvalidArgument,
      fmt::format("{}: state of {}, this run's optimizer is {}", file, stored->second, kind));
}

TrainingState load_folder(const fs::path& folder, torch::nn::Module& model,
                          torch::optim::Optimizer& optimizer, const std::string& model_name) {
  TrainingState state = read_state(folder, model_name).state;
  const std::string model_file = (folder / kModelFile).string();
  const std::string optimizer_file = (folder / kOptimizerFile).string();
  const LoadedTensors weights = load_tensors(model_file);
  const LoadedTensors memory = load_tensors(optimizer_file);
  check_module(model, weights.tensors, model_file);
  check_optimizer_kind(memory, optimizer, optimizer_file);
  load_optimizer(model, optimizer, memory.tensors, optimizer_file);
  load_module(model, weights.tensors, model_file);
  return state;
}

}  // namespace

fs::path save_checkpoint(const fs::path& dir, const torch::nn::Module& model,
                         const torch::optim::Optimizer& optimizer, const TrainingState& state,
                         const KeepPolicy& policy, const ExtraFiles& extra) {
  policy.validate();
  remove_leftovers(dir);
  const std::string name = step_folder_name(state.step);
  StagedFolder staged(dir, name);
  write_parts(staged.path(), model, optimizer, state, extra);
  staged.publish();
  tidy(dir, state, policy);
  return dir / name;
}

TrainingState load_checkpoint(const fs::path& path, torch::nn::Module& model,
                              torch::optim::Optimizer& optimizer, const std::string& model_name) {
  const fs::path folder = find_checkpoint(path);
  try {
    return load_folder(folder, model, optimizer, model_name);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kCorrupt && error.code() != ErrorCode::kNotFound) throw;
    throw Error(ErrorCode::kCorrupt, error.what() + advice(folder));
  }
}

std::optional<LoadedTensors> load_extra(const fs::path& path, const std::string& name) {
  const fs::path folder = find_checkpoint(path);
  const fs::path state = folder / kStateFile;
  const auto files = decode_training_state(read_file(state), state.string()).files;
  const auto stored = files.find(name);
  if (stored == files.end()) return std::nullopt;
  check_digest(folder / name, stored->second);
  return load_tensors(folder / name);
}

std::string rng_bytes() {
  const at::Generator generator = at::detail::getDefaultCPUGenerator();
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
