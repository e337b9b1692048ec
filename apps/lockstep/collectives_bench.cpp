#include "apps/lockstep/collectives_bench.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "apps/bench_ranks.h"
#include "apps/lockstep/memory_ceiling.h"
#include "lockstep/base/auth.h"
#include "lockstep/base/env.h"
#include "lockstep/base/text.h"
#include "lockstep/base/unique_fd.h"
#include "lockstep/error.h"
#include "lockstep/process_group.h"
#include "lockstep/store/tcp/tcp_store.h"

namespace lockstep::app {
namespace {

using Clock = std::chrono::steady_clock;

constexpr char kErrorBegin[] = "lockstep bench: error";

int64_t parse_size(std::string text) {
  const std::string whole = text;
  int shift = 0;
  const size_t unit = std::string("KMG").find(text.empty() ? ' ' : text.back());
  if (unit != std::string::npos) {
    shift = 10 * static_cast<int>(unit + 1);
    text.pop_back();
  }
  const int64_t size = parse_int(text, 1, int64_t{1} << 30, "size '" + whole + "'") << shift;
  if (size >= 4 && size <= int64_t{1} << 34) return size;
  throw Error(ErrorCode::kInvalidArgument, "size '" + whole + "' is not in 4 to 16G");
}

/// One rank's work for one size.
class RankBench {
 public:
  /// `ceiling`: null to measure none.
  RankBench(const CollectivesBench& bench, ProcessGroup& group, MemoryCeiling* ceiling,
            int64_t bytes)
      : bench_(bench), group_(group), ceiling_(ceiling), operate_(operation()) {
    const int64_t ranks = group.size();
    part_ = std::max<int64_t>(bytes / 4 / ranks, 1);
    count_ = splits() ? part_ * ranks : bytes / 4;
    in_ = memory(count_);
    out_ = splits() || sends() ? memory(count_) : in_;
  }

  CollectivesResult run() {
    for (int i = 0; i < 3; ++i) operate_();
    const int fitting = static_cast<int>(std::min(bench_.seconds / 20 / round(1), 1e6));
    const int repeats = bench_.steady ? most_repeats() : std::clamp(fitting, 1, most_repeats());
    std::vector<double> times;
    std::vector<double> ideal;
    const double first = round(repeats);
    const auto rounds = std::clamp(static_cast<int>(bench_.seconds / 2 / (first * repeats)),
                                   bench_.rounds, std::max(bench_.rounds, 400));
    for (int i = 0; i < rounds; ++i) {
      times.push_back(round(repeats));
      if (sends()) ideal.push_back(slowest(copy()));
      if (ceiling_ == nullptr || sends()) continue;
      ideal.push_back(slowest(ceiling_->pass(bench_.op.c_str(), group_.rank(), count_ * 4)));
    }
    return summary(std::move(times), std::move(ideal));
  }

 private:
  bool sends() const { return bench_.op == "send"; }
  bool splits() const { return bench_.op == "all_gather" || bench_.op == "reduce_scatter"; }

  float* memory(int64_t count) {
    if (bench_.memory == "own") {
      shared_.push_back(group_.allocate(count * 4));
      return static_cast<float*>(shared_.back()->data());
    }
    return user_.emplace_back(static_cast<size_t>(count)).data();
  }

  /// Chosen once: a comparison of names would cost a good part of a barrier.
  std::function<void()> operation() {
    constexpr DType kType = DType::kFloat32;
    constexpr ReduceOp kSum = ReduceOp::kSum;
    if (bench_.op == "all_reduce") {
      return [this] { group_.all_reduce(in_, count_, kType, kSum).wait(); };
    }
    if (bench_.op == "broadcast") return [this] { group_.broadcast(in_, count_, kType, 0).wait(); };
    if (bench_.op == "all_gather") {
      return [this] { group_.all_gather(in_, out_, part_, kType).wait(); };
    }
    if (bench_.op == "reduce_scatter") {
      return [this] { group_.reduce_scatter(in_, out_, part_, kType, kSum).wait(); };
    }
    if (sends()) return [this] { ping_pong(); };
    return [this] { group_.barrier(); };
  }

  /// A message in each direction, between ranks 0 and 1, 2 and 3, and so on.
  void ping_pong() {
    const int partner = group_.rank() ^ 1;
    if (partner >= group_.size()) return;
    const bool begins = partner > group_.rank();
    if (begins) group_.send(in_, count_, DType::kFloat32, partner).wait();
    group_.recv(out_, count_, DType::kFloat32, partner).wait();
    if (!begins) group_.send(in_, count_, DType::kFloat32, partner).wait();
  }

  /// Seconds of a copy by one thread.
  double copy() {
    const auto start = Clock::now();
    if (group_.rank() % 2 == 0) std::memcpy(out_, in_, static_cast<size_t>(count_ * 4));
    return std::chrono::duration<double>(Clock::now() - start).count();
  }

  /// Calls back to back, so that the clock and the start do not count for small messages.
  int most_repeats() const {
    const int64_t bytes = count_ * 4;
    return bytes <= 1 << 10    ? 200
           : bytes <= 1 << 16  ? 100
           : bytes <= 1 << 20  ? 20
           : bytes <= 16 << 20 ? 3
                               : 1;
  }

  double slowest(double seconds) {
    group_.all_reduce(&seconds, 1, DType::kFloat64, ReduceOp::kMax).wait();
    return seconds;
  }

