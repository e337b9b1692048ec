#pragma once
// This header registers parts of one's own for `lockstep train`, under the names that a YAML file
// gives.
//
// Use:
//   const lockstep::NetworkPart kTwoConvs(
//       "two_convs", "two convolutions and a linear layer", [](lockstep::Section& settings) {
//         int64_t width = 16;
//         settings.read("width", width, {1, 4096}, "channels of the first convolution");
//         return [=](int64_t classes) { return std::make_shared<TwoConvs>(width, classes); };
//       });
//
// A part registers where it is defined, before main(): in a program that calls train_main(), or in
// a shared library that `lockstep train --plugin` loads. Each is a function that reads the part's
// settings and returns what makes it; the file may then say `network: {name: two_convs, width: 8}`.
// `lockstep train --list` shows all of them with their settings.
//
// Threads: register and read settings in one thread. Later the trainer calls what the parts made in
// its own thread, but BatchMaker::make() and transforms in several threads at once.
// Cost: settings are read at the begin of a run, once, and those of a task several times
// (recipe.h). Nothing here is collective. Errors: kInvalidArgument, as below. Other exceptions of a
// part end the run.

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "lockstep/picture.h"

namespace at {
class Tensor;
}
namespace torch::optim {
class Optimizer;
}

namespace lockstep::inline internal {
class ConfigSection;
struct Node;
struct Setting;
}  // namespace lockstep::inline internal

namespace lockstep {

// The settings of one part of a run, read by name: a mapping of the configuration, such as
// `model.network` of a YAML file.
//
// Use:
//   int64_t width = 64;
//   section.read("width", width, {1, 4096}, "channels of the first layer");
//
// The variable's initial value is the default, and the last argument is a line for the manual. An
// absent key gets its default in the file args.yaml, which thus has the effective configuration. A
// key that no call reads is an error.
//
// Errors of every call: kInvalidArgument "FILE:LINE: SECTION.KEY must be ..., not '...'". One
// thread.

/// Both ends are allowed.
template <typename T>
struct Range {
  T lo;
  T hi;
};

/// A value and its name in the file.
template <typename T>
struct Named {
  const char* name;
  T value;
};

/// Reads keys of one mapping. A copy reads the same mapping, and knows the keys read so far. The
/// trainer makes it, and calls finish() once the part has read its settings.
class Section {
 public:
  // Each reads `key` into `value`, which keeps its default if the key is absent or null.
  void read(const std::string& key, bool& value, const std::string& about);
  void read(const std::string& key, int64_t& value, Range<int64_t> range, const std::string& about);
  void read(const std::string& key, int& value, Range<int> range, const std::string& about);
  void read(const std::string& key, double& value, Range<double> range, const std::string& about);
  void read(const std::string& key, std::string& value, const std::string& about);
  // Here absent or null is a value of its own.
  void read(const std::string& key, std::optional<bool>& value, const std::string& about);
  template <typename T>
  requires std::is_arithmetic_v<T>
  void read(const std::string& key, std::optional<T>& value, Range<T> range,
            const std::string& about);
  // Lists.
  void read(const std::string& key, std::vector<int64_t>& value, Range<int64_t> range,
            const std::string& about);
  /// A text, or a list of texts.
  void read(const std::string& key, std::vector<std::string>& value, const std::string& about);
  /// N numbers.
  template <typename T, size_t N>
  void read(const std::string& key, std::array<T, N>& value, Range<double> range,
            const std::string& about);
  template <typename T, size_t N>
  void read(const std::string& key, std::optional<std::array<T, N>>& value, Range<double> range,
            const std::string& about);

  /// One of `names`.
  void choose(const std::string& key, std::string& value, const std::vector<std::string>& names,
              const std::string& about);
  /// The same for named values; the first name of the default value represents it.
  template <typename T>
  void choose(const std::string& key, T& value, const std::vector<Named<T>>& names,
              const std::string& about);

  /// Call it before the key is read, which --list then shows as required. Errors: "SECTION.KEY WHY"
  /// if the key is absent or null, unless an unknown key resembles it and is reported; none for
  /// --list.
  void require(const std::string& key, const std::string& why);

