#include "lockstep/train/own_data.h"

#include <ATen/Functions.h>
#include <c10/core/ScalarType.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "lockstep/base/mutex.h"
#include "lockstep/distributed_sampler.h"
#include "lockstep/error.h"
#include "lockstep/recipe.h"
#include "lockstep/train/config/weights.h"
#include "lockstep/train/own_call.h"

namespace lockstep::inline internal {
namespace {

/// What the built-in parts of a classifier demand of the first target.
struct TargetDemands {
  std::string taker{};    ///< The loss or metric that takes it; empty: there is none.
  int64_t classes = 0;    ///< Labels are below it, for a built-in loss; 0: any.
  std::string setting{};  ///< That of `classes`.
};

TargetDemands demands_on_targets(const Config& config, bool training) {
  TargetDemands demands;
  if (config.model.type != ModelType::kCls) return demands;  // tasks of text check their columns
  const std::string loss = class_loss_name(config.loss);
  if (training) {
    const bool own_step = config.model.task && config.model.task->training_step;
    if (!own_step) demands.taker = loss;
  } else {
    const auto& names = config.metric.names;
    const auto built_in = std::find_if(names.begin(), names.end(), [&](const auto& name) {
      return find_named(config.metric.own, name) == nullptr;
    });
    if (built_in != names.end()) demands.taker = *built_in;
  }
  if (demands.taker.empty() || loss.empty()) return demands;
  demands.classes = config.model.head.num_classes;
  demands.setting = config.model.task ? "Recipe::num_classes" : "model.head.num_classes";
  return demands;
}

/// "epoch 2, samples 4, 0, 7 and 13 more".
std::string shown_rows(const BatchRows& rows) {
  constexpr size_t kShown = 3;
  const auto first = rows.samples.first(std::min(kShown, rows.samples.size()));
  std::string text = fmt::format("epoch {}, samples {}", rows.epoch + 1, fmt::join(first, ", "));
  const size_t more = rows.samples.size() - first.size();
  return more == 0 ? text : fmt::format("{} and {} more", text, more);
}

/// A registered data set, whose batches are checked: the trainer relies on their rows, networks and
/// losses on their names.
class OwnBatches final : public BatchMaker {
 public:
  struct Use {
    bool training = true;
    bool shuffles = true;  ///< An epoch.
  };

  OwnBatches(std::unique_ptr<const BatchMaker> maker, std::string name, TargetDemands demands,
             Use use)
      : maker_(std::move(maker)), name_(std::move(name)), demands_(std::move(demands)), use_(use) {
    if (!maker_) refuse("made no data set");
    if (maker_->size() < 1) refuse("made a data set without samples");
  }

  int64_t size() const override { return maker_->size(); }

  Batch make(const BatchRows& rows) const override {
    Batch batch = called([&] { return maker_->make(rows); }, [&] { return shown_rows(rows); });
    const bool leaves_out = lacks_rows(batch, rows);
    const int64_t counted = rows.num_counted - (leaves_out ? std::ssize(batch.faults) : 0);
    const int64_t count = leaves_out ? counted : std::ssize(rows.samples);
    check("images", batch.images, count);
    for (const auto& column : batch.targets) check("targets", column, count);
    for (const auto& column : batch.more_inputs) check("more_inputs", column, count);
    check_names(batch);
    check_target(batch.targets, counted);
    if (batch.valid == counted) return batch;
    refuse(fmt::format("made a batch with valid = {}, not {} = {}", batch.valid,
                       leaves_out ? "the number of its rows" : "rows.num_counted", counted));
  }

  std::vector<double> weights() const override {
    auto weights = called([&] { return maker_->weights(); }, [] { return "weights()"; });
    if (weights.empty()) return weights;
    if (!use_.shuffles) refuse("has weights, which draw at random: loader.shuffle must be True");
    if (std::ssize(weights) != size()) {
      refuse(fmt::format("has {} weights for {} samples", weights.size(), size()));
    }
    try {
      weighted_order(weights);
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("{}: {}", name_, error.what()));
    }
    return weights;
  }