  /// Seconds of one operation, the slowest rank's.
  double round(int repeats) {
    group_.barrier();
    const auto start = Clock::now();
    for (int i = 0; i < repeats; ++i) operate_();
    const int calls = repeats * (sends() ? 2 : 1);
    return slowest(std::chrono::duration<double>(Clock::now() - start).count() / calls);
  }

  double bus_factor() const {
    const double ranks = group_.size();
    if (bench_.op == "all_reduce") return 2 * (ranks - 1) / ranks;
    return splits() ? (ranks - 1) / ranks : 1;
  }

  CollectivesResult summary(std::vector<double> times, std::vector<double> ideal) const {
    std::sort(times.begin(), times.end());
    std::sort(ideal.begin(), ideal.end());
    const auto bytes = static_cast<double>(count_ * 4);
    CollectivesResult result;
    result.bytes = bench_.op == "barrier" ? 0 : count_ * 4;
    result.min_us = times.front() * 1e6;
    result.p50_us = times[times.size() / 2] * 1e6;
    result.p99_us = times[times.size() * 99 / 100] * 1e6;
    if (bench_.op == "barrier") return result;
    result.algbw_gbs = bytes / times[times.size() / 2] / 1e9;
    result.busbw_gbs = result.algbw_gbs * bus_factor();
    if (!ideal.empty()) result.ceiling_gbs = bytes / ideal[ideal.size() / 2] / 1e9;
    return result;
  }

  const CollectivesBench& bench_;
  ProcessGroup& group_;
  MemoryCeiling* ceiling_;
  int64_t part_ = 0;
  int64_t count_ = 0;
  float* in_ = nullptr;
  float* out_ = nullptr;
  std::vector<std::shared_ptr<SharedBuffer>> shared_;
  std::vector<std::vector<float>> user_;
  const std::function<void()> operate_;
};

void measure(const CollectivesBench& bench, ProcessGroup& group, MemoryCeiling* ceiling,
             const std::function<void(const CollectivesResult&)>& report,
             const std::function<void()>& finish) {
  for (const int64_t bytes : bench.sizes) {
    const auto result = RankBench(bench, group, ceiling, bytes).run();
    if (group.rank() == 0) report(result);
    if (bench.op == "barrier") break;
  }
  if (group.rank() == 0) finish();
}

struct StoreProcess {
  pid_t pid = 0;
  int port = 0;
};

StoreProcess start_store(const std::string& secret) {
  int ends[2];
  if (::pipe(ends) != 0) throw io_error("pipe");
  const UniqueFd out(ends[0]);
  UniqueFd in(ends[1]);
  StoreProcess store;
  store.pid = fork_child(kErrorBegin, [&] {
    const TcpStoreServer server({"127.0.0.1", 0, secret});
    const int port = server.port();
    if (::write(in.get(), &port, sizeof port) != sizeof port) return;
    while (true) ::pause();
  });
  in.reset();
  if (::read(out.get(), &store.port, sizeof store.port) != sizeof store.port) {
    throw Error(ErrorCode::kUnavailable, "the bench's store did not start");
  }
  return store;
}

int status_of(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/// The first failure among the ranks, in the order in which they end.
int reap(std::vector<pid_t> pids) {
  int first = 0;
  while (!pids.empty()) {
    int status = 0;
    const pid_t pid = ::waitpid(-1, &status, 0);
    if (pid < 0) break;
    if (first == 0) first = status_of(status);
    std::erase(pids, pid);
  }
  return first;
}

}  // namespace

const std::vector<std::string>& bench_ops() {
  static const std::vector<std::string> kOps = {"all_reduce", "all_gather", "reduce_scatter",
                                                "broadcast",  "barrier",    "send"};
  return kOps;
}

std::vector<int64_t> parse_sizes(const std::string& text) {
  std::vector<int64_t> sizes;
  for (const auto& part : split(text, ',')) {
    const auto ends = split(part, ':');
    if (ends.size() > 2) {
      throw Error(ErrorCode::kInvalidArgument, "--sizes: '" + part + "' is not FROM:TO");
    }
    const int64_t last = parse_size(ends.back());
    for (int64_t size = parse_size(ends.front()); size <= last; size *= 2) sizes.push_back(size);
  }
  if (sizes.empty()) {
    throw Error(ErrorCode::kInvalidArgument, "--sizes: '" + text + "' has no size in it");
  }
  return sizes;
}

int run_collectives_bench(const CollectivesBench& bench,
                          const std::function<void(const CollectivesResult&)>& report,
                          const std::function<void()>& finish) {
  const std::string secret = make_job_secret();
  MemoryCeiling ceiling(bench.ranks, *std::max_element(bench.sizes.begin(), bench.sizes.end()) +
                                         int64_t{4096} * bench.ranks);
  const StoreProcess store = start_store(secret);
  std::vector<pid_t> ranks;
  for (int rank = 0; rank < bench.ranks; ++rank) {
    ranks.push_back(fork_child(kErrorBegin, [&] {
      auto group = ProcessGroup::create(bench_world(rank, bench.ranks, store.port, secret),
                                        {.backend = bench.backend});
      measure(bench, group, &ceiling, report, finish);
    }));
  }
  const int status = reap(ranks);
  ::kill(store.pid, SIGKILL);
  ::waitpid(store.pid, nullptr, 0);
  return status;
}

void run_collectives_rank(const World& world, const CollectivesBench& bench,
                          const std::function<void(const CollectivesResult&)>& report,
                          const std::function<void()>& finish) {
  auto group = ProcessGroup::create(world, {.backend = bench.backend});
  measure(bench, group, nullptr, report, finish);
  group.barrier();  // no rank leaves while others still measure the end of their last call
}

}  // namespace lockstep::app
