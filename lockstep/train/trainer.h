#pragma once
// The training loop. Log, evaluation, checkpoints and results are callbacks.

#include <torch/optim/optimizer.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/amp/master_weights.h"
#include "lockstep/checkpoint_folder.h"
#include "lockstep/data/batch_source.h"
#include "lockstep/distributed_data_parallel.h"
#include "lockstep/distributed_sampler.h"
#include "lockstep/model.h"
#include "lockstep/parallel/sync_batch_norm_layers.h"
#include "lockstep/process_group.h"
#include "lockstep/train.h"
#include "lockstep/train/called_module.h"
#include "lockstep/train/config/config.h"
#include "lockstep/train/ema.h"
#include "lockstep/train/evaluate.h"
#include "lockstep/train/log_lines.h"
#include "lockstep/train/optim/optimizer.h"
#include "lockstep/train/optim/parameter_groups.h"
#include "lockstep/train/optimized_parts.h"
#include "lockstep/train/task/task.h"

namespace lockstep::inline internal {

class Trainer;

struct SavedCheckpoint {
  int64_t epoch = 1;  ///< See epoch_of().
  int64_t step = 0;
  std::string path;
  bool best = false;  ///< So far.
};

/// Called on every rank, in the order in which callbacks were added. An exception ends the run.
class Callback {
 public:
  virtual ~Callback() = default;
  virtual void on_start(Trainer&) {}
  /// After all have started, before the first step: a callback may evaluate here.
  virtual void on_begin(Trainer&) {}
  virtual void on_epoch_begin(Trainer&, int64_t epoch) { static_cast<void>(epoch); }  ///< From 1.
  /// The batches are there. `next` has the numbers that on_step() will give, and no results yet.
  virtual void before_step(Trainer&, const StepReport& next) { static_cast<void>(next); }
  /// The averaged gradients are there, and unscaled; clipping and the optimizer's step come next.
  virtual void before_update(Trainer&) {}
  /// After each micro-step; with training_step, after all those of an optimizer step.
  virtual void on_step(Trainer&, const StepReport&) {}
  virtual void on_epoch(Trainer&, const EpochReport&) {}      ///< After each whole epoch.
  virtual void before_evaluation(Trainer&) {}                 ///< See Trainer::evaluates().
  virtual void on_evaluation(Trainer&, const EvalResult&) {}  ///< See Trainer::evaluated().
  /// See Trainer::evaluation_failed().
  virtual void on_evaluation_failed(Trainer&, const std::string& why) { static_cast<void>(why); }
  /// On rank 0, soon after a checkpoint is written.
  virtual void on_saved(Trainer&, const SavedCheckpoint&) {}
  /// A sample of this rank could not be evaluated.
  virtual void on_fault(Trainer&, const std::string& line) { static_cast<void>(line); }
  /// After each batch of an evaluation.
  virtual void on_evaluated(Trainer&, const EvalState& state) { static_cast<void>(state); }
  virtual void on_end(Trainer&) {}  ///< Not after an error.
  /// After all have ended: waits for pending work and reports it.
  virtual void on_close(Trainer&) {}
  /// After all have closed without an error: announces the end.
  virtual void on_closed(Trainer&) {}
};

/// The inputs of a trainer; the caller owns them and keeps them until fit() returns.
struct TrainerParts {
  const Config& config;
  int rank = 0;
  int num_ranks = 1;
  ProcessGroup group;
  std::shared_ptr<Model> model;
  torch::optim::Optimizer& optimizer;  ///< For rates of its groups see GroupRates.
  Task& task;
  BatchSource& loader;                        ///< Its parts are the rank's virtual ranks.
  std::span<DistributedSampler> samplers;     ///< One for each of the rank's virtual ranks.
  std::function<int()> pending_signal;        ///< See SignalWatch::pending().
  MasterWeights* masters = nullptr;           ///< Of the model; for amp_level O2 and O3.
  Ema* ema = nullptr;                         ///< Of the saved weights; for train.ema.
  std::function<bool()> take_save_request{};  ///< See SignalWatch; none: never.
  std::function<bool()> job_goes_on{};        ///< See progress.h; none: the job never continues.
  /// With training_step: at least one; the optimizer of the first is `optimizer`.
  std::vector<OptimizedPart> optimized{};
  std::function<void(TrainingStep&)> training_step{};  ///< See Recipe.
  std::vector<std::string> log_names{};  ///< For log_value(), beside Task::log_names().
  bool with_replacement = false;         ///< See DataParts.
};

/// The optimizer step of micro-step `index` (from 0) of an epoch.
struct AccumulationSlot {
  int64_t first = 0;  ///< Its first micro-step.
  int64_t size = 1;   ///< Its micro-steps.
  bool last = true;   ///< Whether `index` is the last of them.
};
AccumulationSlot accumulation_slot(int64_t index, int64_t steps_per_epoch, int64_t accumulation);

/// After so many dropped optimizer steps in a row the run has diverged.
constexpr int kMaxDropsInARow = 100;

/// kMembership: SIGTERM came because hosts of an elastic job joined or left, and the job continues.
enum class StopReason {
  kEpochsDone,
  kMaxSteps,
  kEarlyStopping,
  kSigterm,
  kSigint,
  kSighup,
  kMembership
};
/// The signal of this reason; 0 for none.
int signal_of(StopReason reason);

/// Runs epochs of micro-steps: batch, forward, backward. One optimizer step follows
/// gradient_accumulation_steps of them, with the gradient of the mean over all their samples on all
/// ranks. The last optimizer step of an epoch takes the remaining micro-steps, and the last
/// micro-step the remaining samples.
///
/// With parallel.virtual_ranks a rank takes one batch for each of its virtual ranks. Losses,
/// weights and optimizer state then have the same bits on any number of ranks up to that of the
/// virtual ranks. This holds also if a run resumes with another number of ranks. Random numbers of
/// a forward pass from libtorch's generator (dropout) depend on (system.seed, micro-step, virtual
/// rank) alone. They do so without parallel.virtual_ranks, too.
///
/// Batches are copied to the device of the model's parameters; see compute_device.h. Dropout on
/// CUDA draws from that device's generator, seeded in the same way.
///
/// Every rank runs the same steps. Once a micro-step the ranks agree on loss and signals. SIGTERM,
/// SIGINT or SIGHUP on any rank ends the run on all of them after the current optimizer step.
/// SIGUSR1 on any rank requests a checkpoint after it.
///
/// With a loss_scaler, or drop_overflow_update, each optimizer step checks that all averaged
/// gradients are finite; the same reduction makes all ranks agree. A step with a gradient or loss
/// that is not finite is dropped (see drops_overflows()). Weights, optimizer state and the
/// learning-rate schedule then keep their values; so do buffers if the loss was not finite. The
/// loss scale shrinks, and the batches are spent. kMaxDropsInARow of them end the run. For steps
/// with several optimizers see TrainingStep::optimize().
///
/// Evaluations at the ends of epochs count for the schedule reduce_on_plateau and for
/// train.early_stopping. Their values are exact and the same on all ranks, so all ranks reduce the
/// rate, or end the run, alike.
///
/// The state (see TrainingState) records at any callback which steps are in the weights. A run
/// started from a saved one has the bits of an uninterrupted run. A run can also resume, even
/// within an epoch, with another number of ranks or virtual ranks, or with other batches. The
/// samples used so far are a prefix of the epoch's order, and the rest is dealt to the present
/// ranks. Every sample of the epoch is used once, except for the padding at its end, and the
/// samples that drop_remainder drops.
class Trainer {
 public:
  /// Collective (see DistributedDataParallel). `state`: the start; empty for a new run.
  /// `averaging`: this rank's saved state of averaging, if any; see averaging_note(). Errors: those
  /// of check_resumable() and, with val_while_train, check_main_indicator(); kInvalidArgument for
  /// parallel.sync_bn without a batch norm layer.
  Trainer(TrainerParts parts, TrainingState state, const CommHookState& averaging = {});

