#include "lockstep/train/callbacks/checkpoints.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "lockstep/checkpoint/keep_policy.h"
#include "lockstep/error.h"
#include "lockstep/progress.h"
#include "lockstep/train/callbacks/evaluation.h"
#include "lockstep/train/disk_work.h"
#include "lockstep/train/resume.h"
#include "lockstep/training_checkpoint.h"
#include "lockstep/weights.h"

namespace lockstep::inline internal {
namespace {

/// The policy of checkpoint folders.
KeepPolicy checkpoint_policy(Trainer& trainer) {
  KeepPolicy policy = keep_policy(trainer);
  if (trainer.config().train.weights_format != "none") {
    policy.keep = Keep::kLatest;
    policy.count = 1;
  }
  return policy;
}

int64_t bytes_of(const TensorMap& tensors) {
  int64_t bytes = 0;
  for (const auto& [name, tensor] : tensors) bytes += static_cast<int64_t>(tensor.nbytes());
  return bytes;
}

int64_t bytes_of(const CheckpointContent& content) {
  int64_t bytes = bytes_of(content.model) + bytes_of(content.optimizer);
  for (const auto& [name, file] : content.extra) bytes += bytes_of(file.tensors);
  return bytes;
}

}  // namespace

KeepPolicy keep_policy(Trainer& trainer) {
  KeepPolicy policy;
  const auto& system = trainer.config().system;
  const auto& name = system.ckpt_save_policy;
  policy.keep = name == "top_k" ? Keep::kTopK : name == "latest_k" ? Keep::kLatest : Keep::kAll;
  policy.count = static_cast<int>(system.ckpt_max_keep);
  policy.higher_is_better = trainer.state().higher_is_better;
  return policy;
}

void Checkpoints::on_step(Trainer& trainer, const StepReport& report) {
  say_notes(trainer);
  if (unwritten_epoch_ && saved_) {
    awaits_figure_ = false;
    write_unevaluated();
  }
  unwritten_epoch_.reset();
  value_.reset();
  saved_.reset();
  if (!report.updated) return;
  asked_ = trainer.take_save_request() || asked_;
  const int64_t every = trainer.config().train.ckpt_save_steps;
  const bool due = asked_ || (every > 0 && trainer.state().step % every == 0);
  if (due && report.step_in_epoch < report.steps_per_epoch) save(trainer);  // else the epoch's end
}

void Checkpoints::record(Trainer& trainer, double value) {
  changed_ = true;
  value_ = value;
  if (record_metric(trainer.state(), value)) new_best_ = true;
}

/// If this run has saved the weights already, only the figure is added.
void Checkpoints::on_evaluation(Trainer& trainer, const EvalResult& result) {
  record(trainer, result.metric(trainer.config().metric.main_indicator));
  awaits_figure_ = false;
  const auto& state = trainer.state();
  if (saved_step_ != state.step) {
    if (new_best_ && unwritten_epoch_ == state.epoch) save(trainer);
  } else if (saved_here_) {
    add_figure(trainer);
  } else {  // a resumed run evaluates the epoch before
    if (state.epoch_samples == 0) unwritten_epoch_ = state.epoch;
    save(trainer);
  }
}

void Checkpoints::on_epoch(Trainer& trainer, const EpochReport& report) {
  const auto& config = trainer.config();
  const auto& system = config.system;
  const bool due = report.epoch % config.train.ckpt_save_epochs == 0 ||
                   report.epoch == config.scheduler.num_epochs;
  // The loss falls nearly every epoch, so it ranks only the epochs that are saved anyway.
  if (!system.val_while_train && due) record(trainer, report.loss);
  unwritten_epoch_ = report.epoch;
  awaits_figure_ = system.val_while_train && !value_ && evaluates_after(system, report.epoch);
  if (due || new_best_ || asked_) save(trainer);
}

/// For an epoch that was evaluated: the evaluated weights, with a moving average the average.
Checkpoints::DueWeights Checkpoints::take_due_weights() {
  DueWeights due;
  due.best = new_best_;
  if (awaits_figure_) return due;
  const auto epoch = std::exchange(unwritten_epoch_, std::nullopt);
  const auto value = std::exchange(value_, std::nullopt);
  if (epoch) due.epoch = {*epoch, value.value_or(kUnevaluated)};
  due.averaged = value.has_value();
  return due;
}

namespace {

/// The network, with the moving average if there is one.
TensorMap evaluated_weights(const CheckpointContent& content) {
  TensorMap weights = content.model;
  const auto average = content.extra.find(kEmaFile);
  if (average == content.extra.end()) return weights;
  for (auto& [name, tensor] : weights) {
    const auto own = average->second.tensors.find(name);
    if (own != average->second.tensors.end()) tensor = own->second;
  }
  return weights;
}

}  // namespace

/// In the writer's thread. `folder`: of the same content, if any.
void Checkpoints::write_weights(const CheckpointContent& content, const DueWeights& due,
                                const std::filesystem::path& folder) {
  if (!weights_) return;
  const bool has_average = content.extra.contains(kEmaFile);
  const bool same_format = weights_->format() == "safetensors" && !folder.empty();
  const auto in_folder = [&](bool averaged) {
    return same_format && !(averaged && has_average) ? folder / kModelFile
                                                     : std::filesystem::path();
  };
  if (due.epoch) {
    const auto weights = due.averaged ? evaluated_weights(content) : content.model;
    weights_->save_epoch(*due.epoch, weights, in_folder(due.averaged));
  }
  if (!due.best) return;
  const bool is_epochs = due.epoch && due.averaged;
  weights_->save_best(evaluated_weights(content),
                      is_epochs ? weights_->path_of(due.epoch->epoch) : in_folder(true));
}

void Checkpoints::wait_for_disk(Trainer& trainer) {
  const auto limit = std::chrono::seconds(trainer.config().train.disk_timeout_s);
  const auto& dir = trainer.config().train.ckpt_save_dir;
  const ReportedWork work("waiting for the disk");
  do_disk_work(trainer.group(), fmt::format("a checkpoint is written to {}", dir.string()), limit,
               [&] { writer_.wait(); });
}

void Checkpoints::save(Trainer& trainer) {
  auto& state = trainer.state();
  auto extra = averaging_files(trainer.comm_hook_state());
  extra.merge(optimizer_files(trainer.weights(), trainer.optimized()));
  say_notes(trainer);
  if (trainer.rank() == 0) {
    check_disk(trainer.config());
    if (trainer.ema()) extra[kEmaFile] = {trainer.ema()->tensors(), {}};
    state.rng = rng_bytes();
    saved_ = std::make_shared<CheckpointContent>(
        copy_content(trainer.weights(), trainer.optimizer(), state, extra));
    put_in_line({saved_,
                 take_due_weights(),
                 {new_best_, asked_},
                 trainer.config().train.ckpt_save_dir,
                 checkpoint_policy(trainer)});
    writer_.submit([this, limit = trainer.config().train.disk_timeout_s] {
      {
        const MutexLock lock(mutex_);
        writing_until_ = Deadline::after(std::chrono::seconds(limit));
      }
      write_next();
      const MutexLock lock(mutex_);
      writing_until_.reset();
    });
  } else {
    take_due_weights();
  }
  saved_step_ = state.step;
  saved_here_ = true;
  changed_ = new_best_ = asked_ = false;
}

/// On rank 0, where nothing waits for the writer.
void Checkpoints::check_disk(const Config& config) {
  const MutexLock lock(mutex_);
  if (!writing_until_ || !writing_until_->passed()) return;
  throw Error(ErrorCode::kTimeout,
              fmt::format("a checkpoint is written to {}: not done after {} s "
                          "(train.disk_timeout_s)",
                          config.train.ckpt_save_dir.string(), config.train.disk_timeout_s));
}

void Checkpoints::put_in_line(Save save) {
  const MutexLock lock(mutex_);
  waiting_.push_back(std::move(save));
  make_room();
}

/// Drops the oldest first, but keeps the best.
void Checkpoints::make_room() {
  int64_t bytes = 0;
  for (const Save& one : waiting_) bytes += bytes_of(*one.content);
  const auto best =
      std::find_if(waiting_.rbegin(), waiting_.rend(), [](const Save& one) { return one.best(); });
  const Content kept = best == waiting_.rend() ? nullptr : best->content;
  Save& newest = waiting_.back();
  std::deque<Save> rest;
  for (auto one = waiting_.begin(); one + 1 != waiting_.end(); ++one) {
    if (bytes <= room_bytes_ || one->content == kept) {
      rest.push_back(std::move(*one));
      continue;
    }
    bytes -= bytes_of(*one->content);
    newest.reasons.asked |= one->reasons.asked;
    if (std::exchange(told_of_slow_disk_, true)) continue;
    notes_.emplace_back(
        Severity::kWarning,
        fmt::format("the disk is slower than training: the checkpoint of step {} is replaced by "
                    "that of step {}; later ones may be too (reported once)",
                    one->content->state.step, newest.content->state.step));
  }
  rest.push_back(std::move(newest));
  waiting_ = std::move(rest);
}

/// In the writer's thread. Does nothing if make_room() dropped its content.
void Checkpoints::write_next() {
  Save save;
  {
    const MutexLock lock(mutex_);
    if (waiting_.empty()) return;
    save = std::move(waiting_.front());
    waiting_.pop_front();
  }
  if (before_writing_) before_writing_();
  // Files of weights first: a run resumed from the checkpoint assumes that they are written.
  const auto folder = write_checkpoint(
      save.dir, *save.content, save.policy, fence_,
      [&](const std::filesystem::path& staged) { write_weights(*save.content, save.due, staged); });
  note_saved(save.content->state, folder, save.reasons);
}

/// Adds new facts to the newest save, which has `state`; false once its write has begun.
bool Checkpoints::merge_into_waiting(const DueWeights& due, const TrainingState& state, bool best) {
  const MutexLock lock(mutex_);
  if (waiting_.empty() || waiting_.back().content != saved_) return false;
  Save& save = waiting_.back();
  std::string rng = std::move(save.content->state.rng);  // as of the save
  save.content->state = state;
  save.content->state.rng = std::move(rng);
  if (due.epoch) {
    save.due.epoch = due.epoch;
    save.due.averaged = due.averaged;
  }
  save.due.best |= due.best;
  save.reasons.best |= best;
  if (best) make_room();  // an earlier best may wait, which can now be dropped
  return true;
}

/// The tensors of the step's checkpoint stay as they are.
void Checkpoints::add_figure(Trainer& trainer) {
  const auto due = take_due_weights();
  const auto& state = trainer.state();
  if (trainer.rank() == 0 && !merge_into_waiting(due, state, new_best_)) {
    writer_.submit([this, content = saved_, due, state, best = new_best_,
                    dir = trainer.config().train.ckpt_save_dir,
                    policy = checkpoint_policy(trainer)] {
      if (content) write_weights(*content, due, dir / step_folder_name(state.step));
      note_saved(state, update_checkpoint(dir, state, policy, fence_), {.best = best});
    });
  }
  changed_ = new_best_ = false;
}

/// Writes the files of the saved epoch, which got no figure.
void Checkpoints::write_unevaluated() {
  const auto due = take_due_weights();
  if (merge_into_waiting(due, saved_->state, false)) return;
  writer_.submit([this, content = saved_, due] { write_weights(*content, due, {}); });
}

/// In the writer's thread.
void Checkpoints::note_saved(const TrainingState& state, const std::filesystem::path& folder,
                             const Reasons& reasons) {
  const MutexLock lock(mutex_);
  if (reasons.asked) {
    notes_.emplace_back(Severity::kInfo,
                        fmt::format("SIGUSR1: checkpoint saved after step {}", state.step));
  }
  if (reasons.best) {
    notes_.emplace_back(Severity::kInfo, best_is_saved(state));
  } else {
    notes_.emplace_back(Severity::kDebug, fmt::format("Saved {}", folder.string()));
  }
  saved_folders_.push_back({epoch_of(state), state.step, folder.string(), reasons.best});
}

/// Reports finished writes; throws the error of a failed one.
void Checkpoints::say_notes(Trainer& trainer) {
  std::vector<std::pair<Severity, std::string>> notes;
  std::vector<SavedCheckpoint> saved;
  {
    const MutexLock lock(mutex_);
    notes.swap(notes_);
    saved.swap(saved_folders_);
  }
  for (const auto& checkpoint : saved) trainer.saved(checkpoint);
  for (const auto& [severity, text] : notes) log_.write(severity, kTrainLogger, text);
  writer_.idle();
}

void Checkpoints::on_end(Trainer& trainer) {
  awaits_figure_ = false;  // a signal came first
  if (saved_step_ != trainer.state().step || changed_) {
    save(trainer);
  } else if (unwritten_epoch_ && saved_) {
    write_unevaluated();
  }
}

}  // namespace lockstep::inline internal