  /// The sub-section, created if absent. Call finish() on it. Errors: it is absent, and an unknown
  /// key resembles `key`.
  Section section(const std::string& key);

  /// Present, and not null. The key still has to be read.
  bool has(const std::string& key) const;
  /// Errors: the first key that was not read, with the nearest one that was.
  void finish() const;
  /// Throws "FILE:LINE: SECTION.KEY WHY". The place is that of the key, or of the section if the
  /// key is missing. With an empty key it is about the section: "FILE:LINE: SECTION: WHY".
  [[noreturn]] void fail(const std::string& key, const std::string& why) const;

  /// The section's full name: "train.loader"; empty for the whole file.
  const std::string& path() const { return path_; }
  /// "train.loader.batch_size".
  std::string name_of(const std::string& key) const;

 private:
  friend class internal::ConfigSection;
  template <typename Made>
  friend class Registry;

  /// Calls `read` for the part `name`. Errors: kInvalidArgument if not just one of `names` is it,
  /// or parts read one another without an end.
  void read_part(const std::string& name, const std::vector<std::string>& names,
                 const std::function<void()>& read) const;

  Section(Node& node, std::string path, std::vector<Setting>* settings);
  Node* any(const std::string& key);
  std::vector<double> number_or_list(const std::string& key);
  void record(const std::string& key, const std::string& kind, const std::string& fallback,
              const std::string& about);
  bool present(const std::string& key) const;
  [[noreturn]] void missing(const std::string& key, const std::string& why) const;
  void refuse_misspelt(const std::string& key) const;
  std::string where(const std::string& key) const;
  static std::string kind_of(Range<int64_t> range);
  static std::string kind_of(Range<double> range);
  static std::string list_kind(size_t count, bool whole, Range<double> range);
  static std::string shown_list(const std::vector<double>& numbers);
  Node* value(const std::string& key);
  std::string text(const std::string& key, const std::string& fallback);
  std::vector<std::string> texts(const std::string& key);
  std::string choice(const std::string& key, const std::string& fallback,
                     const std::vector<std::string>& names, const std::string& about);
  /// Errors: `numbers`, the value of `key`, are not `count` numbers within the range.
  void check_list(const std::string& key, const std::vector<double>& numbers, size_t count,
                  bool whole, Range<double> range);
  void fill(const std::string& key, Node node);
  std::string hint(const std::string& key) const;
  [[noreturn]] void unknown(const std::string& place, const std::string& key,
                            const std::string& hint) const;
  [[noreturn]] void wrong(const std::string& key, const Node& node, const std::string& must) const;