  void add(std::shared_ptr<Callback> callback) { callbacks_.push_back(std::move(callback)); }

  /// Trains until num_epochs, max_steps or a signal. Errors: those of the group, the loader and the
  /// callbacks; kDiverged naming step and ranks. The latter reports a loss that is not finite, or
  /// gradients that overflow, if such steps are not dropped or are too frequent. The weights are
  /// then those of the step before; with training_step, those before the call of optimize() whose
  /// loss it is.
  StopReason fit();

  /// For the callback that evaluates: notifies the others. The model has the weights to evaluate.
  void evaluates();
  /// The same: takes the result into account and notifies the others.
  void evaluated(const EvalResult& result);
  /// Errors: kInvalidArgument if the result lacks a value that schedule or early stopping watch.
  void check_watched_values(const EvalResult& result) const;
  /// Lines about the last evaluation's consequences, for the log.
  const std::vector<std::string>& watch_notes() const { return watch_notes_; }
  /// The rate was reduced after the last evaluation.
  bool rate_reduced() const { return rate_reduced_; }
  /// Ends the run after the current step or evaluation; the same call on all ranks.
  void stop(StopReason reason) { stop_ = reason; }
  /// The failure costs the figure, not the run.
  void evaluation_failed(const std::string& why);
  void report_fault(const std::string& line);
  void report_evaluated(const EvalState& state);
  void saved(const SavedCheckpoint& checkpoint);
  /// Whether a signal that requests the end has come to this rank.
  bool signalled() const { return parts_.pending_signal() != 0; }
  /// Collective: ends the run now if a signal came to any rank. Not within an optimizer step.
  void stop_if_signalled();

