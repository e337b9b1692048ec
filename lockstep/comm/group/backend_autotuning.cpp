#include "lockstep/comm/group/backend_autotuning.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <exception>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/base/log.h"

namespace lockstep::inline internal {
namespace {

constexpr double kCannot = std::numeric_limits<double>::infinity();
constexpr auto kToMeet = std::chrono::seconds(10);
constexpr auto kToMeasure = std::chrono::seconds(30);
constexpr std::array<int64_t, 2> kCounts = {1 << 18, 1 << 21};  // floats: 1 MiB, 8 MiB

double seconds_of_all_reduce(GroupImpl& impl, int64_t count, Deadline deadline) {
  const Waiting waiting{deadline, true};
  const auto buffer = impl.allocate(count * size_of(DType::kFloat32), waiting);
  std::array<double, 3> times{};
  for (int round = -1; round < static_cast<int>(times.size()); ++round) {  // the first one warms up
    impl.barrier(waiting);
    const auto start = std::chrono::steady_clock::now();
    impl.all_reduce(buffer->data(), count, DType::kFloat32, ReduceOp::kSum, waiting);
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    if (round >= 0) times[static_cast<size_t>(round)] = time.count();
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

/// One back end on trial on this rank. A step that fails here returns false instead of throwing, so
/// that all ranks leave the back end together.
class Trial {
 public:
  Trial(const Backend& backend, GroupSpec spec) : backend_(backend), spec_(std::move(spec)) {
    spec_.name += fmt::format("/trial/{}", backend.name);
    spec_.timeout = std::min<std::chrono::milliseconds>(spec_.timeout, kToMeet);
  }

  bool usable() { return backend_.usable(spec_, &why_not_); }
  bool meet() {
    return try_to([this] { impl_ = backend_.create(spec_, Deadline::after(spec_.timeout)); });
  }
  double measure() {
    double seconds = 0;
    const bool done = try_to([&] {
      const auto deadline = Deadline::after(kToMeasure);
      for (const auto count : kCounts) seconds += seconds_of_all_reduce(*impl_, count, deadline);
    });
    if (!done) return kCannot;
    return seconds;
  }

  /// "c10d:gloo 81.2 ms", or why not. `seconds`: as all ranks agreed.
  std::string describe(double seconds) const {
    if (seconds != kCannot) return fmt::format("{} {:.2f} ms", backend_.name, seconds * 1e3);
    return fmt::format("not {}: {}", backend_.name,
                       why_not_.empty() ? "another rank cannot" : why_not_);
  }

 private:
  template <class Step>
  bool try_to(const Step& step) {
    try {
      step();
      return true;
    } catch (const std::exception& error) {
      why_not_ = error.what();
      return false;
    }
  }

  const Backend& backend_;
  GroupSpec spec_;
  std::unique_ptr<GroupImpl> impl_;
  std::string why_not_;
};

/// The largest value of all ranks.
double agree(GroupImpl& referee, double value) {
  const Waiting waiting{Deadline::after(kToMeet + kToMeasure), true};
  referee.all_reduce(&value, 1, DType::kFloat64, ReduceOp::kMax, waiting);
  return value;
}

/// The time that all ranks agree on. `referee` is the group by which they agree.
double measure(Trial& trial, GroupImpl& referee) {
  if (agree(referee, trial.usable() ? 0 : 1) > 0) return kCannot;
  if (agree(referee, trial.meet() ? 0 : 1) > 0) return kCannot;
  return agree(referee, trial.measure());
}

}  // namespace

size_t fastest(std::span<const double> seconds) {
  const auto best = std::min_element(seconds.begin(), seconds.end());
  if (*best > kWorthLeavingTheFirst * seconds.front()) return 0;
  return static_cast<size_t>(best - seconds.begin());
}

const Backend& backend_autotuning(const GroupSpec& spec) {
  const auto all = backends();
  GroupSpec named = spec;
  named.name += "/referee";
  const auto referee = all.front().create(named, Deadline::after(spec.timeout));
  std::vector<double> seconds;
  std::string figures;
  for (const auto& backend : all) {
    Trial trial(backend, spec);
    seconds.push_back(measure(trial, *referee));
    figures += (figures.empty() ? "" : "; ") + trial.describe(seconds.back());
  }
  const Backend& best = all[fastest(seconds)];
  if (spec.rank == 0) {
    log_info(fmt::format("back end between hosts, sums in any order: {} (1 MiB and 8 MiB: {})",
                         best.name, figures));
  }
  return best;
}

}  // namespace lockstep::inline internal
