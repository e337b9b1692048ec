#include "lockstep/train/resume.h"

#include "lockstep/checkpoint/training_checkpoint.h"

namespace lockstep {

namespace fs = std::filesystem;

Resumed resume(const Config& config, Model& model, torch::optim::Optimizer& optimizer) {
  if (!config.model.resume) return {};
  const bool named = !config.model.resume_path.empty();
  const fs::path path = named ? fs::path(config.model.resume_path) : config.train.ckpt_save_dir;
  if (!named && !has_checkpoint(path)) return {};
  Resumed resumed;
  resumed.from = find_checkpoint(path);
  resumed.state = load_checkpoint(path, model, optimizer, config.model.name());
  if (!resumed.state.rng.empty()) set_rng_bytes(resumed.state.rng);
  return resumed;
}

}  // namespace lockstep