  /// Whether a checkpoint was requested since the last call; the same on all ranks.
  bool take_save_request() { return std::exchange(save_asked_, false); }

  const Config& config() const { return parts_.config; }
  int rank() const { return parts_.rank; }
  int num_ranks() const { return parts_.num_ranks; }
  const VirtualRankRange& virtual_ranks() const { return trained_.front()->ddp.virtual_ranks(); }
  ProcessGroup& group() { return parts_.group; }
  Task& task() { return parts_.task; }
  Model& model() { return *parts_.model; }  ///< The module that computes.
  /// The weights to save: float32, under the model's names; the model itself in O0 and O1.
  torch::nn::Module& weights();
  const Ema* ema() const { return parts_.ema; }
  torch::optim::Optimizer& optimizer() { return parts_.optimizer; }
  /// The first has optimizer().
  const std::vector<OptimizedPart>& optimized() const { return parts_.optimized; }
  TrainingState& state() { return state_; }
  /// Collective; see DistributedDataParallel::comm_hook_state().
  std::vector<CommHookState> comm_hook_state() { return trained_.front()->ddp.comm_hook_state(); }
  /// The reason why the saved state of averaging is not used; empty: it is, or there was none.
  const std::string& averaging_note() const { return averaging_note_; }
  int64_t steps_per_epoch() const { return steps_per_epoch_; }
  int64_t samples_a_virtual_rank() const { return samples_a_virtual_rank_; }
  /// Optimizer steps of the whole run, limited by epochs and max_steps.
  int64_t total_steps() const { return total_steps_; }
  /// The treatment of an epoch that other ranks, or other batches, had begun; empty: there was
  /// none.
  const std::string& dealing_note() const { return dealing_note_; }
  StopReason stop_reason() const { return stop_; }
  /// Whether epochs, max_steps and early stopping leave anything to train.
  bool has_steps_left() const;
  /// The patience of train.early_stopping is used up, and epochs are left.
  bool stopped_early() const;
  /// Names of StepReport::logged: fields of metrics.jsonl beside the loss.
  std::vector<std::string> log_names() const;
  /// The slowest rank of the last steps, if any; see WaitSums::note().
  std::string waits_note() const { return recent_waits_.note(); }

 private:
  friend class AveragedWeights;
  void swap_average();
  bool finished() const;
  void begin_watching();
  void watch(const EvalResult& result);
  void watch_plateau(const EvalResult& result);
  void watch_for_the_end(const EvalResult& result);
  void ask_whether_job_goes_on();
  int64_t dataset_size() const { return parts_.samplers.front().dataset_size(); }
  void take_up(const TrainingState& saved);
  void run_epoch();
  EpochOrder remaining_order();
  int64_t micro_steps(int64_t samples_a_virtual_rank, int64_t taken) const;
  EpochOrder dealt(int64_t epoch, int64_t taken, int64_t padding);
  void read_ahead();
  /// Of a micro-step, one for each of the rank's virtual ranks.
  using MicroBatches = std::vector<Batch>;
  MicroBatches read_micro_step();
  MicroBatches next_micro_step();
  std::vector<MicroBatches> next_micro_steps();
  AccumulationSlot slot_of_step() const;
  double current_rate() const;
  StepReport report_before(const std::vector<MicroBatches>& micro_steps) const;
  StepReport take_step(const std::vector<MicroBatches>& micro_steps);
  void count_samples(const StepReport& report);
  struct Losses {  ///< Of this rank's virtual ranks.
    std::vector<double> losses;
    std::vector<std::vector<double>> logged;  ///< By name, then by virtual rank.
    /// With ItemCount: some are not finite, and the batches of all these have no items.
    bool bad_without_items = false;
  };
  /// A call of the network. micro_step: counted from the current one; phase: of several in it.
  struct Turn {
    int virtual_rank = 0;
    int64_t micro_step = 0;
    uint64_t phase = 0;
  };
  Batch begin_virtual_rank(const MicroBatches& batches, const Turn& turn);
  double parts_of_step(const AccumulationSlot& slot, const Batch& batch) const;
  std::vector<double> item_shares(const MicroBatches& batches, const AccumulationSlot& slot,
                                  StepReport& report);
  bool begins_step(const AccumulationSlot& slot) const;
  Losses make_gradients(const std::vector<MicroBatches>& micro_steps, const AccumulationSlot& slot,
                        StepReport& report);
  Losses forward_backward(const MicroBatches& batches, const AccumulationSlot& slot,
                          StepReport& report);
  class ManualStep;
  Losses step_manually(const std::vector<MicroBatches>& micro_steps, const AccumulationSlot& slot,
                       StepReport& report);
  bool agree(const Losses& losses, bool overflow, double together_s, StepReport& report);
  /// `part`: of several optimizers' parts, the one whose loss it is. without_items: see Losses.
  [[noreturn]] void report_divergence(double own_loss, const std::string& part = "",
                                      bool without_items = false);
  void make_masters_equal();
  /// The same for gradients; the call is not collective.
  [[noreturn]] void report_overflow(const std::string& part = "") const;
  void keep_buffers(const AccumulationSlot& slot);
  std::optional<double> update(double lr);
  void count_update();
  void count_overflow(bool overflow, const std::vector<std::string>& parts);
  void drop_update(const AccumulationSlot& slot);
  void end_step(bool overflow, const StepReport& report);
  double loss_scale() const { return state_.loss_scale ? state_.loss_scale->scale : 1; }

