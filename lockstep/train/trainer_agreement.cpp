// Exchange between the ranks of a trainer besides gradients.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <csignal>

#include "lockstep/base/text.h"
#include "lockstep/error.h"
#include "lockstep/parallel/subtree_reduction.h"
#include "lockstep/parallel/virtual_ranks.h"
#include "lockstep/train/trainer.h"

namespace lockstep::inline internal {
namespace {

using Clock = std::chrono::steady_clock;

/// A rank's loss of a micro-step.
enum LossKind : int32_t { kUsableLoss, kDivergedLoss, kLossOfNoItems };

double in_seconds(Clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

}  // namespace

int signal_of(StopReason reason) {
  switch (reason) {
    case StopReason::kSigterm:
    case StopReason::kMembership:
      return SIGTERM;
    case StopReason::kSigint:
      return SIGINT;
    case StopReason::kSighup:
      return SIGHUP;
    case StopReason::kEpochsDone:
    case StopReason::kMaxSteps:
    case StopReason::kEarlyStopping:
      break;
  }
  return 0;
}

/// Two small concurrent collectives a micro-step, or three if ranks_add_as_tree() is false. They
/// agree on the mean loss and the task's logged values, and on signals, overflows, faults and save
/// requests of any rank. They also exchange whether all ranks have their next batch, and which rank
/// was outside collectives for longest since the last ones. `together_s`: this rank's time in
/// collectives since then. Completes the report, and returns whether loss or gradients overflowed.
bool Trainer::agree(const Losses& own, bool overflow, double together_s, StepReport& report) {
  const double loss = tree_sum(own.losses);
  const int signal = parts_.pending_signal();
  std::vector<double> sums = {loss,
                              static_cast<double>(signal == SIGTERM),
                              static_cast<double>(signal == SIGINT),
                              static_cast<double>(signal == SIGHUP),
                              overflow ? 1.0 : 0.0,
                              static_cast<double>(report.faults.size()),
                              static_cast<double>(report.remarks.size()),
                              parts_.loader.ready(virtual_ranks().count) ? 0.0 : 1.0,
                              parts_.take_save_request && parts_.take_save_request() ? 1.0 : 0.0};
  const size_t first_logged = sums.size();
  for (const auto& of_virtual_ranks : own.logged) sums.push_back(tree_sum(of_virtual_ranks));
  const auto begin = Clock::now();
  const double own_s = in_seconds(begin - together_) - together_s;
  double slowest = with_rank(own_s, rank());
  sums.push_back(own_s);
  auto summed = group().all_reduce(sums.data(), std::ssize(sums), DType::kFloat64, ReduceOp::kSum);
  auto compared = group().all_reduce(&slowest, 1, DType::kFloat64, ReduceOp::kMax);
  summed.wait();
  compared.wait();
  if (!ranks_add_as_tree(virtual_ranks().total, num_ranks())) {
    std::vector<std::vector<double>> rows = {own.losses};
    rows.insert(rows.end(), own.logged.begin(), own.logged.end());
    const auto exact = sum_over_virtual_ranks(group(), virtual_ranks(), rows);
    sums[0] = exact[0];
    std::copy(exact.begin() + 1, exact.end(), sums.begin() + static_cast<ptrdiff_t>(first_logged));
  }
  together_ = Clock::now();
  if (!std::isfinite(sums[0])) {
    if (!drops_overflows(config())) report_divergence(loss, "", own.bad_without_items);
    bad_loss_ = true;
  }
  all_have_data_ = sums[7] == 0;
  save_asked_ = save_asked_ || sums[8] > 0;
  if (sums[3] > 0) pending_stop_ = StopReason::kSighup;
  if (sums[1] > 0) pending_stop_ = StopReason::kSigterm;
  if (sums[2] > 0) pending_stop_ = StopReason::kSigint;
  report.loss = sums[0] / virtual_ranks().total;
  const auto names = log_names();
  for (size_t i = 0; i < names.size(); ++i) {
    report.logged.emplace_back(names[i], sums[first_logged + i] / virtual_ranks().total);
  }
  report.shown = parts_.log_names.size();
  report.faults_of_all = static_cast<int64_t>(sums[5]);
  report.remarks_of_all = static_cast<int64_t>(sums[6]);
  report.waits = split_waits({num_ranks(), sums.back(), slowest}, own_s, rank(),
                             together_s + in_seconds(together_ - begin));
  return sums[4] > 0 || bad_loss_;
}

void Trainer::stop_if_signalled() {
  const int signal = parts_.pending_signal();
  std::array<int32_t, 3> came = {signal == SIGTERM, signal == SIGINT, signal == SIGHUP};
  group().all_reduce(came.data(), came.size(), DType::kInt32, ReduceOp::kSum).wait();
  if (came[2] > 0) stop_ = StopReason::kSighup;
  if (came[0] > 0) stop_ = StopReason::kSigterm;
  if (came[1] > 0) stop_ = StopReason::kSigint;
}

/// A user may end one host alone; ranks of other hosts may already have the news that the job
/// continues. It is requested late, because launchers receive that news with a delay.
void Trainer::ask_whether_job_goes_on() {
  int32_t goes_on = parts_.job_goes_on && parts_.job_goes_on() ? 1 : 0;
  group().all_reduce(&goes_on, 1, DType::kInt32, ReduceOp::kMax).wait();
  if (goes_on > 0) stop_ = StopReason::kMembership;
}

void Trainer::report_divergence(double own_loss, const std::string& part, bool without_items) {
  std::vector<int32_t> causes(static_cast<size_t>(num_ranks()));
  const int32_t own = std::isfinite(own_loss) ? kUsableLoss
                      : without_items         ? kLossOfNoItems
                                              : kDivergedLoss;
  group().all_gather(&own, causes.data(), 1, DType::kInt32).wait();
  std::vector<int> ranks;
  for (int rank = 0; rank < num_ranks(); ++rank) {
    if (causes[static_cast<size_t>(rank)] != kUsableLoss) ranks.push_back(rank);
  }
  const auto any = [&](LossKind kind) {
    return std::find(causes.begin(), causes.end(), kind) != causes.end();
  };
  const bool of_no_items = any(kLossOfNoItems) && !any(kDivergedLoss);
  throw Error(ErrorCode::kDiverged,
              fmt::format("epoch: {} step: {}. Invalid loss{}, terminating training: it is not a "
                          "finite number on rank {}{}",
                          state_.epoch + 1, state_.batch_in_epoch + 1,
                          part.empty() ? "" : fmt::format(" of '{}'", part), rank_list(ranks),
                          of_no_items ? ", whose batch counts 0 items. Its loss must be finite, "
                                        "too: divide a sum by at least 1"
                                      : ". Try a smaller scheduler.lr or train.clip_grad=True"));
}

}  // namespace lockstep::inline internal