  Node* node_;
  std::string path_;
  std::vector<Setting>* settings_;
  std::vector<std::string> known_;
  std::vector<std::string> required_;
};

template <typename T>
void Section::choose(const std::string& key, T& value, const std::vector<Named<T>>& names,
                     const std::string& about) {
  std::vector<std::string> texts;
  std::string fallback;
  for (const auto& [name, one] : names) {
    texts.emplace_back(name);
    if (fallback.empty() && one == value) fallback = name;
  }
  const std::string given = choice(key, fallback, texts, about);
  for (const auto& [name, one] : names) {
    if (given == name) value = one;
  }
}

template <typename T>
requires std::is_arithmetic_v<T>
void Section::read(const std::string& key, std::optional<T>& value, Range<T> range,
                   const std::string& about) {
  if (has(key)) return read(key, value.emplace(), range, about);
  any(key);
  record(key, kind_of(range), "", about);
}

template <typename T, size_t N>
void Section::read(const std::string& key, std::array<T, N>& value, Range<double> range,
                   const std::string& about) {
  constexpr bool whole = std::is_integral_v<T>;
  record(key, list_kind(N, whole, range), shown_list({value.begin(), value.end()}), about);
  const auto numbers = number_or_list(key);
  if (numbers.empty() && !has(key)) return;
  check_list(key, numbers, N, whole, range);
  for (size_t i = 0; i < N; ++i) value[i] = static_cast<T>(numbers[i]);
}

template <typename T, size_t N>
void Section::read(const std::string& key, std::optional<std::array<T, N>>& value,
                   Range<double> range, const std::string& about) {
  if (has(key)) return read(key, value.emplace(), range, about);
  any(key);
  record(key, list_kind(N, std::is_integral_v<T>, range), "", about);
}

class Backbone;
class BatchMaker;
class Metric;
class Model;
class Tensors;  // named_tensors.h
struct Batch;
struct EvalResult;
struct ParameterGroup;

/// `model.network`: a whole network. Every rank calls it with the same state of libtorch's
/// generator, so that all make the same weights. num_classes: model.head.num_classes, or 0; of det
/// 0, of rec model.head.out_channels.
///
/// For text the input is one (N, 3, H, W), and the output one as well. In training it is that of
/// LossFunction. In evaluation, where is_training() is false, it is outputs[0] of MetricMaker.
using NetworkMaker = std::function<std::shared_ptr<Model>(int64_t num_classes)>;

/// `model.backbone.name` of det and rec, for MindOCR's necks and heads. Every rank calls it as
/// NetworkMaker. Images are (N, 3, H, W).
///   det  DBFPN and RSEFPN take four maps. The first has a quarter of the image's rows and columns,
///        rounded up, because DBHead makes it four times as large.
///   rec  RNNEncoder takes the last map. It has one row, and its columns are the frames.
/// Registry::read() makes a built-in one with fresh weights, because `pretrained` is a key of the
/// whole backbone. Those of cls have four maps.
using BackboneMaker = std::function<std::shared_ptr<Backbone>()>;

/// `loss.name`: a scalar, the mean over the batch, with its graph. outputs: the network's, often
/// one. targets: those of the batch. Both have the names that network and data set give them:
/// `outputs["box"]`. An evaluation with ClsMetric computes it, too.
///
/// For text an evaluation has no loss. In training there is one output, in float32 (legend: N
/// images, H rows, W columns, T frames, K classes):
///   det  output (N, 3, H, W): the maps binary, thresh and thresh_binary, from 0 to 1; without
///        `adaptive` of the head (N, 1, H, W), binary alone. targets: binary_map (N, 1, H, W),
///        mask, thresh_map and thresh_mask, (N, H, W) each, float32.
///   rec  output (T, N, K): logits, the blank is class K - 1. targets: text_seq (N, L) int32, the
///        classes of a text, then blanks.
using LossFunction = std::function<at::Tensor(const Tensors& outputs, const Tensors& targets)>;

/// For a loss that is a mean over other items than samples, such as tokens or boxes: their number
/// in a batch, from 0 on. Batches have as many samples, but not as many items. Without it a mean of
/// the batches' means is trained, where each batch counts by its samples. With it the gradients of
/// an optimizer step are those of the mean over all its items: of all virtual ranks, ranks and
/// accumulated batches. A batch of 0 items counts nothing, but its loss must be finite, as
/// sum / max(1, items) is. With the same virtual ranks the bits are those of any number of ranks.
///
/// The losses of steps and epochs, and what log_value() gets, are means over all their items, too.
/// Of no items they are 0, and an epoch's loss is NaN. An evaluation's loss stays a mean over
/// samples.
///
/// The batch is that of one virtual rank, on the CPU, before the network gets it. Threads: that of
/// the trainer. Cost: a reduction of 8 bytes a micro-step, before the forward pass. Errors:
/// kInvalidArgument for a negative number; its own.
using ItemCount = std::function<int64_t(const Batch& batch)>;

/// Logs one number of a batch, a mean over it, as Lightning's self.log does: a term of the loss, or
/// a gradient penalty. Call it within a LossFunction, or a loss of TrainingStep::optimize(). The
/// run's value is the mean over virtual ranks, ranks and accumulated batches, as that of `loss`.
/// With an ItemCount each batch counts by its items. With the same virtual ranks it has the same
/// bits on any number of ranks. It stands in metrics.jsonl, TensorBoard's files, the log's line of
/// a step, and StepFacts::logged. Of several numbers under one name in one call of the loss the
/// last counts. The value is NaN, which metrics.jsonl writes as null, where one of these numbers
/// is, or where some virtual rank or accumulated batch has none. Numbers that are not finite end no
/// run. In an evaluation the numbers are dropped.
///
/// The names are fixed before the run, so that all ranks agree: Recipe::log_names, or those of a
/// LoggedLoss. They differ from the other fields of metrics.jsonl.
///
/// Threads: the one that calls the loss. Cost: 8 bytes for each step and name, in a reduction that
/// a step has anyway. The number is copied at once, and leaves its device together with the loss.
/// Errors: kInvalidArgument for an unknown name, for several numbers, or outside of a loss.
void log_value(const std::string& name, const at::Tensor& value);

/// What a LossPart makes: a loss, with the names of what it gives to log_value(), if any. A
/// function alone becomes one. A built-in loss of text has names, too. A loss that builds on it
/// may take them over; else these numbers are not logged.
struct LoggedLoss {
  LoggedLoss() = default;
  template <typename Function,
            typename = std::enable_if_t<std::is_convertible_v<Function, LossFunction>>>
  LoggedLoss(Function loss, std::vector<std::string> names = {}, ItemCount items = {})
      : function(std::move(loss)), log_names(std::move(names)), num_items(std::move(items)) {}