 private:
  /// What `call` returns, a call of the data set. Its exceptions get the data set's name, and the
  /// text that `place` returns.
  template <typename Call, typename Place>
  std::invoke_result_t<Call> called(const Call& call, const Place& place) const {
    return call_with_context(call, [&] { return fmt::format("{} failed in {}", name_, place()); });
  }
  /// Whether a batch of an evaluation lacks the rows of unusable samples, each of which has a line
  /// in Batch::faults, and of padding. A built-in data set of files leaves them out, and the
  /// registered one may take its batches.
  bool lacks_rows(const Batch& batch, const BatchRows& rows) const {
    if (use_.training || !batch.images.defined() || batch.images.dim() == 0) return false;
    return batch.images.size(0) < std::ssize(rows.samples);
  }
  /// `counted`: the leading rows that are looked at. The others are padding, of any value.
  void check_target(const Tensors& targets, int64_t counted) const {
    if (demands_.taker.empty()) return;
    if (targets.empty()) refuse(fmt::format("gives no targets; {} needs one", demands_.taker));
    constexpr int64_t kIgnored = -100;  // of libtorch's cross entropy
    const at::Tensor labels = targets.front().narrow(0, 0, counted);
    const bool has_labels = labels.dim() == 1 && labels.is_cpu() &&
                            at::isIntegralType(labels.scalar_type(), /*includeBool=*/false);
    if (demands_.classes == 0 || !has_labels) return;
    const auto outside = labels.lt(0).logical_or(labels.ge(demands_.classes));
    const auto wrong = labels.masked_select(outside.logical_and(labels.ne(kIgnored)));
    if (wrong.numel() == 0) return;
    refuse(fmt::format("has the label {}, {} is {}", wrong[0].item().toLong(), demands_.setting,
                       demands_.classes));
  }
  void check(const char* what, const at::Tensor& column, int64_t rows) const {
    if (!column.defined()) refuse(fmt::format("left Batch::{} undefined", what));
    if (column.dim() > 0 && column.size(0) == rows) return;
    refuse(fmt::format("made Batch::{} of {} rows for {} samples", what,
                       column.dim() > 0 ? column.size(0) : 0, rows));
  }
  void check_names(const Batch& batch) const {
    if (batch.more_inputs.has(batch.images_name)) {
      refuse(fmt::format("named two inputs '{}'", batch.images_name));
    }
    const auto names = fmt::format("inputs [{}] and targets [{}]", shown_names(batch.inputs()),
                                   shown_names(batch.targets));
    const MutexLock lock(mutex_);
    if (names_.empty()) names_ = names;
    if (names != names_) refuse(fmt::format("has batches of {} and of {}", names_, names));
  }
  /// Columns without a name may come and go.
  static std::string shown_names(const Tensors& columns) {
    auto names = columns.names();
    std::erase(names, "");
    return fmt::format("{}", fmt::join(names, ", "));
  }
  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("{} {}", name_, what));
  }

  std::unique_ptr<const BatchMaker> maker_;
  std::string name_;  ///< For errors.
  TargetDemands demands_;
  Use use_;
  mutable Mutex mutex_;
  mutable std::string names_ LOCKSTEP_GUARDED_BY(mutex_);  ///< Of the first batch.
};

}  // namespace

std::unique_ptr<const BatchMaker> make_own_dataset(const Config& config, bool training) {
  const auto& dataset = training ? config.train.dataset : config.eval->dataset;
  const auto name = fmt::format("{}: {}.dataset: '{}'", dataset.where, training ? "train" : "eval",
                                dataset.own->name);
  return std::make_unique<OwnBatches>(
      dataset.own->make({training, static_cast<uint64_t>(config.system.seed)}), name,
      demands_on_targets(config, training),
      OwnBatches::Use{.training = training, .shuffles = config.train.loader.shuffle});
}

}  // namespace lockstep::inline internal
