#include "lockstep/observe/rank_waits.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace lockstep::inline internal {
namespace {

constexpr int64_t kRanks = int64_t{1} << 20;
constexpr int64_t kMostMicroseconds = (int64_t{1} << 33) - 1;  // 2^53 is exact in a double

}  // namespace

double with_rank(double own_s, int rank) {
  const auto time = std::clamp(static_cast<int64_t>(own_s * 1e6), int64_t{0}, kMostMicroseconds);
  return static_cast<double>(time * kRanks + (kRanks - 1 - rank));
}

StepWaits split_waits(const OwnTimes& all, double own_s, int rank, double together_s) {
  StepWaits waits;
  waits.moved_s = together_s;
  if (all.ranks < 2) return waits;
  const auto most = static_cast<int64_t>(all.most);
  const int64_t most_us = most / kRanks;
  const double most_s = static_cast<double>(most_us) / 1e6;
  waits.slowest = static_cast<int>(kRanks - 1 - most % kRanks);
  if (waits.slowest == rank) {
    waits.others_s = std::max(0.0, own_s - (all.sum_s - own_s) / (all.ranks - 1));
  } else {
    waits.waited_s = std::clamp(most_s - own_s, 0.0, std::max(together_s, 0.0));
    waits.moved_s = together_s - waits.waited_s;
  }
  return waits;
}

void WaitSums::add(const StepWaits& waits, double step_s) {
  seconds_ += step_s;
  waited_s_ += waits.waited_s;
  moved_s_ += waits.moved_s;
  others_s_ += waits.others_s;
  if (waits.others_s > 0) this_rank_ = waits.slowest;
  if (waits.slowest >= 0) by_rank_[waits.slowest] += waits.waited_s;
}

void WaitSums::fade(double factor) {
  for (double* sum : {&seconds_, &waited_s_, &moved_s_, &others_s_}) *sum *= factor;
  for (auto& [rank, sum] : by_rank_) sum *= factor;
}

double WaitSums::percent(double part_s) const {
  return seconds_ > 0 ? std::min(100 * part_s / seconds_, 100.0) : 0;
}

int WaitSums::awaited() const {
  constexpr double kMostOfIt = 0.6;
  if (percent(waited_s_) < kMuchWaitingPercent) return -1;
  for (const auto& [rank, waited_s] : by_rank_) {
    if (waited_s >= kMostOfIt * waited_s_) return rank;
  }
  return -1;
}

std::string WaitSums::text() const {
  std::string moved = fmt::format("communication: {:.1f} %", percent(moved_s_));
  if (by_rank_.empty()) return moved;
  const int rank = awaited();
  std::string text =
      rank < 0 ? "waiting for other ranks" : fmt::format("waiting for rank {}", rank);
  text += fmt::format(": {:.1f} %, {}", percent(waited_s_), moved);
  if (percent(others_s_) >= kMuchWaitingPercent) {
    text += fmt::format(", others waited for this rank: {:.1f} %", percent(others_s_));
  }
  return text;
}

std::string WaitSums::note() const {
  if (const int rank = awaited(); rank >= 0) {
    return fmt::format("waiting for rank {}: {:.0f} %", rank, percent(waited_s_));
  }
  if (percent(others_s_) < kMuchWaitingPercent) return "";
  return fmt::format("others wait for rank {}: {:.0f} %", this_rank_, percent(others_s_));
}

}  // namespace lockstep::inline internal