  LossFunction function{};
  std::vector<std::string> log_names{};
  ItemCount num_items{};  ///< Of what it is a mean over; default: samples.
};

/// `metric.name`. num_classes: as NetworkMaker's; of det 0, of rec model.head.out_channels.
///
/// For text a batch of Metric::sums() has no targets, but text_pictures() of batch.h: what is in
/// each picture, and what the network found there. outputs[0] is (N, 1, H, W) of det, the binary
/// map, and (N, T, K) of rec, probabilities of the classes.
using MetricMaker = std::function<std::unique_ptr<Metric>(int64_t num_classes)>;

/// The use of a data set. seed: system.seed, for random transforms.
struct DatasetUse {
  bool training = true;  ///< For the section `train`, not for `eval`.
  uint64_t seed = 0;
};
/// `train.dataset.type` and `eval.dataset.type`. Every rank makes the whole data set, and the
/// trainer deals the samples to the ranks. For text Batch::images is (N, 3, H, W) float32. To
/// train, targets are those of LossFunction; to evaluate, there are none, but set_text_pictures()
/// of batch.h, whose polygons are in pixels of that image.
///
/// A built-in one that Registry::read() makes is for the section in which its settings are:
/// `train.dataset` or `eval.dataset`. Elsewhere, as in a recipe, it is for both, and `usage`
/// follows DatasetUse. A data set of text cannot be read there; its batches for evaluation may be
/// passed on, but have no text_pictures() to change. Batches are those of the built-in one, but
/// never bytes. Of pictures in files those of an evaluation lack rows: see BatchMaker::make().
/// In `eval` it has the classes of the data set of this type within train.dataset. Several of one
/// type are paired in their order. MixUp, CutMix and shuffle_buffer are refused.
using DatasetMaker = std::function<std::unique_ptr<const BatchMaker>(const DatasetUse& use)>;

/// `optimizer.opt`. groups: the parameters to train, by rate and weight decay (train.h). Group i of
/// the optimizer has those of groups[i]. Checkpoints hold the state of libtorch's optimizers.
using OptimizerOfGroups = std::function<std::unique_ptr<torch::optim::Optimizer>(
    const std::vector<ParameterGroup>& groups)>;

/// A point of a run, for a schedule.
struct SchedulePoint {
  double epoch = 0;  ///< Epochs done, with the part of the current one.
  double step = 0;   ///< The same in micro-steps.
  int64_t steps_per_epoch = 1;
  int64_t num_epochs = 1;
  double lr = 0;  ///< scheduler.lr.
  /// scheduler.warmup_epochs: the rate of these first epochs is the trainer's, not the schedule's.
  /// A built-in schedule within another counts from their end.
  double warmup_epochs = 0;
};
/// `scheduler.scheduler`: the learning rate at a point behind warm-up. It depends on the point
/// alone, so that a resumed run goes on with it. The file has its own keys, and lr, num_epochs,
/// warmup_epochs, warmup_factor and lr_epoch_stair.
using Schedule = std::function<double(const SchedulePoint& point)>;

/// A run that begins, or goes on.
struct RunFacts {
  int rank = 0;
  int num_ranks = 1;
  int64_t optimizer_steps = 0;  ///< Done so far: above 0 if the run goes on from a checkpoint.
  int64_t total_steps = 0;      ///< Optimizer steps of the whole run, unless it ends early.
  std::string folder;           ///< train.ckpt_save_dir.
};

/// A micro-step; with Recipe::training_step, all those of an optimizer step. Numbers are means over
/// the ranks.
struct StepFacts {
  int64_t epoch = 1;          ///< From 1.
  int64_t step_in_epoch = 1;  ///< Micro-steps, from 1.
  int64_t steps_per_epoch = 1;
  int64_t optimizer_steps = 0;  ///< Of the whole run so far.
  double loss = 0;              ///< 0 before the step.
  double lr = 0;
  /// What was given to log_value(), and `loss_PART` of Recipe::optimizers; none before the step.
  std::vector<std::pair<std::string, double>> logged{};
};

/// A checkpoint on the disk.
struct CheckpointFacts {
  int64_t epoch = 1;            ///< In which it was made, from 1.
  int64_t optimizer_steps = 0;  ///< Of the whole run up to it.
  std::string folder;           ///< Later checkpoints may have replaced it.
  bool best = false;            ///< So far, as checkpoints are ranked.
};

/// Called on every rank, at the same points of the run, but for on_saved. An exception ends the
/// run. What a function changes of the network must be the same on all ranks. At amp_level O2 and
/// O3 cast weights are copies. There their gradients still have the loss scale, and what
/// before_step and before_update change of them has no effect.
struct RecipeEvents {
  /// The first event: the weights are there, and no step of this run is done.
  std::function<void(const RunFacts& run)> on_begin{};
  std::function<void(int64_t epoch)> on_epoch_begin{};
  /// The batch is there; the forward pass comes next. `step`: the number that on_step gives, and
  /// the rate.
  std::function<void(Model& network, const StepFacts& step)> before_step{};
  /// The gradients are averaged over the ranks; clipping and the optimizer's step come next. Once
  /// for each optimizer step, or call of TrainingStep::optimize(), that is not left out.
  std::function<void(Model& network)> before_update{};
  std::function<void(const StepFacts& step)> on_step{};
  std::function<void(int64_t epoch, double loss)> on_epoch{};
  /// The network has the weights to evaluate: with train.ema the moving average. on_evaluation
  /// follows unless the evaluation fails, or a signal ends it. Not before the trial with one batch
  /// at the begin of a run.
  std::function<void(Model& network)> before_evaluation{};
  std::function<void(const EvalResult& result)> on_evaluation{};
  /// On rank 0 alone: soon after a checkpoint is written, in the order of the writes. That is
  /// within the next steps, or before on_end. It is called again for a checkpoint whose evaluation
  /// came later, with that. It runs in the training thread, while all ranks wait for at most
  /// parallel.timeout_s, and calls nothing collective: leave an upload to a thread.
  std::function<void(const CheckpointFacts& saved)> on_saved{};
  /// The last event: after the last checkpoint, and before the log announces the end of the run.
  /// Not after an error.
  std::function<void()> on_end{};
  std::function<void(const std::string& why)> on_error{};
};
/// `name` of an item of `callbacks`.
using CallbackMaker = std::function<RecipeEvents()>;

/// Rises when these types or those of picture.h change. A shared library keeps that of its headers.
constexpr int kPartVersion = 7;

/// A part by name. `read` must read every key that the part has, whatever their values.
template <typename Made>
struct NamedPart {
  std::string name;
  std::string about;  ///< One line, for --list.
  std::function<Made(Section& settings)> read;
  int version = kPartVersion;
  /// Lockstep's own, of any kind but networks. A configuration that names it does not call `read`.
  bool built_in = false;
};

/// The parts of one kind: the built-in ones, then those that a program registered.
template <typename Made>
class Registry {
 public:
  Registry() = default;
  explicit Registry(std::vector<NamedPart<Made>> built_in) : parts_(std::move(built_in)) {}