  TrainerParts parts_;
  TrainingState state_;
  /// A part of the model, averaged over the ranks. Without training_step there is one: all of it.
  struct TrainedPart {
    TrainedPart(std::string name_of_part, std::shared_ptr<torch::nn::Module> module,
                torch::optim::Optimizer& its_optimizer, const TrainerParts& parts);
    std::string name;
    DistributedDataParallel<CalledModule> ddp;
    torch::optim::Optimizer& optimizer;
    std::vector<at::Tensor> parameters;  ///< Those of the optimizer.
    GroupRates rates;
  };
  static std::vector<std::unique_ptr<TrainedPart>> make_trained(const TrainerParts& parts);
  bool gradients_overflow(const TrainedPart& part) const;
  DistributedDataParallel<CalledModule>& ddp() { return trained_.front()->ddp; }
  const DistributedDataParallel<CalledModule>& ddp() const { return trained_.front()->ddp; }
  void zero_grad();

  std::vector<std::unique_ptr<TrainedPart>> trained_;
  std::vector<std::string> value_names_;  ///< Those that log_value() takes.
  std::string averaging_note_;
  KeptStatistics kept_statistics_;
  at::Device device_;
  int64_t samples_a_virtual_rank_;  ///< In an epoch.
  double rate_factor_;              ///< Of all rates; see parallel.scale_rate.
  /// The begin of the current epoch in this run: its first micro-step, and the samples of each
  /// virtual rank from there on. Optimizer steps are counted from there.
  struct Part {
    int64_t first_batch = 0;
    int64_t samples_a_virtual_rank = 0;
    int64_t padding = 0;  ///< Of them; see more_padding().
  };
  Part part_;
  std::optional<EpochOrder> next_order_;  ///< Of the next epoch, once announced.
  std::vector<std::shared_ptr<Callback>> callbacks_;
  int64_t steps_per_epoch_;
  int64_t total_steps_ = 0;
  std::string dealing_note_;
  StopReason stop_ = StopReason::kEpochsDone;
  std::vector<std::string> watch_notes_;
  bool rate_reduced_ = false;
  std::optional<StopReason> pending_stop_;  // for the end of the current optimizer step
  bool save_asked_ = false;                 // by a signal on any rank
  std::vector<at::Tensor> buffers_;         // before that step; kept if it may be dropped
  bool bad_loss_ = false;                   // in that step
  /// Numbers of ItemCount in this optimizer step, over all ranks.
  struct StepItems {
    double of_last = 1;  ///< In the last micro-step so far; at least 1.
    double of_all = 0;   ///< In all micro-steps so far; 0 without ItemCount.
    /// Gradients are added up as those of: sum over items / unit. It is near to what of_all will
    /// be, so that they are as large as those of the mean.
    double unit = 1;
  };
  StepItems items_;
  int drops_in_a_row_ = 0;
  std::vector<std::string> parts_in_a_row_;         // of several optimizers: those of these drops
  std::chrono::steady_clock::time_point together_;  // last time that all ranks met, in agree()
  /// Time so far in collectives that are in no StepTimings: those of synchronised batch norm, and
  /// of losses before an update.
  std::shared_ptr<CollectiveTime> inner_time_ = std::make_shared<CollectiveTime>();
  WaitSums recent_waits_;
  bool all_have_data_ = false;    // the next batch waits for no rank's disk
  double waited_for_data_s_ = 0;  // waiting for other ranks' data, in this step
};

/// During its lifetime the network has the values of its moving average, if any: for evaluation or
/// saving.
class AveragedWeights {
 public:
  explicit AveragedWeights(Trainer& trainer) : trainer_(trainer) { trainer_.swap_average(); }
  ~AveragedWeights() { trainer_.swap_average(); }
  AveragedWeights(const AveragedWeights&) = delete;
  AveragedWeights& operator=(const AveragedWeights&) = delete;

 private:
  Trainer& trainer_;
};

}  // namespace lockstep::inline internal