  /// Call it before main(), or while one thread runs. A name that is given twice, or is that of a
  /// built-in part of the kind, is an error once a configuration has it.
  void add(NamedPart<Made> part) { parts_.push_back(std::move(part)); }
  /// As add(), in the place of earlier ones of that name that are not built in.
  void put(NamedPart<Made> part) {
    std::erase_if(parts_, [&](const auto& earlier) {
      return earlier.name == part.name && !earlier.built_in;
    });
    put_names_.push_back(part.name);
    parts_.push_back(std::move(part));
  }
  const std::vector<NamedPart<Made>>& parts() const { return parts_; }
  /// Those that were given to put().
  const std::vector<std::string>& put_names() const { return put_names_; }

  /// What the part `name` makes. A part of one's own can so build on it: a loss with one more term,
  /// or a schedule that ends otherwise. Call it where that part reads its own settings. The other's
  /// settings are read out of `settings`, under the names that --list shows. Give it
  /// settings.section("base") to keep the two apart.
  ///
  /// Errors: kInvalidArgument for an unknown name, with the nearest one, and for one that several
  /// parts have. Those of the part's reader. A built-in part that works as a whole alone is an
  /// error with the reason. So are parts that read one another without an end.
  Made read(const std::string& name, Section& settings) const {
    std::vector<std::string> names;
    const NamedPart<Made>* found = nullptr;
    for (const auto& part : parts_) {
      names.push_back(part.name);
      if (part.name == name) found = &part;
    }
    std::optional<Made> made;
    settings.read_part(name, names, [&] { made = found->read(settings); });
    return *std::move(made);
  }

 private:
  std::vector<NamedPart<Made>> parts_;
  std::vector<std::string> put_names_;
};

/// The zoo's networks are added when training or make_part() begins. A part that was given to put()
/// by then keeps its name; one of add() is an error, as any name that is given twice.
Registry<NetworkMaker>& networks();
Registry<BackboneMaker>& backbones();
Registry<LoggedLoss>& losses();
Registry<MetricMaker>& metrics();
Registry<DatasetMaker>& datasets();
Registry<PictureTransform>& transforms();
Registry<OptimizerOfGroups>& optimizers();
Registry<Schedule>& schedules();
Registry<CallbackMaker>& callbacks();

/// An object that registers a part, as in the example above.
template <typename Made, Registry<Made>& (*kRegistry)()>
struct RegisteredPart {
  RegisteredPart(std::string name, std::string about, std::function<Made(Section&)> read) {
    kRegistry().add({std::move(name), std::move(about), std::move(read)});
  }
};
using NetworkPart = RegisteredPart<NetworkMaker, networks>;
using BackbonePart = RegisteredPart<BackboneMaker, backbones>;
using LossPart = RegisteredPart<LoggedLoss, losses>;
using MetricPart = RegisteredPart<MetricMaker, metrics>;
using DatasetPart = RegisteredPart<DatasetMaker, datasets>;
using OptimizerPart = RegisteredPart<OptimizerOfGroups, optimizers>;
using SchedulePart = RegisteredPart<Schedule, schedules>;
using CallbackPart = RegisteredPart<CallbackMaker, callbacks>;

/// `Name: {settings}` in transform_pipeline: see picture.h. `read`: a function of (Section&) that
/// returns a function of a picture; the latter's form is checked when it is compiled.
struct TransformPart : RegisteredPart<PictureTransform, transforms> {
  template <typename Read>
  TransformPart(std::string name, std::string about, Read read)
      : RegisteredPart(std::move(name), std::move(about),
                       [read = std::move(read)](Section& settings) mutable -> PictureTransform {
                         return picture_transform(read(settings));
                       }) {}
};

}  // namespace lockstep
